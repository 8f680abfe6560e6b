/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon as a whole, and its control thread: an epoll loop over the listening socket, the
 * clients' sockets and processes, and signals.
 */
#ifndef URNICD_CONTROL_H
#define URNICD_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

#include "client.h"
#include "config.h"
#include "nic.h"
#include "request.h"

struct urnicd {
    struct config conf;
    struct nic nic;

    int epfd, listen_fd, signal_fd;
    dev_t socket_dev; /* which socket at the path is ours */
    ino_t socket_ino;
    int spare_fd;               /* for turning clients away when there is no other */
    uint64_t accepted, refused; /* connections */
};

/* Looking in and steering (req_admin.c), beside what all clients may ask for. */
extern const struct request_type request_admin[IPC_TYPE_MAX];

/* The daemon that has this NIC. */
static inline struct urnicd *urnicd_of(struct nic *n)
{
    return (struct urnicd *)(void *)((char *)n - offsetof(struct urnicd, nic));
}

/* Make the socket and listen. 0, or -errno with a sentence in err (CONFIG_ERR octets). */
int control_open(struct urnicd *d, char *err);
/* Serve until SIGTERM or SIGINT. */
void control_run(struct urnicd *d);
/* Tear every client down, say goodbye to the peers, remove the socket. */
void control_close(struct urnicd *d);

/* A client ends: it is off the list of clients. */
void control_end(struct urnicd *d, struct client *c);

/* How many connections a user may have that has `own` and the others `others` (SEC-22). */
unsigned control_share(unsigned own, unsigned others);

#endif
