/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine=application (SHM-13, SHM-14): programs run the engine themselves, at channels of a daemon.
 * Each end is a process of its own.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device_end.h"

#define SIZE (1u << 20)
#define MS   1000000u

/* Two devices of one daemon, joined by a link. */
static struct rig rig;

static void setup(void)
{
    rig_start_pair(&rig, "");
}

static void teardown(void)
{
    if (rig.pid > 0)
        rig_stop(&rig);
}

static void join(struct port_end *e, const char *device, const char *engine, size_t size)
{
    device_end(e, &rig, device, engine, size);
}

/* ---- the other end ---- */

struct other {
    const char *device, *engine;
    bool stays; /* until it is killed */
    uid_t uid;  /* it becomes this user; 0: it stays */
};

static void become(uid_t uid)
{
    if (uid == 0)
        return;
    OK(setgid(uid));
    OK(setuid(uid));
}

/* Accept a connection, take a message, answer it, and wait for the end. */
static void other_end(void *arg)
{
    const struct other *o = arg;
    struct port_end e;
    become(o->uid);
    join(&e, o->device, o->engine, SIZE);
    port_listen(&e);
    port_accept(&e);
    struct urnic_wc wc = port_await(&e);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
    ck_assert_int_eq(wc.byte_len, 5000);
    ck_assert_int_eq(e.mem[4999], 0x5A);
    memset(e.mem, 0x77, e.size);
    OK(port_post_recv(&e, e.conn->qp));
    port_do(&e, URNIC_WR_SEND, 0, 0, 1);
    while (o->stays)
        port_nap(1000);
    wc = port_await(&e); /* its receive is flushed when the connection ends */
    ck_assert_int_ne(wc.status, URNIC_WC_SUCCESS);
    port_close(&e);
}

static const char *address(const char *device)
{
    return strcmp(device, "urn0") == 0 ? "10.0.0.1" : "10.0.0.2";
}

static void exchange(struct port_end *e)
{
    e->mem[4999] = 0x5A;
    port_do(e, URNIC_WR_SEND, 0, 0, 5000);
    struct urnic_wc wc = port_await(e);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
    ck_assert_int_eq(wc.byte_len, 1);
    OK(port_post_recv(e, e->conn->qp));
    port_do(e, URNIC_WR_RDMA_READ, 0, 0, SIZE / 2);
    ck_assert_int_eq(e->mem[SIZE / 2 - 1], 0x77);
    memset(e->mem, 0x33, SIZE);
    port_do(e, URNIC_WR_RDMA_WRITE, 0, 0, SIZE);
    memset(e->mem, 0, 8);
    port_do(e, URNIC_WR_RDMA_READ, 0, 8, 8);
    ck_assert_int_eq(e->mem[7], 0x33);
}

/* Which device and engine this end and the other one have. */
static const struct {
    const char *here, *engine;
    struct other other;
} pairs[] = {
    {"urn0", "application", {"urn1", "application", false}},
    {"urn0", "application", {"urn1", "daemon", false}},
    {"urn0", "daemon", {"urn1", "application", false}},
    {"urn0", "application", {"urn0", "application", false}}, /* frames go round in the switch */
    {"urn0", "application", {"urn0", "daemon", false}},
    {"urn0", "application,progress=thread", {"urn1", "application,progress=poll", false}},
};

/* SHM-15: the counts of a program outlive it. */
static void await_counts(const char *device)
{
    const uint64_t until = rig_now_ms() + 5000;
    while (rig_counter(&rig, device, "tx_packets") < 3) {
        ck_assert_msg(rig_now_ms() < until, "%s: a program's counts are lost", device);
        port_nap(5);
    }
}

START_TEST(shm_14_programs_exchange_messages)
{
    struct other other = pairs[_i].other;
    struct port_end e;
    pid_t pid = port_child(other_end, &other);
    join(&e, pairs[_i].here, pairs[_i].engine, SIZE);
    port_connect(&e, address(other.device));
    exchange(&e);
    /* SHM-14: the time-out that a program advertises because it may have to be scheduled. */
    if (strcmp(other.engine, "daemon") != 0) {
        struct urnic_qp_attr attr;
        OK(urnic_query_qp(e.conn->qp, &attr));
        ck_assert_int_ge(attr.timeout, 16);
    }
    port_close(&e);
    port_await_child(pid);
    await_counts(pairs[_i].here);
    await_counts(other.device);
    ck_assert_int_eq(rig_counter(&rig, "urn0", "channel_drops"), 0);
    ck_assert_int_eq(rig_counter(&rig, "urn1", "channel_drops"), 0);
    ck_assert_int_gt(rig_counter(&rig, "urn0", "channel_tx_frames") +
                         rig_counter(&rig, "urn1", "channel_tx_frames"),
                     0);
}
END_TEST

static void one_end(void *arg)
{
    const struct other *o = arg;
    struct port_end e;
    become(o->uid);
    join(&e, o->device, o->engine, SIZE);
    port_connect(&e, "10.0.0.2");
    exchange(&e);
    port_close(&e);
}

/* Programs of two users, neither of them the daemon's, on the daemon of root. */
START_TEST(shm_14_programs_of_all_users)
{
    struct other one = {"urn0", "application", false, 65534},
                 two = {"urn1", "application", false, 65501};
    if (geteuid() != 0) /* there is only this user */
        return;
    OK(chmod(rig.dir, 0755));
    OK(chmod(rig.socket, 0666));
    pid_t listener = port_child(other_end, &two), caller = port_child(one_end, &one);
    port_await_child(caller);
    port_await_child(listener);
    for (unsigned i = 0; i < 2; i++) {
        const char *device = i ? "urn1" : "urn0";
        ck_assert_int_gt(rig_counter(&rig, device, "channel_tx_frames"), 0);
        ck_assert_int_eq(rig_counter(&rig, device, "channel_bad_peer"), 0);
        ck_assert_int_eq(rig_counter(&rig, device, "channel_drops"), 0);
    }
}
END_TEST

/* CM-23: the RTU is lost, and so are the first messages that bring it again. The peer's first
 * request does as well, whichever engine it comes to. */
START_TEST(cm_23_first_request_without_rtu)
{
    static const char *const engines[] = {"application", "daemon"};
    struct other other = {"urn1", engines[_i], false};
    char file[128], more[160];
    struct port_end e;
    rig_stop(&rig);
    snprintf(file, sizeof(file), "/tmp/urnic-rtu-%d", (int)getpid());
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(fprintf(f, "drop cm dst 10.0.0.2 nth 2..6\n"), 0);
    ck_assert_int_eq(fclose(f), 0);
    snprintf(more, sizeof(more), ",rules=%s", file);
    rig_start_pair(&rig, more);
    unlink(file);
    pid_t pid = port_child(other_end, &other);
    join(&e, "urn0", "application", SIZE);
    port_connect(&e, "10.0.0.2");
    uint64_t start = port_now();
    exchange(&e);
    ck_assert_uint_lt(port_now() - start, 3000ull * MS); /* REP is repeated each 1,073 ms */
    port_close(&e);
    port_await_child(pid);
    ck_assert_int_eq(rig_counter(&rig, "urn1", "channel_news"), _i == 0);
}
END_TEST

/* A program is killed: its peer gets DISCONNECTED. */
START_TEST(shm_14_peer_of_a_killed_program)
{
    struct other other = {"urn1", "application", true};
    struct port_end e;
    pid_t pid = port_child(other_end, &other);
    join(&e, "urn0", _i ? "daemon" : "application", SIZE);
    port_connect(&e, "10.0.0.2");
    e.mem[4999] = 0x5A;
    port_do(&e, URNIC_WR_SEND, 0, 0, 5000);
    ck_assert_int_eq(port_await(&e).status, URNIC_WC_SUCCESS);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    await_cm(e.conn->channel, URNIC_CM_DISCONNECTED);
    OK(port_post_recv(&e, e.conn->qp));
    ck_assert_int_eq(port_await(&e).status, URNIC_WC_WR_FLUSH_ERR);
    port_close(&e);
}
END_TEST

/* A daemon that is killed: the program gets DEVICE_FATAL, and hangs nowhere. */
START_TEST(shm_09_program_without_its_daemon)
{
    struct urnic_async_event event;
    struct port_end e;
    struct urnic_wc wc;
    uint64_t until = port_now() + 10000000000u;
    int n;
    join(&e, "urn0", "application", SIZE);
    rig_kill(&rig);
    OK(urnic_get_async_event(e.ctx, &event));
    ck_assert_int_eq(event.type, URNIC_EVENT_DEVICE_FATAL);
    while ((n = urnic_poll_cq(e.cq, 1, &wc)) == 0 && port_now() < until)
        sched_yield();
    ck_assert_int_eq(n, -ENODEV);
    struct urnic_cq *cq;
    ck_assert_int_eq(urnic_create_cq(e.ctx, 16, NULL, NULL, &cq), -ENODEV);
    port_close(&e);
}
END_TEST

static void child_of_program(void *arg)
{
    struct port_end *e = arg;
    struct urnic_cq *cq;
    struct urnic_wc wc;
    ck_assert_int_eq(urnic_poll_cq(e->cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(urnic_create_cq(e->ctx, 16, NULL, NULL, &cq), -ENODEV);
    ck_assert_int_eq(urnic_close(e->ctx), -ENODEV);
}

/* A child has none of its parent's objects, which go on. */
START_TEST(shm_14_fork)
{
    struct other other = {"urn1", "application", false};
    struct port_end e;
    pid_t pid = port_child(other_end, &other);
    join(&e, "urn0", "application", SIZE);
    port_connect(&e, "10.0.0.2");
    port_await_child(port_child(child_of_program, &e));
    exchange(&e);
    port_close(&e);
    port_await_child(pid);
}
END_TEST

/* A program that spins on an empty queue leaves most of its core to the daemon, which may wait for
 * it in another control group or session, where a yield does not help. */
START_TEST(shm_14_spinning_program)
{
    struct timespec cpu;
    struct urnic_wc wc;
    struct port_end e;
    join(&e, "urn0", "application,progress=poll", 4096);
    for (uint64_t until = port_now() + 50000000u; port_now() < until;)
        (void)urnic_poll_cq(e.cq, 1, &wc);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    uint64_t before = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    for (uint64_t until = port_now() + 200000000u; port_now() < until;)
        ck_assert_int_eq(urnic_poll_cq(e.cq, 1, &wc), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    uint64_t used = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec - before;
    ck_assert_uint_lt(used, 150000000u);
    port_close(&e);
}
END_TEST

/* SEC-35: a queue pair whose engine refuses another peer keeps the one that it had. */
START_TEST(sec_35_a_refused_peer)
{
    struct other other = {"urn1", "application", false};
    struct urnic_qp_attr attr;
    struct port_end e;
    pid_t pid = port_child(other_end, &other);
    join(&e, "urn0", "application", SIZE);
    port_connect(&e, "10.0.0.2");
    OK(urnic_query_qp(e.conn->qp, &attr));
    attr.dest_qp_num ^= 1;
    ck_assert_int_lt(
        urnic_modify_qp(e.conn->qp, &attr, URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_DEST_QPN), 0);
    exchange(&e);
    port_close(&e);
    port_await_child(pid);
    ck_assert_int_eq(rig_counter(&rig, "urn0", "channel_bad_peer"), 0);
}
END_TEST

/* Blocks of dead programs rest, and there are more. */
START_TEST(shm_14_many_programs)
{
    struct port_end e[20];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 20; i++)
            join(&e[i], "urn0", "application", 4096);
        for (unsigned i = 0; i < 20; i++)
            port_close(&e[i]);
    }
    ck_assert_int_eq(rig_counter(&rig, "urn0", "channel_bad_index"), 0);
}
END_TEST

#define NUMBERS 8192u /* of a block */

static uint32_t block_of(uint32_t qpn)
{
    return qpn >> 13;
}

/* Create queue pairs and destroy them at once, until one has a number of another block than
 * `first`. Returns that number; 0 = `most` of them had none. */
static uint32_t use_numbers(struct port_end *e, uint32_t first, unsigned most)
{
    struct port_where here;
    struct urnic_qp_init_attr init = port_attr(e, &here).qp;
    struct urnic_qp *qp;
    while (most-- > 0) {
        OK(urnic_create_qp(e->pd, &init, &qp));
        uint32_t qpn = urnic_qp_num(qp);
        OK(urnic_destroy_qp(qp));
        ck_assert_uint_eq(qpn >> 23, 1);
        if (block_of(qpn) != block_of(first))
            return qpn;
    }
    return 0;
}

/* SEC-08: a program that uses up the numbers of its block within a minute gets another block from
 * the daemon, and frames for numbers of both blocks reach it. */
START_TEST(sec_08_a_second_block_of_numbers)
{
    struct other other = {"urn1", "application", false};
    struct port_end e, old;
    pid_t pid[2] = {port_child(other_end, &other)};
    join(&e, "urn0", "application", SIZE);
    old = e; /* one more connection of the same context */
    port_connect(&old, "10.0.0.2");
    const uint32_t first = urnic_qp_num(old.conn->qp);
    const uint32_t second = use_numbers(&e, first, NUMBERS + 1);
    ck_assert_uint_ne(second, 0);
    /* Numbers of the old block rest now. */
    ck_assert_uint_eq(use_numbers(&e, second, 200), 0);
    exchange(&old);
    OK(urnic_close_conn(old.conn));
    port_await_child(pid[0]);
    pid[1] = port_child(other_end, &other);
    port_connect(&e, "10.0.0.2");
    ck_assert_uint_eq(block_of(urnic_qp_num(e.conn->qp)), block_of(second));
    exchange(&e);
    port_close(&e);
    port_await_child(pid[1]);
    ck_assert_int_eq(rig_counter(&rig, "urn0", "channel_drops"), 0);
}
END_TEST

/* While `signals`, each look at the clock is interrupted by a signal, whose handler polls. */
static _Thread_local volatile bool signals, in_handler __attribute__((tls_model("initial-exec")));
static volatile unsigned handled, looked; /* handlers; looks at the clock in them */
static struct urnic_cq *polled;

static void on_signal(int sig)
{
    struct urnic_wc wc;
    (void)sig;
    in_handler = true;
    (void)urnic_poll_cq(polled, 1, &wc);
    in_handler = false;
    handled++;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (in_handler)
        looked++;
    else if (signals)
        raise(SIGUSR1);
    return (int)syscall(SYS_clock_gettime, id, ts);
}

/* SHM-14: a signal handler that polls while its thread makes a queue pair doesn't enter the engine,
 * also not while the engine gets further numbers. */
START_TEST(shm_14_a_handler_polls_during_a_request)
{
    const struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct port_end e;
    struct urnic_qp *qp;
    join(&e, "urn0", "application", SIZE);
    struct urnic_qp_init_attr init = {
        .qp_type = URNIC_QPT_RC,
        .send_cq = e.cq,
        .recv_cq = e.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    polled = e.cq;
    OK(sigaction(SIGUSR1, &sa, NULL));
    signals = true;
    OK(urnic_create_qp(e.pd, &init, &qp));
    signals = false;
    ck_assert_uint_gt(handled, 1);
    ck_assert_uint_eq(looked, 0);
    OK(urnic_destroy_qp(qp));
    port_close(&e);
}
END_TEST

/* The attributes of such an engine. */
START_TEST(shm_14_limits)
{
    struct urnic_device_attr attr;
    struct port_end e;
    join(&e, "urn0", "application", 4096);
    OK(urnic_query_device(e.ctx, &attr));
    ck_assert_int_eq(attr.max_qp, 1024);
    ck_assert_int_eq(attr.local_ca_ack_delay, 16);
    ck_assert_int_eq(attr.max_mcast_grp, 64);
    port_close(&e);
}
END_TEST

/* ---- groups ---- */

#define MEMBERS 4u

/* Three members on one device, and one on the other. */
static const char *const engines_of[][MEMBERS] = {
    {"daemon", "daemon", "daemon", "daemon"},
    {"application", "application", "application", "application"},
    {"application", "application", "daemon", "application"},
    {"daemon", "application", "application", "daemon"},
};
static struct end member[MEMBERS];
static const uint8_t group[16] = {[10] = 0xFF, 0xFF, 239, 1, 2, 3};

static void members_come(const char *const engine[MEMBERS])
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        setenv("URNIC_ENGINE", engine[i], 1);
        end_open(&member[i], &rig, i == MEMBERS - 1 ? "urn1" : "urn0", SIZE);
        end_datagrams(&member[i]);
        for (unsigned k = 0; k < 8; k++)
            OK(end_post_recv(&member[i], 4096 * k, 1024, 100 + k));
        OK(urnic_attach_mcast(member[i].qp, group));
        OK(urnic_attach_mcast(member[i].qp, group)); /* once more is as well */
    }
}

/* A datagram of this many octets to the group. */
static void send_to_group(struct end *e, uint32_t len)
{
    struct urnic_ah_attr to = {.sgid_index = 3};
    struct urnic_sge sge = {(uintptr_t)e->mem + SIZE / 2, len, e->mr->lkey};
    struct urnic_send_wr wr = {.wr_id = 1,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = URNIC_WR_SEND,
                               .send_flags = URNIC_SEND_SIGNALED};
    struct urnic_ah *ah;
    memcpy(to.dgid, group, sizeof(to.dgid));
    OK(urnic_create_ah(e->pd, &to, &ah));
    wr.ud.ah = ah;
    wr.ud.remote_qpn = 0xFFFFFF;
    wr.ud.remote_qkey = 0x11;
    OK(urnic_post_send(e->qp, &wr, NULL));
    OK(urnic_destroy_ah(ah));
}

/* Waits for the completion of a datagram of `len` octets, its own or another's; returns the number
 * of completions until then. */
static unsigned hear(struct end *e, uint32_t len)
{
    struct urnic_wc wc;
    unsigned n = 0;
    do {
        end_wait(e, &wc, 10000);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
        n += wc.opcode == URNIC_WC_RECV;
    } while (wc.opcode != URNIC_WC_RECV || wc.byte_len != 40 + len);
    return n;
}

/* UD-10 UD-11: each member gets one copy of each datagram, whichever engines they have; one that
 * has left gets none. */
START_TEST(ud_11_groups_of_programs)
{
    setenv("URNIC_ENGINE", "daemon", 1);
    rig_await_link(&rig, "urn0");
    members_come(engines_of[_i]);
    for (unsigned i = 0; i < MEMBERS; i++) {
        send_to_group(&member[i], 64 + i);
        for (unsigned k = 0; k < MEMBERS; k++)
            ck_assert_uint_eq(hear(&member[k], 64 + i), 1);
    }
    OK(urnic_detach_mcast(member[1].qp, group));
    ck_assert_int_lt(urnic_detach_mcast(member[1].qp, group), 0);
    send_to_group(&member[3], 80);
    for (unsigned k = 0; k < MEMBERS; k++) {
        if (k != 1)
            ck_assert_uint_eq(hear(&member[k], 80), 1);
    }
    OK(urnic_attach_mcast(member[1].qp, group));
    send_to_group(&member[0], 90);
    for (unsigned k = 0; k < MEMBERS; k++)
        ck_assert_uint_eq(hear(&member[k], 90), 1); /* the one of 80 octets went by */
    ck_assert_int_eq(urnic_destroy_qp(member[2].qp), -EBUSY);
    for (unsigned k = 0; k < MEMBERS; k++) {
        OK(urnic_detach_mcast(member[k].qp, group));
        end_close(&member[k]);
    }
    ck_assert_uint_eq(rig_counter(&rig, "urn0", "channel_drops"), 0);
}
END_TEST

/* ---- order ---- */

/* Take a message, and be gone at once: killed, or after a request to the daemon. */
static void takes_and_goes(void *arg)
{
    const struct other *o = arg;
    struct port_end e;
    join(&e, o->device, o->engine, SIZE);
    port_listen(&e);
    port_accept(&e);
    ck_assert_int_eq(port_await(&e).status, URNIC_WC_SUCCESS);
    if (o->stays) /* it says farewell */
        (void)urnic_disconnect(e.conn->id);
    raise(SIGKILL);
}

/* QP-11: the ACK of a message that has been taken leaves before the program's farewell, and before
 * that of the daemon for a program that is dead. */
START_TEST(qp_11_last_ack_before_the_end)
{
    struct other other = {"urn1", "application", _i & 1};
    struct urnic_wc wc;
    for (unsigned i = 0; i < 10; i++) {
        struct port_end e;
        int status;
        pid_t pid = port_child(takes_and_goes, &other);
        join(&e, "urn0", _i & 2 ? "application" : "daemon", SIZE);
        port_connect(&e, "10.0.0.2");
        OK(port_post(&e, URNIC_WR_SEND, 0, 0, 5000));
        do
            wc = port_await(&e);
        while (wc.opcode == URNIC_WC_RECV); /* flushed: its end has been heard */
        ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "%s", urnic_wc_status_str(wc.status));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        port_close(&e);
    }
}
END_TEST

/* QP-11: a program that makes no progress for a while has an ACK in its channel, and ends the
 * connection then. The message that the ACK is for has succeeded. */
START_TEST(qp_11_ack_before_the_own_end)
{
    struct port_end a, b;
    struct urnic_wc wc;
    pthread_t thread;
    join(&b, "urn1", "daemon", SIZE);
    join(&a, "urn0", "application,progress=poll", SIZE);
    port_listen(&b);
    OK(pthread_create(&thread, NULL, port_accept_thread, &b));
    port_connect(&a, "10.0.0.2");
    OK(pthread_join(thread, NULL));
    for (unsigned i = 0; i < 2; i++) { /* the first one's ACK is polled */
        OK(port_post(&a, URNIC_WR_SEND, 0, 0, 5000));
        ck_assert_int_eq(port_await(&b).status, URNIC_WC_SUCCESS);
        OK(port_post_recv(&b, b.conn->qp));
        if (i == 0)
            ck_assert_int_eq(port_await(&a).status, URNIC_WC_SUCCESS);
    }
    port_nap(100); /* the ACK has come */
    OK(urnic_disconnect(a.conn->id));
    do
        wc = port_await(&a);
    while (wc.opcode == URNIC_WC_RECV); /* flushed */
    ck_assert_msg(wc.status == URNIC_WC_SUCCESS, "%s", urnic_wc_status_str(wc.status));
    port_close(&a);
    port_close(&b);
}
END_TEST

static _Atomic bool asking;
static _Atomic unsigned answers;

/* Ask the daemon, again and again. */
static void *ask(void *arg)
{
    struct port_end *e = arg;
    struct urnic_device_attr attr;
    while (atomic_load(&asking)) {
        OK(urnic_query_device(e->ctx, &attr));
        atomic_fetch_add(&answers, 1);
    }
    return NULL;
}

#define WAITS 10u

/* SHM-08: a request that waits for its program's frames lets other clients' requests go first. */
START_TEST(shm_08_requests_beside_one_that_waits)
{
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *id;
    struct port_end a, b, other;
    pthread_t thread;
    rig_stop(&rig);
    rig_start_pair(&rig, ",rate=10M"); /* 64 KiB that wait make its port full */
    join(&b, "urn1", "daemon", SIZE);
    join(&other, "urn1", "daemon", 4096);
    join(&a, "urn0", "application", SIZE);
    port_listen(&b);
    OK(pthread_create(&thread, NULL, port_accept_thread, &b));
    port_connect(&a, "10.0.0.2");
    OK(pthread_join(thread, NULL));
    OK(urnic_create_cm_channel(a.ctx, &channel));
    for (unsigned i = 0; i < 16; i++)
        OK(port_post(&a, URNIC_WR_RDMA_WRITE, 0, 0, SIZE / 4));
    port_nap(100);
    atomic_store(&asking, true);
    OK(pthread_create(&thread, NULL, ask, &other));
    port_nap(200);
    const unsigned alone = atomic_exchange(&answers, 0);
    uint64_t start = port_now();
    for (unsigned i = 0; i < WAITS; i++) {
        OK(urnic_create_id(channel, URNIC_PS_TCP, NULL, &id));
        OK(urnic_listen(id, 1));
        OK(urnic_destroy_id(id));
    }
    uint64_t took = port_now() - start;
    unsigned n = atomic_load(&answers);
    atomic_store(&asking, false);
    OK(pthread_join(thread, NULL));
    ck_assert_msg(took > (uint64_t)WAITS * 8 * MS, "the port was not full: %llu ns",
                  (unsigned long long)took);
    /* As many as without it, within a wide margin: other programs use this machine, too. */
    ck_assert_msg(n > 20 * WAITS || n * (uint64_t)200 * MS / took > alone / 20,
                  "%u answers in %llu ns, and %u in 200 ms before", n, (unsigned long long)took,
                  alone);
    OK(urnic_destroy_cm_channel(channel));
    rig_kill(&rig); /* a's requests need not all be carried */
}
END_TEST

/* ---- full rings ---- */

#define STREAMS 64u

/* Serve a peer that writes. */
static void is_written(void *arg)
{
    const struct other *o = arg;
    struct port_end e;
    join(&e, o->device, o->engine, SIZE);
    port_listen(&e);
    port_accept(&e);
    ck_assert_int_ne(port_await(&e).status, URNIC_WC_SUCCESS); /* until the end */
    port_close(&e);
}

/* SHM-13: a program that receives, or reads, as fast as it can loses no frame in the switch. Its
 * peer's window is larger than its ring. */
START_TEST(shm_13_no_frame_is_lost_at_full_speed)
{
    struct other other = {"urn1", _i ? "daemon" : "application", false};
    const enum urnic_wr_opcode opcode = _i ? URNIC_WR_RDMA_READ : URNIC_WR_RDMA_WRITE;
    struct port_end e;
    pid_t pid = port_child(is_written, &other);
    join(&e, "urn0", _i ? "application" : "daemon", SIZE);
    port_connect(&e, "10.0.0.2");
    for (unsigned i = 0; i < STREAMS; i++) {
        if (i >= 8)
            ck_assert_int_eq(port_await(&e).status, URNIC_WC_SUCCESS);
        OK(port_post(&e, opcode, 0, 0, SIZE));
    }
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(port_await(&e).status, URNIC_WC_SUCCESS);
    port_close(&e);
    port_await_child(pid);
    ck_assert_uint_eq(rig_counter(&rig, "urn0", "channel_drops"), 0);
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "channel_drops"), 0);
}
END_TEST

/* ---- a stopped program ---- */

/* Serve two connections of a peer. */
static void is_asked(void *arg)
{
    struct port_end first, second;
    join(&first, arg, "daemon", SIZE);
    port_listen(&first);
    second = first;
    port_accept(&first);
    port_accept(&second);
    ck_assert_int_ne(port_await(&first).status, URNIC_WC_SUCCESS); /* until the end */
    OK(urnic_close_conn(second.conn));
    port_close(&first);
}

/* Stop once the answer to a READ is in the ring, and the ACK of a WRITE of the other queue pair
 * will come behind it. Only a call makes progress. */
static void stops(void *arg)
{
    struct port_end first, second;
    join(&first, arg, "application,progress=poll", SIZE);
    second = first;
    port_connect(&first, "10.0.0.2");
    port_connect(&second, "10.0.0.2");
    OK(port_post(&first, URNIC_WR_RDMA_READ, 0, 0, SIZE));
    port_nap(20);
    OK(port_post(&second, URNIC_WR_RDMA_WRITE, 0, 0, 8));
    OK(raise(SIGSTOP));
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(port_await(&first).status, URNIC_WC_SUCCESS);
    OK(urnic_close_conn(second.conn));
    port_close(&first);
}

/* TMR-02: a program that was stopped for longer than its time-outs takes the packets that have come
 * meanwhile, before it counts one as missing. */
START_TEST(tmr_02_a_program_that_was_stopped)
{
    int status;
    pid_t peer = port_child(is_asked, (void *)(uintptr_t) "urn1");
    pid_t pid = port_child(stops, (void *)(uintptr_t) "urn0");
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    port_nap(1000);
    OK(kill(pid, SIGCONT));
    port_await_child(pid);
    port_await_child(peer);
    await_counts("urn0");
    ck_assert_int_eq(rig_counter(&rig, "urn0", "local_ack_timeout_err"), 0);
}
END_TEST

/* A word that names no engine is refused. */
START_TEST(shm_14_unknown_engine)
{
    struct urnic_context *ctx;
    setenv("URNIC_ENGINE", "elsewhere", 1);
    ck_assert_int_eq(urnic_open_at(rig.socket, "urn0", -1, &ctx), -EINVAL);
    setenv("URNIC_ENGINE", "application,colour=red", 1);
    ck_assert_int_eq(urnic_open_at(rig.socket, "urn0", -1, &ctx), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine_application");
    TCase *c = tcase_create("programs");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, shm_14_programs_exchange_messages, 0,
                        (int)(sizeof(pairs) / sizeof(pairs[0])));
    tcase_add_test(c, shm_14_programs_of_all_users);
    tcase_add_loop_test(c, cm_23_first_request_without_rtu, 0, 2);
    tcase_add_loop_test(c, shm_14_peer_of_a_killed_program, 0, 2);
    tcase_add_test(c, shm_09_program_without_its_daemon);
    tcase_add_test(c, shm_14_fork);
    tcase_add_test(c, sec_35_a_refused_peer);
    tcase_add_test(c, shm_14_spinning_program);
    tcase_add_test(c, shm_14_many_programs);
    tcase_add_test(c, sec_08_a_second_block_of_numbers);
    tcase_add_test(c, shm_14_a_handler_polls_during_a_request);
    tcase_add_test(c, shm_14_limits);
    tcase_add_loop_test(c, ud_11_groups_of_programs, 0,
                        (int)(sizeof(engines_of) / sizeof(engines_of[0])));
    tcase_add_loop_test(c, qp_11_last_ack_before_the_end, 0, 4);
    tcase_add_test(c, qp_11_ack_before_the_own_end);
    tcase_add_test(c, shm_08_requests_beside_one_that_waits);
    tcase_add_loop_test(c, shm_13_no_frame_is_lost_at_full_speed, 0, 2);
    tcase_add_test(c, shm_14_unknown_engine);
    suite_add_tcase(s, c);
    c = tcase_create("stopped");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, tmr_02_a_program_that_was_stopped);
    suite_add_tcase(s, c);
    return unit_run(s);
}
