/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's capture. It has started once its file has taken the first octets; a full pipe may take
 * them later. A capture that can't start fails at once. It ends with the client or at the client's
 * request, and the remaining frames are then written to its file, as long as a pipe's reader reads.
 * Start and end may block for ever; only the client that asked for them waits.
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
    struct client_capture *next; /* in the daemon's list */
    struct client *client;       /* NULL: disconnected */
    struct capture *capture;
    enum client_capture_state state;
    struct ipc_hdr request; /* the request to answer when it has started, or ended */
};

/* Start a capture on all workers of its device, and answer this request once it has started.
 * -EBUSY: the client has one, perhaps one that is ending; -EDQUOT: too many captures of
 * disconnected clients are still ending. The file is taken over with 0 only. */
int client_capture_open(struct client *c, struct device *d, const struct capture_params *p,
                        const struct ipc_hdr *request);
/* End a capture, and answer this request once it has ended. If it has not started yet, the request
 * to start is answered, too: -ECANCELED. -EINVAL: no such handle. */
int client_capture_stop(struct client *c, uint32_t handle, const struct ipc_hdr *request);
/* The client disconnects: its capture ends by itself. */
void client_capture_leave(struct client *c);

/* Some captures may have started or ended: answer the requests that wait for it. */
void client_capture_service(struct clients *all);
/* The daemon ends: wait, for a limited time, for captures that are ending. */
void client_capture_fini(struct clients *all);

#endif
