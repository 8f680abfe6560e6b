/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The udp driver: RoCEv2 over the host's own addresses by ordinary UDP sockets, without any
 * capability. The functions for other folders.
 */
#ifndef URNIC_UDP_H
#define URNIC_UDP_H

#include "io.h"

/* Open a port: IF[,addr=A;B...][,trains=off]. As io_open_fn. */
int io_udp_open(const char *args, const struct io_open_params *params, struct io_port **out,
                char *err, size_t err_size);
/* A port on this interface without sockets, for a program that gets some (io_ops.lend): it follows
 * no addresses. 0 and *out, or -errno. */
int io_udp_open_lent(const char *iface, bool trains, const uint8_t mac[6], struct io_port **out);
/* Use this socket of an address, which then belongs to the port. 0; on errors it stays the
 * caller's: -ENOSPC; -EXDEV: it belongs to another network namespace than this thread; or the
 * system's error. */
int io_udp_take(struct io_port *io, const struct io_addr *addr, int fd);
/* Close the sockets of all but these addresses. */
void io_udp_keep(struct io_port *io, const struct io_addr *addrs, unsigned n);
/* See io_forked. */
void udp_port_forked(const struct io_port *io);
/* Are the arguments valid? As io_check. */
int io_udp_check(const char *args, char *err, size_t err_size);

#endif
