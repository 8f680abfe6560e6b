/* SPDX-License-Identifier: BSD-3-Clause */
#include "client_cm_move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UD_QKEY 0x01234567u /* RDMA CM's own for its port space (CM-31) */

static int to_state(struct urnic_qp *qp, struct ipc_qp_attr attr, unsigned mask,
                    enum urnic_qp_state state)
{
    attr.state = state;
    return client_qp_modify(qp, &attr, mask | URNIC_QP_STATE);
}

int client_cm_begin(struct urnic_qp *qp)
{
    struct ipc_qp_attr attr = {.port = 1, .qkey = UD_QKEY};
    const unsigned mask = URNIC_QP_PKEY_INDEX | URNIC_QP_PORT;
    attr.access_flags = URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE;
    if (qp->type != URNIC_QPT_UC)
        attr.access_flags |=
            URNIC_ACCESS_REMOTE_READ | URNIC_ACCESS_REMOTE_ATOMIC | URNIC_ACCESS_FLUSH_GLOBAL;
    if (qp->type != URNIC_QPT_UD)
        return to_state(qp, attr, mask | URNIC_QP_ACCESS_FLAGS, URNIC_QPS_INIT);
    int err = to_state(qp, attr, mask | URNIC_QP_QKEY, URNIC_QPS_INIT);
    if (err == 0)
        err = to_state(qp, attr, 0, URNIC_QPS_RTR);
    return err < 0 ? err : to_state(qp, attr, URNIC_QP_SQ_PSN, URNIC_QPS_RTS);
}

/* The connection's attributes for this state. */
static int attr_of(const struct urnic_cm_id *id, enum urnic_qp_state state,
                   struct ipc_qp_modify *out)
{
    struct ipc_cm_qp_attr req = {
        .hdr.type = IPC_CM_QP_ATTR, .id = id->handle, .state = (uint32_t)state};
    return client_call(id->ctx, &req, sizeof(req), out, sizeof(*out));
}

static uint8_t least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

int client_cm_connected(struct urnic_cm_id *id, const struct ipc_cm_param *asked)
{
    struct ipc_qp_modify m;
    int err = attr_of(id, URNIC_QPS_RTR, &m);
    if (err == 0 && asked != NULL)
        m.attr.max_dest_rd_atomic = least(m.attr.max_dest_rd_atomic, asked->responder_resources);
    if (err == 0)
        err = client_qp_modify(id->qp, &m.attr, m.mask);
    if (err == 0)
        err = attr_of(id, URNIC_QPS_RTS, &m);
    if (err == 0 && asked != NULL)
        m.attr.max_rd_atomic = least(m.attr.max_rd_atomic, asked->initiator_depth);
    return err < 0 ? err : client_qp_modify(id->qp, &m.attr, m.mask);
}

void client_cm_fail(struct urnic_qp *qp)
{
    const struct ipc_qp_attr attr = {.state = URNIC_QPS_ERR};
    if (atomic_load_explicit(&qp->state, memory_order_relaxed) != URNIC_QPS_RESET)
        (void)client_qp_modify(qp, &attr, URNIC_QP_STATE);
}

/* The peer accepts. */
static void on_response(struct urnic_cm_event *ev)
{
    struct urnic_cm_id *id = ev->id;
    int err = client_cm_connected(id, NULL);
    if (err == 0)
        err = urnic_establish(id);
    ev->event = err < 0 ? URNIC_CM_CONNECT_ERROR : URNIC_CM_ESTABLISHED;
    ev->status = err;
    if (err == 0)
        return;
    client_cm_fail(id->qp);
    (void)urnic_reject(id, NULL, 0);
}

void client_cm_follow(struct urnic_cm_event *ev)
{
    if (ev->event == URNIC_CM_CONNECT_RESPONSE)
        on_response(ev);
    else if (ev->event == URNIC_CM_DISCONNECTED || ev->event == URNIC_CM_CONNECT_ERROR ||
             ev->event == URNIC_CM_REJECTED || ev->event == URNIC_CM_UNREACHABLE)
        client_cm_fail(ev->id->qp);
}

/* ---- groups ---- */

#define GROUPS 16u /* of one id, as in the daemon */

struct client_groups {
    unsigned n;
    uint8_t gid[GROUPS][16];
};

static int group_find(const struct client_groups *g, const uint8_t gid[16])
{
    for (unsigned i = 0; g != NULL && i < g->n; i++) {
        if (memcmp(g->gid[i], gid, sizeof(g->gid[i])) == 0)
            return (int)i;
    }
    return -1;
}

static int tell(const struct urnic_cm_id *id, enum ipc_type type, const struct ipc_sockaddr *group)
{
    struct ipc_cm_addr req = {.hdr.type = (uint16_t)type,
                              .id = id->handle,
                              .dst = *group,
                              .qpn = type == IPC_CM_JOIN ? id->qp->qpn : 0};
    return client_tell(id->ctx, &req, sizeof(req));
}

int client_cm_join(struct urnic_cm_id *id, const struct ipc_sockaddr *group)
{
    if (id->qp == NULL || id->ps != URNIC_PS_UDP)
        return -EINVAL;
    if (id->groups == NULL)
        id->groups = calloc(1, sizeof(*id->groups));
    struct client_groups *g = id->groups;
    if (g == NULL)
        return -ENOMEM;
    if (group_find(g, group->ip) >= 0)
        return -EADDRINUSE;
    if (g->n == GROUPS)
        return -ENOSPC;
    int err = urnic_attach_mcast(id->qp, group->ip);
    if (err < 0)
        return err;
    err = tell(id, IPC_CM_JOIN, group); /* its event tells the address to send to */
    if (err < 0)
        (void)urnic_detach_mcast(id->qp, group->ip);
    else
        memcpy(g->gid[g->n++], group->ip, sizeof(g->gid[0]));
    return err;
}

int client_cm_leave(struct urnic_cm_id *id, const struct ipc_sockaddr *group)
{
    struct client_groups *g = id->groups;
    int i = group_find(g, group->ip);
    if (i < 0)
        return -EINVAL;
    memmove(g->gid[i], g->gid[--g->n], sizeof(g->gid[0]));
    if (id->qp != NULL)
        (void)urnic_detach_mcast(id->qp, group->ip);
    return tell(id, IPC_CM_LEAVE, group);
}

void client_cm_leave_all(struct urnic_cm_id *id)
{
    struct client_groups *g = id != NULL ? id->groups : NULL;
    while (g != NULL && g->n > 0) {
        g->n--;
        if (id->qp != NULL)
            (void)urnic_detach_mcast(id->qp, g->gid[g->n]);
    }
}
