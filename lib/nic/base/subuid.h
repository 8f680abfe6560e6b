/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner of a subordinate user. Debian gives every user 65,536 of them (/etc/subuid). If each
 * had shares of its own, shares would protect no other user (SEC-22). Control thread.
 */
#ifndef NIC_SUBUID_H
#define NIC_SUBUID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct subuid_range {
    uid_t owner, first;
    uint32_t count;
};

struct subuids {
    struct subuid_range *range;
    unsigned n;
};

/* Read lines "OWNER:FIRST:COUNT", OWNER a name or a number; other lines are skipped. Out of memory,
 * some are missing. subuids_free is for the end. */
void subuids_read(struct subuids *s, FILE *f);
void subuids_free(struct subuids *s);
/* The owner of a subordinate user; `uid` itself if it has none. */
uid_t subuids_owner(const struct subuids *s, uid_t uid);

#endif
