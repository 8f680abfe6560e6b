/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: io_ops' part of it (io.h).
 */
#ifndef URNIC_UDP_RX_H
#define URNIC_UDP_RX_H

#include "udp_port.h"

unsigned udp_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now);
void udp_rx_release(struct io_port *io, unsigned n);

/* Allocate its memory. 0 or -ENOMEM; free also takes a partly allocated one. */
int udp_rx_alloc(struct udp_port *p);
void udp_rx_free(struct udp_port *p);

/* The two halves of a look at a socket, before and after recvmmsg; separate for the fuzz target.
 * Prepare p->rx.msg for the kernel. Returns the number of messages prepared, 0 = too many frames
 * are still lent. */
unsigned udp_rx_make(struct udp_port *p);
/* Make frames of the first `n` messages, which the kernel has filled from socket `s`, and queue
 * them. */
void udp_rx_take(struct udp_port *p, struct udp_socket *s, unsigned n);

#endif
