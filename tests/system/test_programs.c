/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Typical patterns of applications, on a link that loses packets: records read while their owner
 * changes them, a lock among processes, many senders to one receive queue, receives that the daemon
 * has not seen yet, fences, windows that close, connections that go while their events come,
 * services for datagrams, and a process that dies while its child lives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (256u << 10)
#define PORT 4803

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, ",loss=0.02", &a, &b, SIZE);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

static void meet(void)
{
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
}

static void part(void)
{
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    a.qp = b.qp = NULL;
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static uint64_t word(const struct end *e, size_t off)
{
    uint64_t v;
    memcpy(&v, e->mem + off, sizeof(v));
    return v;
}

/* ---- records with versions ---- */

#define WORDS  400u /* several packets */
#define RECORD (8u + 8u * WORDS)

static _Atomic bool enough;

/* Odd during a change. */
static void *change(void *arg)
{
    _Atomic uint64_t *version = arg, *data = version + 1;
    for (uint64_t v = 1; !enough; v += 2) {
        atomic_store(version, v);
        for (unsigned i = 0; i < WORDS; i++) {
            atomic_store(&data[i], v + 1);
            if (i == WORDS / 2)
                sched_yield();
        }
        atomic_store(version, v + 1);
        nap_us(100);
    }
    return NULL;
}

/* RD-02: READs are executed one after the other, also repeated ones. So if the version before the
 * data equals the version after them, the data belong together. And 8 octets never come from two
 * values. */
START_TEST(reads_whole_records)
{
    const uint64_t at[] = {0, 8, RECORD};
    const uint32_t len[] = {8, RECORD - 8, 8};
    uint64_t end = rig_now_ms() + 2000;
    unsigned whole = 0;
    pthread_t owner;
    up();
    meet();
    enough = false;
    pthread_create(&owner, NULL, change, b.mem);
    while (rig_now_ms() < end || whole == 0) {
        for (unsigned i = 0; i < 3; i++)
            ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_READ, at[i], len[i],
                                      b.mr->iova + (i == 1 ? 8 : 0), b.mr->rkey, i),
                             0);
        for (unsigned i = 0; i < 3; i++)
            end_expect(&a, URNIC_WC_SUCCESS, i);
        uint64_t v = word(&a, 0);
        for (unsigned i = 0; i < WORDS; i++) {
            uint64_t d = word(&a, 8 + 8 * i);
            ck_assert_uint_eq(d % 2, 0);
            ck_assert(v % 2 == 1 || v != word(&a, RECORD) || d == v);
        }
        whole += v % 2 == 0 && v == word(&a, RECORD);
    }
    enough = true;
    pthread_join(owner, NULL);
    down();
}
END_TEST

/* ---- a lock ---- */

#define OWNERS 8u
#define TIMES  15u

static uint64_t swap(struct end *e, uint64_t remote, uint32_t rkey, uint64_t from, uint64_t to)
{
    const struct urnic_sge sge = {.addr = e->mr->iova, .length = 8, .lkey = e->mr->lkey};
    const struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_ATOMIC_CMP_AND_SWP,
        .send_flags = URNIC_SEND_SIGNALED,
        .atomic = {.remote_addr = remote, .compare_add = from, .swap = to, .rkey = rkey}};
    ck_assert_int_eq(urnic_post_send(e->qp, &wr, NULL), 0);
    end_expect(e, URNIC_WC_SUCCESS, 0);
    return word(e, 0);
}

/* One more to a number that only the lock protects, again and again. In a process of its own. */
static void count_up(unsigned me)
{
    struct urnic_conn_attr attr;
    struct urnic_conn *conn;
    uint64_t offer[2]; /* address, key */
    end_open(&a, &rig, me % 2 ? "urn0" : "urn1", 4096);
    attr = end_conn_attr(&a, 30000);
    ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, NULL, NULL, &conn), 0);
    memcpy(offer, conn->private_data, sizeof(offer));
    a.qp = conn->qp;
    for (unsigned i = 0; i < TIMES; i++) {
        while (swap(&a, offer[0], (uint32_t)offer[1], 0, me) != 0)
            nap_us(100);
        ck_assert_int_eq(
            end_post(&a, URNIC_WR_RDMA_READ, 8, 8, offer[0] + 8, (uint32_t)offer[1], 1), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        uint64_t n = word(&a, 8) + 1;
        memcpy(a.mem + 8, &n, sizeof(n));
        ck_assert_int_eq(
            end_post(&a, URNIC_WR_RDMA_WRITE, 8, 8, offer[0] + 8, (uint32_t)offer[1], 2), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 2);
        ck_assert_uint_eq(swap(&a, offer[0], (uint32_t)offer[1], me, 0), me);
    }
    a.qp = NULL;
    ck_assert_int_eq(urnic_close_conn(conn), 0);
    end_close(&a);
    _exit(0);
}

/* ATM-11: a lost ATOMIC is not done twice, and no two processes are in the lock at once. */
START_TEST(locks_among_processes)
{
    struct urnic_conn *conn[OWNERS];
    struct urnic_listener *listener;
    pid_t pid[OWNERS];
    rig_start_pair(&rig, ",loss=0.02");
    end_open(&b, &rig, "urn1", 4096);
    uint64_t offer[2] = {b.mr->iova, b.mr->rkey};
    struct urnic_conn_attr attr = end_conn_attr(&b, 30000);
    attr.param.private_data = offer;
    attr.param.private_data_len = sizeof(offer);
    ck_assert_int_eq(urnic_listen_addr(b.ctx, "10.0.0.2", PORT, 0, &listener), 0);
    for (unsigned i = 0; i < OWNERS; i++) {
        pid[i] = fork();
        ck_assert_int_ge(pid[i], 0);
        if (pid[i] == 0)
            count_up(i + 1);
    }
    for (unsigned i = 0; i < OWNERS; i++)
        ck_assert_int_eq(urnic_accept_conn(listener, &attr, NULL, NULL, &conn[i]), 0);
    for (unsigned i = 0; i < OWNERS; i++) {
        int status;
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_int_eq(status, 0);
    }
    for (unsigned i = 0; i < OWNERS; i++)
        ck_assert_int_eq(urnic_close_conn(conn[i]), 0);
    ck_assert_uint_eq(word(&b, 0), 0);
    ck_assert_uint_eq(word(&b, 8), OWNERS * TIMES);
    ck_assert_int_eq(urnic_close_listener(listener), 0);
    end_close(&b);
    rig_stop(&rig);
}
END_TEST

/* ---- many to one ---- */

#define SENDERS  50u
#define MESSAGES 20u
#define PLACES   64u
#define FEW      16u

static struct urnic_srq *srq;

static void post_shared(unsigned place)
{
    const struct urnic_sge sge = {
        .addr = b.mr->iova + 64ull * place, .length = 64, .lkey = b.mr->lkey};
    const struct urnic_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1};
    ck_assert_int_eq(urnic_post_srq_recv(srq, &wr, NULL), 0);
}

/* A message that came: the next one of its sender. */
static void take_message(const struct urnic_wc *wc, unsigned *next)
{
    uint64_t sender = word(&b, 64 * wc->wr_id), number = word(&b, 64 * wc->wr_id + 8);
    ck_assert_int_eq(wc->status, URNIC_WC_SUCCESS);
    ck_assert_uint_lt(sender, SENDERS);
    ck_assert_uint_eq(number, next[sender]++);
}

static bool limit_reached(void)
{
    struct pollfd p = {.fd = urnic_async_fd(b.ctx), .events = POLLIN};
    struct urnic_async_event event;
    if (poll(&p, 1, 0) != 1)
        return false;
    ck_assert_int_eq(urnic_get_async_event(b.ctx, &event), 0);
    bool yes = event.type == URNIC_EVENT_SRQ_LIMIT_REACHED && event.srq == srq;
    urnic_ack_async_event(&event);
    return yes;
}

/* SRQ-03 SRQ-05 RNR-06: a program refills a shared receive queue only when the limit event comes.
 * Until then all senders wait. */
START_TEST(refills_when_told)
{
    struct urnic_srq_attr size = {.max_wr = PLACES, .max_sge = 1, .srq_limit = FEW};
    static struct urnic_qp *from[SENDERS], *to[SENDERS];
    unsigned next[SENDERS] = {0}, used[PLACES], came = 0, sent = 0, left = 0, told = 0;
    uint64_t end = rig_now_ms() + 60000;
    struct urnic_wc wc;
    up();
    ck_assert_int_eq(urnic_create_srq(b.pd, &size, NULL, &srq), 0);
    for (unsigned i = 0; i < PLACES; i++)
        post_shared(i);
    ck_assert_int_eq(urnic_modify_srq_limit(srq, FEW), 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        struct urnic_qp_init_attr init = {
            .send_cq = b.cq, .recv_cq = b.cq, .srq = srq, .qp_type = URNIC_QPT_RC};
        end_qp(&a, URNIC_QPT_RC);
        ck_assert_int_eq(urnic_create_qp(b.pd, &init, &b.qp), 0);
        end_connect(&a, &b);
        from[i] = a.qp;
        to[i] = b.qp;
    }
    while (came < SENDERS * MESSAGES || left < sent) {
        ck_assert_msg(rig_now_ms() < end, "%u came, %u sent, %u left", came, sent, left);
        if (sent - left < 200 && sent < SENDERS * MESSAGES) {
            const uint64_t m[] = {sent % SENDERS, sent / SENDERS};
            memcpy(a.mem + 64ull * sent, m, sizeof(m));
            a.qp = from[sent % SENDERS];
            ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 64ull * sent, 64, 0, 0, 0), 0);
            sent++;
        }
        while (urnic_poll_cq(a.cq, 1, &wc) == 1) {
            ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "%s", urnic_wc_status_str(wc.status));
            left++;
        }
        for (; urnic_poll_cq(b.cq, 1, &wc) == 1; came++) {
            take_message(&wc, next);
            used[came % PLACES] = (unsigned)wc.wr_id;
        }
        if (!limit_reached())
            continue;
        for (; told < came; told++)
            post_shared(used[told % PLACES]);
        ck_assert_int_eq(urnic_modify_srq_limit(srq, FEW), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        ck_assert_int_eq(urnic_destroy_qp(from[i]), 0);
        ck_assert_int_eq(urnic_destroy_qp(to[i]), 0);
    }
    a.qp = b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    down();
}
END_TEST

/* ---- receives that the daemon has not seen yet ---- */

#define QUEUES    300u
#define DATAGRAMS 40u

/* Datagrams to the last of b's queue pairs, the very last one first. */
static void send_backwards(struct urnic_qp *const *to, struct urnic_ah *ah)
{
    const struct urnic_sge sge = {.addr = a.mr->iova, .length = 64, .lkey = a.mr->lkey};
    for (unsigned i = 0; i < DATAGRAMS; i++) {
        const struct urnic_send_wr wr = {.sg_list = &sge,
                                         .num_sge = 1,
                                         .opcode = URNIC_WR_SEND,
                                         .send_flags = URNIC_SEND_SIGNALED,
                                         .ud = {ah, urnic_qp_num(to[QUEUES - 1 - i]), 0x11}};
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    }
}

/* UD-06: a receive that was posted before the datagram was sent is there for it, however many
 * queues the daemon has to look into. */
START_TEST(has_what_was_posted)
{
    static struct urnic_qp *to[QUEUES];
    struct urnic_ah_attr attr = {.sgid_index = 3, .hop_limit = 64};
    struct urnic_gid gid;
    struct urnic_ah *ah;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_datagrams(&a);
    for (unsigned i = 0; i < QUEUES; i++) {
        end_datagrams(&b);
        to[i] = b.qp;
    }
    ck_assert_int_eq(urnic_query_gid(b.ctx, 3, &gid), 0);
    memcpy(attr.dgid, gid.raw, sizeof(attr.dgid));
    ck_assert_int_eq(urnic_create_ah(a.pd, &attr, &ah), 0);
    kill(rig.pid, SIGSTOP); /* it will find all of it at once */
    nap_us(20000);
    for (unsigned i = 0; i < QUEUES; i++) {
        b.qp = to[i];
        ck_assert_int_eq(end_post_recv(&b, 128ull * i, 128, i), 0);
    }
    send_backwards(to, ah);
    kill(rig.pid, SIGCONT);
    for (unsigned i = 0; i < DATAGRAMS; i++)
        end_expect(&b, URNIC_WC_SUCCESS, QUEUES - 1 - i);
    ck_assert_int_eq(urnic_destroy_ah(ah), 0);
    for (unsigned i = 0; i < QUEUES; i++)
        ck_assert_int_eq(urnic_destroy_qp(to[i]), 0);
    b.qp = NULL;
    down();
}
END_TEST

/* ---- fences ---- */

/* REQ-14: a request after a fence sends the data that the READ before it has brought into the
 * buffer. */
START_TEST(waits_at_fences)
{
    struct urnic_sge sge;
    struct urnic_send_wr wr = {.sg_list = &sge,
                               .num_sge = 1,
                               .opcode = URNIC_WR_RDMA_WRITE,
                               .send_flags = URNIC_SEND_SIGNALED | URNIC_SEND_FENCE};
    const uint32_t len = 20000;
    up();
    meet();
    sge = (struct urnic_sge){.addr = a.mr->iova, .length = len, .lkey = a.mr->lkey};
    wr.rdma = (struct urnic_wr_rdma){.remote_addr = b.mr->iova + len, .rkey = b.mr->rkey};
    for (int round = 1; round <= 50; round++) {
        memset(a.mem, 0, len);
        memset(b.mem, round, len);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_READ, 0, len, b.mr->iova, b.mr->rkey, 1), 0);
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        end_expect(&a, URNIC_WC_SUCCESS, 0);
        ck_assert(memcmp(b.mem, b.mem + len, len) == 0);
    }
    down();
}
END_TEST

/* REQ-14: and a SEND after a fence carries the result of the atomic before it. */
START_TEST(sends_what_atomics_have_brought)
{
    struct urnic_sge sge;
    struct urnic_send_wr send = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = URNIC_WR_SEND,
                                 .send_flags = URNIC_SEND_SIGNALED | URNIC_SEND_FENCE};
    struct urnic_send_wr add = {.next = &send,
                                .wr_id = 1,
                                .sg_list = &sge,
                                .num_sge = 1,
                                .opcode = URNIC_WR_ATOMIC_FETCH_AND_ADD,
                                .send_flags = URNIC_SEND_SIGNALED};
    up();
    meet();
    sge = (struct urnic_sge){.addr = a.mr->iova, .length = 8, .lkey = a.mr->lkey};
    add.atomic =
        (struct urnic_wr_atomic){.remote_addr = b.mr->iova, .compare_add = 1, .rkey = b.mr->rkey};
    memset(b.mem, 0, 8);
    for (uint64_t round = 0; round < 50; round++) {
        memset(a.mem, 0xFF, 8);
        ck_assert_int_eq(end_post_recv(&b, 64, 8, round), 0);
        ck_assert_int_eq(urnic_post_send(a.qp, &add, NULL), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        end_expect(&a, URNIC_WC_SUCCESS, 0);
        end_expect(&b, URNIC_WC_SUCCESS, round);
        ck_assert_uint_eq(word(&b, 64), round);
    }
    down();
}
END_TEST

/* ---- windows ---- */

/* Post it at b, and it must succeed. */
static void at_b(struct urnic_send_wr wr)
{
    wr.send_flags = URNIC_SEND_SIGNALED;
    ck_assert_int_eq(urnic_post_send(b.qp, &wr, NULL), 0);
    end_expect(&b, URNIC_WC_SUCCESS, 0);
}

/* MW-02 REQ-15: once the window is reported as closed, the peer, which continues to write, changes
 * no octet. */
START_TEST(closes_windows)
{
    const uint32_t half = SIZE / 2;
    struct urnic_mr *mr;
    struct urnic_mw *mw;
    unsigned cut = 0;
    up();
    ck_assert_int_eq(urnic_reg_mr(b.pd, b.mem, SIZE, END_ACCESS | URNIC_ACCESS_MW_BIND, &mr), 0);
    ck_assert_int_eq(urnic_alloc_mw(b.pd, 2, &mw), 0);
    memset(a.mem, 0xA5, half);
    for (unsigned round = 0; round < 20; round++) {
        meet();
        uint32_t key = urnic_inc_rkey(mw->rkey);
        at_b((struct urnic_send_wr){.opcode = URNIC_WR_BIND_MW,
                                    .bind_mw = {.mw_rkey = mw->rkey,
                                                .new_rkey = key,
                                                .mr_lkey = mr->lkey,
                                                .access = URNIC_ACCESS_REMOTE_WRITE,
                                                .addr = mr->iova + half,
                                                .length = half}});
        mw->rkey = key;
        for (unsigned i = 0; i < 16; i++)
            ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, half, mr->iova + half, key, i),
                             0);
        nap_us(100 * (round % 8));
        at_b((struct urnic_send_wr){.opcode = URNIC_WR_LOCAL_INV, .imm_data = key});
        memset(b.mem, 0, SIZE);
        for (unsigned i = 0, failed = 0; i < 16; i++) {
            struct urnic_wc wc;
            end_wait(&a, &wc, 30000);
            ck_assert_uint_eq(wc.wr_id, i);
            if (failed)
                ck_assert_int_eq(wc.status, URNIC_WC_WR_FLUSH_ERR);
            else /* the NAK is sent once: if it is lost, no answer follows */
                ck_assert(wc.status == URNIC_WC_SUCCESS || wc.status == URNIC_WC_REM_ACCESS_ERR ||
                          wc.status == URNIC_WC_RETRY_EXC_ERR);
            failed |= wc.status != URNIC_WC_SUCCESS;
            cut += i == 15 && failed;
        }
        for (uint32_t i = 0; i < SIZE; i += 8)
            ck_assert_uint_eq(word(&b, i), 0);
        part();
    }
    ck_assert_uint_gt(cut, 0);
    ck_assert_int_eq(urnic_dealloc_mw(mw), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    down();
}
END_TEST

/* ---- connections ---- */

/* Gets events until its context ends, and counts them. */
static void *get_events(void *arg)
{
    struct urnic_cm_event ev;
    uintptr_t n = 0;
    while (urnic_get_cm_event(arg, &ev) == 0)
        n++; /* its id may be gone by now */
    return (void *)n;
}

/* CM-35: a thread that gets events doesn't touch an id that another thread destroys; memory
 * checkers see it. */
START_TEST(destroys_ids_with_events)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC};
    uint64_t end = rig_now_ms() + 3000;
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *id[8];
    pthread_t reader;
    void *events;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    init.send_cq = init.recv_cq = a.cq;
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &channel), 0);
    pthread_create(&reader, NULL, get_events, channel);
    while (rig_now_ms() < end) {
        for (unsigned i = 0; i < 8; i++) {
            ck_assert_int_eq(urnic_create_id(channel, URNIC_PS_TCP, NULL, &id[i]), 0);
            ck_assert_int_eq(urnic_resolve(id[i], NULL, (struct sockaddr *)&to, 5000), 0);
            ck_assert_int_eq(urnic_create_id_qp(id[i], a.pd, &init, &a.qp), 0);
            if (urnic_connect(id[i], NULL) == 0) /* no listener */
                nap_us((long)(i % 4) * 20);
        }
        for (unsigned i = 0; i < 8; i++)
            ck_assert_int_eq(urnic_destroy_ep(id[i]), 0);
    }
    a.qp = NULL;
    rig_kill(&rig);
    pthread_join(reader, &events);
    ck_assert_uint_gt((uintptr_t)events, 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(channel), 0);
    end_close(&a);
    end_close(&b);
}
END_TEST

/* CM-31 KEY-06: a client that connects to a service for datagrams learns the server's Q_Key and
 * address, in the class that it has asked for. */
START_TEST(tells_the_key)
{
    const struct urnic_qp_attr key = {.qkey = 0x22};
    const struct urnic_conn_param param = {.tclass = 0x68, .sl = 3};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_UD};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener, *active, *passive;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    end_datagrams(&a);
    init.send_cq = init.recv_cq = b.cq;
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_UDP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&to), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &active), 0);
        ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
        await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
        ck_assert_int_eq(urnic_connect(active, i == 1 ? &param : NULL), 0);
        passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
        ck_assert_int_eq(urnic_create_id_qp(passive, b.pd, &init, &b.qp), 0);
        if (i == 1)
            ck_assert_int_eq(urnic_modify_qp(b.qp, &key, URNIC_QP_QKEY), 0);
        ck_assert_int_eq(end_post_recv(&b, 0, 128, i), 0);
        ck_assert_int_eq(urnic_accept(passive, NULL), 0);
        struct urnic_cm_event ev = await_cm(ca, URNIC_CM_ESTABLISHED);
        struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_RTR};
        unsigned mask; /* no connection, so none of a connection's attributes */
        ck_assert_int_eq(urnic_init_qp_attr(active, &attr, &mask), -EINVAL);
        struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND, .ud = {NULL, ev.qp_num, ev.qkey}};
        ck_assert_uint_eq(ev.qkey, i == 1 ? 0x22 : 0x01234567);
        ck_assert_uint_eq(ev.ah.tclass, i == 1 ? 0x68 : 0);
        ck_assert_uint_eq(ev.ah.sl, i == 1 ? 3 : 0);
        ck_assert_int_eq(urnic_create_ah(a.pd, &ev.ah, &wr.ud.ah), 0);
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
        end_expect(&b, URNIC_WC_SUCCESS, i);
        ck_assert_int_eq(urnic_destroy_ah(wr.ud.ah), 0);
        ck_assert_int_eq(urnic_destroy_id(active), 0);
        ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    }
    b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    down();
}
END_TEST

/* ---- processes ---- */

/* Connects, makes a child that holds all of its descriptors, and waits to be killed. */
static void be_a_parent(int told)
{
    struct urnic_conn_attr attr;
    struct urnic_conn *conn;
    end_open(&a, &rig, "urn0", 4096);
    attr = end_conn_attr(&a, 30000);
    ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, NULL, NULL, &conn), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0)
        ck_assert_int_eq(write(told, &child, sizeof(child)), sizeof(child));
    for (;;)
        pause();
}

/* SHM-07: a client that dies is gone, whichever process still holds its descriptors. */
START_TEST(dies_before_its_child)
{
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    pid_t child;
    int told[2];
    rig_start_pair(&rig, ",loss=0.02");
    end_open(&b, &rig, "urn1", 4096);
    struct urnic_conn_attr attr = end_conn_attr(&b, 30000);
    ck_assert_int_eq(urnic_listen_addr(b.ctx, "10.0.0.2", PORT, 0, &listener), 0);
    ck_assert_int_eq(pipe(told), 0);
    pid_t parent = fork();
    if (parent == 0)
        be_a_parent(told[1]);
    ck_assert_int_eq(urnic_accept_conn(listener, &attr, NULL, NULL, &conn), 0);
    ck_assert_int_eq(read(told[0], &child, sizeof(child)), sizeof(child));
    kill(parent, SIGKILL);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    await_cm(conn->channel, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(kill(child, SIGKILL), 0); /* it was there all the time */
    ck_assert_int_eq(urnic_close_conn(conn), 0);
    ck_assert_int_eq(urnic_close_listener(listener), 0);
    end_close(&b);
    rig_stop(&rig);
}
END_TEST

UNIT_MAIN("programs", reads_whole_records, locks_among_processes, refills_when_told,
          has_what_was_posted, waits_at_fences, sends_what_atomics_have_brought, closes_windows,
          destroys_ids_with_events, tells_the_key, dies_before_its_child)
