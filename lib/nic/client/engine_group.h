/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups of a client that runs the engine itself. Its engine delivers datagrams to the
 * queue pairs that it has attached; the daemon is a member for them, so that the network and the
 * switch send frames for a group. On the device's worker.
 */
#ifndef NIC_ENGINE_GROUP_H
#define NIC_ENGINE_GROUP_H

#include <stdint.h>

struct client;
struct wire_addr;

/* Make a queue pair of the client's own channel, by its number, a member. No effect if it is one.
 * -EINVAL: no such queue pair, or no group; -EDQUOT: its user has its share; -ENOSPC: the device is
 * in too many groups; -ENOMEM. */
int engine_group_join(struct client *c, uint32_t qpn, const struct wire_addr *group, uint64_t now);
/* End the membership. -EINVAL: it is no member. */
int engine_group_leave(struct client *c, uint32_t qpn, const struct wire_addr *group, uint64_t now);
/* Take all of the client's queue pairs out of all groups. */
void engine_group_leave_all(struct client *c, uint64_t now);

#endif
