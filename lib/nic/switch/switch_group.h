/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups of which programs are members, and copies of datagrams for them.
 */
#ifndef NIC_SWITCH_GROUP_H
#define NIC_SWITCH_GROUP_H

#include "switch_channel.h"

/* A channel becomes a member, or is one already. 0, -ENOSPC: SWITCH_GROUPS have members, -ENOMEM.
 */
int switch_group_join(struct nic_switch *s, struct switch_channel *c,
                      const struct wire_addr *group);
/* It leaves, if it is a member. */
void switch_group_leave(struct nic_switch *s, struct switch_channel *c,
                        const struct wire_addr *group);
void switch_group_leave_all(struct nic_switch *s, struct switch_channel *c);
void switch_groups_free(struct nic_switch *s);

/* Has it members? */
bool switch_group_has(struct nic_switch *s, const struct wire_addr *group);
/* Copy a datagram to all members, as far as this round may make copies. Returns whether there are
 * members. */
bool switch_group_copy(struct nic_switch *s, const struct wire_addr *group,
                       const struct io_frame *frame);

#endif
