/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several queues of a udp port, one for each worker of a device: each address has a socket for
 * each, and the kernel picks the one by the first bits of the packet's queue pair number
 * (lib/core/base/qpn.h). Queue 0 is the port that was opened first. It alone follows the addresses
 * of the interface, joins groups, and gives the other queues their sockets.
 *
 * The kernel knows the sockets of an address by the order in which they were bound. So queue 0
 * binds them all, in the order of the queues, and they come and go together.
 */
#ifndef URNIC_UDP_QUEUE_H
#define URNIC_UDP_QUEUE_H

#include "udp_port.h"

#define UDP_QUEUES 8u

struct udp_queues;

/* io_ops.queue. */
int udp_queue_open(struct io_port *io, unsigned k, unsigned n, struct io_port **out);

/* On queue 0, after the socket of an address is bound: bind those of the other queues to the same
 * address. 0, or -errno with none of them bound. */
int udp_queue_split(struct udp_port *p, const struct udp_socket *s);
/* On queue 0, when it closes the socket of this address: close those of the other queues. */
void udp_queue_drop(struct udp_port *p, const struct udp_socket *s);
/* On another queue: take over the sockets that queue 0 has made, and close all others. */
void udp_queue_follow(struct udp_port *p);
/* io_ops.lend and .unlend, on any queue. A program's sockets follow the queues'. */
int udp_queue_lend(struct io_port *io, unsigned block, unsigned i, struct io_lent *out);
void udp_queue_unlend(struct io_port *io, unsigned block);
/* Close the queue. Queue 0 is the last. */
void udp_queue_close(struct udp_port *p);

#endif
