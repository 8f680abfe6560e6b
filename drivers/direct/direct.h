/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port of a program with an engine of its own, on a device whose port is the kernel's: UDP
 * sockets that the daemon has made for it, and its channel for the rest. No port specification
 * names it.
 *
 *     to a peer, from an address with a socket       by the socket
 *     groups, other addresses, what isn't RoCE       over the channel
 *     received for a queue pair of another owner     over the channel to its owner (CHANNEL_STRAY)
 *
 * The kernel steers by the queue pair's number (drivers/udp/udp_queue.h), so such strays are few.
 */
#ifndef URNIC_DIRECT_H
#define URNIC_DIRECT_H

#include "io.h"

/* Open it.
 *
 * channel  the program's end of its channel (drivers/channel); the port's from then on
 * udp      from io_udp_open_lent; the port's from then on
 * bell     readable when the daemon has put something into the channel and the program is armed;
 *          the port's from then on
 * block    the block of the program's queue pair numbers (lib/core/base/qpn.h)
 *
 * 0; -ENOMEM, or the system's error: then all of them stay the caller's. */
int direct_open(struct io_port *channel, struct io_port *udp, int bell, unsigned block,
                struct io_port **out);
/* As channel_tx_meta, for slots that leave over the channel. */
void direct_tx_meta(struct io_port *io, unsigned i, uint32_t meta);
/* Set the device's addresses: closes the sockets of all others. */
void direct_addrs(struct io_port *io, const struct io_addr *addrs, unsigned n);

#endif
