/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All clients, and the resources that they share. The control thread's.
 */
#ifndef NIC_CLIENTS_H
#define NIC_CLIENTS_H

#include <stddef.h>

#include "ipc.h"
#include "share.h"
#include "subuid.h"
#include "unread.h"

struct client;
struct client_capture;

struct clients {
    struct client *first; /* linked */
    unsigned n;
    struct share_pool share; /* users' shares of the daemon's resources */
    struct subuids subuids;
    struct unread_list unread;
    struct client_capture *captures; /* captures of all clients, also of disconnected ones */
    int captures_fd;                 /* readable when a capture has started or ended; -1 = none */

    /* Answer a request that was deferred: the client's `request`, with this status and message of
     * `len` octets, whose header is still to be filled in. From any thread, never blocking. */
    void (*answer)(struct client *c, const struct ipc_hdr *request, int status, void *msg,
                   size_t len);
};

#endif
