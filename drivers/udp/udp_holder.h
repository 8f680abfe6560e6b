/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The program that has a UDP port, as far as /proc shows it.
 */
#ifndef URNIC_UDP_HOLDER_H
#define URNIC_UDP_HOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "io.h"

/* Name the holder of a UDP port of this address in this network namespace, in words for an error:
 * "process 123 (urnicd)". It has a socket for the address, or one for all of them. A socket that no
 * process has is taken for one of rdma_rxe, if that is there. Always writes something. */
#define UDP_HOLDER_TEXT 168u
void udp_holder(const struct io_addr *addr, uint16_t port, char *text, size_t size);

#endif
