/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: io_ops' part of it (io.h).
 */
#ifndef URNIC_UDP_RX_H
#define URNIC_UDP_RX_H

#include "udp_port.h"

unsigned udp_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now);
void udp_rx_release(struct io_port *io, unsigned n);

/* The memory of it. 0 or -ENOMEM; free takes what is left of a failed one. */
int udp_rx_alloc(struct udp_port *p);
void udp_rx_free(struct udp_port *p);

/* The two halves of a look at a socket, around recvmmsg, apart for the fuzz target. Prepare
 * p->rx.msg for the kernel: returns how many messages of it, 0 = too much is lent still. */
unsigned udp_rx_make(struct udp_port *p);
/* The kernel has filled the first `n` of them from socket `s`: make frames of them, and queue them.
 */
void udp_rx_take(struct udp_port *p, struct udp_socket *s, unsigned n);

#endif
