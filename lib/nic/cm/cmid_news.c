/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of lib/cm become messages to the clients of the ids, on their channels (cmid_channel.c).
 * Event numbers and meanings are librdmacm's (CM-35).
 */
#include "cmid_news.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "client_qp.h"
#include "cmgr_priv.h"
#include "cmid.h"
#include "cmid_channel.h"
#include "cmid_qp.h"
#include "device.h"
#include "engine_channel.h"
#include "log.h"
#include "switch_news.h"
#include "team.h"

static void cmid_from_cm(const struct cm_event *in, struct ipc_cm_event *out)
{
    memcpy(out->src.ip, in->local.b, 16);
    memcpy(out->dst.ip, in->remote.b, 16);
    out->src.port = in->local_port;
    out->dst.port = in->remote_port;
    out->param.qpn = in->qpn;
    out->param.qkey = in->qkey;
    out->param.responder_resources = (uint8_t)in->responder_resources;
    out->param.initiator_depth = (uint8_t)in->initiator_depth;
    out->param.retry_count = in->retry_count;
    out->param.rnr_retry_count = in->rnr_retry_count;
    out->param.flow_control = in->flow_control;
    out->param.srq = in->srq;
    out->param.private_len = (uint8_t)in->priv_len;
    memcpy(out->private_data, in->priv, in->priv_len);
}

static struct cm_id *cmid_for_request(const struct cm_id *listener)
{
    struct share *s = listener->client->of_device;
    struct cm_id *id;

    /* The teardown of a client may have passed the number that a new id would get. A client that
     * doesn't read would never learn of the id. */
    if (listener->client->ctx.detached || !cmid_hears(listener) || share_take(s, SHARE_CONN, 1) < 0)
        return NULL;
    id = calloc(1, sizeof(*id));
    if (id)
        cmgr_id_init(id);
    if (id && handle_add(&listener->client->handles, HANDLE_CM_ID, id, &id->handle) == 0)
        return id;
    share_give(s, SHARE_CONN, 1);
    free(id);
    return NULL;
}

/* A peer wants to connect: make a new id for the listener's client. */
static void cmid_on_request(struct cmgr *m, const struct cm_event *ev, uint64_t now)
{
    struct cm_id *listener = ev->arg;
    struct cm_id *id = listener ? cmid_for_request(listener) : NULL;
    if (!id) {
        if (ev->type == CM_EV_REQ) /* the peer repeats a question, and an answer is kept (CM-31) */
            cm_reject(m->cm, ev->conn, CM_REJ_NO_RESOURCES, NULL, 0, now);
        cm_release(m->cm, ev->conn, now);
        return;
    }
    id->client = listener->client;
    id->device = m->device;
    id->channel = listener->channel;
    id->channel->users++;
    id->ps = listener->ps;
    id->ref = listener->ref; /* until the client gives it another one (IPC_CM_MIGRATE) */
    id->state = CM_ID_CONN;
    id->passive = true;
    id->conn = ev->conn;
    cmid_charge(id);
    cm_conn_set_arg(ev->conn, id);

    struct ipc_cm_event out = {
        .event = IPC_CM_CONNECT_REQUEST, .ref = listener->ref, .id = id->handle};
    cmid_from_cm(ev, &out);
    id->src = out.src;
    id->dst = out.dst;
    /* Ask for the neighbour now: by the time the client accepts, its MAC is known. */
    neigh_lookup(m->device->neigh, NULL, &ev->remote, id->dmac, now);
    if (cmid_event(id, &out)) {
        id->events--; /* the event's ref names the listener, which counts it */
        listener->events++;
    }
}

static void cmid_datagram_service(struct cm_id *id, const struct cm_event *ev)
{
    struct ipc_cm_event out = {.ref = id->ref, .id = id->handle};
    cmid_from_cm(ev, &out);
    out.event = ev->reason == CM_SIDR_VALID ? IPC_CM_ESTABLISHED : IPC_CM_UNREACHABLE;
    out.status = (int)ev->reason;
    memcpy(out.av.dgid, id->dst.ip, 16);
    memcpy(out.av.dmac, id->dmac, 6);
    out.av.hop_limit = WIRE_TTL_DEFAULT;
    out.av.tclass = id->tclass;
    out.av.sl = id->sl;
    struct wire_addr local;
    memcpy(local.b, id->src.ip, 16);
    int index = gid_find(&id->device->gids, &local);
    out.av.sgid_index = index < 0 ? 0 : (uint16_t)index;
    cmid_event(id, &out);
}

/* The peer accepts. The daemon changes the state of this queue pair, so it connects it before the
 * client gets the event. */
static void cmid_on_reply(struct cm_id *id, struct client_qp *qp, struct ipc_cm_event *out,
                          uint64_t now)
{
    int rc = cmid_qp_connected(id, qp, now);
    /* Fails if the peer's DREQ came right after its answer. */
    if (rc == 0 && cmgr_establish(id, now) < 0)
        rc = -ECONNABORTED;
    out->event = rc < 0 ? IPC_CM_CONNECT_ERROR : IPC_CM_ESTABLISHED;
    out->status = rc;
    if (rc < 0) {
        client_qp_fail(id->client, qp, now);
        cm_reject(cmgr_of(id->device)->cm, id->conn, 0, NULL, 0, now);
    }
}

/* The peer has proved that our packets reach it, by an answer that only we could have caused: its
 * queue pair belongs to this user now. Queue pairs of other users that name it end. */
static void cmid_own_peer(struct cm_id *id, uint64_t now)
{
    struct device *d = id->device;
    struct cm_qp_attr a;
    if (cm_qp_attr(id->conn, &a) < 0)
        return;
    const struct claim_key key = {a.sgid, a.dgid, a.dest_qpn};
    id->claim.uid = id->client->uid;
    id->claim.member = d->member;
    if (claim_set(&d->team->claims, &id->claim, &key) == CLAIM_OWNED)
        return; /* another user's connection was first: the queue pair will be refused */
    cmid_displace(id, now);
}

/* The peer of this claim belongs to another user now: end the queue pair. */
static void cmid_end_rival(struct device *d, struct claim *claim, uint64_t now)
{
    const struct client_qp *rival = claim->qp;
    if (!rival) {
        claim->displaced(claim, now);
        return;
    }
    log_warn("qp",
             "%s: queue pair 0x%06x of uid %u ends: the connection manager has given its peer, "
             "queue pair 0x%06x, to another user",
             d->name, rival->qpn, (unsigned)rival->claim.uid, rival->claim.key.qpn);
    engine_qp_fail(d->engine, rival->qp,
                   "SEC-33 the connection manager has given the peer to another user", now);
}

bool cmid_displace(struct cm_id *id, uint64_t now)
{
    struct device *d = id->device;
    struct claim *rival;
    unsigned left = budget_of[BUDGET_displace];
    while ((rival = claim_displace(&id->claim, &left)) != NULL)
        cmid_end_rival(d, rival, now);
    budget_spend(d->stats.job, BUDGET_displace, budget_of[BUDGET_displace] - left);
    if (left == 0) {
        budget_over(d->stats.job, BUDGET_displace);
        if (!id->displaces)
            LIST_INSERT_HEAD(&cmgr_of(d)->displacing, id, displacing);
        id->displaces = true;
        return true;
    }
    if (id->displaces)
        LIST_REMOVE(id, displacing);
    id->displaces = false;
    return false;
}

void cmid_hear_claims(struct cmgr *m, uint64_t now)
{
    struct device *d = m->device;
    for (unsigned left = budget_of[BUDGET_displace]; left > 0; left--) {
        struct claim *c = claim_news(&d->team->claims, d->member);
        if (!c)
            return;
        budget_spend(d->stats.job, BUDGET_displace, 1);
        if (c->doubt)
            c->doubt(c, now);
        else
            cmid_end_rival(d, c, now);
    }
    budget_over(d->stats.job, BUDGET_displace);
}

/* The connection is over, and its queue pair with it. */
static void cmid_over(const struct cm_id *id, struct client_qp *qp, uint64_t now)
{
    if (qp)
        client_qp_fail(id->client, qp, now);
    else if (id->follows && engine_channel_has(id->client, id->qpn))
        (void)switch_news_over(id->device->sw, id->qpn);
}

void cmgr_on_event(struct cmgr *m, const struct cm_event *ev, uint64_t now)
{
    static const enum ipc_cm_event_type types[] = {
        [CM_EV_REP] = IPC_CM_CONNECT_RESPONSE,      [CM_EV_ESTABLISHED] = IPC_CM_ESTABLISHED,
        [CM_EV_REJECTED] = IPC_CM_REJECTED,         [CM_EV_UNREACHABLE] = IPC_CM_UNREACHABLE,
        [CM_EV_DISCONNECTED] = IPC_CM_DISCONNECTED, [CM_EV_TIMEWAIT_EXIT] = IPC_CM_TIMEWAIT_EXIT,
    };
    struct cm_id *id = ev->arg;
    if (ev->type == CM_EV_REQ || ev->type == CM_EV_SIDR_REQ) {
        cmid_on_request(m, ev, now);
        return;
    }
    if (!id)
        return;
    cmid_await_end(id);
    if (ev->type == CM_EV_SIDR_REP) {
        cmid_datagram_service(id, ev);
        return;
    }
    /* The active side got CONNECT_RESPONSE instead; the client's own request sent the RTU. */
    if (ev->type == CM_EV_ESTABLISHED && !id->passive)
        return;
    if (ev->type == CM_EV_REP || ev->type == CM_EV_ESTABLISHED)
        cmid_own_peer(id, now);
    else
        claim_drop(&id->claim);
    struct ipc_cm_event out = {.event = types[ev->type], .ref = id->ref, .id = id->handle};
    cmid_from_cm(ev, &out);
    struct client_qp *qp = cmid_driven(id);
    if (qp && ev->type == CM_EV_REP)
        cmid_on_reply(id, qp, &out, now);
    else if (ev->type == CM_EV_DISCONNECTED || ev->type == CM_EV_REJECTED ||
             ev->type == CM_EV_UNREACHABLE)
        cmid_over(id, qp, now);
    if (ev->type == CM_EV_REJECTED)
        out.status = (int)ev->reason;
    else if (ev->type == CM_EV_UNREACHABLE)
        out.status = ev->hung_up ? -ECONNABORTED : -ETIMEDOUT;
    cmid_event(id, &out);
}
