/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contract of engine.h where it hurts: copies that come late or fail, payload that can't be
 * gathered, ports that are full or unplugged, destruction and deregistration with work under way.
 * Virtual time, two engines, an emulated link.
 */
#include <errno.h>
#include <string.h>

#include "unit.h"
#include "vnet.h"

#define US 1000ull
#define MS 1000000ull

static struct vnet *net;
static struct vnet_host *a, *b;
static uint8_t src[1 << 20], dst[1 << 20];
static uint32_t src_lkey, src_rkey, dst_lkey, dst_rkey;

static void start(const char *keys)
{
    net = vnet_new(2, keys, 7);
    ck_assert_ptr_nonnull(net);
    a = net->hosts[0];
    b = net->hosts[1];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * 31 + (i >> 8));
    memset(dst, 0, sizeof(dst));
    ck_assert_int_eq(
        vnet_reg(a, src, sizeof(src), MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &src_lkey, &src_rkey), 0);
    ck_assert_int_eq(
        vnet_reg(b, dst, sizeof(dst), MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &dst_lkey, &dst_rkey), 0);
}

static void stop(void)
{
    struct engine_usage u;
    for (unsigned i = 0; i < 2; i++) {
        engine_usage(net->hosts[i]->engine, &u);
        ck_assert_msg(u.records == 0, "host %u: %u records left", i, u.records);
    }
    vnet_free(net);
}

static void connect(struct qp **qa, struct qp **qb)
{
    struct vnet_qp_params p = {.timeout = 6};
    ck_assert_int_eq(vnet_connect(a, b, &p, qa, qb), 0);
}

static void post(struct qp *qp, uint8_t opcode, uint64_t wr_id, uint32_t off, uint32_t len)
{
    struct engine_sge sge = {(uint64_t)(uintptr_t)(src + off), len, src_lkey};
    struct engine_send_wr wr = {.wr_id = wr_id,
                                .opcode = opcode,
                                .flags = WR_F_SIGNALED,
                                .nsge = 1,
                                .sge = &sge,
                                .rkey = dst_rkey,
                                .remote_va = (uint64_t)(uintptr_t)(dst + off)};
    ck_assert_int_eq(engine_post_send(a->engine, qp, &wr, net->now), 0);
}

static void post_recv(struct qp *qp, uint64_t wr_id, uint32_t len)
{
    struct engine_sge sge = {(uint64_t)(uintptr_t)dst, len, dst_lkey};
    struct engine_recv_wr wr = {.wr_id = wr_id, .nsge = 1, .sge = &sge};
    ck_assert_int_eq(engine_post_recv(b->engine, qp, &wr), 0);
}

static size_t wanted; /* completions of A */
static bool enough(void *ctx)
{
    (void)ctx;
    return a->wcs_n >= wanted;
}

static void run(size_t wcs)
{
    wanted = wcs;
    int rc = vnet_run(net, enough, NULL, net->now + 1000 * MS);
    ck_assert_msg(rc == 0, "%s; %zu of %zu completions", net->why, a->wcs_n, wcs);
}

static enum qp_state state_of(struct vnet_host *h, struct qp *qp)
{
    struct engine_qp_info info;
    engine_qp_info(h->engine, qp, &info);
    return info.state;
}

/* ---- copies ---- */

struct plan { /* a copier's actions on the copies of one queue pair */
    uint32_t qpn;
    int64_t what;
    unsigned after; /* copies that go well before */
};

static int64_t by_plan(void *ctx, const struct engine_copy *copy, uint64_t now)
{
    struct plan *p = ctx;
    (void)now;
    if (copy->qpn != p->qpn)
        return 0;
    if (p->after > 0) {
        p->after--;
        return 0;
    }
    return p->what;
}

/* RSP-29 a queue pair whose copies are late waits, others don't; nothing is acknowledged before it
 * is in memory. */
START_TEST(late_copies_hold_up_only_their_queue_pair)
{
    struct qp *qa[2], *qb[2];
    start(",delay=1us");
    connect(&qa[0], &qb[0]);
    connect(&qa[1], &qb[1]);
    struct plan plan = {engine_qp_num(qb[0]), 100 * US, 0};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    uint64_t t0 = net->now;
    post(qa[0], WR_RDMA_WRITE, 1, 0, 5000);
    post(qa[1], WR_RDMA_WRITE, 2, 8192, 5000);
    run(2);
    ck_assert_uint_eq(a->wcs[0].wc.wr_id, 2);
    ck_assert_uint_lt(a->wcs[0].time - t0, 50 * US);
    ck_assert_uint_eq(a->wcs[1].wc.wr_id, 1);
    ck_assert_uint_ge(a->wcs[1].time - t0, 101 * US);
    ck_assert_uint_eq(a->wcs[1].wc.status, WC_SUCCESS);
    ck_assert_mem_eq(src, dst, 5000);
    stop();
}
END_TEST

/* MR-12 memory of the target is gone: NAK remote access, QP in ERR, nothing acknowledged. */
START_TEST(failed_copy_of_a_write_is_an_access_error)
{
    struct qp *qa, *qb;
    start(",delay=1us");
    connect(&qa, &qb);
    struct plan plan = {engine_qp_num(qb), -EFAULT, 2};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post(qa, WR_RDMA_WRITE, 1, 0, 1000);
    post(qa, WR_RDMA_WRITE, 2, 1000, 5000); /* its second packet */
    post(qa, WR_RDMA_WRITE, 3, 6000, 1000);
    run(3);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_SUCCESS);
    ck_assert_uint_eq(a->wcs[1].wc.status, WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(a->wcs[2].wc.status, WC_WR_FLUSH_ERR);
    ck_assert_int_eq(state_of(b, qb), QPS_ERR);
    ck_assert_int_eq(state_of(a, qa), QPS_ERR);
    for (unsigned i = 6000; i < 7000; i++)
        ck_assert_uint_eq(dst[i], 0);
    vnet_run_for(net, MS);
    stop();
}
END_TEST

/* MR-12 the same late, while the requester retries: the outcome is the same. */
START_TEST(failed_copy_that_is_late_too)
{
    struct qp *qa, *qb;
    start(",delay=1us");
    connect(&qa, &qb);
    struct plan plan = {engine_qp_num(qb), 400 * US, 0};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post(qa, WR_RDMA_WRITE, 1, 0, 1000);
    vnet_run_for(net, 300 * US); /* one time-out, one retransmission: not executed twice */
    plan.what = -EFAULT;
    post(qa, WR_RDMA_WRITE, 2, 1000, 1000);
    run(2);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_SUCCESS);
    ck_assert_uint_eq(a->wcs[1].wc.status, WC_REM_ACCESS_ERR);
    vnet_run_for(net, MS);
    stop();
}
END_TEST

/* RSP-13 the receive buffer of a SEND is gone: the receiver learns it, the sender gets a NAK. */
START_TEST(failed_copy_of_a_send_completes_both_sides)
{
    struct qp *qa, *qb;
    start(",delay=1us");
    connect(&qa, &qb);
    struct plan plan = {engine_qp_num(qb), -EFAULT, 0};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post_recv(qb, 50, 1000);
    post_recv(qb, 51, 1000);
    post(qa, WR_SEND, 1, 0, 1000);
    run(1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_REM_OP_ERR);
    vnet_run_for(net, MS);
    ck_assert_uint_eq(b->wcs_n, 2);
    ck_assert_uint_eq(b->wcs[0].wc.wr_id, 50);
    ck_assert_uint_ne(b->wcs[0].wc.status, WC_SUCCESS);
    ck_assert_uint_eq(b->wcs[1].wc.status, WC_WR_FLUSH_ERR);
    stop();
}
END_TEST

/* RD-15 the requester's own buffer is gone when READ data arrives. */
START_TEST(failed_copy_of_read_data_is_a_local_error)
{
    struct qp *qa, *qb;
    start(",delay=1us");
    connect(&qa, &qb);
    struct plan plan = {engine_qp_num(qa), -EFAULT, 1};
    a->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post(qa, WR_RDMA_READ, 1, 0, 5000);
    post(qa, WR_RDMA_READ, 2, 8192, 100);
    run(2);
    ck_assert_uint_eq(a->wcs[0].wc.wr_id, 1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_LOC_PROT_ERR);
    ck_assert_uint_eq(a->wcs[1].wc.status, WC_WR_FLUSH_ERR);
    vnet_run_for(net, MS);
    stop();
}
END_TEST

static int cant_gather(void *ctx, const struct engine_slot *slot, uint64_t now)
{
    unsigned *left = ctx;
    (void)now;
    if (slot->npieces == 0)
        return 0;
    return (*left)-- == 0 ? -EFAULT : 0;
}

/* REQ-08 the payload of a request can't be read: a local error, and the packet never leaves. */
START_TEST(failed_gather_is_a_local_error)
{
    struct qp *qa, *qb;
    unsigned good = 3;
    start(",delay=1us");
    connect(&qa, &qb);
    a->copier = (struct vnet_copier){.ctx = &good, .gather = cant_gather};
    post(qa, WR_RDMA_WRITE, 1, 0, 1024);
    post(qa, WR_RDMA_WRITE, 2, 1024, 5 * 1024);
    post(qa, WR_RDMA_WRITE, 3, 8192, 1024);
    run(3);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_SUCCESS);
    ck_assert_uint_eq(a->wcs[1].wc.status, WC_LOC_PROT_ERR);
    ck_assert_uint_eq(a->wcs[2].wc.status, WC_WR_FLUSH_ERR);
    vnet_run_for(net, MS);
    ck_assert_mem_eq(src, dst, 3072);
    for (unsigned i = 3072; i < 10000; i++)
        ck_assert_uint_eq(dst[i], 0);
    stop();
}
END_TEST

/* RD-07, MR-12 the memory of a READ is gone in the middle of the answer. */
START_TEST(failed_gather_of_a_response_is_an_access_error)
{
    struct qp *qa, *qb;
    unsigned good = 3;
    start(",delay=1us");
    connect(&qa, &qb);
    b->copier = (struct vnet_copier){.ctx = &good, .gather = cant_gather};
    post(qa, WR_RDMA_READ, 1, 0, 8192);
    run(1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_REM_ACCESS_ERR);
    vnet_run_for(net, MS);
    ck_assert_int_eq(state_of(b, qb), QPS_ERR);
    stop();
}
END_TEST

/* ---- destruction and deregistration ---- */

/* QP-14 destroyed with copies pending: no completion, no event, no access to memory afterwards
 * except by the copies already handed out; everything is freed. */
START_TEST(destroy_with_copies_pending)
{
    struct qp *qa, *qb;
    struct engine_usage u;
    start(",delay=1us");
    connect(&qa, &qb);
    struct plan plan = {engine_qp_num(qb), 200 * US, 0};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post_recv(qb, 50, 2000);
    post(qa, WR_SEND, 1, 0, 2000);
    vnet_run_for(net, 20 * US);
    engine_qp_destroy(b->engine, qb);
    ck_assert_ptr_null(engine_qp_find(b->engine, plan.qpn));
    engine_usage(b->engine, &u);
    ck_assert_uint_gt(u.records, 0);
    ck_assert_uint_eq(b->wcs_n, 0);
    run(1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_RETRY_EXC_ERR);
    vnet_run_for(net, MS);
    ck_assert_uint_eq(b->wcs_n, 0);
    engine_usage(b->engine, &u);
    ck_assert_uint_eq(u.qps, 0);
    stop();
}
END_TEST

/* MR-06 deregistered with copies pending: freed by the last one, and reported. */
START_TEST(deregister_with_copies_pending)
{
    struct qp *qa, *qb;
    struct mem_usage before, after;
    start(",delay=1us");
    connect(&qa, &qb);
    mem_usage(b->mem, &before);
    struct plan plan = {engine_qp_num(qb), 200 * US, 0};
    b->copier = (struct vnet_copier){.ctx = &plan, .place = by_plan};
    post(qa, WR_RDMA_WRITE, 1, 0, 2000);
    vnet_run_for(net, 20 * US);
    ck_assert_int_eq(mem_mr_dereg(b->mem, dst_lkey), -EINPROGRESS);
    vnet_run_for(net, MS);
    mem_usage(b->mem, &after);
    ck_assert_uint_eq(after.mrs, before.mrs - 1);
    stop();
}
END_TEST

struct watch {
    uint64_t since;
    unsigned payload; /* frames with payload of A since then */
    bool drop;
};

static void watch_payload(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                          struct mem_link_verdict *v)
{
    struct watch *w = ctx;
    struct wire_pkt p;
    if (dir != 0)
        return;
    ck_assert_int_eq(wire_parse(frame, len, 0, &p), WIRE_OK);
    w->payload += now >= w->since && p.payload_len > 0;
    if (w->drop)
        v->flags |= MEM_LINK_DROP;
}

/* RTX-06 the region is deregistered while its packets are unacknowledged: nothing of it is sent
 * again, and the request fails. */
START_TEST(retransmission_after_deregistration)
{
    struct qp *qa, *qb;
    struct watch w = {.since = 0, .drop = true};
    start(",delay=1us");
    connect(&qa, &qb);
    mem_link_rule_set(net->link, watch_payload, &w);
    post(qa, WR_RDMA_WRITE, 1, 0, 3000);
    vnet_run_for(net, 20 * US);
    ck_assert_uint_eq(w.payload, 3);
    ck_assert_int_eq(mem_mr_dereg(a->mem, src_lkey), 0);
    memset(src, 0x5A, sizeof(src));
    w = (struct watch){.since = net->now};
    run(1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_LOC_PROT_ERR);
    vnet_run_for(net, 10 * MS);
    ck_assert_uint_eq(w.payload, 0);
    for (unsigned i = 0; i < 3000; i++)
        ck_assert_uint_eq(dst[i], 0);
    stop();
}
END_TEST

/* ---- ports ---- */

/* A port that is nearly always full: slow, but nothing is lost and nothing is sent twice. */
START_TEST(full_port_loses_nothing)
{
    struct qp *qa, *qb;
    struct io_stats st;
    start(",rate=10M,slots=64");
    struct vnet_qp_params p = {.timeout = 18};
    ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
    for (unsigned i = 0; i < 20; i++)
        post(qa, i % 2 ? WR_RDMA_READ : WR_RDMA_WRITE, i, i * 20000, 20000);
    run(20);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_uint_eq(a->wcs[i].wc.wr_id, i);
        ck_assert_uint_eq(a->wcs[i].wc.status, WC_SUCCESS);
    }
    a->port->ops->stats(a->port, &st);
    ck_assert_uint_gt(st.tx_full, 0);
    ck_assert_uint_eq(engine_counters(a->engine)[ENGINE_C_tx_retransmit], 0);
    ck_assert_uint_eq(engine_counters(a->engine)[ENGINE_C_local_ack_timeout_err], 0);
    stop();
}
END_TEST

/* TMR-04: the cable is unplugged for less time than the retries last. The transfer then continues.
 */
START_TEST(unplugged_and_back)
{
    struct qp *qa, *qb;
    start(",delay=1us,rate=10G");
    connect(&qa, &qb);
    post(qa, WR_RDMA_WRITE, 1, 0, 1 << 20);
    vnet_run_for(net, 200 * US);
    mem_link_up(net->link, MEM_LINK_ALL, false, net->now);
    vnet_run_for(net, 800 * US);
    mem_link_up(net->link, MEM_LINK_ALL, true, net->now);
    run(1);
    ck_assert_uint_eq(a->wcs[0].wc.status, WC_SUCCESS);
    ck_assert_mem_eq(src, dst, sizeof(src));
    stop();
}
END_TEST

/* ---- credits ---- */

static bool deaf; /* B's packets are lost */

static void lose_answers(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir, uint64_t now,
                         struct mem_link_verdict *v)
{
    (void)ctx;
    (void)frame;
    (void)len;
    (void)now;
    if (dir == 1 && deaf)
        v->flags |= MEM_LINK_DROP;
}

static void post_lost_update(struct qp *qb)
{
    deaf = true;
    post_recv(qb, 1, 4096);
    vnet_run_for(net, 10 * US);
    deaf = false;
}

/* ACK-15 ACK-16: one receive is posted, and the packet with its credit is lost: before the message
 * arrives, or after the answer to its first packet. The message arrives nevertheless. */
START_TEST(lost_credits_hold_up_nobody)
{
    static const uint8_t ops[] = {WR_SEND, WR_RDMA_WRITE_WITH_IMM, WR_RDMA_WRITE_WITH_IMM};
    struct vnet_qp_params p = {.timeout = 6, .credits = true};
    struct qp *qa, *qb;
    for (unsigned i = 0; i < 3; i++) {
        start(",delay=1us");
        mem_link_rule_set(net->link, lose_answers, NULL);
        ck_assert_int_eq(vnet_connect(a, b, &p, &qa, &qb), 0);
        if (i < 2)
            post_lost_update(qb);
        post(qa, ops[i], 1, 0, 3000);
        if (i == 2) {
            vnet_run_for(net, 10 * US);
            post_lost_update(qb);
        }
        run(1);
        ck_assert_uint_eq(a->wcs[0].wc.status, WC_SUCCESS);
        ck_assert_uint_eq(b->wcs_n, 1);
        ck_assert_uint_eq(b->wcs[0].wc.status, WC_SUCCESS);
        stop();
    }
}
END_TEST

UNIT_MAIN("contract", late_copies_hold_up_only_their_queue_pair,
          failed_copy_of_a_write_is_an_access_error, failed_copy_that_is_late_too,
          failed_copy_of_a_send_completes_both_sides, failed_copy_of_read_data_is_a_local_error,
          failed_gather_is_a_local_error, failed_gather_of_a_response_is_an_access_error,
          destroy_with_copies_pending, deregister_with_copies_pending,
          retransmission_after_deregistration, full_port_loses_nothing, unplugged_and_back,
          lost_credits_hold_up_nobody)
