/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first resources of each end of `urnic perf`, `copy`, `rping` and `ucmatose`: a domain, a
 * completion queue and registered memory on a device. One thread.
 */
#ifndef URNIC_RESOURCES_H
#define URNIC_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urnic/urnic.h"

struct resources {
    struct urnic_context *ctx; /* the caller's: not closed here */
    struct urnic_pd *pd;
    struct urnic_channel *channel; /* channel of cq, not blocking; NULL = no events */
    struct urnic_cq *cq;
    struct urnic_mr *mr; /* region of all of mem */
    uint8_t *mem;
};

/* Make all resources: `cqe` entries of the completion queue, `octets` of memory with the peers'
 * rights `access`. 0, or -errno with nothing made. */
int resources_open(struct resources *r, struct urnic_context *ctx, int cqe, bool events,
                   size_t octets, unsigned access);
/* Free them, after their queue pairs. Legal after a resources_open that failed, and twice. */
void resources_close(struct resources *r);
/* Print a completion with an error: its status, the rule that was broken. */
void resources_wc_failed(const struct urnic_wc *wc);

/* Make reads from a channel's descriptor non-blocking. 0 or -errno. */
int resources_nonblocking(int fd);

#endif
