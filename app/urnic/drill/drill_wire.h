/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The script's side of a wire: a port, an IP address on it, and connections to a device's
 * connection manager. urnic has no queue pair for these connections: the script itself sends and
 * expects their packets. One thread, which serves the port while it waits. Time is that of the
 * monotonic clock.
 */
#ifndef URNIC_DRILL_WIRE_H
#define URNIC_DRILL_WIRE_H

#include "drill.h"

struct drill_host;

struct drill_host_params {
    const char *port;            /* specification */
    struct wire_addr addr, peer; /* ours, the device's */
    unsigned prefix;             /* prefix length of our network, in our address's family */
    uint16_t service;            /* IP port that the program at the other end listens on */
    const char *server;          /* its name in scripts */
};

/* Open the port and put the address on it; sends nothing yet. The functions of *wire are good until
 * the host is closed; the texts of *p stay the caller's and must last as long. 0, or -errno (of
 * io_open; -ENOMEM, -EIO: no random numbers; those of net_addr_add) with a text in err, which may
 * be empty. */
int drill_host_open(const struct drill_host_params *p, struct drill_host **out,
                    struct drill_wire *wire, char *err, size_t size);
/* Close the port, free all. NULL is fine. */
void drill_host_close(struct drill_host *h);

#endif
