/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The script's side of a wire: a port, an IP address on it, and connections to a device's
 * connection manager, by hand: no queue pair of ours is behind them, only the script.
 */
#ifndef URNIC_DRILL_WIRE_H
#define URNIC_DRILL_WIRE_H

#include "drill.h"

struct drill_host;

struct drill_host_params {
    const char *port;            /* specification */
    struct wire_addr addr, peer; /* ours, the device's */
    unsigned prefix;             /* length of our network's, in our address's family */
    uint16_t service;            /* IP port that the program at the other end listens on */
    const char *server;          /* its name, as scripts say it */
};

/* 0, or -errno with a text in err. Fills *wire; close when done with it. */
int drill_host_open(const struct drill_host_params *p, struct drill_host **out,
                    struct drill_wire *wire, char *err, size_t size);
void drill_host_close(struct drill_host *h);

#endif
