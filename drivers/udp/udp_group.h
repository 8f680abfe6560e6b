/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups of a udp port: the kernel joins them, by a socket for each.
 */
#ifndef URNIC_UDP_GROUP_H
#define URNIC_UDP_GROUP_H

#include "udp_port.h"

/* Be a member of these groups and no others. 0, or -errno of the last one that could not be. */
int udp_groups(struct io_port *io, const struct io_addr *groups, unsigned n);

#endif
