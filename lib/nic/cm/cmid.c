/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients' connection ids: their requests to connect, accept, reject and disconnect become calls of
 * lib/cm.
 */
#include "cmid.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "client_qp.h"
#include "cmgr_priv.h"
#include "cmid_channel.h"
#include "cmid_group.h"
#include "cmid_qp.h"
#include "device.h"
#include "engine_channel.h"
#include "services.h"

static void cmid_touch(struct cm_id *id, uint64_t now)
{
    cmgr_of(id->device)->dirty = true;
    cmgr_of(id->device)->now = now;
}

static void cmid_object_free(struct client_object *o, uint64_t now)
{
    cmgr_id_free((struct cm_id *)o, now);
}

/* Another user names the peer's queue pair that this connection has. */
static void cmid_doubt(struct claim *c, uint64_t now)
{
    struct cm_id *id = (struct cm_id *)(void *)((char *)c - offsetof(struct cm_id, claim));
    if (!id->conn)
        return;
    cmid_touch(id, now);
    cm_doubt(cmgr_of(id->device)->cm, id->conn, now);
}

void cmgr_id_init(struct cm_id *id)
{
    id->object.free = cmid_object_free;
    id->claim.doubt = cmid_doubt;
}

void cmid_charge(struct cm_id *id)
{
    cm_conn_set_account(id->conn, share_hold(id->client->of_device));
}

/* A connection, or a question for a datagram service, at the expense of its user. */
static int cmid_ask(struct cm_id *id, const struct cm_connect_params *p, uint64_t now)
{
    struct cm *cm = cmgr_of(id->device)->cm;
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

/* The type of a queue pair of the client's process. `said`: the type of one of the client's own
 * engine by the request, 0 = RC. -EINVAL: there is no such queue pair. */
static int cmid_type(const struct cm_id *id, uint32_t qpn, unsigned said)
{
    const struct client_qp *qp = client_qp_of_process(id->client, qpn);
    if (qp)
        return (int)qp->type;
    if (!engine_channel_has(id->client, qpn))
        return -EINVAL;
    return said ? (int)said : QP_RC;
}

/* A program that has the engine itself may have to be scheduled before it answers (SHM-14). */
static uint8_t cmid_ack_delay(const struct cm_id *id, uint32_t qpn)
{
    return engine_channel_has(id->client, qpn) ? IPC_ENGINE_ACK_DELAY : 0;
}

int cmgr_connect(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    struct cm_connect_params p = {
        .path = {.mtu = (uint8_t)neigh_path_mtu(id->device->neigh, id->dst.ip),
                 .tclass = device_tclass(id->device, req->tclass),
                 .sl = req->sl},
        .ps = (uint16_t)id->ps,
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
        .ack_delay = cmid_ack_delay(id, req->param.qpn),
    };
    int rc;
    if (id->state != CM_ID_RESOLVED || req->param.starting_psn > WIRE_PSN_MASK ||
        req->sl > CLIENT_SL_MAX)
        return -EINVAL;
    id->tclass = p.path.tclass;
    id->sl = req->sl;
    memcpy(p.path.local.b, id->src.ip, 16);
    memcpy(p.path.remote.b, id->dst.ip, 16);
    if (id->ps != IPC_PS_UDP) {
        int type = cmid_type(id, p.qpn, req->qp_type);
        if (type < 0 || (id->driven && id->qpn != p.qpn))
            return -EINVAL; /* not one of its process' own (SEC-26) */
        if (type == QP_UD)
            return -EPROTOTYPE;
        if (type == QP_XRC_TGT)
            return -EPROTOTYPE; /* a target sends no requests: its peers connect */
        p.transport = type == QP_UC        ? CM_TRANSPORT_UC
                      : type == QP_XRC_INI ? CM_TRANSPORT_XRC
                                           : CM_TRANSPORT_RC;
    }
    rc = cmid_ask(id, &p, now);
    if (rc < 0)
        return rc;
    id->psn = p.psn;
    id->state = CM_ID_CONN;
    id->follows = req->follows != 0;
    if (id->ps != IPC_PS_UDP)
        cmid_attach(id, p.qpn);
    cmid_touch(id, now);
    return 0;
}

/* CM-29: the type that the peer requests, or a datagram service has. */
static bool cmid_fits(const struct cm_id *id, int type)
{
    struct cm_qp_attr asked;
    if (id->ps == IPC_PS_UDP)
        return type == QP_UD;
    return cm_qp_attr(id->conn, &asked) == 0 &&
           type == (int)(asked.transport == CM_TRANSPORT_UC    ? QP_UC
                         : asked.transport == CM_TRANSPORT_XRC ? QP_XRC_TGT
                                                               : QP_RC);
}

/* CM-31: the destination of datagrams and their Q_Key: the queue pair's, unless the request has
 * one. A queue pair of the client's own engine has the default Q_Key. */
static int cmid_answer(const struct cm_id *id, const struct client_qp *qp, int type,
                       const struct ipc_cm_conn *req, uint64_t now)
{
    struct engine_qp_attr attr = {.qkey = req->param.qkey};
    if (!cmid_fits(id, type))
        return -EPROTOTYPE;
    if (attr.qkey == 0)
        attr.qkey = CMID_UD_QKEY;
    int rc = req->param.qkey == 0 && qp ? engine_qp_query(qp->qp, &attr, NULL) : 0;
    return rc < 0 ? rc
                  : cm_sidr_reply(cmgr_of(id->device)->cm, id->conn, CM_SIDR_VALID, req->param.qpn,
                                  attr.qkey, req->private_data, req->param.private_len, now);
}

int cmgr_accept(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    struct cmgr *m = cmgr_of(id->device);
    if (id->state != CM_ID_CONN || !id->passive || !id->conn)
        return -EINVAL;
    struct client_qp *qp = client_qp_of_process(id->client, req->param.qpn);
    int type = cmid_type(id, req->param.qpn, req->qp_type);
    if (type < 0 || (id->driven && id->qpn != req->param.qpn) ||
        req->param.private_len > CM_REP_USER_MAX || req->param.starting_psn > WIRE_PSN_MASK ||
        req->param.rnr_retry_count > CM_RETRY_MAX)
        return -EINVAL; /* before the queue pair is moved */
    cmid_touch(id, now);
    if (id->ps == IPC_PS_UDP)
        return cmid_answer(id, qp, type, req, now);
    struct cm_accept_params p = {
        .qpn = req->param.qpn,
        .responder_resources = req->param.responder_resources,
        .initiator_depth = req->param.initiator_depth,
        .rnr_retry_count = req->param.rnr_retry_count,
        .srq = req->param.srq != 0,
        .flow_control = req->param.flow_control != 0,
        .priv = req->private_data,
        .priv_len = req->param.private_len,
        .ack_delay = cmid_ack_delay(id, req->param.qpn),
    };
    int rc = cm_may_accept(id->conn); /* an ended connection moves no queue pair */
    if (rc < 0)
        return rc;
    if (!cmid_fits(id, type))
        return -EPROTOTYPE;
    qp = cmid_driven(id);
    cm_grant(m->cm, id->conn, p.responder_resources, p.initiator_depth);
    rc = qp ? cmid_qp_connected(id, qp, now) : 0;
    if (rc < 0)
        return rc;
    p.psn = id->psn ? id->psn : cmid_psn(req->param.starting_psn);
    id->follows = req->follows != 0;
    cmid_attach(id, req->param.qpn);
    rc = cm_accept(m->cm, id->conn, &p, id, now);
    if (rc == 0 && engine_channel_has(id->client, id->qpn))
        cmid_await(id);
    return rc;
}

int cmgr_reject(struct cm_id *id, const struct ipc_cm_conn *req, uint64_t now)
{
    if (id->state != CM_ID_CONN || !id->conn)
        return -EINVAL;
    cmid_touch(id, now);
    if (id->ps == IPC_PS_UDP)
        return cm_sidr_reply(cmgr_of(id->device)->cm, id->conn, CM_SIDR_REJECTED, 0, 0,
                             req->private_data, req->param.private_len, now);
    return cm_reject(cmgr_of(id->device)->cm, id->conn, req->reason, req->private_data,
                     req->param.private_len, now);
}

int cmgr_establish(struct cm_id *id, uint64_t now)
{
    if (id->state != CM_ID_CONN || !id->conn)
        return -EINVAL;
    cmid_touch(id, now);
    return cm_rtu(cmgr_of(id->device)->cm, id->conn, NULL, 0, now);
}

/* As rdma_disconnect: a request without an answer keeps waiting for it. With the queue pair in ERR
 * the answer has no effect. */
int cmgr_disconnect(struct cm_id *id, uint64_t now)
{
    struct client_qp *qp = cmid_driven(id);
    if (id->state != CM_ID_CONN || !id->conn || id->ps == IPC_PS_UDP)
        return -EINVAL;
    if (qp)
        client_qp_fail(id->client, qp, now);
    cmid_touch(id, now);
    cm_disconnect(cmgr_of(id->device)->cm, id->conn, NULL, 0, now);
    return 0;
}

void cmgr_id_free(struct cm_id *id, uint64_t now)
{
    struct cmgr *m = cmgr_of(id->device);
    if (id->resolving)
        neigh_cancel(id->device->neigh, &id->waiter);
    claim_drop(&id->claim);
    cmid_await_end(id);
    if (id->displaces)
        LIST_REMOVE(id, displacing);
    cmid_leave_all(id, now);
    cmid_detach(id);
    if (id->listener) {
        cm_unlisten(m->cm, id->listener, now);
        if (m->services)
            services_del(m->services, id);
        share_give(id->client->of_device, SHARE_LISTENER, 1);
    }
    if (id->conn && id->ps == IPC_PS_UDP && id->passive) /* unless it is answered */
        cm_sidr_reply(m->cm, id->conn, CM_SIDR_REJECTED, 0, 0, NULL, 0, now);
    if (id->conn)
        cm_release(m->cm, id->conn, now);
    cmid_touch(id, now);
    id->channel->users--;
    free(id);
}
