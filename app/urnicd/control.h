/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon as a whole, and its control thread: an epoll loop over the listening socket, the
 * clients' sockets and processes, and signals.
 */
#ifndef URNICD_CONTROL_H
#define URNICD_CONTROL_H

#include <sys/types.h>

#include "client.h"
#include "clients.h"
#include "config.h"
#include "device.h"
#include "worker.h"

struct urnicd {
    struct config conf;
    struct device *device[CONFIG_DEVICES];
    unsigned ndevice;
    struct worker worker[CONFIG_WORKERS];
    unsigned nworker;

    int epfd, listen_fd, signal_fd;
    dev_t socket_dev; /* which socket at the path is ours */
    ino_t socket_ino;
    int spare_fd; /* for turning clients away when there is no other */
    struct clients clients;
    int seals_fd; /* readable when a slab has its seals (seal.h) */
    uint64_t started_at;
    uint64_t accepted, refused; /* connections */
    uint64_t memory_at;         /* when control_memory last looked */
};

/* Make the socket and listen. 0, or -errno with a sentence in err (CONFIG_ERR octets). */
int control_open(struct urnicd *d, char *err);
/* Serve until SIGTERM or SIGINT. */
void control_run(struct urnicd *d);
/* Tear every client down, say goodbye to the peers, remove the socket. */
void control_close(struct urnicd *d);

/* See how much memory there is now for clients: limits of control groups change, and daemons are
 * moved. For a look before some is given out; on the control thread. */
void control_memory(struct urnicd *d);

/* A client ends: it is off the list of clients. */
void control_end(struct urnicd *d, struct client *c);

/* The device of this name; NULL = none. */
struct device *control_device(struct urnicd *d, const char *name);

/* How many connections a user may have that has `own` and the others `others` (SEC-22). */
unsigned control_share(unsigned own, unsigned others);

#endif
