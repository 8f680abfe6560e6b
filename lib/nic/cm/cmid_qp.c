/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs of connections: the attributes that a connection has for each state, and state
 * changes of queue pairs that the daemon moves (IPC_CM_QP).
 */
#include "cmid_qp.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "client.h"
#include "client_qp.h"
#include "cmgr_priv.h"
#include "cmid_group.h"
#include "device.h"

#define CMID_LOOKS 64u /* ids looked at, in a search for a waiting one */

uint32_t cmid_psn(uint32_t wanted)
{
    uint32_t psn = wanted;
    while (psn == 0) {
        (void)!getrandom(&psn, sizeof(psn), 0);
        psn &= WIRE_PSN_MASK;
    }
    return psn;
}

/* The pointers of an id and its queue pair to each other: an id may be given another queue pair,
 * and a queue pair another id. */
struct client_qp *cmid_qp(const struct cm_id *id)
{
    struct client_qp *qp = client_qp_of_process(id->client, id->qpn);
    return qp && qp->cm_id == id ? qp : NULL;
}

void cmid_detach(struct cm_id *id)
{
    struct client_qp *qp = cmid_qp(id);
    if (qp)
        qp->cm_id = NULL;
    id->qpn = 0;
}

static void cmid_qp_gone(struct client_qp *qp)
{
    qp->cm_id->qpn = 0;
}

void cmid_attach(struct cm_id *id, uint32_t qpn)
{
    struct client_qp *qp = client_qp_of_process(id->client, qpn);
    cmid_detach(id);
    if (qp && qp->cm_id)
        qp->cm_id->qpn = 0;
    id->qpn = qpn;
    if (qp) {
        qp->cm_id = id;
        qp->cm_gone = cmid_qp_gone;
    }
}

void cmid_await(struct cm_id *id)
{
    struct cmgr *m = cmgr_of(id->device);
    cmid_await_end(id);
    id->awaits = true;
    LIST_INSERT_HEAD(&m->awaiting[id->qpn % CMGR_AWAITING], id, awaiting);
}

void cmid_await_end(struct cm_id *id)
{
    if (id->awaits)
        LIST_REMOVE(id, awaiting);
    id->awaits = false;
}

struct cm_id *cmid_awaiting(const struct cmgr *m, uint32_t qpn)
{
    struct cm_id *id;
    unsigned left = CMID_LOOKS;
    LIST_FOREACH(id, &m->awaiting[qpn % CMGR_AWAITING], awaiting)
    {
        if (id->qpn == qpn)
            return id;
        if (--left == 0)
            break; /* don't delay others; the RTU is repeated */
    }
    return NULL;
}

/* -EADDRNOTAVAIL: our address was removed meanwhile. */
static int cmid_av(const struct cm_id *id, const struct cm_qp_attr *cm, struct ipc_av *av)
{
    int index = gid_find(&id->device->gids, &cm->sgid);
    if (index < 0)
        return -EADDRNOTAVAIL;
    memcpy(av->dgid, cm->dgid.b, 16);
    memcpy(av->dmac, id->dmac, 6);
    av->tclass = cm->tclass;
    av->hop_limit = cm->hop_limit;
    av->sl = cm->sl;
    av->flow_label = cm->flow_label;
    av->sgid_index = (uint16_t)index;
    return 0;
}

/* Unreliable queue pairs have no responses, and no attributes of them. */
#define OF_RESPONSES                                                                               \
    (QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |    \
     QPA_MAX_QP_RD_ATOMIC)
/* XRC-01: receiving queue pairs send no requests, and sending ones answer none. */
#define OF_REQUESTS   (QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC)
#define OF_RESPONDING (QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER)

int cmgr_qp_attr(struct cm_id *id, uint32_t state, struct ipc_qp_modify *out)
{
    struct cm_qp_attr cm = {0};
    struct ipc_qp_attr *a = &out->attr;
    a->state = state;
    a->port = 1;
    if (state == QPS_INIT) {
        out->mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT |
                    (id->ps == IPC_PS_UDP ? QPA_QKEY : QPA_ACCESS_FLAGS);
        a->access_flags = MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_FLUSH_ANY;
        a->qkey = CMID_UD_QKEY;
        return 0;
    }
    if (!id->conn || id->ps == IPC_PS_UDP)
        return -EINVAL;
    if (id->passive && id->psn == 0)
        id->psn = cmid_psn(0);
    int rc = cm_qp_attr(id->conn, &cm);
    if (rc < 0)
        return rc;
    if (state == QPS_RTR) {
        out->mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                    QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
        rc = cmid_av(id, &cm, &a->av);
        if (rc < 0)
            return rc;
        a->path_mtu = cm.path_mtu;
        a->dest_qpn = cm.dest_qpn;
        a->rq_psn = id->passive ? id->psn : cm.rq_psn; /* passive: before the REP names it */
        a->max_dest_rd_atomic = cm.max_dest_rd_atomic;
        a->min_rnr_timer = 12; /* CM-11 */
        a->e2e_credits = cm.e2e_credits;
    } else if (state == QPS_RTS) {
        out->mask = QPA_STATE | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
                    QPA_MAX_QP_RD_ATOMIC;
        a->timeout = cm.timeout;
        a->retry_cnt = cm.retry_cnt;
        a->rnr_retry = cm.rnr_retry;
        a->sq_psn = cm.sq_psn;
        a->max_rd_atomic = cm.max_rd_atomic;
    } else {
        return -EINVAL;
    }
    if (cm.transport == CM_TRANSPORT_UC)
        out->mask &= ~OF_RESPONSES;
    else if (cm.transport == CM_TRANSPORT_XRC)
        out->mask &= ~(id->passive ? OF_REQUESTS : OF_RESPONDING);
    return 0;
}

/* ---- moving ---- */

struct client_qp *cmid_driven(const struct cm_id *id)
{
    return id->driven ? cmid_qp(id) : NULL;
}

static int cmid_move(struct cm_id *id, struct client_qp *qp, uint32_t state, uint64_t now)
{
    struct ipc_qp_modify m = {0};
    struct engine_av av;
    int rc = cmgr_qp_attr(id, state, &m);
    if (rc == 0 && (m.mask & QPA_AV))
        rc = av_from_ipc(id->device, &m.attr.av, &av);
    return rc < 0 ? rc : client_qp_modify(id->client, qp, &m, &av, now);
}

int cmid_qp_connected(struct cm_id *id, struct client_qp *qp, uint64_t now)
{
    int rc = cmid_move(id, qp, QPS_RTR, now);
    return rc < 0 ? rc : cmid_move(id, qp, QPS_RTS, now);
}

bool cmgr_takes_qp(const struct cm_id *id)
{
    return id->state != CM_ID_LISTEN && id->qpn == 0;
}

int cmgr_take_qp(struct cm_id *id, struct client_qp *qp, uint64_t now)
{
    struct ipc_qp_modify m = {
        .mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT |
                (qp->type == QP_UD ? QPA_QKEY : QPA_ACCESS_FLAGS),
        .attr = {.state = QPS_INIT, .port = 1, .qkey = CMID_UD_QKEY},
    };
    if (!cmgr_takes_qp(id))
        return -EINVAL;
    m.attr.access_flags =
        MEM_LOCAL_WRITE | (qp->type == QP_UC ? MEM_REMOTE_WRITE : MEM_REMOTE_ANY | MEM_FLUSH_ANY);
    int rc = client_qp_modify(id->client, qp, &m, NULL, now);
    /* Datagrams need no peer: ready at once. */
    if (rc == 0 && qp->type == QP_UD) {
        m = (struct ipc_qp_modify){.mask = QPA_STATE, .attr.state = QPS_RTR};
        rc = client_qp_modify(id->client, qp, &m, NULL, now);
        m = (struct ipc_qp_modify){.mask = QPA_STATE | QPA_SQ_PSN, .attr.state = QPS_RTS};
        if (rc == 0)
            rc = client_qp_modify(id->client, qp, &m, NULL, now);
    }
    if (rc < 0)
        return rc;
    id->driven = qp->type != QP_UD;
    if (qp->cm_id)
        cmid_leave_all(qp->cm_id, now); /* or these groups are never left */
    cmid_attach(id, qp->qpn);
    return 0;
}
