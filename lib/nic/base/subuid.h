/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose a subordinate user is: Debian gives every user 65,536 of them (/etc/subuid), and shares
 * that count by uid would be worth nothing to others (SEC-22). Control thread.
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

/* Read lines "OWNER:FIRST:COUNT", OWNER a name or a number; others are skipped. Without memory some
 * are missing. subuids_free is for the end. */
void subuids_read(struct subuids *s, FILE *f);
void subuids_free(struct subuids *s);
/* The user whose subordinate this is; `uid` itself if it is nobody's. */
uid_t subuids_owner(const struct subuids *s, uid_t uid);

#endif
