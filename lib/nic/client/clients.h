/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All clients together, and what they share. The control thread's.
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
    struct share_pool share; /* who has how much of what is the daemon's */
    struct subuids subuids;
    struct unread_list unread;
    struct client_capture *captures; /* of all clients, also of those that are gone */
    int captures_fd;                 /* readable when one of them has started or ended; -1 = none */

    /* Answer a request that has waited: the client's `request`, with this status and message of
     * `len` octets, whose header is still to be filled in. From any thread, never blocking. */
    void (*answer)(struct client *c, const struct ipc_hdr *request, int status, void *msg,
                   size_t len);
};

#endif
