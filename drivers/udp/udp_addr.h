/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The addresses of an interface of the kernel, by routing netlink.
 */
#ifndef URNIC_UDP_ADDR_H
#define URNIC_UDP_ADDR_H

#include <stdbool.h>

#include "io.h"

struct udp_watch {
    int fd; /* -1 = none: every look reads the list */
};

/* Watch changes of addresses, in the network namespace of this thread. */
void udp_watch_open(struct udp_watch *w);
void udp_watch_close(struct udp_watch *w);
/* May an address of any interface have changed since the last call? */
bool udp_watch_changed(struct udp_watch *w);

/* The addresses that a socket can be bound to: not those under a check for duplicates, or with a
 * duplicate. Returns the number, at most max; or -errno. */
int udp_addr_list(int ifindex, struct io_addr *out, unsigned max);
/* Is it fe80::/10? */
bool udp_addr_is_link_local(const struct io_addr *a);

#endif
