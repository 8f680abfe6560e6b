/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of programs that run the engine themselves (ipc_channel.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client_qp.h"
#include "clock.h"
#include "engine_channel.h"
#include "engine_group.h"
#include "engine_peer.h"
#include "io.h"
#include "log.h"
#include "request.h"

/* A library that names no peers would have all its frames dropped (SEC-35). */
static bool names_peers(const struct client *c, uint64_t now)
{
    if (c->minor >= IPC_ENGINE_MINOR)
        return true;
    if (share_may_log(c->share, now))
        log_warn("client",
                 "%s[%d]: engine=application refused: its liburnic speaks protocol 1.%u, and this "
                 "daemon needs 1.%u for it: install the liburnic of this daemon, or use "
                 "URNIC_ENGINE=daemon",
                 c->comm, (int)c->pid, c->minor, IPC_ENGINE_MINOR);
    return false;
}

static int req_engine_open(struct request *r)
{
    struct ipc_engine_opened *out = request_out(r, struct ipc_engine_opened);
    struct engine_channel_offer offer;
    if (!r->client->open)
        return -ENOTCONN;
    if (r->client->own) /* a program on a channel or a port of its own, which is no daemon */
        return -ENOTSUP;
    if (!names_peers(r->client, clock_now()))
        return -ENOTSUP;
    int rc = engine_channel_open(r->client, request_in(r, struct ipc_engine_open)->slots, &offer);
    if (rc < 0)
        return rc;
    out->slots = offer.slots;
    out->frame_max = offer.frame_max;
    request_reply_fd(r, offer.memory_fd, false);
    request_reply_fd(r, offer.event_fd, false);
    request_reply_fd(r, offer.facts_fd, false);
    return 0;
}

static int req_engine_grow(struct request *r)
{
    struct ipc_engine_opened *out = request_out(r, struct ipc_engine_opened);
    struct engine_channel_offer offer;
    int rc = engine_channel_grow(r->client, request_in(r, struct ipc_engine_open)->slots, &offer);
    if (rc < 0)
        return rc;
    out->slots = offer.slots;
    out->frame_max = offer.frame_max;
    request_reply_fd(r, offer.memory_fd, false);
    return 0;
}

static int req_engine_mapped(struct request *r)
{
    struct ipc_engine_block *out = request_out(r, struct ipc_engine_block);
    const int fd = engine_channel_unsealed(r->client);
    /* SHM-10: another thread waits while the program punches pages out. */
    if (fd >= 0 && !client_is_admin(r->client)) {
        r->unsealed = fd;
        return r->sealings == 0 ? -EINPROGRESS : -EPERM;
    }
    return engine_channel_attach(r->client, &out->block, out->key);
}

static int req_engine_block(struct request *r)
{
    struct ipc_engine_block *out = request_out(r, struct ipc_engine_block);
    return engine_channel_block(r->client, &out->block, out->key);
}

static int req_engine_socket(struct request *r)
{
    struct ipc_engine_socket_given *out = request_out(r, struct ipc_engine_socket_given);
    struct io_lent lent;
    int bell;
    int rc = engine_channel_socket(r->client, request_in(r, struct ipc_engine_socket)->index, &lent,
                                   &bell);
    if (rc < 0)
        return rc;
    if (lent.fd < 0)
        return 0;
    memcpy(out->addr, lent.addr.b, sizeof(out->addr));
    snprintf(out->iface, sizeof(out->iface), "%s", lent.iface);
    out->trains = lent.trains;
    request_reply_fd(r, lent.fd, true);
    if (bell >= 0)
        request_reply_fd(r, bell, true);
    return 0;
}

static int engine_peer(struct client *c, const struct ipc_engine_peer *m, uint64_t now)
{
    struct engine_av av;
    int rc = av_from_ipc(c->ctx.device, &m->av, &av);
    return rc < 0 ? rc : engine_peer_set(c, m->qpn, m->peer, &av, now);
}

static int engine_peer_resolved(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now)
{
    struct ipc_engine_peer m;
    memcpy(&m, d->msg, sizeof(m));
    memcpy(m.av.dmac, mac, 6);
    memcpy(d->msg, &m, sizeof(m));
    *len = sizeof(m);
    return engine_peer(d->client, &m, now);
}

static int req_engine_peer(struct request *r)
{
    static const uint8_t unknown[6];
    const struct ipc_engine_peer in = *request_in(r, struct ipc_engine_peer);
    struct engine_av av;
    int rc = av_wanted(r->device, &in.av, &av);
    if (rc < 0)
        return rc;
    if (memcmp(av.dmac, unknown, sizeof(unknown)) == 0)
        return request_defer(r, sizeof(in), &av.dgid, engine_peer_resolved);
    *request_out(r, struct ipc_engine_peer) = in;
    return engine_peer(r->client, &in, r->now);
}

static int req_engine_part(struct request *r)
{
    engine_peer_drop(r->client, request_in(r, struct ipc_engine_peer)->qpn);
    return 0;
}

static int req_engine_join(struct request *r)
{
    const struct ipc_engine_group *in = request_in(r, struct ipc_engine_group);
    struct wire_addr group;
    memcpy(group.b, in->gid, sizeof(group.b));
    return engine_group_join(r->client, in->qpn, &group, r->now);
}

static int req_engine_leave(struct request *r)
{
    const struct ipc_engine_group *in = request_in(r, struct ipc_engine_group);
    struct wire_addr group;
    memcpy(group.b, in->gid, sizeof(group.b));
    return engine_group_leave(r->client, in->qpn, &group, r->now);
}

const struct request_type request_engine[IPC_TYPE_MAX] = {
    [IPC_ENGINE_OPEN] = {REQ_CONTROL, false, WHOLE(ipc_engine_open), .run = req_engine_open,
                         .fds = true},
    [IPC_ENGINE_BLOCK] = {REQ_CONTROL, false, PLAIN, .run = req_engine_block},
    [IPC_ENGINE_GROW] = {REQ_CONTROL, false, WHOLE(ipc_engine_open), .run = req_engine_grow,
                         .fds = true},
    [IPC_ENGINE_MAPPED] = {REQ_CONTROL, false, PLAIN, .run = req_engine_mapped},
    [IPC_ENGINE_SOCKET] = {REQ_CONTROL, true, WHOLE(ipc_engine_socket), .run = req_engine_socket,
                           .fds = true},
    [IPC_ENGINE_PEER] = {REQ_CONTEXT, false, WHOLE(ipc_engine_peer), .run = req_engine_peer},
    [IPC_ENGINE_PART] = {REQ_CONTEXT, false, WHOLE(ipc_engine_peer), .run = req_engine_part},
    [IPC_ENGINE_JOIN] = {REQ_CONTEXT, false, WHOLE(ipc_engine_group), .run = req_engine_join},
    [IPC_ENGINE_LEAVE] = {REQ_CONTEXT, false, WHOLE(ipc_engine_group), .run = req_engine_leave},
};
