/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ICMP errors about sent datagrams (IP_RECVERR). Any host can forge them. On a socket that many
 * peers share, an unread error makes the next send fail, to any peer. So the port reads each error.
 * An error ends new connections only; flight recorders of queue pairs note it.
 */
#ifndef URNIC_UDP_ERROR_H
#define URNIC_UDP_ERROR_H

#include "udp_port.h"

/* Read all errors of a socket. Returns how many there were. */
unsigned udp_error_drain(struct udp_port *p, const struct udp_socket *s);

/* Read all errors of all sockets. */
void udp_error_drain_all(struct udp_port *p);
/* io_ops.icmp */
bool udp_error_icmp(struct io_port *io, struct io_icmp *out);

#endif
