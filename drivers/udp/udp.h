/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The udp driver: RoCEv2 over the host's own addresses by ordinary UDP sockets, without any
 * capability. What io.c needs of it.
 */
#ifndef URNIC_UDP_H
#define URNIC_UDP_H

#include "io.h"

/* Open a port: IF[,addr=A;B...][,trains=off]. As io_open_fn. */
int io_udp_open(const char *args, const struct io_open_params *params, struct io_port **out,
                char *err, size_t err_size);
/* Can the arguments be understood? As io_check. */
int io_udp_check(const char *args, char *err, size_t err_size);

#endif
