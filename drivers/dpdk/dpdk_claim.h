/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An interface that is shared with the kernel gives each frame to our socket, and then to the
 * kernel's IP stack, which looks for a route, finds none or no receiver, and may answer with
 * "unreachable". A claim ends the kernel's part for RoCEv2 to our addresses, after the sockets and
 * packet captures: a BPF program where the kernel classifies incoming frames (Linux 6.6: tcx). No
 * DPDK in here.
 */
#ifndef URNIC_DPDK_CLAIM_H
#define URNIC_DPDK_CLAIM_H

#include "io.h"

#define CLAIM_ADDRS_MAX 32u

/* Claim UDP port 4791 of the `n` addresses (at most CLAIM_ADDRS_MAX, the rest is left out) on the
 * interface. Frames with a VLAN tag, with IPv4 options and fragments stay the kernel's. Returns a
 * descriptor. The claim ends when it is closed, and with the interface. Or -errno: -EPERM without
 * CAP_BPF and CAP_NET_ADMIN, -EINVAL where the kernel is too old. Two claims on one interface add
 * up. */
int claim_make(int ifindex, const struct io_addr *addrs, unsigned n);

#endif
