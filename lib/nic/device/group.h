/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which users have queue pairs in which multicast groups. A group counts once for each user in it
 * (SEC-22), however many of the user's queue pairs are. On any of the device's workers.
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
/* One of them leaves the group. */
void group_leave(struct group_user **list, struct share *s, const struct wire_addr *group);

#endif
