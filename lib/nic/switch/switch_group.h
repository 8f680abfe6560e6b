/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups with programs as members, and copies of datagrams for them.
 */
#ifndef NIC_SWITCH_GROUP_H
#define NIC_SWITCH_GROUP_H

#include "switch_channel.h"

/* Make a channel a member; it may be one already. 0, -ENOSPC: SWITCH_GROUPS groups have members,
 * -ENOMEM. */
int switch_group_join(struct nic_switch *s, struct switch_channel *c,
                      const struct wire_addr *group);
/* Remove a channel from a group, if it is a member. */
void switch_group_leave(struct nic_switch *s, struct switch_channel *c,
                        const struct wire_addr *group);
void switch_group_leave_all(struct nic_switch *s, struct switch_channel *c);
void switch_groups_free(struct nic_switch *s);

/* The i-th group with members; false after the last. */
bool switch_group_get(const struct nic_switch *s, unsigned i, struct wire_addr *group);
/* Has a group members? */
bool switch_group_has(struct nic_switch *s, const struct wire_addr *group);
/* Copy a datagram to all members, within this round's budget of copies. Returns whether there are
 * members. */
bool switch_group_copy(struct nic_switch *s, const struct wire_addr *group,
                       const struct io_frame *frame);

#endif
