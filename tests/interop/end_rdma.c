/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An end on libibverbs and librdmacm, for the kernel's RoCE: implements end.h call by call.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"

struct slot {
    int type;
    struct ibv_qp *qp;
    struct rdma_cm_id *id;
};

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct ibv_ah *ah; /* the last one used */
    uint8_t ah_to[16];
    uint8_t gid_index;
    void *memory;
    struct slot slots[END_QPS];
};

/* librdmacm says -1 and errno. */
static int said(int rc)
{
    return rc ? -errno : 0;
}

static int find_gid(struct end *e, struct ibv_context *ctx, const uint8_t addr[16])
{
    struct ibv_gid_entry gids[64];
    ssize_t n = ibv_query_gid_table(ctx, gids, 64, 0);
    for (ssize_t i = 0; i < n; i++)
        if (gids[i].gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(gids[i].gid.raw, addr, 16)) {
            e->gid_index = (uint8_t)gids[i].gid_index;
            return 0;
        }
    return -ENODEV;
}

int end_open(struct end **out, const uint8_t addr[16], size_t size, unsigned access)
{
    struct end *e = calloc(1, sizeof(*e));
    int n = 0;
    /* librdmacm's own contexts: its ids and our queue pairs have to share one. */
    struct ibv_context **list = rdma_get_devices(&n);

    *out = e;
    if (!e || !list)
        return -ENOMEM;
    for (int i = 0; i < n && !e->ctx; i++)
        if (!find_gid(e, list[i], addr))
            e->ctx = list[i];
    rdma_free_devices(list);
    if (!e->ctx)
        return -ENODEV;
    e->memory = aligned_alloc(4096, size);
    e->pd = ibv_alloc_pd(e->ctx);
    e->cq = ibv_create_cq(e->ctx, 1024, NULL, NULL, 0);
    e->channel = rdma_create_event_channel();
    if (!e->memory || !e->pd || !e->cq || !e->channel)
        return -errno;
    memset(e->memory, 0, size);
    e->mr = ibv_reg_mr(e->pd, e->memory, size, (int)access);
    return e->mr ? 0 : -errno;
}

uint8_t *end_memory(struct end *e)
{
    return e->memory;
}

uint64_t end_address(struct end *e)
{
    return (uintptr_t)e->memory;
}

uint32_t end_rkey(struct end *e)
{
    return e->mr->rkey;
}

static struct ibv_qp_init_attr init_attr(struct end *e, int type)
{
    return (struct ibv_qp_init_attr){
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .qp_type = (enum ibv_qp_type)type,
        .cap = {.max_send_wr = 128,
                .max_recv_wr = 256,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 64},
    };
}

/* With ATOMIC WRITE, which no work request of ibv_post_send is; NULL: the device has it not. */
static struct ibv_qp *qp_with_atomic_write(struct end *e, int type)
{
    const struct ibv_qp_init_attr plain = init_attr(e, type);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = plain.send_cq,
        .recv_cq = plain.recv_cq,
        .cap = plain.cap,
        .qp_type = plain.qp_type,
        .pd = e->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
    };
    return type == END_RC ? ibv_create_qp_ex(e->ctx, &attr) : NULL;
}

static int atomic_write(struct end *e, unsigned q, const struct end_work *w)
{
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->slots[q].qp);
    if (!x)
        return -EOPNOTSUPP;
    ibv_wr_start(x);
    x->wr_id = w->id;
    x->wr_flags = w->flags;
    ibv_wr_atomic_write(x, w->rkey, w->raddr, (uint8_t *)e->memory + w->off);
    return -ibv_wr_complete(x);
}

int end_qp(struct end *e, unsigned q, int type, uint32_t *qpn)
{
    struct ibv_qp_init_attr attr = init_attr(e, type);
    struct ibv_qp *qp = qp_with_atomic_write(e, type);
    e->slots[q] = (struct slot){.type = type, .qp = qp ? qp : ibv_create_qp(e->pd, &attr)};
    if (!e->slots[q].qp)
        return -errno;
    *qpn = e->slots[q].qp->qp_num;
    return 0;
}

static enum ibv_mtu mtu_of(unsigned octets)
{
    unsigned code = IBV_MTU_256;
    while (code < IBV_MTU_4096 && 128u << code < octets)
        code++;
    return (enum ibv_mtu)code;
}

int end_join(struct end *e, unsigned q, const struct end_path *path)
{
    struct ibv_qp *qp = e->slots[q].qp;
    int type = e->slots[q].type;
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT,
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
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.sgid_index = e->gid_index, .hop_limit = 64}},
    };
    memcpy(a.ah_attr.grh.dgid.raw, path->remote, 16);

    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    int rc = ibv_modify_qp(qp, &a, mask | (type == END_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    if (rc || path->upto == END_INIT)
        return -rc;
    a.qp_state = IBV_QPS_RTR;
    mask = IBV_QP_STATE;
    if (type != END_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type == END_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    rc = ibv_modify_qp(qp, &a, mask);
    if (rc || path->upto == END_RTR)
        return -rc;
    a.qp_state = IBV_QPS_RTS;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (type == END_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return -ibv_modify_qp(qp, &a, mask);
}

int end_modify(struct end *e, unsigned q, int state)
{
    struct ibv_qp_attr a = {.qp_state = (enum ibv_qp_state)state};
    return -ibv_modify_qp(e->slots[q].qp, &a, IBV_QP_STATE);
}

int end_state(struct end *e, unsigned q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr unused;
    int rc = ibv_query_qp(e->slots[q].qp, &a, IBV_QP_STATE, &unused);
    return rc ? -rc : (int)a.qp_state;
}

int end_destroy(struct end *e, unsigned q)
{
    struct slot *s = &e->slots[q];
    int rc = 0;
    if (s->id && s->qp)
        rdma_destroy_qp(s->id);
    else if (s->qp)
        rc = -ibv_destroy_qp(s->qp);
    if (s->id)
        rc = said(rdma_destroy_id(s->id));
    *s = (struct slot){0};
    return rc;
}

int end_recv(struct end *e, unsigned q, uint64_t id, uint32_t off, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = {
        .addr = end_address(e) + off, .length = len, .lkey = lkey ? lkey : e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    return -ibv_post_recv(e->slots[q].qp, &wr, &bad);
}

/* The address handle of a datagram; the last one is kept. */
static int handle_to(struct end *e, const uint8_t to[16])
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = e->gid_index, .hop_limit = 64}};
    if (e->ah && !memcmp(e->ah_to, to, 16))
        return 0;
    if (e->ah)
        ibv_destroy_ah(e->ah);
    memcpy(attr.grh.dgid.raw, to, 16);
    memcpy(e->ah_to, to, 16);
    e->ah = ibv_create_ah(e->pd, &attr);
    return e->ah ? 0 : -errno;
}

int end_send(struct end *e, unsigned q, const struct end_work *w)
{
    struct ibv_sge sge = {
        .addr = end_address(e) + w->off, .length = w->len, .lkey = w->lkey ? w->lkey : e->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = w->id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = (enum ibv_wr_opcode)w->opcode,
        .send_flags = w->flags,
        .imm_data = w->imm,
    };
    struct ibv_send_wr *bad;
    int rc = 0;
    if (w->opcode == IBV_WR_ATOMIC_WRITE)
        return atomic_write(e, q, w);
    if (e->slots[q].type == END_UD) {
        rc = handle_to(e, w->to);
        wr.wr.ud.ah = e->ah;
        wr.wr.ud.remote_qpn = w->to_qpn;
        wr.wr.ud.remote_qkey = w->qkey;
    } else if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = w->raddr;
        wr.wr.atomic.compare_add = w->compare_add;
        wr.wr.atomic.swap = w->swap;
        wr.wr.atomic.rkey = w->rkey;
    } else {
        wr.wr.rdma.remote_addr = w->raddr;
        wr.wr.rdma.rkey = w->rkey;
    }
    return rc ? rc : -ibv_post_send(e->slots[q].qp, &wr, &bad);
}

int end_poll(struct end *e, struct end_wc *out)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(e->cq, 1, &wc);
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
    return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
           type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

int end_async(struct end *e, int *type, uint32_t *qpn)
{
    struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;
    if (poll(&p, 1, 0) != 1)
        return 0;
    if (ibv_get_async_event(e->ctx, &ev))
        return -errno;
    *type = (int)ev.event_type;
    *qpn = about_qp(*type) ? ev.element.qp->qp_num : 0;
    ibv_ack_async_event(&ev);
    return 1;
}

/* ---- connections ---- */

/* The next event; its id, for a caller that expects a request. */
static int next_event(struct end *e, struct end_event *out, struct rdma_cm_id **id, int timeout_ms)
{
    struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
    struct rdma_cm_event *ev;
    if (poll(&p, 1, timeout_ms) != 1)
        return -ETIMEDOUT;
    if (rdma_get_cm_event(e->channel, &ev))
        return -errno;
    *out = (struct end_event){.event = (int)ev->event,
                              .status = ev->status,
                              .rd_atomic = ev->param.conn.responder_resources,
                              .depth = ev->param.conn.initiator_depth,
                              .private_len = ev->param.conn.private_data_len};
    if (ev->param.conn.private_data)
        memcpy(out->private_data, ev->param.conn.private_data, out->private_len);
    if (id)
        *id = ev->id;
    return said(rdma_ack_cm_event(ev));
}

int end_event(struct end *e, struct end_event *event, int timeout_ms)
{
    return next_event(e, event, NULL, timeout_ms);
}

static int give_qp(struct end *e, unsigned q, struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = init_attr(e, END_RC);
    if (rdma_create_qp(id, e->pd, &attr))
        return -errno;
    e->slots[q] = (struct slot){.type = END_RC, .qp = id->qp, .id = id};
    return 0;
}

int end_listen(struct end *e, uint16_t port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int rc = said(rdma_create_id(e->channel, &e->listener, NULL, RDMA_PS_TCP));
    if (!rc)
        rc = said(rdma_bind_addr(e->listener, (struct sockaddr *)&any));
    return rc ? rc : said(rdma_listen(e->listener, 16));
}

int end_answer(struct end *e, unsigned q, struct end_event *request, int timeout_ms)
{
    struct rdma_cm_id *id = NULL;
    int rc = next_event(e, request, &id, timeout_ms);
    if (rc)
        return rc;
    return id && request->event == RDMA_CM_EVENT_CONNECT_REQUEST ? give_qp(e, q, id) : -EPROTO;
}

static struct rdma_conn_param param_of(const struct end_offer *offer)
{
    return (struct rdma_conn_param){.private_data = offer->private_data,
                                    .private_data_len = offer->private_len,
                                    .responder_resources = offer->rd_atomic,
                                    .initiator_depth = offer->rd_atomic,
                                    .retry_count = offer->retry,
                                    .rnr_retry_count = offer->rnr_retry};
}

int end_accept(struct end *e, unsigned q, const struct end_offer *offer)
{
    struct rdma_conn_param p = param_of(offer);
    return said(rdma_accept(e->slots[q].id, &p));
}

int end_reject(struct end *e, unsigned q, const void *data, uint8_t len)
{
    return said(rdma_reject(e->slots[q].id, data, len));
}

static int expect(struct end *e, enum rdma_cm_event_type wanted, int timeout_ms)
{
    struct end_event ev = {0};
    int rc = next_event(e, &ev, NULL, timeout_ms);
    if (rc || ev.event == (int)wanted)
        return rc;
    return ev.status < 0 ? ev.status : -EHOSTUNREACH;
}

int end_dial(struct end *e, unsigned q, struct sockaddr *to, int timeout_ms)
{
    struct rdma_cm_id *id;
    int rc = said(rdma_create_id(e->channel, &id, NULL, RDMA_PS_TCP));
    if (!rc)
        rc = said(rdma_resolve_addr(id, NULL, to, timeout_ms));
    if (!rc)
        rc = expect(e, RDMA_CM_EVENT_ADDR_RESOLVED, timeout_ms);
    if (!rc)
        rc = said(rdma_resolve_route(id, timeout_ms));
    if (!rc)
        rc = expect(e, RDMA_CM_EVENT_ROUTE_RESOLVED, timeout_ms);
    return rc ? rc : give_qp(e, q, id);
}

int end_connect(struct end *e, unsigned q, const struct end_offer *offer)
{
    struct rdma_conn_param p = param_of(offer);
    return said(rdma_connect(e->slots[q].id, &p));
}

int end_hangup(struct end *e, unsigned q)
{
    return said(rdma_disconnect(e->slots[q].id));
}
