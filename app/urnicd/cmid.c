/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients' connection ids: their requests become calls of lib/cm, its events become messages for
 * their channel (cmid_channel.c). Event numbers and meanings are librdmacm's (CM-35).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client.h"
#include "client_qp.h"
#include "clock.h"
#include "cmgr_priv.h"
#include "device.h"

#define CMID_RESOLVE_MS 2000u
#define CMID_PORT_FIRST 49152u

/* ---- events ---- */

static void cmid_simple(struct cm_id *id, enum ipc_cm_event_type type, int status)
{
    const struct ipc_cm_event ev = {
        .event = type,
        .status = status,
        .ref = id->ref,
        .id = id->handle,
        .src = id->src,
        .dst = id->dst,
    };

    cmid_event(id, &ev);
}

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
    out->param.flow_control = in->flow_control;
    out->param.srq = in->srq;
    out->param.private_len = (uint8_t)in->priv_len;
    memcpy(out->private_data, in->priv, in->priv_len);
}

/* A connection that its user has taken a place for. It outlives ids: so does the share. */
static void cmid_charge(struct cm_id *id)
{
    struct share *s = id->client->of_device;

    s->members++;
    cm_conn_set_account(id->conn, s);
}

static struct cm_id *cmid_for_request(const struct cm_id *listener)
{
    struct share *s = listener->client->of_device;
    struct cm_id *id;

    /* A client that is being torn down may have been through the number that a new id would get. */
    if (listener->client->ctx.detached || share_take(s, SHARE_CONN, 1) < 0)
        return NULL;
    id = calloc(1, sizeof(*id));
    if (id && handle_add(&listener->client->handles, HANDLE_CM_ID, id, &id->handle) == 0)
        return id;
    share_give(s, SHARE_CONN, 1);
    free(id);
    return NULL;
}

/* Somebody wants to connect: a new id for the listener's client. */
static void cmid_on_request(struct cmgr *m, const struct cm_event *ev, uint64_t now)
{
    struct cm_id *listener = ev->arg;
    struct cm_id *id = listener ? cmid_for_request(listener) : NULL;

    if (!id) {
        if (ev->type == CM_EV_REQ) /* a question will come again, and an answer is kept (CM-31) */
            cm_reject(m->cm, ev->conn, CM_REJ_NO_RESOURCES, NULL, 0, now);
        cm_release(m->cm, ev->conn, now);
        return;
    }
    id->client = listener->client;
    id->device = m->device;
    id->channel = listener->channel;
    id->channel->users++;
    id->ps = listener->ps;
    id->ref = listener->ref; /* until the client gives it one of its own (IPC_CM_MIGRATE) */
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
    neigh_lookup(m->device->neigh, &ev->remote, id->dmac, now);
    cmid_event(id, &out);
    id->events--; /* it is counted at the id that its ref names */
    listener->events++;
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
    struct wire_addr local;
    memcpy(local.b, id->src.ip, 16);
    int index = gid_find(&id->device->gids, &local);
    out.av.sgid_index = index < 0 ? 0 : (uint16_t)index;
    cmid_event(id, &out);
}

/* The peer accepts: the queue pair that the client has left to us is connected before it hears. */
static void cmid_on_reply(struct cm_id *id, struct client_qp *qp, struct ipc_cm_event *out,
                          uint64_t now)
{
    int rc = cmid_qp_connected(id, qp, now);

    /* Refused where the peer's farewell came right behind its answer. */
    if (rc == 0 && cmgr_establish(id, now) < 0)
        rc = -ECONNABORTED;
    out->event = rc < 0 ? IPC_CM_CONNECT_ERROR : IPC_CM_ESTABLISHED;
    out->status = rc;
    if (rc < 0) {
        client_qp_fail(id->client, qp, now);
        cm_reject(id->device->cm->cm, id->conn, 0, NULL, 0, now);
    }
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
    if (ev->type == CM_EV_SIDR_REP) {
        cmid_datagram_service(id, ev);
        return;
    }
    /* The active side has had its news with CONNECT_RESPONSE; the client's own request sent the
     * RTU. */
    if (ev->type == CM_EV_ESTABLISHED && !id->passive)
        return;
    struct ipc_cm_event out = {.event = types[ev->type], .ref = id->ref, .id = id->handle};
    cmid_from_cm(ev, &out);
    struct client_qp *qp = cmid_driven(id);
    if (qp && ev->type == CM_EV_REP)
        cmid_on_reply(id, qp, &out, now);
    else if (qp && (ev->type == CM_EV_DISCONNECTED || ev->type == CM_EV_REJECTED ||
                    ev->type == CM_EV_UNREACHABLE))
        client_qp_fail(id->client, qp, now);
    if (ev->type == CM_EV_REJECTED)
        out.status = (int)ev->reason;
    else if (ev->type == CM_EV_UNREACHABLE)
        out.status = ev->hung_up ? -ECONNABORTED : -ETIMEDOUT;
    cmid_event(id, &out);
}

/* ---- requests ---- */

static void cmid_touch(struct cm_id *id, uint64_t now)
{
    id->device->cm->dirty = true;
    id->device->cm->now = now;
}

static bool sockaddr_any(const struct ipc_sockaddr *a)
{
    static const uint8_t none[16];

    /* "any" is :: or, mapped, 0.0.0.0 */
    return memcmp(a->ip, none, 16) == 0 ||
           (memcmp(a->ip, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF", 12) == 0 &&
            memcmp(a->ip + 12, none, 4) == 0);
}

/* A port at which nobody listens. Steps are random, too: there is no row of taken ports to be led
 * into, each of which costs a look at all listeners. */
static uint16_t cmid_port(const struct cm_id *id)
{
    const unsigned ports = 65536u - CMID_PORT_FIRST;
    uint16_t r[2] = {0}, port;

    _Static_assert(((65536u - CMID_PORT_FIRST) & (65535u - CMID_PORT_FIRST)) == 0,
                   "an odd step reaches all of a power of two");
    (void)!getrandom(r, sizeof(r), 0);
    for (unsigned i = 0; i < ports; i++) {
        port = (uint16_t)(CMID_PORT_FIRST + (r[0] + i * (r[1] | 1u)) % ports);
        if (!cm_listens(id->device->cm->cm, id->ps, port))
            break;
    }
    return port;
}

int cmgr_bind(struct cm_id *id, const struct ipc_sockaddr *src)
{
    struct wire_addr a;

    if (id->state != CM_ID_IDLE)
        return -EINVAL;
    memcpy(a.b, src->ip, 16);
    if (!sockaddr_any(src) && gid_find(&id->device->gids, &a) < 0)
        return -EADDRNOTAVAIL;
    id->src = *src;
    if (id->src.port == 0)
        id->src.port = cmid_port(id);
    id->state = CM_ID_BOUND;
    return 0;
}

static void cmid_resolved(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t now)
{
    struct cm_id *id = (struct cm_id *)(void *)((char *)w - offsetof(struct cm_id, waiter));

    (void)now;
    id->resolving = false;
    if (status == 0) {
        memcpy(id->dmac, mac, 6);
        id->state = CM_ID_RESOLVED;
        cmid_simple(id, id->with_route ? IPC_CM_ROUTE_RESOLVED : IPC_CM_ADDR_RESOLVED, 0);
    } else {
        if (id->src_chosen) /* another destination may need another one */
            memset(id->src.ip, 0, sizeof(id->src.ip));
        cmid_simple(id, IPC_CM_ADDR_ERROR, status);
    }
}

int cmgr_resolve(struct cm_id *id, const struct ipc_cm_addr *req, uint64_t now)
{
    const struct ipc_sockaddr *dst = &req->dst;
    struct ipc_sockaddr src = sockaddr_any(&req->src) ? id->src : req->src;
    struct wire_addr remote, local;

    if ((id->state != CM_ID_IDLE && id->state != CM_ID_BOUND) || id->resolving)
        return -EINVAL;
    memcpy(remote.b, dst->ip, 16);
    /* A datagram's id may go on to join the group; to a group there is no connection. */
    if (id->ps == IPC_PS_TCP && wire_addr_is_multicast(&remote))
        return -EINVAL;
    bool choose = sockaddr_any(&src);
    if (choose) {
        int rc = neigh_source(id->device->neigh, &remote, &local);
        if (rc < 0) {
            cmid_simple(id, IPC_CM_ADDR_ERROR, rc);
            return 0;
        }
        memcpy(src.ip, local.b, 16);
    }
    memcpy(local.b, src.ip, 16);
    if (gid_find(&id->device->gids, &local) < 0)
        return -EADDRNOTAVAIL;
    if (wire_addr_is_v4(&local) != wire_addr_is_v4(&remote))
        return -EINVAL;
    id->src = src;
    id->src_chosen = choose;
    if (id->src.port == 0)
        id->src.port = cmid_port(id);
    id->dst = *dst;
    id->with_route = (req->flags & IPC_CM_F_ROUTE) != 0;
    id->resolving = true;
    id->waiter = (struct neigh_waiter){.dst = remote, .done = cmid_resolved};
    neigh_wait(id->device->neigh, &id->waiter,
               (req->timeout_ms ? req->timeout_ms : CMID_RESOLVE_MS) * CLOCK_MS, now);
    return 0;
}

int cmgr_route(struct cm_id *id)
{
    if (id->state != CM_ID_RESOLVED)
        return -EINVAL;
    cmid_simple(id, IPC_CM_ROUTE_RESOLVED, 0);
    return 0;
}

int cmgr_listen(struct cm_id *id, uint32_t backlog)
{
    static const struct ipc_sockaddr any;
    struct wire_addr local = {0};
    int rc = id->state == CM_ID_IDLE ? cmgr_bind(id, &any) : 0;

    if (rc < 0)
        return rc;
    if (id->state != CM_ID_BOUND)
        return -EINVAL;
    if (!sockaddr_any(&id->src))
        memcpy(local.b, id->src.ip, 16);
    rc = share_take(id->client->of_device, SHARE_LISTENER, 1);
    if (rc < 0)
        return rc;
    rc = cm_listen(id->device->cm->cm, id->ps, &local, id->src.port, backlog, id, &id->listener);
    if (rc == 0)
        id->state = CM_ID_LISTEN;
    else
        share_give(id->client->of_device, SHARE_LISTENER, 1);
    return rc;
}

/* A connection, or a question for a datagram service, at the expense of its user. */
static int cmid_ask(struct cm_id *id, const struct cm_connect_params *p, uint64_t now)
{
    struct cm *cm = id->device->cm->cm;
    int rc = share_take(id->client->of_device, SHARE_CONN, 1);

    if (rc < 0)
        return rc;
    if (id->ps == IPC_PS_UDP)
        rc = cm_sidr_request(cm, &p->path, p->sport, p->dport, p->priv, p->priv_len, id, now,
                             &id->conn);
    else
        rc = cm_connect(cm, p, id, now, &id->conn);
    if (rc == 0)
        cmid_charge(id);
    else
        share_give(id->client->of_device, SHARE_CONN, 1);
    return rc;
}

int cmgr_connect(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    struct cm_connect_params p = {
        .path = {.mtu = (uint8_t)id->device->path_mtu},
        .sport = id->src.port,
        .dport = id->dst.port,
        .qpn = req->param.qpn,
        .psn = cmid_psn(req->param.starting_psn),
        .responder_resources = req->param.responder_resources,
        .initiator_depth = req->param.initiator_depth,
        .retry_count = req->param.retry_count,
        .rnr_retry_count = req->param.rnr_retry_count,
        .srq = req->param.srq != 0,
        .flow_control = req->param.flow_control != 0,
        .priv = req->private_data,
        .priv_len = req->param.private_len,
    };
    int rc;

    if (id->state != CM_ID_RESOLVED || req->param.starting_psn > WIRE_PSN_MASK)
        return -EINVAL;
    memcpy(p.path.local.b, id->src.ip, 16);
    memcpy(p.path.remote.b, id->dst.ip, 16);
    if (id->ps != IPC_PS_UDP) {
        const struct client_qp *qp = client_qp_by_number(id->client, p.qpn);
        if (!qp || (id->driven && id->qpn != p.qpn))
            return -EINVAL; /* not one of its own (SEC-26) */
        if (qp->type == QP_UD)
            return -EPROTOTYPE;
        p.transport = qp->type == QP_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC;
    }
    rc = cmid_ask(id, &p, now);
    if (rc < 0)
        return rc;
    id->psn = p.psn;
    id->state = CM_ID_CONN;
    if (id->ps != IPC_PS_UDP)
        cmid_attach(id, p.qpn);
    cmid_touch(id, now);
    return 0;
}

/* CM-29: what the peer asks for, or a datagram service has. */
static bool cmid_fits(const struct cm_id *id, const struct client_qp *qp)
{
    struct cm_qp_attr asked;

    if (id->ps == IPC_PS_UDP)
        return qp->type == QP_UD;
    return cm_qp_attr(id->conn, &asked) == 0 && qp->type == (asked.unreliable ? QP_UC : QP_RC);
}

/* CM-31: where datagrams go, and the Q_Key that they need: that of the queue pair, unless told. */
static int cmid_answer(const struct cm_id *id, const struct client_qp *qp,
                       const struct ipc_cm_conn *req, uint64_t now)
{
    struct engine_qp_attr attr = {.qkey = req->param.qkey};

    if (!cmid_fits(id, qp))
        return -EPROTOTYPE;
    int rc = attr.qkey == 0 ? engine_qp_query(qp->qp, &attr, NULL) : 0;
    return rc < 0 ? rc
                  : cm_sidr_reply(id->device->cm->cm, id->conn, CM_SIDR_VALID, qp->qpn, attr.qkey,
                                  req->private_data, req->param.private_len, now);
}

int cmgr_accept(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    struct cmgr *m = id->device->cm;

    if (id->state != CM_ID_CONN || !id->passive || !id->conn)
        return -EINVAL;
    struct client_qp *qp = client_qp_by_number(id->client, req->param.qpn);
    if (!qp || (id->driven && id->qpn != req->param.qpn) ||
        req->param.private_len > CM_REP_USER_MAX || req->param.starting_psn > WIRE_PSN_MASK ||
        req->param.rnr_retry_count > CM_RETRY_MAX)
        return -EINVAL; /* before the queue pair is moved */
    cmid_touch(id, now);
    if (id->ps == IPC_PS_UDP)
        return cmid_answer(id, qp, req, now);
    struct cm_accept_params p = {
        .qpn = req->param.qpn,
        .responder_resources = req->param.responder_resources,
        .initiator_depth = req->param.initiator_depth,
        .rnr_retry_count = req->param.rnr_retry_count,
        .srq = req->param.srq != 0,
        .flow_control = req->param.flow_control != 0,
        .priv = req->private_data,
        .priv_len = req->param.private_len,
    };
    int rc = cm_may_accept(id->conn); /* if it is over, so is what the queue pair can do */
    if (rc < 0)
        return rc;
    if (!cmid_fits(id, qp))
        return -EPROTOTYPE;
    qp = cmid_driven(id);
    cm_grant(m->cm, id->conn, p.responder_resources, p.initiator_depth);
    rc = qp ? cmid_qp_connected(id, qp, now) : 0;
    if (rc < 0)
        return rc;
    p.psn = id->psn ? id->psn : cmid_psn(req->param.starting_psn);
    cmid_attach(id, req->param.qpn);
    return cm_accept(m->cm, id->conn, &p, id, now);
}

int cmgr_reject(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    if (id->state != CM_ID_CONN || !id->conn)
        return -EINVAL;
    cmid_touch(id, now);
    if (id->ps == IPC_PS_UDP)
        return cm_sidr_reply(id->device->cm->cm, id->conn, CM_SIDR_REJECTED, 0, 0,
                             req->private_data, req->param.private_len, now);
    return cm_reject(id->device->cm->cm, id->conn, req->reason, req->private_data,
                     req->param.private_len, now);
}

int cmgr_establish(struct cm_id *id, uint64_t now)
{
    if (id->state != CM_ID_CONN || !id->conn)
        return -EINVAL;
    cmid_touch(id, now);
    return cm_rtu(id->device->cm->cm, id->conn, NULL, 0, now);
}

/* As rdma_disconnect: a request without an answer keeps waiting for one, and nothing comes of it
 * with the queue pair in ERR. */
int cmgr_disconnect(struct cm_id *id, uint64_t now)
{
    struct client_qp *qp = cmid_driven(id);

    if (id->state != CM_ID_CONN || !id->conn || id->ps == IPC_PS_UDP)
        return -EINVAL;
    if (qp)
        client_qp_fail(id->client, qp, now);
    cmid_touch(id, now);
    cm_disconnect(id->device->cm->cm, id->conn, NULL, 0, now);
    return 0;
}

void cmgr_id_free(struct cm_id *id, uint64_t now)
{
    struct cmgr *m = id->device->cm;

    if (id->resolving)
        neigh_cancel(id->device->neigh, &id->waiter);
    cmid_leave_all(id, now);
    cmid_detach(id);
    if (id->listener) {
        cm_unlisten(m->cm, id->listener, now);
        share_give(id->client->of_device, SHARE_LISTENER, 1);
    }
    if (id->conn && id->ps == IPC_PS_UDP && id->passive) /* unless it has its answer */
        cm_sidr_reply(m->cm, id->conn, CM_SIDR_REJECTED, 0, 0, NULL, 0, now);
    if (id->conn)
        cm_release(m->cm, id->conn, now);
    cmid_touch(id, now);
    id->channel->users--;
    free(id);
}
