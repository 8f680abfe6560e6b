/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ICMP says about datagrams of ours (IP_RECVERR). Anybody can forge it, and on a socket that
 * many peers share it would make the next send fail, whoever that is for: so it is read, told, and
 * nothing more.
 */
#ifndef URNIC_UDP_ERROR_H
#define URNIC_UDP_ERROR_H

#include "udp_port.h"

/* Read all errors of a socket. Returns how many there were. */
unsigned udp_error_drain(struct udp_port *p, const struct udp_socket *s);

#endif
