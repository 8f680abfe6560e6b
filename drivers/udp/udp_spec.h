/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arguments of a udp port: IF[,KEY=VALUE...].
 */
#ifndef URNIC_UDP_SPEC_H
#define URNIC_UDP_SPEC_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "io.h"

#define UDP_BUFFER 8388608u /* wanted buffer; the kernel's sysctls may allow less */
#define UDP_ADDRS  14u      /* most addresses of one device: as many as its other tables hold */

struct udp_spec {
    char iface[IF_NAMESIZE];
    struct io_addr only[UDP_ADDRS]; /* addr=: use these addresses alone; none = all */
    unsigned nonly;
    uint32_t buffer; /* requested octets of each socket's two buffers */
    bool trains;     /* send and receive several datagrams in one call (UDP_SEGMENT, UDP_GRO) */
};

/* Read the arguments. Returns 0, or -EINVAL with a sentence in err. Opens nothing. */
int udp_spec_parse(const char *args, struct udp_spec *out, char *err, size_t err_size);
/* Is this an address that the port may use? */
bool udp_spec_wants(const struct udp_spec *s, const struct io_addr *addr);

#endif
