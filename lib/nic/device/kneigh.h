/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's neighbour table, for a port on an interface that the kernel uses as well
 * (neigh=kernel): who has which MAC is read from it by routing netlink, it is asked to find out
 * what it doesn't know, and addresses that it has are left to it to answer for.
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

/* Ask again which addresses the kernel has: the port has got another one. */
int kneigh_ask_addresses(const struct kneigh *k);
/* Have the kernel find out about a neighbour; the answer comes by kneigh_poll. Finding out what it
 * doesn't know yet takes CAP_NET_ADMIN. */
void kneigh_ask(struct kneigh *k, const struct wire_addr *addr);
/* Tell the port what has come in: neighbours, and which of its addresses are the kernel's. Never
 * blocks. */
void kneigh_poll(struct kneigh *k, struct net_port *port, uint64_t now);

#endif
