/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's neighbour table, for a port on an interface that the kernel uses as well
 * (neigh=kernel). urnic reads neighbours' MACs from it by routing netlink, and makes the kernel
 * resolve unknown ones. The kernel answers for its own addresses.
 */
#ifndef NIC_KNEIGH_H
#define NIC_KNEIGH_H

#include <stdint.h>

#include "net.h"
#include "wire.h"

struct kneigh;

/* Follow the kernel's table for an interface. Also holds the kernel back from answering RoCE
 * packets with "port unreachable". 0, or -errno with a sentence in err (CONFIG_ERR octets). */
int kneigh_open(struct kneigh **out, const char *ifname, char *err);
void kneigh_close(struct kneigh *k); /* NULL is fine */

/* Read the kernel's addresses again: the port has another one. */
int kneigh_ask_addresses(const struct kneigh *k);
/* Make the kernel resolve a neighbour; kneigh_poll gets the answer. Resolving an unknown one takes
 * CAP_NET_ADMIN. */
void kneigh_ask(struct kneigh *k, const struct wire_addr *addr);
/* Pass new facts to the port: neighbours, and which of its addresses are the kernel's. Never
 * blocks. */
void kneigh_poll(struct kneigh *k, struct net_port *port, uint64_t now);

#endif
