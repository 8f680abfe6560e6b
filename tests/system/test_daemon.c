/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole way: application, shared rings, worker, engine, link, and back.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "client.h"
#include "daemon_rig.h"
#include "ipc.h"
#include "unit.h"

#define SIZE (1u << 20)

static struct rig rig;
static struct end a, b;

static void pair_up(const char *link)
{
    rig_start_pair(&rig, link);
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void pair_down(void)
{
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(seed + i * 31 + (i >> 8));
}

/* MR-12 SHM-06: every operation, through slabs, over a clean link. */
START_TEST(operations)
{
    static const uint32_t sizes[] = {0, 1, 64, 1023, 1024, 1025, 3072, 65536, SIZE / 2};
    pair_up("");
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t len = sizes[i];
        fill(a.mem, len, i);
        memset(b.mem, 0, SIZE);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, len, b.mr->iova + 64, b.mr->rkey, i),
                         0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(a.mem, b.mem + 64, len) == 0);
        ck_assert(b.mem[64 + len] == 0 && b.mem[63] == 0);

        memset(a.mem + SIZE / 2, 0, SIZE / 2);
        ck_assert_int_eq(
            end_post(&a, URNIC_WR_RDMA_READ, SIZE / 2, len, b.mr->iova + 64, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(a.mem + SIZE / 2, b.mem + 64, len) == 0);

        ck_assert_int_eq(end_post_recv(&b, SIZE / 2, SIZE / 2, 100 + i), 0);
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, len, 0, 0, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        struct urnic_wc wc;
        end_wait(&b, &wc, 10000);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, 100 + i);
        ck_assert_uint_eq(wc.byte_len, len);
        ck_assert(memcmp(a.mem, b.mem + SIZE / 2, len) == 0);
    }
    uint64_t *word = (uint64_t *)(void *)b.mem;
    *word = 41;
    ck_assert_int_eq(end_post(&a, URNIC_WR_ATOMIC_FETCH_AND_ADD, 8, 8, b.mr->iova, b.mr->rkey, 7),
                     0);
    end_expect(&a, URNIC_WC_SUCCESS, 7);
    ck_assert_uint_eq(*word, 42);
    ck_assert_uint_eq(((uint64_t *)(void *)a.mem)[1], 41);
    pair_down();
}
END_TEST

#define LOCAL_ADDS  2000000u
#define REMOTE_ADDS 2000u

static void *add_locally(void *word)
{
    for (unsigned i = 0; i < LOCAL_ADDS; i++)
        __atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* ATM-05: atomics of a peer are atomic against those of a CPU that shares the memory, and the
 * device announces it. */
START_TEST(atomics_against_a_cpu)
{
    const uint32_t glob = 2;
    struct urnic_device_attr attr;
    pthread_t thread;
    pair_up("");
    ck_assert_int_eq(urnic_query_device(b.ctx, &attr), 0);
    ck_assert_uint_eq(attr.atomic_cap, glob);
    uint64_t *word = (uint64_t *)(void *)b.mem;
    *word = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, add_locally, word), 0);
    for (unsigned i = 0; i < REMOTE_ADDS; i++) {
        ck_assert_int_eq(
            end_post(&a, URNIC_WR_ATOMIC_FETCH_AND_ADD, 8, 8, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(*word, LOCAL_ADDS + REMOTE_ADDS);
    pair_down();
}
END_TEST

/* RTX-01 through the whole daemon: loss, reordering and duplicates don't show in the data. */
START_TEST(lossy_link)
{
    pair_up(",loss=0.02,reorder=0.02,dup=0.02,seed=7");
    for (unsigned i = 0; i < 8; i++) {
        fill(a.mem, SIZE, i);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(a.mem, b.mem, SIZE) == 0);
    }
    pair_down();
}
END_TEST

struct passive {
    struct end *end;
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    int rc;
};

static void *accept_one(void *arg)
{
    struct passive *p = arg;
    struct urnic_conn_attr attr = end_conn_attr(p->end, 0);
    p->rc = urnic_accept_conn(p->listener, &attr, NULL, NULL, &p->conn);
    return NULL;
}

/* CM-17 CM-25: connect by address and port, write, hang up; for IPv4 and IPv6, several times. */
START_TEST(connections)
{
    static const char *const ip[] = {"10.0.0.2", "fd00::2"};
    struct passive p = {.end = &b};
    uint32_t first[20];
    unsigned seen = 0, equal = 0;
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, 4791, 0, &p.listener), 0);
    for (unsigned i = 0; i < 10; i++) {
        struct urnic_conn *conn;
        pthread_t thread;
        struct urnic_conn_attr attr = end_conn_attr(&a, 0);
        pthread_create(&thread, NULL, accept_one, &p);
        int rc = urnic_connect_addr(a.ctx, ip[i % 2], 4791, &attr, NULL, NULL, &conn);
        ck_assert_msg(rc == 0, "connect to %s: %s", ip[i % 2], strerror(-rc));
        pthread_join(thread, NULL);
        ck_assert_msg(p.rc == 0, "accept: %s", strerror(-p.rc));
        a.qp = conn->qp;
        struct urnic_qp_attr psns;
        ck_assert_int_eq(urnic_query_qp(conn->qp, &psns), 0);
        for (unsigned k = 0; k < seen; k++) /* SEC-07: equal by chance in 1 of 70,000 runs ... */
            equal += first[k] == psns.sq_psn || first[k] == psns.rq_psn;
        first[seen++] = psns.sq_psn;
        first[seen++] = psns.rq_psn;
        fill(a.mem, SIZE, i);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert(memcmp(a.mem, b.mem, SIZE) == 0);
        a.qp = NULL;
        ck_assert_int_eq(urnic_close_conn(conn), 0);
        ck_assert_int_eq(urnic_close_conn(p.conn), 0);
    }
    ck_assert_uint_le(equal, 1); /* ... and not twice */
    ck_assert_int_eq(urnic_close_listener(p.listener), 0);
    pair_down();
}
END_TEST

static enum urnic_qp_state state_of(struct urnic_qp *qp)
{
    struct urnic_qp_attr attr;
    ck_assert_int_eq(urnic_query_qp(qp, &attr), 0);
    return attr.qp_state;
}

/* The number of READs and atomics that it may start, and that it accepts. */
static void depths(struct urnic_qp *qp, unsigned starts, unsigned takes)
{
    struct urnic_qp_attr attr;
    ck_assert_int_eq(urnic_query_qp(qp, &attr), 0);
    ck_assert_uint_eq(attr.max_rd_atomic, starts);
    ck_assert_uint_eq(attr.max_dest_rd_atomic, takes);
}

/* CM-25: with events, each side's queue pair goes with the connection: INIT when it is given to the
 * id, RTS at ESTABLISHED, ERR at DISCONNECTED; given in both possible ways. CM-07: it has as many
 * READs in flight as the two have agreed on. */
START_TEST(queue_pairs_go_with_connections)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(4792)};
    struct urnic_qp_init_attr init = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener, *active, *passive;
    struct urnic_qp *qa, *qb;
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&sin), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);

    inet_pton(AF_INET, "10.0.0.2", &sin.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qa), 0);
    ck_assert_int_eq(urnic_id_set_qp(active, qa), 0);
    ck_assert_int_eq(urnic_id_set_qp(active, qa), -EINVAL);
    ck_assert_int_eq(urnic_resolve_addr(active, NULL, (struct sockaddr *)&sin, 5000), 0);
    ck_assert_ptr_eq(await_cm(ca, URNIC_CM_ADDR_RESOLVED).id, active);
    ck_assert_int_eq(urnic_resolve_route(active, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_int_eq(urnic_connect(active, NULL), 0);

    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    init.send_cq = init.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_id_qp(passive, b.pd, &init, &qb), 0);
    ck_assert_int_eq(state_of(qa), URNIC_QPS_INIT);
    ck_assert_int_eq(state_of(qb), URNIC_QPS_INIT);
    const struct urnic_conn_param few = {.responder_resources = 3, .initiator_depth = 2};
    ck_assert_int_eq(urnic_accept(passive, &few), 0);
    ck_assert_int_eq(state_of(qb), URNIC_QPS_RTS);
    depths(qb, 2, 3);
    ck_assert_ptr_eq(await_cm(ca, URNIC_CM_ESTABLISHED).id, active);
    ck_assert_int_eq(state_of(qa), URNIC_QPS_RTS);
    depths(qa, 3, 32); /* the default */
    ck_assert_ptr_eq(await_cm(cb, URNIC_CM_ESTABLISHED).id, passive);

    ck_assert_int_eq(urnic_disconnect(active), 0);
    ck_assert_int_eq(state_of(qa), URNIC_QPS_ERR);
    ck_assert_ptr_eq(await_cm(cb, URNIC_CM_DISCONNECTED).id, passive);
    ck_assert_int_eq(state_of(qb), URNIC_QPS_ERR);
    ck_assert_ptr_eq(await_cm(ca, URNIC_CM_DISCONNECTED).id, active);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), -EBUSY);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    pair_down();
}
END_TEST

/* CM-25: a request that was hung up on before it was accepted: the event names the id that its
 * CONNECT_REQUEST has named. */
START_TEST(gone_before_accepted)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(4793)};
    struct urnic_qp_init_attr init = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener, *active, *passive;
    struct urnic_qp_init_attr init_b = init;
    struct urnic_qp *qa, *qb = NULL;
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&sin), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    inet_pton(AF_INET, "10.0.0.2", &sin.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&sin, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    init.send_cq = init.recv_cq = a.cq;
    init_b.send_cq = init_b.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_id_qp(active, a.pd, &init, &qa), 0);
    ck_assert_int_eq(urnic_connect(active, NULL), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    if (_i == 0)
        ck_assert_int_eq(urnic_create_id_qp(passive, b.pd, &init_b, &qb), 0);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    ck_assert_ptr_eq(await_cm(cb, URNIC_CM_REJECTED).id, passive);
    if (_i == 1)
        ck_assert_int_eq(urnic_create_id_qp(passive, b.pd, &init_b, &qb), 0);
    ck_assert_int_eq(urnic_accept(passive, NULL), -ECONNABORTED);
    ck_assert_int_eq(urnic_destroy_qp(qb), 0);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    pair_down();
}
END_TEST

/* CM-28: urnic_accept_conn passes over a peer that has given up, and takes the next one. */
START_TEST(accepts_a_peer_that_is_still_there)
{
    struct passive p = {.end = &b};
    struct urnic_conn *conn;
    pthread_t thread;
    struct urnic_conn_attr attr = {
        .qp = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
               .qp_type = URNIC_QPT_RC},
        .timeout_ms = 100,
    };
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    attr.pd = a.pd;
    attr.qp.send_cq = attr.qp.recv_cq = a.cq;
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, 4794, 0, &p.listener), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", 4794, &attr, NULL, NULL, &conn),
                         -ETIMEDOUT);
    attr.timeout_ms = 10000;
    pthread_create(&thread, NULL, accept_one, &p);
    ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", 4794, &attr, NULL, NULL, &conn), 0);
    pthread_join(thread, NULL);
    ck_assert_msg(p.rc == 0, "accept: %s", strerror(-p.rc));
    ck_assert_int_eq(urnic_close_conn(conn), 0);
    ck_assert_int_eq(urnic_close_conn(p.conn), 0);
    ck_assert_int_eq(urnic_close_listener(p.listener), 0);
    pair_down();
}
END_TEST

/* ---- events of completions ---- */

static bool event_waits(int timeout_ms)
{
    struct pollfd p = {.fd = urnic_channel_fd(a.channel), .events = POLLIN};
    struct urnic_cq *cq;
    if (poll(&p, 1, timeout_ms * (int)patience_factor()) == 0)
        return false;
    ck_assert_int_eq(urnic_get_cq_event(a.channel, &cq, NULL), 0);
    ck_assert_ptr_eq(cq, a.cq);
    urnic_ack_cq_events(cq, 1);
    return true;
}

static void write_one(uint64_t wr_id)
{
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, wr_id), 0);
    end_expect(&a, URNIC_WC_SUCCESS, wr_id);
}

static void rounds(void)
{
    for (unsigned i = 0; i < 10; i++) /* each takes the worker through a round */
        state_of(a.qp);
}

/* Three completions don't bring the event, the fourth does at once. False: it was due by time
 * first, which a busy machine may let pass. */
static bool fourth_brings_it(uint16_t period_us)
{
    /* Completions left by a late attempt don't count. */
    ck_assert_int_eq(urnic_modify_cq(a.cq, 0, 0), 0);
    write_one(8);
    rounds();
    ck_assert_int_eq(urnic_modify_cq(a.cq, 4, period_us), 0);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
    uint64_t before = rig_now_ms();
    for (unsigned i = 0; i < 3; i++)
        write_one(i);
    rounds();
    bool early = event_waits(0), late = rig_now_ms() - before >= 60;
    ck_assert(late || !early);
    write_one(3);
    ck_assert(early || event_waits(5000));
    return !late && rig_now_ms() - before < 60;
}

/* CQ-10: moderation by count, by time, and none; completions come at once in any case. */
START_TEST(moderated_events)
{
    pair_up("");
    for (unsigned i = 0; i < 2; i++) {
        unsigned tries = 0;
        while (!fourth_brings_it(i ? 65535 : 0)) /* without a time it is the longest one */
            ck_assert_msg(tries++ < 50 * patience_factor(), "the event comes by time only");
    }
    /* by time alone */
    ck_assert_int_eq(urnic_modify_cq(a.cq, 1000, 2000), 0);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
    write_one(4);
    ck_assert(event_waits(5000));
    ck_assert_int_eq(urnic_modify_cq(a.cq, 0, 0), 0);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, false), 0);
    write_one(5);
    ck_assert(event_waits(5000));
    pair_down();
}
END_TEST

/* CQ-06 CQ-07: a client that asks for solicited completions gets an event for a SEND that solicits
 * one, and for errors. */
START_TEST(solicited_events)
{
    const struct urnic_qp_attr err = {.qp_state = URNIC_QPS_ERR};
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND};
    pair_up("");
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(end_post_recv(&a, 0, 64, i), 0);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, true), 0);
    ck_assert_int_eq(urnic_post_send(b.qp, &wr, NULL), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 0);
    rounds();
    ck_assert(!event_waits(0));
    wr.send_flags = URNIC_SEND_SOLICITED;
    ck_assert_int_eq(urnic_post_send(b.qp, &wr, NULL), 0);
    ck_assert(event_waits(5000));
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(urnic_req_notify_cq(a.cq, true), 0);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &err, URNIC_QP_STATE), 0);
    ck_assert(event_waits(5000));
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 2);
    pair_down();
}
END_TEST

/* ---- changes at run time ---- */

static void set_link(const char *device, bool up)
{
    struct ipc_link_admin m = {.hdr.type = IPC_LINK_SET, .mask = 1, .up = up};
    struct ipc_hdr reply;
    memcpy(m.device, device, strlen(device) + 1);
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
}

static void expect_event(struct end *e, enum urnic_event_type type)
{
    struct pollfd p = {.fd = urnic_async_fd(e->ctx), .events = POLLIN};
    struct urnic_async_event ev;
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    ck_assert_int_eq(urnic_get_async_event(e->ctx, &ev), 0);
    ck_assert_int_eq(ev.type, type);
    urnic_ack_async_event(&ev);
}

/* EVT-05: link down is PORT_ERR, up PORT_ACTIVE, and queue pairs outlive a short outage. */
START_TEST(link_down)
{
    pair_up("");
    for (unsigned i = 0; i < 3; i++) {
        set_link("urn0", false);
        expect_event(&a, URNIC_EVENT_PORT_ERR);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, i), 0);
        set_link("urn0", true);
        expect_event(&a, URNIC_EVENT_PORT_ACTIVE);
        end_expect(&a, URNIC_WC_SUCCESS, i);
    }
    pair_down();
}
END_TEST

/* EVT-05: without a link retries run out; an idle queue pair survives. */
START_TEST(link_stays_down)
{
    struct urnic_qp *idle[2];
    pair_up("");
    idle[0] = a.qp;
    idle[1] = b.qp;
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    set_link("urn0", false);
    expect_event(&a, URNIC_EVENT_PORT_ERR);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, 1), 0);
    end_expect(&a, URNIC_WC_RETRY_EXC_ERR, 1);
    ck_assert_uint_ge(rig_counter(&rig, "urn0", "port_no_link"), 8); /* the first, and 7 retries */
    set_link("urn0", true);
    expect_event(&a, URNIC_EVENT_PORT_ACTIVE);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    a.qp = idle[0];
    b.qp = idle[1];
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, 2), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 2);
    pair_down();
}
END_TEST

/* Half a second for an answer; this queue pair has sent nothing yet. */
static void patient(struct end *e)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_SQD, .timeout = 17};
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE), 0);
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE | URNIC_QP_TIMEOUT), 0);
    attr.qp_state = URNIC_QPS_RTS;
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE), 0);
}

static void sleep_until(uint64_t ms)
{
    for (uint64_t now = rig_now_ms(); now < ms; now = rig_now_ms())
        poll(NULL, 0, (int)(ms - now));
}

/* TMR-02: a daemon that did not get the processor reads the answers that have arrived meanwhile
 * before it counts any as lost, also answers after many other packets. On a busy machine the peer
 * may really have been late; the test then tries again. */
START_TEST(off_the_processor)
{
    struct urnic_qp *stream;
    uint64_t lost = 1;
    pair_up(",delay=200ms");
    patient(&b);
    stream = b.qp;
    struct urnic_qp *first = a.qp;
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    patient(&a);
    for (unsigned turn = 0; turn < 5 && lost > 0; turn++) {
        uint64_t began = rig_now_ms(), before = rig_counter(&rig, "urn0", "local_ack_timeout_err");
        struct urnic_qp *other = b.qp;
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, 1), 0);
        sleep_until(began + 150);
        b.qp = stream;
        for (unsigned i = 0; i < 64; i++)
            ck_assert_int_eq(end_post(&b, URNIC_WR_RDMA_WRITE, 0, 8, a.mr->iova, a.mr->rkey, i), 0);
        b.qp = other;
        sleep_until(began + 280); /* the answer is on its way */
        ck_assert_int_eq(kill(rig.pid, SIGSTOP), 0);
        sleep_until(began + 1000);
        ck_assert_int_eq(kill(rig.pid, SIGCONT), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        lost = rig_counter(&rig, "urn0", "local_ack_timeout_err") - before;
        for (unsigned i = 0; i < 64; i++)
            end_expect(&b, URNIC_WC_SUCCESS, i);
    }
    ck_assert_uint_eq(lost, 0);
    ck_assert_int_eq(urnic_destroy_qp(first), 0);
    ck_assert_int_eq(urnic_destroy_qp(stream), 0);
    pair_down();
}
END_TEST

static void delay_from(const char *device, uint64_t ms)
{
    struct ipc_link_admin m = {
        .hdr.type = IPC_LINK_SET, .mask = IPC_LINK_DELAY, .delay_ns = ms * 1000000};
    struct ipc_hdr reply;
    memcpy(m.device, device, strlen(device));
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
}

/* TMR-02: where both ends are of one worker the answer hasn't been sent yet when it comes back: the
 * request stands at the other device's port. */
START_TEST(both_off_the_processor)
{
    static const char *const args[] = {"--workers", "1",
                                       "--device",  "name=urn0,port=mem:both,addr=10.0.0.1/24",
                                       "--device",  "name=urn1,port=mem:both,addr=10.0.0.2/24",
                                       NULL};
    struct end *ends[] = {&a, &b};
    uint64_t lost = 1;
    rig_start(&rig, args);
    for (unsigned i = 0; i < 2; i++) {
        end_open(ends[i], &rig, i == 0 ? "urn0" : "urn1", SIZE);
        end_qp(ends[i], URNIC_QPT_RC);
    }
    end_connect(&a, &b);
    patient(&a);
    delay_from("urn0", 200);
    for (unsigned turn = 0; turn < 5 && lost > 0; turn++) {
        uint64_t began = rig_now_ms(), before = rig_counter(&rig, "urn0", "local_ack_timeout_err");
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey, 1), 0);
        sleep_until(began + 100); /* the request is on its way */
        ck_assert_int_eq(kill(rig.pid, SIGSTOP), 0);
        sleep_until(began + 1000);
        ck_assert_int_eq(kill(rig.pid, SIGCONT), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        lost = rig_counter(&rig, "urn0", "local_ack_timeout_err") - before;
    }
    ck_assert_uint_eq(lost, 0);
    pair_down();
}
END_TEST

/* GID-04: an address comes and goes: the table changes, clients get events, and other entries stay.
 */
START_TEST(address_change)
{
    struct ipc_addr_admin m = {.hdr.type = IPC_ADDR_ADD, .device = "urn0", .prefix_len = 24};
    static const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 1, 0, 1};
    struct urnic_gid before, gid;
    struct ipc_hdr reply;
    pair_up("");
    memcpy(m.ip, ip, 16);
    ck_assert_int_eq(urnic_query_gid(a.ctx, 3, &before), 0);
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
    expect_event(&a, URNIC_EVENT_GID_CHANGE);
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), -EEXIST);
    ck_assert_int_eq(urnic_query_gid(a.ctx, 7, &gid), 0);
    ck_assert(memcmp(gid.raw, ip, 16) == 0);
    m.hdr.type = IPC_ADDR_DEL;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
    expect_event(&a, URNIC_EVENT_GID_CHANGE);
    ck_assert_int_eq(urnic_query_gid(a.ctx, 7, &gid), -ENOENT);
    ck_assert_int_eq(urnic_query_gid(a.ctx, 3, &gid), 0);
    ck_assert(memcmp(gid.raw, before.raw, 16) == 0);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 4096, b.mr->iova, b.mr->rkey, 1), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    pair_down();
}
END_TEST

static void change_address(enum ipc_type type)
{
    struct ipc_addr_admin m = {.hdr.type = (uint16_t)type,
                               .device = "urn0",
                               .ip = {[10] = 0xFF, 0xFF, 10, 0, 0, 1},
                               .prefix_len = 24};
    struct ipc_hdr reply;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
    expect_event(&a, URNIC_EVENT_GID_CHANGE);
}

static uint64_t packets_sent(struct urnic_qp *qp)
{
    struct ipc_qp_filter m = {.hdr.type = IPC_QP_LIST, .device = "urn0", .qpn = urnic_qp_num(qp)};
    _Alignas(8) uint8_t buf[IPC_MSG_MAX];
    const struct ipc_qp_list *list = (const void *)buf;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, buf, sizeof(buf)), 0);
    ck_assert_uint_eq(list->count, 1);
    return list->qp[0].tx_packets;
}

/* A pair of which the one keeps queue pairs without their address for as long as this says. */
static void pair_up_holding(const char *urn0)
{
    const char *args[] = {"--device", urn0, "--device", "name=urn1,port=mem:L,addr=10.0.0.2/24",
                          NULL};
    rig_start(&rig, args);
    rig_await_link(&rig, "urn0");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

/* GID-04: a queue pair whose address is removed falls silent, and continues for good if it comes
 * back in time. */
START_TEST(address_comes_back)
{
    pair_up_holding("name=urn0,port=mem:L,addr=10.0.0.1/24,hold=2000");
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 4096, b.mr->iova, b.mr->rkey, 1), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    change_address(IPC_ADDR_DEL);
    uint64_t gone = rig_now_ms(), before = packets_sent(a.qp);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 4096, b.mr->iova, b.mr->rkey, 2), 0);
    for (unsigned i = 0; i < 50; i++) /* each look takes the worker through a round */
        ck_assert_uint_eq(packets_sent(a.qp), before);
    ck_assert_int_eq(state_of(a.qp), URNIC_QPS_RTS);
    change_address(IPC_ADDR_ADD);
    end_expect(&a, URNIC_WC_SUCCESS, 2);
    sleep_until(gone + 2300);
    ck_assert_int_eq(state_of(a.qp), URNIC_QPS_RTS);
    pair_down();
}
END_TEST

/* GID-04: when it doesn't, the queue pair goes to ERR after the hold time, with an event. */
START_TEST(address_stays_away)
{
    pair_up_holding("name=urn0,port=mem:L,addr=10.0.0.1/24,hold=20");
    change_address(IPC_ADDR_DEL);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 64, b.mr->iova, b.mr->rkey, 3), 0);
    expect_event(&a, URNIC_EVENT_QP_FATAL);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 3);
    ck_assert_int_eq(state_of(a.qp), URNIC_QPS_ERR);
    pair_down();
}
END_TEST

/* CC-25: a queue pair is made with congestion control of its own, the text short or long. */
START_TEST(own_congestion_control)
{
    static const char long_text[] = "dcqcn:paper,g=1/128,timer=77us,bytes=5M,ai=17M,start=2.5G,"
                                    "alpha_timer=66us,cnp_interval=33us,expire=3s,burst_pkts=7";
    static const struct {
        const char *text, *name;
        uint64_t rate;
    } own[] = {{"fixed,rate=100M", "fixed", 100000000}, {long_text, "dcqcn", 2500000000}};
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        struct urnic_qp_init_attr attr = {
            .send_cq = a.cq,
            .recv_cq = a.cq,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1},
            .qp_type = URNIC_QPT_RC,
            .cc = own[i].text,
        };
        _Alignas(8) uint8_t buf[IPC_MSG_MAX];
        const struct ipc_qp_list *list = (const void *)buf;

        ck_assert_int_eq(urnic_create_qp(a.pd, &attr, &a.qp), 0);
        end_qp(&b, URNIC_QPT_RC);
        end_connect(&a, &b);
        struct ipc_qp_filter m = {
            .hdr.type = IPC_QP_LIST, .device = "urn0", .qpn = urnic_qp_num(a.qp)};
        ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, buf, sizeof(buf)), 0);
        ck_assert_uint_eq(list->count, 1);
        ck_assert_str_eq(list->qp[0].cc, own[i].name);
        if (own[i].text == long_text) /* DCQCN recovers from there, however late we ask */
            ck_assert_uint_ge(list->qp[0].cc_rate, own[i].rate);
        else
            ck_assert_uint_eq(list->qp[0].cc_rate, own[i].rate);
        ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
        ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
        attr.cc = "fixed,rate=slow";
        ck_assert_int_eq(urnic_create_qp(a.pd, &attr, &a.qp), -EINVAL);
        a.qp = b.qp = NULL;
    }
    pair_down();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("daemon");
    TCase *t = tcase_create("daemon");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, operations);
    tcase_add_test(t, atomics_against_a_cpu);
    tcase_add_test(t, lossy_link);
    tcase_add_test(t, connections);
    tcase_add_test(t, queue_pairs_go_with_connections);
    tcase_add_loop_test(t, gone_before_accepted, 0, 2);
    tcase_add_test(t, accepts_a_peer_that_is_still_there);
    tcase_add_test(t, moderated_events);
    tcase_add_test(t, solicited_events);
    tcase_add_test(t, link_down);
    tcase_add_test(t, link_stays_down);
    tcase_add_test(t, off_the_processor);
    tcase_add_test(t, both_off_the_processor);
    tcase_add_test(t, address_change);
    tcase_add_test(t, address_comes_back);
    tcase_add_test(t, address_stays_away);
    tcase_add_test(t, own_congestion_control);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return unit_run(suite());
}
