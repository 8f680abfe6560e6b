/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ICMP errors about sent datagrams (IP_RECVERR). Any host can forge them. On a socket that many
 * peers share, an unread error makes the next send fail, to whichever peer it goes. So the port
 * reads and reports each error, and does nothing else about it.
 */
#ifndef URNIC_UDP_ERROR_H
#define URNIC_UDP_ERROR_H

#include "udp_port.h"

/* Read all errors of a socket. Returns how many there were. */
unsigned udp_error_drain(struct udp_port *p, const struct udp_socket *s);

#endif
