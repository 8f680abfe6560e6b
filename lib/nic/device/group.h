/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose queue pairs are in which multicast groups. A group counts once for each user who is in it
 * (SEC-22), however many of his queue pairs are. On any of the device's workers.
 */
#ifndef NIC_GROUP_H
#define NIC_GROUP_H

#include "share.h"
#include "wire.h"

/* A user in a group. */
struct group_user {
    struct group_user *next;
    struct share *share;
    struct wire_addr group;
    uint32_t n; /* queue pairs */
};

/* One more queue pair of this user joins. -EDQUOT, -ENOMEM. */
int group_join(struct group_user **list, struct share *s, const struct wire_addr *group);
/* One of them leaves. */
void group_leave(struct group_user **list, struct share *s, const struct wire_addr *group);

#endif
