/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's capture. It ends with the client or at its request, and what is left is written to its
 * file then, which may take for ever: nobody waits for that but who has asked for it.
 *
 * Threads: the control thread.
 */
#ifndef URNICD_CLIENT_CAPTURE_H
#define URNICD_CLIENT_CAPTURE_H

#include "capture.h"
#include "ipc.h"

struct client;
struct urnicd;

struct client_capture {
    struct client_capture *next; /* of those that end */
    struct client *client;       /* NULL: it is gone */
    struct capture *capture;
    bool ends;
    struct ipc_hdr request; /* ends: what is answered then */
};

/* Prepare one, not yet on its device. -EBUSY: the client has one, also one that ends; -EDQUOT: too
 * many of clients that are gone still end. The file is taken over with 0 only. */
int client_capture_open(struct client *c, struct device *d, const struct capture_params *p);
/* Its name for the client: a connection has at most one. */
uint32_t client_capture_handle(void);
/* Have it end, and answer this request when it has. -EINVAL: no such handle. */
int client_capture_stop(struct client *c, uint32_t handle, const struct ipc_hdr *request);
/* The client goes: its capture ends by itself. */
void client_capture_leave(struct client *c);

/* Some may have ended: answer who waits for it. */
void client_capture_service(struct urnicd *d);
/* The daemon ends: wait for those that end, but not for ever. */
void client_capture_fini(struct urnicd *d);

#endif
