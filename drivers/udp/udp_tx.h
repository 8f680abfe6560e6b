/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: io_ops' part of it (io.h).
 */
#ifndef URNIC_UDP_TX_H
#define URNIC_UDP_TX_H

#include "udp_port.h"

unsigned udp_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now);
void udp_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now);
/* Try again to send committed frames that the kernel had no room for. */
void udp_tx_flush(struct udp_port *p, uint64_t now);

#endif
