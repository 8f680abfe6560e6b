/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two engines in one process, each with a port and a queue pair connected to the other's: they show
 * the cost of the protocol without processes, doorbells and threads.
 */
#ifndef URNIC_TESTS_ENGINE_PAIR_H
#define URNIC_TESTS_ENGINE_PAIR_H

#include "engine.h"
#include "io.h"

#define BUF        4096u
#define SIDE_DEPTH 1024u /* send work requests */

struct side {
    struct engine *e;
    struct io_port *io;
    struct qp *qp;
    struct cq *cq;
    uint8_t buf[BUF];
    uint32_t rkey;
    struct wire_addr addr;
    uint32_t qpn;
};

/* Reports the fault and ends the program. */
void check(int rc, const char *what);
/* Side n, 0 or 1, on a port of this specification. */
void side_create(struct side *s, unsigned n, const char *port, uint64_t now);
/* Move to RTS, connected to `peer`, which is side 1 - n. */
void side_connect(struct side *s, const struct side *peer, unsigned n, uint64_t now);

#endif
