/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that misbehave: each in a process of its own, on the same daemon and device as a
 * well-behaved pair whose transfers must go on meanwhile, and whose memory must stay untouched.
 * The hostile ones use liburnic's inside to get at the shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_rig.h"
#include "unit.h"

/* ---- killed in the middle ---- */

static void writes_for_ever(void)
{
    hostile_pair();
    for (uint64_t i = 0;; i++) {
        struct urnic_wc wc[8];
        end_post(&x, URNIC_WR_RDMA_WRITE, 0, SIZE, y.mr->iova, y.mr->rkey, i);
        urnic_poll_cq(x.cq, 8, wc);
    }
}

/* SHM-07: all resources of a client that was killed in the middle of a transfer are freed, again
 * and again, without an effect on others.
 *
 * Nothing that the teardown does touches the other pair: a job on the worker takes apart at most 16
 * objects, mappings are given back on the control thread, the emulated link drops nothing, and a
 * sender that finds it full waits without its timer. So when a transfer fails here with "retries
 * exceeded", the peer's worker has not answered for 8 time-outs of 67 ms: it got no core for half a
 * second. A busy machine can cause that (seen once, at a load of 14 on two cores), and so can a
 * stalling daemon, which this limit is meant to find.
 */
START_TEST(killed_in_transfer)
{
    uint64_t qps = counter("urn0", "qps"), mrs = counter("urn0", "mrs");
    for (unsigned i = 0; i < 5; i++) {
        pid_t pid = hostile(writes_for_ever);
        transfer(ROUNDS / 5);
        finish(pid);
        transfer(ROUNDS / 5);
        settle("urn0", "qps", qps);
        settle("urn0", "mrs", mrs);
        settle("urn1", "mrs", mrs);
        settle("urn0", "contexts", 1);
    }
}
END_TEST

/* ---- rings ---- */

static void scribbles(void)
{
    for (;;) {
        hostile_pair();
        uint8_t *sq = (uint8_t *)x.qp->sq.q;
        size_t len = (size_t)ipc_queue_size(x.qp->sq.entries, x.qp->sq.stride);
        for (unsigned i = 0; i < 200; i++) {
            for (unsigned k = 0; k < len / 64; k++)
                sq[rng() % len] = (uint8_t)rng();
            if (i % 4 != 0) /* an index that is possible, so that entries are looked at */
                atomic_store(&x.qp->sq.q->prod, atomic_load(&x.qp->sq.q->cons) + rng() % 8);
            client_ring(x.ctx, x.qp->sq_doorbell);
            uint8_t *cq = (uint8_t *)x.cq->view.ring;
            for (unsigned k = 0; k < 64; k++)
                cq[rng() % (192 + 64 * x.cq->view.entries)] = (uint8_t)rng();
        }
        urnic_destroy_qp(x.qp);
        urnic_destroy_qp(y.qp);
        x.qp = y.qp = NULL;
        end_close(&x);
        end_close(&y);
    }
}

/* SHM-01 SHM-02 SHM-03 SHM-05: rings full of rubbish, lying indices. */
START_TEST(scribbled_rings)
{
    pid_t pid = hostile(scribbles);
    transfer(5 * ROUNDS);
    reach("urn0", "client_bad_index", 1);
    finish(pid);
    transfer(ROUNDS);
}
END_TEST

/* SHM-02: an index further ahead than the ring is long kills that queue pair, with an event. */
START_TEST(lying_index)
{
    struct urnic_async_event ev;
    hostile_pair();
    atomic_store(&x.qp->sq.q->prod, x.qp->sq.entries + 1);
    client_ring(x.ctx, x.qp->sq_doorbell);
    ck_assert_int_eq(urnic_get_async_event(x.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_QP_FATAL);
    urnic_ack_async_event(&ev);
    struct urnic_qp_attr attr;
    ck_assert_int_eq(urnic_query_qp(x.qp, &attr), 0);
    ck_assert_int_eq(attr.qp_state, URNIC_QPS_ERR);
    transfer(10);
    end_close(&x);
    end_close(&y);
}
END_TEST

/* SHM-02 SRQ-07: of a shared receive queue likewise; it is dead then, and no second event comes. */
START_TEST(lying_index_of_all)
{
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    uint64_t bad = counter("urn0", "client_bad_index");
    struct urnic_async_event ev;
    struct urnic_srq *srq;
    hostile_pair();
    ck_assert_int_eq(urnic_create_srq(x.pd, &attr, NULL, &srq), 0);
    atomic_store(&srq->rq.ring.q->prod, srq->rq.ring.entries + 1);
    client_ring(x.ctx, srq->rq.doorbell);
    ck_assert_int_eq(urnic_get_async_event(x.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_SRQ_ERR);
    ck_assert_ptr_eq(ev.srq, srq);
    urnic_ack_async_event(&ev);
    client_ring(x.ctx, srq->rq.doorbell);
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, y.mr->iova, y.mr->rkey, 1), 0);
    end_expect(&x, URNIC_WC_SUCCESS, 1);
    ck_assert_uint_eq(counter("urn0", "client_bad_index"), bad + 1);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    end_close(&x);
    end_close(&y);
}
END_TEST

/* SHM-03 REQ-08: more pieces, or more inline, than the queue pair was made for. */
START_TEST(more_than_granted)
{
    for (unsigned inl = 0; inl < 2; inl++) {
        hostile_pair();
        struct urnic_sge sge[8] = {{0}};
        struct urnic_send_wr wr = {.wr_id = 1,
                                   .opcode = URNIC_WR_RDMA_WRITE,
                                   .sg_list = sge,
                                   .num_sge = inl ? 1 : 8,
                                   .send_flags = inl ? URNIC_SEND_INLINE : 0,
                                   .rdma = {.remote_addr = y.mr->iova, .rkey = y.mr->rkey}};
        sge[0] = (struct urnic_sge){(uintptr_t)x.mem, 8, x.mr->lkey};
        if (inl)
            sge[0].length = x.qp->max_inline + 8;
        x.qp->max_inline += 8;
        x.qp->max_send_sge = 8;
        ck_assert_int_eq(urnic_post_send(x.qp, &wr, NULL), 0);
        end_expect(&x, URNIC_WC_LOC_QP_OP_ERR, 1);
        transfer(5);
        end_close(&x);
        end_close(&y);
    }
}
END_TEST

/* ---- doorbells ---- */

static void floods(void)
{
    hostile_pair();
    for (;;) {
        ipc_doorbell_push(x.ctx->db, x.ctx->db_slots, rng() % 4 ? x.qp->sq_doorbell : rng(),
                          x.ctx->worker);
        if (rng() % 64 == 0)
            (void)!send(x.ctx->kick_fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* SHM-08: doorbells for queues that have nothing, or that don't exist, as fast as it can. */
START_TEST(doorbell_flood)
{
    pid_t pid = hostile(floods);
    transfer(ROUNDS);
    reach("urn0", "client_bad_doorbell", 1);
    finish(pid);
    transfer(ROUNDS);
    settle("urn0", "contexts", 1);
}
END_TEST

/* ---- notifications ---- */

static void never_reads(void)
{
    hostile_pair();
    /* Clearing the flag on our end must not make the daemon's end block. */
    fcntl(x.channel->base.in.fd, F_SETFL, 0);
    for (uint64_t i = 0;; i++) {
        struct urnic_wc wc[8];
        urnic_req_notify_cq(x.cq, false);
        end_post(&x, URNIC_WR_RDMA_WRITE, 0, 8, y.mr->iova, y.mr->rkey, i);
        urnic_poll_cq(x.cq, 8, wc);
    }
}

/* CQ-06 EVT-04: a client that asks for events and never takes them. */
START_TEST(full_channel)
{
    pid_t pid = hostile(never_reads);
    reach("urn0", "client_event_owed", 1);
    transfer(2 * ROUNDS);
    finish(pid);
    transfer(ROUNDS);
}
END_TEST

/* CQ-06: events for which the socket had no room are owed, and come when there is room. */
START_TEST(owed_event)
{
    struct urnic_wc wc;
    struct urnic_cq *cq;
    unsigned sent = 0;
    hostile_pair();
    for (unsigned i = 0; i < 2000; i++) {
        urnic_req_notify_cq(x.cq, false);
        ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, 8, y.mr->iova, y.mr->rkey, i), 0);
        end_wait(&x, &wc, 5000);
        sent++;
    }
    fcntl(urnic_channel_fd(x.channel), F_SETFL, O_NONBLOCK);
    unsigned got = 0;
    uint64_t until = rig_now_ms() + 300;
    while (rig_now_ms() < until) {
        if (urnic_get_cq_event(x.channel, &cq, NULL) == 0) {
            urnic_ack_cq_events(cq, 1);
            got++;
        }
    }
    ck_assert_uint_gt(got, 10);
    ck_assert_uint_le(got, sent);
    /* And now it works as on the first day. */
    urnic_req_notify_cq(x.cq, false);
    ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, 8, y.mr->iova, y.mr->rkey, 1), 0);
    struct pollfd p = {.fd = urnic_channel_fd(x.channel), .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    end_wait(&x, &wc, 5000);
    ck_assert_int_eq(urnic_get_cq_event(x.channel, &cq, NULL), 0);
    urnic_ack_cq_events(cq, 1);
    end_close(&x);
    end_close(&y);
}
END_TEST

/* EVT-04: some thousands of unread asynchronous events are kept; further ones are lost and counted,
 * and the next one reports it. */
START_TEST(events_lost)
{
    struct ipc_addr_admin m = {.device = "urn0", .ip = {0xfd, [15] = 7}, .prefix_len = 64};
    struct urnic_async_event ev;
    struct ipc_hdr reply;
    unsigned i = 0;
    end_open(&x, &rig, "urn0", SIZE);
    fcntl(urnic_async_fd(x.ctx), F_SETFL, O_NONBLOCK);
    for (; counter("urn0", "async_events_lost") == 0; i++) {
        ck_assert_uint_lt(i, 10000);
        m.hdr.type = i % 2 ? IPC_ADDR_DEL : IPC_ADDR_ADD;
        ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
    }
    struct pollfd p = {.fd = urnic_async_fd(x.ctx), .events = POLLIN};
    while (poll(&p, 1, 1000) == 1) {
        while (urnic_get_async_event(x.ctx, &ev) == 0)
            ck_assert(!ev.lost); /* none before these */
    }
    for (unsigned n = 0; n < 2; n++, i++) { /* and none after the first */
        m.hdr.type = i % 2 ? IPC_ADDR_DEL : IPC_ADDR_ADD;
        ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
        ck_assert_int_eq(poll(&p, 1, 5000), 1);
        ck_assert_int_eq(urnic_get_async_event(x.ctx, &ev), 0);
        ck_assert(ev.lost == (n == 0));
    }
    uint64_t lost = counter("urn0", "async_events_lost");
    end_close(&x);
    ck_assert_uint_ge(counter("urn0", "async_events_lost"), lost); /* counts lost events */
    transfer(10);
}
END_TEST

/* SEC-26: a client that names a source address that the device doesn't have gets an error, and
 * sends nothing. */
START_TEST(source_of_nobody)
{
    const struct urnic_ah_attr attr = {.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    struct urnic_send_wr wr = {
        .wr_id = 4, .opcode = URNIC_WR_SEND, .send_flags = URNIC_SEND_SIGNALED};
    end_open(&x, &rig, "urn0", SIZE);
    end_datagrams(&x);
    ck_assert_int_eq(urnic_create_ah(x.pd, &attr, &wr.ud.ah), 0);
    wr.ud.remote_qpn = 99;
    ck_assert_int_eq(urnic_post_send(x.qp, &wr, NULL), 0);
    end_expect(&x, URNIC_WC_SUCCESS, 4);
    wr.ud.ah->av.sgid_index = 77;
    ck_assert_int_eq(urnic_post_send(x.qp, &wr, NULL), 0);
    end_expect(&x, URNIC_WC_LOC_QP_OP_ERR, 4);
    ck_assert_int_eq(urnic_destroy_ah(wr.ud.ah), 0);
    end_close(&x);
    transfer(10);
}
END_TEST

/* ---- the control socket ---- */

static void says_rubbish(void)
{
    for (;;) {
        int fd = raw_connect();
        struct ipc_hello hello;
        uint8_t buf[512];
        ipc_hello_fill(&hello, ~0ull);
        if (rng() % 8)
            (void)!send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
        if (rng() % 2) {
            struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .device = "urn0", .worker = -1};
            (void)!send(fd, &open, sizeof(open), MSG_NOSIGNAL);
        }
        for (unsigned i = 0; i < 100; i++) {
            size_t len = rng() % sizeof(buf);
            for (size_t k = 0; k < len; k++)
                buf[k] = rng() % 3 ? 0 : (uint8_t)rng();
            struct ipc_hdr hdr = {.type = (uint16_t)(rng() % (IPC_TYPE_MAX + 2))};
            if (hdr.type == IPC_LINK_SET)
                hdr.type = IPC_STATS; /* we may be root, which may cut the link */
            if (len >= sizeof(hdr))
                memcpy(buf, &hdr, sizeof(hdr));
            for (size_t k = sizeof(hdr); k + 4 <= len; k += 4)
                if (rng() % 2)
                    memcpy(buf + k, &(uint32_t){rng() % 6}, 4);
            if (send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
                break;
            if (rng() % 2)
                (void)!recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
        }
        close(fd);
    }
}

/* SEC-03: every request type with random content, with and without a hello and a context. */
START_TEST(rubbish_requests)
{
    pid_t pid = hostile(says_rubbish);
    transfer(5 * ROUNDS);
    finish(pid);
    settle("urn0", "contexts", 1);
    settle("urn0", "qps", 1);
    transfer(10);
}
END_TEST

/* ---- others' speed ---- */

/* Many queues with unread events. */
static void owes_many(void)
{
    hostile_pair();
    for (unsigned i = 0; i < 1000; i++) {
        struct urnic_qp_init_attr attr = {
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = URNIC_QPT_RC,
        };
        struct urnic_qp_attr to = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
        struct urnic_qp *qp;
        struct urnic_recv_wr wr = {.wr_id = i};
        if (urnic_create_cq(x.ctx, 2, NULL, x.channel, &attr.send_cq) < 0)
            break;
        attr.recv_cq = attr.send_cq;
        urnic_req_notify_cq(attr.send_cq, false);
        if (urnic_create_qp(x.pd, &attr, &qp) < 0 ||
            urnic_modify_qp(qp, &to,
                            URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                URNIC_QP_ACCESS_FLAGS) < 0 ||
            urnic_post_recv(qp, &wr, NULL) < 0)
            break;
        to.qp_state = URNIC_QPS_ERR; /* the receive comes back, flushed: an event */
        urnic_modify_qp(qp, &to, URNIC_QP_STATE);
    }
    for (;;)
        pause();
}

/* CQ-06 SHM-07: the events of most of them have no room in the channel, and go with the client. The
 * worker wakes up for them only as often as it tries them again. */
START_TEST(many_owed_events)
{
    pid_t pid = hostile(owes_many);
    reach("urn0", "client_event_owed", 500);
    uint64_t begin = rig_now_ms(), sleeps = rig_counter(&rig, "urn0", "worker_sleeps");
    usleep(500000);
    sleeps = rig_counter(&rig, "urn0", "worker_sleeps") - sleeps;
    ck_assert_uint_lt(sleeps, (rig_now_ms() - begin) / 2);
    transfer(ROUNDS);
    finish(pid);
    transfer(ROUNDS);
    settle("urn0", "contexts", 1);
}
END_TEST

/* WRITEs per second of the well-behaved pair, beside a client that does this. */
static double speed_beside(void (*fn)(void))
{
    pid_t pid = hostile(fn);
    uint64_t begin, end, n = 0;
    reach("urn0", "contexts", 2);
    usleep(50000);
    begin = end = rig_now_ms();
    while (end - begin < 200) {
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, CHUNK, b.mr->iova, b.mr->rkey, n), 0);
        end_expect(&a, URNIC_WC_SUCCESS, n++);
        end = rig_now_ms();
    }
    finish(pid);
    settle("urn0", "contexts", 1);
    return (double)n * 1000 / (double)(end - begin);
}

/* SHM-08: no client costs the daemon more than one that merely transfers as much as it can. A
 * machine has bad moments, so one good comparison of many is enough: a client that can slow others
 * down can do so at any time. */
START_TEST(others_keep_their_speed)
{
    static const struct {
        const char *what;
        void (*fn)(void);
    } cases[] = {
        {"scribbles", scribbles}, {"floods doorbells", floods},    {"never reads", never_reads},
        {"truncates", truncates}, {"owes many events", owes_many},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double fair = 0, beside = 0;
        unsigned tries = 0;
        do {
            ck_assert_msg(tries++ < 15, "beside a client that %s: %.0f WRITEs a second, not %.0f",
                          cases[i].what, beside, fair);
            fair = speed_beside(writes_for_ever);
            beside = speed_beside(cases[i].fn);
        } while (beside < fair / 2);
        fprintf(stderr, "beside a client that %s: %.0f WRITEs a second; that transfers: %.0f\n",
                cases[i].what, beside, fair);
    }
}
END_TEST

/* ---- more than it may ---- */

static void takes_a_controlled_qkey(void)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1, .qkey = 0x80010000};
    const int mask = URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT | URNIC_QP_QKEY;
    if (setgid(65534) < 0 || setuid(65534) < 0)
        _exit(2);
    end_open(&x, &rig, "urn0", SIZE);
    end_qp(&x, URNIC_QPT_UD);
    int refused = urnic_modify_qp(x.qp, &attr, mask);
    attr.qkey = 0x7FFFFFFF;
    _exit(refused == -EPERM && urnic_modify_qp(x.qp, &attr, mask) == 0 ? 0 : 1);
}

static void administers(void)
{
    static const char *const texts[] = {
        "{\"cmd\":\"log-level\",\"level\":\"info\"}",
        "{\"cmd\":\"cc\",\"set\":\"none\"}",
        "{\"cmd\":\"faults\",\"device\":\"urn0\",\"rules\":\"\"}",
    };
    static _Alignas(8) uint8_t buf[sizeof(struct ipc_text) + 128];
    struct ipc_text *text = (void *)buf;
    struct ipc_addr_admin addr = {.device = "urn0", .ip = {0xfd, [15] = 7}, .prefix_len = 64};
    struct ipc_link_admin link = {.hdr.type = IPC_LINK_SET, .device = "urn0"};
    struct ipc_capture capture = {.hdr.type = IPC_CAPTURE_START, .device = "urn0"};
    struct ipc_handle stop = {.hdr.type = IPC_CAPTURE_STOP, .handle = 1};
    struct ipc_hdr reply;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), bad = 0;
    if (setgid(65534) < 0 || setuid(65534) < 0)
        _exit(100);
    for (unsigned i = 0; i < 2; i++) {
        addr.hdr.type = i ? IPC_ADDR_DEL : IPC_ADDR_ADD;
        bad += rig_request(&rig, &addr, sizeof(addr), -1, &reply, sizeof(reply)) != -EPERM;
    }
    bad += rig_request(&rig, &link, sizeof(link), -1, &reply, sizeof(reply)) != -EPERM;
    bad += rig_request(&rig, &capture, sizeof(capture), fd, &reply, sizeof(reply)) != -EPERM;
    bad += rig_request(&rig, &stop, sizeof(stop), -1, &reply, sizeof(reply)) != -EPERM;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t len = strlen(texts[i]);
        *text = (struct ipc_text){.hdr.type = IPC_ADMIN, .len = (uint32_t)len};
        memcpy(text->text, texts[i], len);
        bad += rig_request(&rig, text, sizeof(*text) + len, -1, &reply, sizeof(reply)) != -EPERM;
    }
    _exit(bad);
}

/* Run it as another user than the daemon's: it must find nothing wrong. */
static void as_nobody(void (*fn)(void))
{
    int status;
    if (geteuid() != 0)
        return; /* the daemon's own user may do all that */
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    pid_t pid = hostile(fn);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* KEY-08, SEC-26: a Q_Key with bit 31 is for the privileged: with that of QP1 any client could
 * speak as the connection manager. */
START_TEST(controlled_qkey)
{
    as_nobody(takes_a_controlled_qkey);
}
END_TEST

/* Links, addresses, captures, rules, logs: root's and the daemon's own user's. */
START_TEST(not_an_administrator)
{
    as_nobody(administers);
    transfer(10);
}
END_TEST

/* MW-01, SHM-07: whatever a client has bound its windows to, all of it goes with the client. */
static void binds_without_a_key(void)
{
    struct urnic_mr *mr;
    struct ipc_mr mw;
    struct urnic_wc wc;
    hostile_pair();
    if (urnic_reg_mr(x.pd, x.mem, SIZE, END_ACCESS | URNIC_ACCESS_MW_BIND, &mr) < 0)
        _exit(1);
    for (unsigned i = 0; i < 16; i++) {
        struct ipc_mw_alloc m = {
            .hdr.type = IPC_MW_ALLOC, .pd = x.pd->handle, .mw_type = 1 + i % 2};
        if (client_conn_call(&x.ctx->conn, &m, sizeof(m), &mw, sizeof(mw), NULL, NULL) < 0)
            _exit(1);
        const struct urnic_send_wr *bad,
            wr = {
                .wr_id = i,
                .opcode = URNIC_WR_BIND_MW,
                .send_flags = URNIC_SEND_SIGNALED,
                .bind_mw = {.mw_rkey = mw.rkey,
                            .new_rkey = i < 4 ? (mw.rkey & ~0xFFu) | ((mw.rkey + 1) & 0xFF) : 0,
                            .mr_lkey = mr->lkey,
                            .access = URNIC_ACCESS_REMOTE_READ,
                            .addr = mr->iova,
                            .length = 4096},
            };
        urnic_post_send(x.qp, &wr, &bad);
        end_wait(&x, &wc, 5000);
        if (wc.status != URNIC_WC_SUCCESS)
            break; /* the queue pair is done */
    }
}

START_TEST(windows_go)
{
    uint64_t mrs = counter("urn0", "mrs"), mws = counter("urn0", "mws");
    uint64_t pds = counter("urn0", "pds");
    for (unsigned i = 0; i < 3; i++) {
        pid_t pid = hostile(binds_without_a_key);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        settle("urn0", "mrs", mrs);
        settle("urn0", "mws", mws);
        settle("urn0", "pds", pds);
    }
}
END_TEST

/* ---- the daemon dies ---- */

/* EVT-01: clients of a daemon that was killed get DEVICE_FATAL within a second, and nothing hangs.
 */
START_TEST(daemon_killed)
{
    struct urnic_async_event ev = {0};
    struct urnic_cq *cq;
    struct pollfd p = {.fd = urnic_async_fd(a.ctx), .events = POLLIN};
    struct pollfd ch = {.fd = urnic_channel_fd(a.channel), .events = POLLIN};
    uint64_t before = rig_now_ms();
    transfer(10);
    rig_kill(&rig);
    ck_assert_int_eq(poll(&p, 1, 1000), 1);
    ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), 0);
    ck_assert_int_eq(ev.type, URNIC_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(poll(&ch, 1, 1000), 1);
    ck_assert_int_eq(urnic_get_cq_event(a.channel, &cq, NULL), -ENODEV);
    ck_assert_uint_lt(rig_now_ms() - before, 5000);
    end_close(&a);
    end_close(&b);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("hostile_client");
    TCase *t = tcase_create("hostile"), *k = tcase_create("killed");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, killed_in_transfer);
    tcase_add_test(t, scribbled_rings);
    tcase_add_test(t, lying_index);
    tcase_add_test(t, lying_index_of_all);
    tcase_add_test(t, more_than_granted);
    tcase_add_test(t, doorbell_flood);
    tcase_add_test(t, full_channel);
    tcase_add_test(t, owed_event);
    tcase_add_test(t, events_lost);
    tcase_add_test(t, source_of_nobody);
    tcase_add_test(t, rubbish_requests);
    tcase_add_test(t, controlled_qkey);
    tcase_add_test(t, not_an_administrator);
    tcase_add_test(t, windows_go);
    tcase_add_test(t, many_owed_events);
    tcase_add_test(t, others_keep_their_speed);
    suite_add_tcase(s, t);

    tcase_set_timeout(k, 30);
    tcase_add_checked_fixture(k, setup, NULL);
    tcase_add_test(k, daemon_killed);
    suite_add_tcase(s, k);
    return s;
}

int main(void)
{
    return unit_run(suite());
}
