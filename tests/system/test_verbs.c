/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Behaviour that programs for verbs rely on, and the state after a refused call.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 20)
#define PORT 4801

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

/* MR-02: memory that can't be had is another matter than an argument that can't be right. */
START_TEST(registers_shared_objects_only)
{
    struct urnic_mr *mr;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    up();
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 4096, 0, 0, &mr), -EOPNOTSUPP);
    close(fd);
    fd = memfd_create("empty", MFD_CLOEXEC);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 4096, 0, 0, &mr), -EFAULT);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, 0, 0, 0, &mr), -EINVAL);
    close(fd);
    down();
}
END_TEST

/* Handles are numbers that restart in each context: another context's handle mustn't be accepted.
 */
START_TEST(refuses_other_contexts)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 1}};
    struct urnic_qp *qp;
    up();
    init.send_cq = b.cq;
    init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), -EINVAL);
    init.send_cq = a.cq;
    init.recv_cq = b.cq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), -EINVAL);
    init.recv_cq = a.cq;
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct urnic_srq *same; /* number, in the right context */
    ck_assert_int_eq(urnic_create_srq(b.pd, &attr, NULL, &init.srq), 0);
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &same), 0);
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), -EINVAL);
    ck_assert_int_eq(urnic_destroy_srq(init.srq), 0);
    ck_assert_int_eq(urnic_destroy_srq(same), 0);
    down();
}
END_TEST

static int move(struct urnic_qp *qp, struct urnic_qp_attr attr, enum urnic_qp_state to,
                unsigned mask)
{
    attr.qp_state = to;
    return urnic_modify_qp(qp, &attr, URNIC_QP_STATE | mask);
}

/* A queue pair made with sq_sig_all has a completion for each send, also for unsignalled ones. */
START_TEST(completes_every_send)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC,
                                      .cap = {.max_send_wr = 4, .max_recv_wr = 1}};
    const struct urnic_send_wr wr = {.wr_id = 9, .opcode = URNIC_WR_RDMA_WRITE};
    up();
    init.send_cq = init.recv_cq = a.cq;
    for (int all = 0; all < 2; all++) {
        struct urnic_wc wc;
        init.sq_sig_all = all;
        ck_assert_int_eq(urnic_create_qp(a.pd, &init, &a.qp), 0);
        end_qp(&b, URNIC_QPT_RC);
        end_connect(&a, &b);
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
        if (all)
            end_expect(&a, URNIC_WC_SUCCESS, 9);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 0, 0, 0, 10), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 10);
        ck_assert_int_eq(urnic_poll_cq(a.cq, 1, &wc), 0);
        ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
        ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    }
    a.qp = b.qp = NULL;
    down();
}
END_TEST

/* UD-11: as in verbs, a queue pair that is attached to a group can't be destroyed. */
START_TEST(destroys_detached_only)
{
    const uint8_t group[16] = {[10] = 0xFF, 0xFF, 239, 1, 2, 3};
    const struct urnic_qp_attr attr = {.port_num = 1, .qkey = 1};
    up();
    end_qp(&a, URNIC_QPT_UD);
    ck_assert_int_eq(
        move(a.qp, attr, URNIC_QPS_INIT, URNIC_QP_PKEY_INDEX | URNIC_QP_PORT | URNIC_QP_QKEY), 0);
    ck_assert_int_eq(urnic_attach_mcast(a.qp, group), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), -EBUSY);
    ck_assert_int_eq(urnic_detach_mcast(a.qp, group), 0);
    ck_assert_int_eq(urnic_detach_mcast(a.qp, group), -EINVAL);
    down();
}
END_TEST

/* QP-03: the device's maxima hold. */
START_TEST(keeps_to_its_limits)
{
    const unsigned mask = URNIC_QP_STATE | URNIC_QP_MAX_QP_RD_ATOMIC | URNIC_QP_MAX_DEST_RD_ATOMIC;
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_SQD};
    struct urnic_device_attr device;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_query_device(a.ctx, &device), 0);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_STATE), 0);
    attr.max_rd_atomic = (uint8_t)(device.max_qp_init_rd_atom + 1);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, mask), -EINVAL);
    attr.max_rd_atomic--;
    attr.max_dest_rd_atomic = (uint8_t)(device.max_qp_rd_atom + 1);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, mask), -EINVAL);
    attr.max_dest_rd_atomic--;
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, mask), 0);
    down();
}
END_TEST

/* QP-15 CC-19: the rate limit of a queue pair holds, can be queried, and ends with RESET. */
START_TEST(limits_rates)
{
    struct urnic_qp_attr attr = {.rate_limit = 100000}; /* kbit/s */
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_RATE_LIMIT), 0);
    uint64_t begin = rig_now_ms();
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, 1), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_uint_ge(rig_now_ms() - begin, 60); /* 84 ms, but for the first 64 KiB */
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_uint_eq(attr.rate_limit, 100000);
    ck_assert_int_eq(move(a.qp, attr, URNIC_QPS_RESET, 0), 0);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_uint_eq(attr.rate_limit, 0);
    down();
}
END_TEST

/* A WRITE that takes most of a second, and SQD while it is under way. */
static void begin_to_drain(bool notify)
{
    const struct urnic_qp_attr slow = {.rate_limit = 10000}; /* kbit/s */
    const struct urnic_qp_attr attr = {.en_sqd_async_notify = notify};
    ck_assert_int_eq(urnic_modify_qp(a.qp, &slow, URNIC_QP_RATE_LIMIT), 0);
    a.mem[0]++;
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, 1), 0);
    while (__atomic_load_n(b.mem, __ATOMIC_RELAXED) != a.mem[0]) /* or it begins after SQD */
        sched_yield();
    ck_assert_int_eq(move(a.qp, attr, URNIC_QPS_SQD, URNIC_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

/* QP-07: a queue pair shows that its send queue is draining, and then drained; a program that asks
 * for it gets one event. A test process that lost the core for a second gets another try. */
START_TEST(says_when_drained)
{
    struct urnic_async_event ev;
    struct urnic_qp_attr attr;
    struct pollfd p;
    bool seen = false;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    p = (struct pollfd){.fd = urnic_async_fd(a.ctx), .events = POLLIN};
    for (unsigned i = 0; i < 4 && !seen; i++) {
        begin_to_drain(false);
        ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
        seen = attr.sq_draining;
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        ck_assert_int_eq(poll(&p, 1, 50), 0);
        ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
        ck_assert(!attr.sq_draining);
        ck_assert_int_eq(move(a.qp, attr, URNIC_QPS_RTS, 0), 0);
    }
    ck_assert(seen);
    begin_to_drain(true);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_SQ_DRAINED);
    ck_assert_ptr_eq(ev.qp, a.qp);
    urnic_ack_async_event(&ev);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    down();
}
END_TEST

/* Completions tell when they were found done. */
START_TEST(tells_the_time)
{
    uint64_t before[2] = {0, 0};
    struct urnic_wc wc;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    uint64_t begin = rig_now_ms();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(end_post_recv(&b, 0, SIZE, i), 0);
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 64, 0, 0, i), 0);
        for (unsigned side = 0; side < 2; side++) {
            end_wait(side ? &b : &a, &wc, 20000);
            uint64_t ms = wc.timestamp / 1000000;
            ck_assert_uint_le(ms, rig_now_ms());
            ck_assert_uint_ge(ms + 100, begin); /* the round may have started before */
            ck_assert_uint_ge(ms, before[side] + i * 100);
            before[side] = ms;
        }
        usleep(200000);
    }
    down();
}
END_TEST

/* EVT-01 SRQ-06: the event that a shared receive queue gives no more to a queue pair names it. */
START_TEST(names_its_queue_pair)
{
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC};
    const struct urnic_qp_attr none = {0};
    struct urnic_async_event ev;
    struct urnic_srq *srq;
    up();
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &srq), 0);
    init.send_cq = init.recv_cq = a.cq;
    init.srq = srq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &a.qp), 0);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(move(a.qp, none, URNIC_QPS_ERR, 0), 0);
    ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_QP_LAST_WQE_REACHED);
    ck_assert_ptr_eq(ev.qp, a.qp);
    urnic_ack_async_event(&ev);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    a.qp = NULL;
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    down();
}
END_TEST

/* Channels of either kind give back their descriptor; without one there is nothing to arm. */
START_TEST(closes_channels)
{
    struct urnic_cm_channel *cm;
    struct urnic_channel *ch;
    struct urnic_cq *cq;
    up();
    int lowest = dup(0);
    close(lowest);
    ck_assert_int_eq(urnic_create_channel(a.ctx, &ch), 0);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &cm), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cm), 0);
    ck_assert_int_eq(urnic_destroy_channel(ch), 0);
    int after = dup(0);
    close(after);
    ck_assert_int_eq(after, lowest);
    ck_assert_int_eq(urnic_create_cq(a.ctx, 1, NULL, NULL, &cq), 0);
    ck_assert_int_eq(urnic_req_notify_cq(cq, false), -EINVAL);
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    down();
}
END_TEST

/* Fewer pieces than none are too many. */
START_TEST(counts_pieces)
{
    const struct urnic_send_wr send = {.num_sge = -1, .opcode = URNIC_WR_SEND};
    const struct urnic_recv_wr recv = {.num_sge = -1};
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_post_recv(a.qp, &recv, NULL), -EINVAL);
    ck_assert_int_eq(urnic_post_send(a.qp, &send, NULL), -EINVAL);
    down();
}
END_TEST

/* Memory in which a region lies that work requests register stays as long as that. */
START_TEST(keeps_memory_of_regions)
{
    struct urnic_mr *mr;
    void *mem;
    up();
    ck_assert_int_eq(urnic_alloc(a.ctx, 4096, &mem), 0);
    ck_assert_int_eq(urnic_alloc_mr(a.pd, mem, 4096, 1, &mr), 0);
    ck_assert_int_eq(urnic_free(a.ctx, mem), -EBUSY);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    ck_assert_int_eq(urnic_free(a.ctx, mem), 0);
    down();
}
END_TEST

/* Memory that was given back is gone. */
START_TEST(unmaps_memory)
{
    void *mem;
    up();
    ck_assert_int_eq(urnic_alloc(a.ctx, 4096, &mem), 0);
    ck_assert_int_eq(msync(mem, 4096, MS_ASYNC), 0);
    ck_assert_int_eq(urnic_free(a.ctx, mem), 0);
    ck_assert_int_eq(msync(mem, 4096, MS_ASYNC), -1);
    ck_assert_int_eq(errno, ENOMEM);
    down();
}
END_TEST

/* A queue pair returns the attributes that it was given, also all 20 bits of a flow label. */
START_TEST(tells_what_it_was_given)
{
    const unsigned mask = URNIC_QP_AV | URNIC_QP_TIMEOUT | URNIC_QP_RETRY_CNT | URNIC_QP_RNR_RETRY |
                          URNIC_QP_MIN_RNR_TIMER | URNIC_QP_MAX_QP_RD_ATOMIC |
                          URNIC_QP_MAX_DEST_RD_ATOMIC;
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_SQD};
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_STATE), 0);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    attr.ah_attr.flow_label = 0x9ABCD;
    attr.ah_attr.tclass = 0x28;
    attr.ah_attr.hop_limit = 9;
    attr.ah_attr.sl = 3;
    attr.ah_attr.dmac[5] ^= 9;
    attr.timeout = 17;
    attr.retry_cnt = 2;
    attr.rnr_retry = 3;
    attr.min_rnr_timer = 4;
    attr.max_rd_atomic = 5;
    attr.max_dest_rd_atomic = 6;
    const struct urnic_qp_attr given = attr;
    ck_assert_int_eq(move(a.qp, attr, URNIC_QPS_SQD, mask), 0);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_uint_eq(attr.ah_attr.flow_label, given.ah_attr.flow_label);
    ck_assert_uint_eq(attr.ah_attr.tclass, given.ah_attr.tclass);
    ck_assert_uint_eq(attr.ah_attr.hop_limit, given.ah_attr.hop_limit);
    ck_assert_uint_eq(attr.ah_attr.sl, given.ah_attr.sl);
    ck_assert_mem_eq(attr.ah_attr.dmac, given.ah_attr.dmac, 6);
    ck_assert_uint_eq(attr.timeout, given.timeout);
    ck_assert_uint_eq(attr.retry_cnt, given.retry_cnt);
    ck_assert_uint_eq(attr.rnr_retry, given.rnr_retry);
    ck_assert_uint_eq(attr.min_rnr_timer, given.min_rnr_timer);
    ck_assert_uint_eq(attr.max_rd_atomic, given.max_rd_atomic);
    ck_assert_uint_eq(attr.max_dest_rd_atomic, given.max_dest_rd_atomic);
    down();
}
END_TEST

#define MAKERS 8

struct makers {
    pthread_barrier_t start;
    struct urnic_context *ctx;
    struct urnic_pd *pd;
};

static void *make_queues(void *arg)
{
    struct makers *m = arg;
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 256}};
    struct urnic_qp *qp;
    pthread_barrier_wait(&m->start);
    int rc = urnic_create_cq(m->ctx, 4096, NULL, NULL, &init.send_cq);
    if (rc < 0)
        return strerror(-rc);
    init.recv_cq = init.send_cq;
    rc = urnic_create_qp(m->pd, &init, &qp);
    if (rc == 0)
        rc = urnic_destroy_qp(qp);
    urnic_destroy_cq(init.send_cq);
    return rc < 0 ? strerror(-rc) : NULL;
}

/* Queues of one slab, which comes with the first of them, made by several threads at once. */
START_TEST(makes_queues_in_threads)
{
    up();
    for (unsigned i = 0; i < 100; i++) {
        struct makers m;
        pthread_t thread[MAKERS];
        void *failure;

        ck_assert_int_eq(urnic_open_at(rig.socket, "urn0", -1, &m.ctx), 0);
        ck_assert_int_eq(urnic_alloc_pd(m.ctx, &m.pd), 0);
        pthread_barrier_init(&m.start, NULL, MAKERS);
        for (unsigned k = 0; k < MAKERS; k++)
            ck_assert_int_eq(pthread_create(&thread[k], NULL, make_queues, &m), 0);
        for (unsigned k = 0; k < MAKERS; k++) {
            pthread_join(thread[k], &failure);
            ck_assert_msg(!failure, "%s", (const char *)failure);
        }
        ck_assert_int_eq(urnic_dealloc_pd(m.pd), 0);
        ck_assert_int_eq(urnic_close(m.ctx), 0);
    }
    down();
}
END_TEST

struct seeker {
    pthread_t thread;
    int result;
    _Atomic bool done;
};

static void *find_nobody(void *arg)
{
    struct seeker *k = arg;
    struct urnic_ah_attr attr = {.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 77}, .sgid_index = 3};
    struct urnic_ah *ah;
    k->result = urnic_create_ah(a.pd, &attr, &ah);
    atomic_store(&k->done, true);
    return NULL;
}

static void *connect_to_nobody(void *arg)
{
    struct seeker *k = arg;
    struct urnic_conn_attr attr = end_conn_attr(&a, 4000);
    struct urnic_conn *conn;
    k->result = urnic_connect_addr(a.ctx, "10.0.0.77", PORT, &attr, NULL, NULL, &conn);
    atomic_store(&k->done, true);
    return NULL;
}

static void *accept_one(void *arg)
{
    struct urnic_listener *l = arg;
    struct urnic_conn_attr attr = end_conn_attr(&b, 10000);
    struct urnic_conn *conn = NULL;
    return urnic_accept_conn(l, &attr, NULL, NULL, &conn) == 0 ? conn : NULL;
}

/* So many regions and a connection by one thread of a context. */
static void work_meanwhile(struct urnic_listener *l, unsigned regions)
{
    struct urnic_conn_attr attr = end_conn_attr(&a, 10000);
    struct urnic_conn *conn;
    struct urnic_mr *mr;
    pthread_t thread;
    void *other;
    for (unsigned i = 0; i < regions; i++) {
        ck_assert_int_eq(urnic_reg_mr(a.pd, a.mem, SIZE, URNIC_ACCESS_LOCAL_WRITE, &mr), 0);
        ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, accept_one, l), 0);
    ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, NULL, NULL, &conn), 0);
    pthread_join(thread, &other);
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(urnic_close_conn(conn), 0);
    ck_assert_int_eq(urnic_close_conn(other), 0);
}

/* SHM-08: threads that wait seconds for an absent host don't hold up others of their context. A
 * test process that lost the core for seconds gets another try, with less to do. */
START_TEST(works_while_others_wait)
{
    struct urnic_listener *l;
    bool meanwhile = false;
    up();
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, PORT, 8, &l), 0);
    for (unsigned i = 0, n = 100; i < 4 * patience_factor() && !meanwhile; i++, n = n / 3 + 1) {
        struct seeker finds = {0}, connects = {0};
        ck_assert_int_eq(pthread_create(&finds.thread, NULL, find_nobody, &finds), 0);
        ck_assert_int_eq(pthread_create(&connects.thread, NULL, connect_to_nobody, &connects), 0);
        usleep(20000); /* they ask first, or nothing is shown */
        work_meanwhile(l, n);
        meanwhile = !atomic_load(&finds.done) && !atomic_load(&connects.done);
        pthread_join(finds.thread, NULL);
        pthread_join(connects.thread, NULL);
        ck_assert_int_eq(finds.result, -EHOSTUNREACH);
        ck_assert_int_ne(connects.result, 0);
    }
    ck_assert(meanwhile);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    down();
}
END_TEST

/* A device is served by one worker: asking for another one is refused. */
START_TEST(opens_on_its_worker)
{
    struct urnic_context *ctx;
    unsigned served = 0;
    up();
    for (int worker = 0; worker < 4; worker++) {
        int rc = urnic_open_at(rig.socket, "urn0", worker, &ctx);
        ck_assert(rc == 0 || rc == -EINVAL);
        if (rc == 0)
            ck_assert_int_eq(urnic_close(ctx), 0);
        served += rc == 0;
    }
    ck_assert_uint_eq(served, 1);
    down();
}
END_TEST

/* SRQ-01: a shared receive queue is in use until the last of its queue pairs is gone. */
START_TEST(destroys_unused_only)
{
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 1}};
    struct urnic_qp *qp[2];
    up();
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &init.srq), 0);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(urnic_destroy_srq(init.srq), -EBUSY);
        ck_assert_int_eq(urnic_destroy_qp(qp[i]), 0);
    }
    ck_assert_int_eq(urnic_destroy_srq(init.srq), 0);
    down();
}
END_TEST

static void await_event(struct urnic_channel *ch, struct urnic_cq *want)
{
    struct pollfd event = {.fd = urnic_channel_fd(ch), .events = POLLIN};
    struct urnic_cq *cq;
    ck_assert_msg(poll(&event, 1, 10000) == 1, "no event");
    ck_assert_int_eq(urnic_get_cq_event(ch, &cq, NULL), 0);
    ck_assert_ptr_eq(cq, want);
    urnic_ack_cq_events(cq, 1);
}

/* CQ-05: a waiter for an event of a queue that overflows is woken, and all waiters get the error
 * once all its entries have been polled. The next queue in its place starts fresh. */
START_TEST(says_that_it_overran)
{
    enum { ENTRIES = 4 };
    struct urnic_qp_init_attr init = {.cap = {.max_recv_wr = 8}, .qp_type = URNIC_QPT_RC};
    struct urnic_async_event event;
    struct urnic_cq *cq;
    struct urnic_wc wc;
    up();
    ck_assert_int_eq(urnic_create_cq(b.ctx, ENTRIES, NULL, b.channel, &cq), 0);
    ck_assert_int_eq(urnic_cq_size(cq), ENTRIES);
    init.send_cq = init.recv_cq = cq;
    ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_connect(&a, &b);
    for (unsigned i = 0; i <= ENTRIES; i++)
        ck_assert_int_eq(end_post_recv(&b, 0, 8, i), 0);
    ck_assert_int_eq(urnic_req_notify_cq(cq, false), 0);
    for (unsigned i = 0; i < ENTRIES; i++)
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, i), 0);
    for (unsigned i = 0; i < ENTRIES; i++)
        end_expect(&a, URNIC_WC_SUCCESS, i);
    await_event(b.channel, cq);
    ck_assert_int_eq(urnic_req_notify_cq(cq, true), 0); /* it is full now, and not polled */
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 9), 0);
    await_event(b.channel, cq);
    ck_assert_int_eq(urnic_req_notify_cq(cq, false), -EOVERFLOW);
    for (unsigned i = 0; i < ENTRIES; i++) {
        ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), 1);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
    }
    ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), -EOVERFLOW);
    do {
        ck_assert_int_eq(urnic_get_async_event(b.ctx, &event), 0);
        urnic_ack_async_event(&event);
    } while (event.type != URNIC_EVENT_CQ_ERR);
    ck_assert_ptr_eq(event.cq, cq);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    ck_assert_int_eq(urnic_create_cq(b.ctx, ENTRIES, NULL, b.channel, &cq), 0);
    ck_assert_int_eq(urnic_poll_cq(cq, 1, &wc), 0);
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    down();
}
END_TEST

/* SRQ-03: receives that were posted before the limit was set count, seen by the daemon or not. */
START_TEST(limits_after_posting)
{
    struct urnic_recv_wr wr = {.wr_id = 1};
    up();
    for (unsigned i = 0; i < 50; i++) {
        struct urnic_srq_attr attr = {.max_wr = 64, .max_sge = 1};
        struct urnic_srq *srq;

        ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &srq), 0);
        for (unsigned k = 0; k < 64; k++)
            ck_assert_int_eq(urnic_post_srq_recv(srq, &wr, NULL), 0);
        ck_assert_int_eq(urnic_modify_srq_limit(srq, 64), 0);
        ck_assert_int_eq(urnic_query_srq(srq, &attr), 0);
        ck_assert_uint_eq(attr.srq_limit, 64); /* had it been reached, it were off */
        ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    }
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("verbs");
    TCase *t = tcase_create("verbs");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, registers_shared_objects_only);
    tcase_add_test(t, refuses_other_contexts);
    tcase_add_test(t, completes_every_send);
    tcase_add_test(t, destroys_detached_only);
    tcase_add_test(t, keeps_to_its_limits);
    tcase_add_test(t, limits_rates);
    tcase_add_test(t, says_when_drained);
    tcase_add_test(t, tells_the_time);
    tcase_add_test(t, names_its_queue_pair);
    tcase_add_test(t, closes_channels);
    tcase_add_test(t, counts_pieces);
    tcase_add_test(t, keeps_memory_of_regions);
    tcase_add_test(t, unmaps_memory);
    tcase_add_test(t, tells_what_it_was_given);
    tcase_add_test(t, makes_queues_in_threads);
    tcase_add_test(t, works_while_others_wait);
    tcase_add_test(t, opens_on_its_worker);
    tcase_add_test(t, destroys_unused_only);
    tcase_add_test(t, limits_after_posting);
    tcase_add_test(t, says_that_it_overran);
    suite_add_tcase(s, t);
    return unit_run(s);
}
