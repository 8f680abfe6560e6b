/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's capture. It has started when its file has taken something, but for a full pipe, which
 * takes it later; that it can't be begun is told at once. It ends with the client or at its
 * request, and what is left is written to its file then, as long as a pipe's reader reads. Either
 * may take for ever: nobody waits for that but who has asked for it.
 *
 * Threads: the control thread.
 */
#ifndef NIC_CLIENT_CAPTURE_H
#define NIC_CLIENT_CAPTURE_H

#include "capture.h"
#include "ipc.h"

struct client;
struct clients;

enum client_capture_state { CAPTURE_STARTS, CAPTURE_RUNS, CAPTURE_ENDS };

struct client_capture {
    struct client_capture *next; /* of the daemon */
    struct client *client;       /* NULL: it is gone */
    struct capture *capture;
    enum client_capture_state state;
    struct ipc_hdr request; /* what is answered when it has started, when it has ended */
};

/* Begin one on its device, on all its workers, and answer this request when it has started. -EBUSY:
 * the client has one, also one that ends; -EDQUOT: too many of clients that are gone still end. The
 * file is taken over with 0 only. */
int client_capture_open(struct client *c, struct device *d, const struct capture_params *p,
                        const struct ipc_hdr *request);
/* Have it end, and answer this request when it has. If it has not started yet, that request is
 * answered, too: -ECANCELED. -EINVAL: no such handle. */
int client_capture_stop(struct client *c, uint32_t handle, const struct ipc_hdr *request);
/* The client goes: its capture ends by itself. */
void client_capture_leave(struct client *c);

/* Some may have started or ended: answer who waits for it. */
void client_capture_service(struct clients *all);
/* The daemon ends: wait for those that end, but not for ever. */
void client_capture_fini(struct clients *all);

#endif
