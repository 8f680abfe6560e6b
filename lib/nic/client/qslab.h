/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue slabs: sealed memory with the queues of one context, several to a slab, so that ten
 * thousand queue pairs don't need twenty thousand descriptors. A place is all zero when it is
 * handed out.
 *
 * On the worker, or on the control thread while no job of the client runs there.
 */
#ifndef NIC_QSLAB_H
#define NIC_QSLAB_H

#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "share.h"

struct qslab_list {
    struct queue_slab *first;
    uint32_t last_number;
    struct share *share; /* the user's; NULL = no matter */
    uint64_t octets;     /* octets of all slabs: count against the client's quota */
    bool dirty;          /* some places must be cleared by qslab_clean */
    bool unmaps;         /* the client knows IPC_FEAT_UNMAP */
    unsigned announced;  /* slabs whose descriptor the next answer carries */
};

/* Find room for `size` octets (aligned to a cache line). -ENOMEM, -EDQUOT. */
int qslab_alloc(struct qslab_list *l, uint64_t size, struct slab_place *out);
/* Give a place back; *p is zeroed. Harmless for an empty place. Cheap: the place is free only after
 * qslab_clean. */
void qslab_free(struct slab_place *p);
/* Clear the places given back, or free large slabs as a whole, which may take milliseconds. On the
 * control thread. */
void qslab_clean(struct qslab_list *l);
/* The slab that the place is in. */
struct memory *qslab_memory(const struct slab_place *p);
/* The place's address in the daemon. */
void *qslab_at(const struct slab_place *p);
/* Describe a place to the client. Returns the descriptor to send along, or -1 when the client has
 * the slab already. */
int qslab_where(struct qslab_list *l, const struct slab_place *p, struct ipc_where *out);
/* The answer was sent, or was refused and the client has not got the announced descriptors. */
void qslab_answered(struct qslab_list *l, bool sent);
/* The client has lost descriptors: send each again, with the next place in its slab. */
void qslab_again(struct qslab_list *l);
/* Free everything. */
void qslab_fini(struct qslab_list *l);

#endif
