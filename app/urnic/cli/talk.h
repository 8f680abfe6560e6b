/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by `urnic rping` and `urnic ucmatose`: options, a device with one region and one
 * completion queue, a few connections on it, and waiting for a number of completions while watching
 * whether the peers are still there. Functions return 0 or -errno. One thread.
 */
#ifndef URNIC_TALK_H
#define URNIC_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli.h"
#include "resources.h"
#include "urnic/urnic.h"

struct talk {
    struct resources res; /* memory, queues and device */
    unsigned max_conns, nconns, depth;
    struct urnic_conn **conns;
    bool *gone;              /* per connection: the peer has hung up */
    bool broken;             /* a request was flushed: the others will never complete */
    unsigned sent, received; /* completions not yet consumed by a wait */
    uint32_t shortest;       /* octets of the shortest message received so far */
};

/* The common settings of both programs: the options TALK_OPTIONS, and the server's address. */
struct talk_options {
    const char *device; /* device; NULL = the first, on a server all */
    uint16_t port;
    bool json;
    const char *where; /* operand, the server to talk to; NULL = be the server */
    char host[64];     /* text of the server's address; its port is `port` */
};
/* clang-format off */
#define TALK_OPTIONS CLI_OPTIONS,                                                                  \
    {"port", required_argument, NULL, 'p'}, {"device", required_argument, NULL, 'd'},              \
    {"json", no_argument, NULL, 'j'}
/* clang-format on */
/* Take one of them and its value. 0; -1 with a message; 1 = another option. */
int talk_option(struct talk_options *o, int c, const char *value);
/* The operands, when getopt has ended. CLI_*. */
int talk_operands(struct talk_options *o, int argc, char *const *argv);

/* Open the device with a region of `size` octets, for `conns` connections, each with `depth` sends
 * and receives in flight. Prints errors. */
int talk_open(struct talk *t, const struct talk_options *o, size_t size, unsigned conns,
              unsigned depth);
/* Disconnect and free everything; also after a talk_open that failed half-way. */
void talk_close(struct talk *t);

/* Called with a new queue pair, before the peer can send: post receives. */
typedef int (*talk_prepare)(void *arg, struct urnic_qp *qp);
/* Make one more connection, to an IP address. Errors of urnic_connect_addr. */
int talk_connect(struct talk *t, const char *host, uint16_t port, talk_prepare prepare, void *arg);
/* Run a server on o's device or, if it names none, on all. `serve` gets options that name one (or,
 * with a single device, maybe none). Returns the CLI_* of `serve`. */
int talk_serve(const struct talk_options *o, int (*serve)(void *arg, const struct talk_options *o),
               void *arg);
/* Listen, and print that; or print the error. */
int talk_listen(struct talk *t, const struct talk_options *o, unsigned backlog,
                struct urnic_listener **out);
/* Accept the listener's next connection; -EINTR when cli_stop is set. */
int talk_accept(struct talk *t, struct urnic_listener *listener, talk_prepare prepare, void *arg);

/* Post a receive into, or a send from, the region at `offset`. */
int talk_receive(struct talk *t, struct urnic_qp *qp, size_t offset, uint32_t size);
int talk_send(struct talk *t, struct urnic_qp *qp, size_t offset, uint32_t size);
/* RDMA WRITE from, or READ into, the region. */
int talk_rdma(struct talk *t, struct urnic_qp *qp, enum urnic_wr_opcode opcode, size_t offset,
              uint32_t size, uint64_t remote_addr, uint32_t rkey);

/* Wait for n sends (or RDMA operations) and m receives to complete. -ECONNRESET: the peer has hung
 * up; -EIO: a completion with an error, which has been reported; -EINTR: cli_stop. */
int talk_wait(struct talk *t, unsigned sends, unsigned receives);
/* Wait until all peers have hung up. */
int talk_wait_goodbye(struct talk *t);

#endif
