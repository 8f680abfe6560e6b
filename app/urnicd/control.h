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
    dev_t socket_dev; /* identifies our socket at the path */
    ino_t socket_ino;
    int spare_fd;               /* spare descriptor to refuse clients when no other is left */
    uint64_t accepted, refused; /* connections */
};

/* Administrators' requests (req_admin.c), besides those of all clients. */
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
/* Disconnect every client, tell the peers, remove the socket. */
void control_close(struct urnicd *d);

/* A client ends: take it off the list of clients. */
void control_end(struct urnicd *d, struct client *c);

/* The most connections of a user that has `own` of them, while the other users have `others`
 * (SEC-22). */
unsigned control_share(unsigned own, unsigned others);

#endif
