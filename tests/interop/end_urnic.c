/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An end on liburnic: implements end.h call by call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "urnic/urnic.h"

struct slot {
    int type;
    struct urnic_qp *qp;
    struct urnic_cm_id *id;
};

struct end {
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *listener;
    struct urnic_ah *ah; /* the last one used */
    uint8_t ah_to[16];
    uint16_t gid_index;
    void *memory;
    struct slot slots[END_QPS];
};

static int find_gid(struct end *e, const uint8_t addr[16])
{
    struct urnic_gid gids[64];
    int n = urnic_query_gid_table(e->ctx, gids, 64);
    for (int i = 0; i < n && i < 64; i++)
        if (gids[i].type == URNIC_GID_ROCE_V2 && !memcmp(gids[i].raw, addr, 16)) {
            e->gid_index = (uint16_t)gids[i].index;
            return 0;
        }
    return n < 0 ? n : -ENODEV;
}

int end_open(struct end **out, const uint8_t addr[16], size_t size, unsigned access)
{
    struct end *e = calloc(1, sizeof(*e));
    struct urnic_device *list = NULL;
    int n = 0, rc = e ? urnic_get_device_list(&list, &n) : -ENOMEM;
    for (int i = 0; !rc && i < n; i++) {
        rc = urnic_open(list[i].name, &e->ctx);
        if (rc || !find_gid(e, addr))
            break;
        urnic_close(e->ctx);
        e->ctx = NULL;
    }
    urnic_free_device_list(list);
    if (!rc && !e->ctx)
        rc = -ENODEV;
    if (!rc)
        rc = urnic_alloc_pd(e->ctx, &e->pd);
    if (!rc)
        rc = urnic_create_cq(e->ctx, 1024, NULL, NULL, &e->cq);
    if (!rc)
        rc = urnic_alloc(e->ctx, size, &e->memory);
    if (!rc)
        rc = urnic_reg_mr(e->pd, e->memory, size, access, &e->mr);
    if (!rc)
        rc = urnic_create_cm_channel(e->ctx, &e->channel);
    *out = e; /* ends with the process, whatever happened */
    return rc;
}

uint8_t *end_memory(struct end *e)
{
    return e->memory;
}

uint64_t end_address(struct end *e)
{
    return e->mr->iova;
}

uint32_t end_rkey(struct end *e)
{
    return e->mr->rkey;
}

static struct urnic_qp_init_attr init_attr(struct end *e, int type)
{
    return (struct urnic_qp_init_attr){
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .qp_type = (enum urnic_qp_type)type,
        .cap = {.max_send_wr = 128,
                .max_recv_wr = 256,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 64},
    };
}

int end_qp(struct end *e, unsigned q, int type, uint32_t *qpn)
{
    struct urnic_qp_init_attr attr = init_attr(e, type);
    int rc = urnic_create_qp(e->pd, &attr, &e->slots[q].qp);
    e->slots[q].type = type;
    if (!rc)
        *qpn = urnic_qp_num(e->slots[q].qp);
    return rc;
}

static enum urnic_mtu mtu_of(unsigned octets)
{
    unsigned code = URNIC_MTU_256;
    while (code < URNIC_MTU_4096 && 128u << code < octets)
        code++;
    return (enum urnic_mtu)code;
}

int end_join(struct end *e, unsigned q, const struct end_path *path)
{
    struct urnic_qp *qp = e->slots[q].qp;
    int type = e->slots[q].type;
    struct urnic_qp_attr a = {
        .qp_state = URNIC_QPS_INIT,
        .port_num = 1,
        .qkey = path->qkey,
        .qp_access_flags = path->access,
        .path_mtu = mtu_of(path->mtu),
        .dest_qp_num = path->qpn,
        .sq_psn = path->sq_psn,
        .rq_psn = path->rq_psn,
        .timeout = path->timeout,
        .retry_cnt = path->retry,
        .rnr_retry = path->rnr_retry,
        .min_rnr_timer = path->rnr_timer,
        .max_rd_atomic = path->rd_atomic,
        .max_dest_rd_atomic = path->dest_rd_atomic,
        .ah_attr = {.sgid_index = e->gid_index, .hop_limit = 64},
    };
    memcpy(a.ah_attr.dgid, path->remote, 16);

    unsigned mask = URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT;
    int rc =
        urnic_modify_qp(qp, &a, mask | (type == END_UD ? URNIC_QP_QKEY : URNIC_QP_ACCESS_FLAGS));
    if (rc || path->upto == END_INIT)
        return rc;
    a.qp_state = URNIC_QPS_RTR;
    mask = URNIC_QP_STATE;
    if (type != END_UD)
        mask |= URNIC_QP_AV | URNIC_QP_PATH_MTU | URNIC_QP_DEST_QPN | URNIC_QP_RQ_PSN;
    if (type == END_RC)
        mask |= URNIC_QP_MAX_DEST_RD_ATOMIC | URNIC_QP_MIN_RNR_TIMER;
    rc = urnic_modify_qp(qp, &a, mask);
    if (rc || path->upto == END_RTR)
        return rc;
    a.qp_state = URNIC_QPS_RTS;
    mask = URNIC_QP_STATE | URNIC_QP_SQ_PSN;
    if (type == END_RC)
        mask |=
            URNIC_QP_TIMEOUT | URNIC_QP_RETRY_CNT | URNIC_QP_RNR_RETRY | URNIC_QP_MAX_QP_RD_ATOMIC;
    return urnic_modify_qp(qp, &a, mask);
}

int end_modify(struct end *e, unsigned q, int state)
{
    struct urnic_qp_attr a = {.qp_state = (enum urnic_qp_state)state};
    return urnic_modify_qp(e->slots[q].qp, &a, URNIC_QP_STATE);
}

int end_state(struct end *e, unsigned q)
{
    struct urnic_qp_attr a;
    int rc = urnic_query_qp(e->slots[q].qp, &a);
    return rc ? rc : (int)a.qp_state;
}

int end_destroy(struct end *e, unsigned q)
{
    struct slot *s = &e->slots[q];
    int rc = s->id ? urnic_destroy_id(s->id) : 0;
    if (!rc && s->qp)
        rc = urnic_destroy_qp(s->qp);
    *s = (struct slot){0};
    return rc;
}

int end_recv(struct end *e, unsigned q, uint64_t id, uint32_t off, uint32_t len, uint32_t lkey)
{
    struct urnic_sge sge = {
        .addr = e->mr->iova + off, .length = len, .lkey = lkey ? lkey : e->mr->lkey};
    struct urnic_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(e->slots[q].qp, &wr, NULL);
}

/* The address handle of a datagram; the last one is kept. */
static int handle_to(struct end *e, const uint8_t to[16])
{
    struct urnic_ah_attr attr = {.sgid_index = e->gid_index, .hop_limit = 64};
    if (e->ah && !memcmp(e->ah_to, to, 16))
        return 0;
    if (e->ah)
        urnic_destroy_ah(e->ah);
    e->ah = NULL;
    memcpy(attr.dgid, to, 16);
    memcpy(e->ah_to, to, 16);
    return urnic_create_ah(e->pd, &attr, &e->ah);
}

int end_send(struct end *e, unsigned q, const struct end_work *w)
{
    struct urnic_sge sge = {
        .addr = e->mr->iova + w->off, .length = w->len, .lkey = w->lkey ? w->lkey : e->mr->lkey};
    struct urnic_send_wr wr = {
        .wr_id = w->id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = (enum urnic_wr_opcode)w->opcode,
        .send_flags = w->flags,
        .imm_data = w->imm,
    };
    int rc = 0;
    if (e->slots[q].type == END_UD) {
        rc = handle_to(e, w->to);
        wr.ud.ah = e->ah;
        wr.ud.remote_qpn = w->to_qpn;
        wr.ud.remote_qkey = w->qkey;
    } else if (w->opcode == URNIC_WR_ATOMIC_CMP_AND_SWP ||
               w->opcode == URNIC_WR_ATOMIC_FETCH_AND_ADD) {
        wr.atomic.remote_addr = w->raddr;
        wr.atomic.compare_add = w->compare_add;
        wr.atomic.swap = w->swap;
        wr.atomic.rkey = w->rkey;
    } else if (w->opcode == URNIC_WR_FLUSH) {
        wr.num_sge = 0;
        wr.imm_data = 0;
        wr.flush = (struct urnic_wr_flush){.remote_addr = w->raddr,
                                           .length = w->len,
                                           .rkey = w->rkey,
                                           .type = ntohl(w->imm) & 0xF,
                                           .level = (uint8_t)(ntohl(w->imm) >> 4)};
    } else {
        wr.rdma.remote_addr = w->raddr;
        wr.rdma.rkey = w->rkey;
    }
    return rc ? rc : urnic_post_send(e->slots[q].qp, &wr, NULL);
}

int end_poll(struct end *e, struct end_wc *out)
{
    struct urnic_wc wc;
    int n = urnic_poll_cq(e->cq, 1, &wc);
    if (n == 1)
        *out = (struct end_wc){.id = wc.wr_id,
                               .status = (int)wc.status,
                               .opcode = (int)wc.opcode,
                               .len = wc.byte_len,
                               .flags = wc.wc_flags,
                               .imm = wc.imm_data,
                               .src_qpn = wc.src_qp};
    return n;
}

/* Whether the event is about a queue pair: the others name other objects. */
static bool about_qp(int type)
{
    return (type >= URNIC_EVENT_QP_FATAL && type <= URNIC_EVENT_PATH_MIG_ERR) ||
           type == URNIC_EVENT_QP_LAST_WQE_REACHED;
}

int end_async(struct end *e, int *type, uint32_t *qpn)
{
    struct pollfd p = {.fd = urnic_async_fd(e->ctx), .events = POLLIN};
    struct urnic_async_event ev;
    if (poll(&p, 1, 0) != 1)
        return 0;
    int rc = urnic_get_async_event(e->ctx, &ev);
    if (rc)
        return rc;
    *type = (int)ev.type;
    *qpn = about_qp(*type) ? urnic_qp_num(ev.qp) : 0;
    urnic_ack_async_event(&ev);
    return 1;
}

/* ---- connections ---- */

/* The next event; its id, for a caller that expects a request. */
static int next_event(struct end *e, struct end_event *out, struct urnic_cm_id **id, int timeout_ms)
{
    struct pollfd p = {.fd = urnic_cm_channel_fd(e->channel), .events = POLLIN};
    struct urnic_cm_event ev;
    if (poll(&p, 1, timeout_ms) != 1)
        return -ETIMEDOUT;
    int rc = urnic_get_cm_event(e->channel, &ev);
    if (rc)
        return rc;
    *out = (struct end_event){.event = (int)ev.event,
                              .status = ev.status,
                              .rd_atomic = ev.responder_resources,
                              .depth = ev.initiator_depth,
                              .private_len = ev.private_data_len};
    memcpy(out->private_data, ev.private_data, sizeof(out->private_data));
    if (id)
        *id = ev.id;
    return 0;
}

int end_event(struct end *e, struct end_event *event, int timeout_ms)
{
    return next_event(e, event, NULL, timeout_ms);
}

static int give_qp(struct end *e, unsigned q, struct urnic_cm_id *id)
{
    uint32_t qpn;
    int rc = end_qp(e, q, END_RC, &qpn);
    e->slots[q].id = id;
    return rc ? rc : urnic_id_set_qp(id, e->slots[q].qp);
}

int end_listen(struct end *e, uint16_t port)
{
    struct sockaddr_storage any = {.ss_family = AF_INET6};
    ((struct sockaddr_in6 *)&any)->sin6_port = htons(port);
    int rc = urnic_create_id(e->channel, URNIC_PS_TCP, NULL, &e->listener);
    if (!rc)
        rc = urnic_bind_addr(e->listener, (struct sockaddr *)&any);
    return rc ? rc : urnic_listen(e->listener, 16);
}

int end_answer(struct end *e, unsigned q, struct end_event *request, int timeout_ms)
{
    struct urnic_cm_id *id;
    int rc = next_event(e, request, &id, timeout_ms);
    if (rc)
        return rc;
    return request->event == URNIC_CM_CONNECT_REQUEST ? give_qp(e, q, id) : -EPROTO;
}

static struct urnic_conn_param param_of(const struct end_offer *offer)
{
    return (struct urnic_conn_param){.private_data = offer->private_data,
                                     .private_data_len = offer->private_len,
                                     .responder_resources = offer->rd_atomic,
                                     .initiator_depth = offer->rd_atomic,
                                     .retry_count = offer->retry,
                                     .rnr_retry_count = offer->rnr_retry,
                                     .retry_counts_set = true};
}

int end_accept(struct end *e, unsigned q, const struct end_offer *offer)
{
    struct urnic_conn_param p = param_of(offer);
    return urnic_accept(e->slots[q].id, &p);
}

int end_reject(struct end *e, unsigned q, const void *data, uint8_t len)
{
    return urnic_reject(e->slots[q].id, data, len);
}

static int expect(struct end *e, enum urnic_cm_event_type wanted, int timeout_ms)
{
    struct end_event ev;
    int rc = next_event(e, &ev, NULL, timeout_ms);
    if (rc || ev.event == (int)wanted)
        return rc;
    return ev.status < 0 ? ev.status : -EHOSTUNREACH;
}

int end_dial(struct end *e, unsigned q, struct sockaddr *to, int timeout_ms)
{
    struct urnic_cm_id *id;
    int rc = urnic_create_id(e->channel, URNIC_PS_TCP, NULL, &id);
    if (!rc)
        rc = urnic_resolve_addr(id, NULL, to, timeout_ms);
    if (!rc)
        rc = expect(e, URNIC_CM_ADDR_RESOLVED, timeout_ms);
    if (!rc)
        rc = urnic_resolve_route(id, timeout_ms);
    if (!rc)
        rc = expect(e, URNIC_CM_ROUTE_RESOLVED, timeout_ms);
    return rc ? rc : give_qp(e, q, id);
}

int end_connect(struct end *e, unsigned q, const struct end_offer *offer)
{
    struct urnic_conn_param p = param_of(offer);
    return urnic_connect(e->slots[q].id, &p);
}

int end_hangup(struct end *e, unsigned q)
{
    return urnic_disconnect(e->slots[q].id);
}
