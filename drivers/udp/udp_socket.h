/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sockets of a udp port, one for each of its addresses and groups.
 */
#ifndef URNIC_UDP_SOCKET_H
#define URNIC_UDP_SOCKET_H

#include "udp_port.h"

/* Open the socket of one more address, or of a group. 0; -ENOSPC; -EADDRINUSE: the port is taken,
 * and why (size octets; may be NULL) names the holder; -EADDRNOTAVAIL and other errors of the
 * kernel. */
int udp_socket_open(struct udp_port *p, const struct io_addr *addr, bool group, char *why,
                    size_t size);
/* Open a second socket of the address of `s`, which already shares it (SO_REUSEPORT). It receives
 * nothing for this port. 0 and *fd, or -errno. */
int udp_socket_twin(struct udp_port *p, const struct udp_socket *s, int *fd);
/* Receive from this socket, too; it belongs to the port then. 0; -ENOSPC or the kernel's error. */
int udp_socket_adopt(struct udp_port *p, const struct udp_socket *s);
/* Close it. Frames already received from it stay. */
void udp_socket_close(struct udp_port *p, struct udp_socket *s);
/* Take the socket out of the group that shares its address: it receives nothing more, even if
 * another process holds it. */
void udp_socket_mute(int fd);
bool udp_socket_is_v4(const struct io_addr *a);
/* The socket of an address, or (group) of a group; NULL = none. */
struct udp_socket *udp_socket_find(struct udp_port *p, const struct io_addr *addr, bool group);

/* Convert the address, with port 4791, to the kernel's form. Returns its length. */
socklen_t udp_sockaddr_set(union udp_sockaddr *sa, const struct io_addr *addr, uint32_t scope);
/* The address in the kernel's form, and its port. */
uint16_t udp_sockaddr_get(const union udp_sockaddr *sa, struct io_addr *addr);

#endif
