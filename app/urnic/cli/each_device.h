/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Servers without --device listen on every device of the daemon: each device has a process of its
 * own, which runs the same server. The user sees one program: it prints once that it listens, and
 * it ends, with all its processes, at a signal or when one of them ends.
 */
#ifndef URNIC_EACH_DEVICE_H
#define URNIC_EACH_DEVICE_H

#include <stdio.h>

struct each_device {
    /* The server, on one device (NULL: the first). Returns CLI_*, with a message. */
    int (*serve)(void *arg, const char *device);
    void *arg;
    FILE *to;         /* stream for the line below */
    const char *says; /* line to print when it listens */
};

/* Serve on this device, or with NULL on all. Returns the CLI_* of the server that ended first;
 * errors have been printed. */
int each_device(const char *device, const struct each_device *what);

/* Called by serve() when it listens. The line is printed when all do. */
void each_device_listens(void);
/* Called by serve() of a server of one client, when the client is here: the other devices stop
 * listening. */
void each_device_taken(void);

#endif
