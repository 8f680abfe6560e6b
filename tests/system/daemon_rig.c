/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See daemon_rig.h. Runs unprivileged: emulated links and a socket below a temporary directory.
 */
#include "daemon_rig.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ipc.h"
#include "patience.h"

#define RIG_ARGS  32
#define RIG_START 10000 /* ms; sanitizers are slow */

uint64_t rig_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void rig_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* RIG_WORKERS=N gives each device N workers, and ends are opened on all of them in turn. It is
 * ignored if the test itself sets the daemon's workers. */
static bool rig_told;

static unsigned rig_workers(void)
{
    const char *n = getenv("RIG_WORKERS");
    return n && !rig_told ? (unsigned)atoi(n) : 1;
}

static const char *rig_arg(const char *arg, bool device)
{
    static char text[RIG_ARGS][320];
    static unsigned used;
    if (!device || rig_workers() == 1)
        return arg;
    snprintf(text[used], sizeof(text[used]), "%s,workers=%u", arg, rig_workers());
    return text[used++];
}

static void rig_exec(const struct rig *r, const char *const *args)
{
    const char *program = getenv("URNICD");
    const char *argv[RIG_ARGS] = {"urnicd", "--foreground", "--socket", r->socket};
    unsigned n = 4;
    int file = program ? open(program, O_RDONLY | O_CLOEXEC) : -1; /* while we may find it */
    if (r->uid != 0 && (setgid(r->uid) < 0 || setuid(r->uid) < 0))
        _exit(126);
    for (; *args && n < RIG_ARGS - 1; args++, n++)
        argv[n] = rig_arg(*args, strcmp(argv[n - 1], "--device") == 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that dies takes its daemon along */
    if (!getenv("RIG_VERBOSE"))
        argv[n++] = "--log-level=warn";
    if (file >= 0)
        fexecve(file, (char *const *)(uintptr_t)argv, environ);
    fprintf(stderr, "set URNICD to the daemon's path\n");
    _exit(127);
}

static bool rig_listens(const struct rig *r)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, r->socket, sizeof(r->socket));
    bool yes = connect(sock, (const struct sockaddr *)&sa, sizeof(sa)) == 0;
    close(sock);
    return yes;
}

void rig_start(struct rig *r, const char *const *args)
{
    uint64_t until = rig_now_ms() + RIG_START;
    rig_told = strcmp(args[0], "--workers") == 0;
    snprintf(r->dir, sizeof(r->dir), "/tmp/urnic-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    snprintf(r->socket, sizeof(r->socket), "%s/sock", r->dir);
    if (r->uid != 0)
        ck_assert_int_eq(chown(r->dir, r->uid, r->uid), 0);
    r->pid = fork();
    ck_assert_int_ge(r->pid, 0);
    if (r->pid == 0)
        rig_exec(r, args);
    /* It listens before threads run; hello is answered once it serves. */
    while (!rig_listens(r)) {
        ck_assert_msg(rig_alive(r), "the daemon ended at start");
        ck_assert_msg(rig_now_ms() < until, "the daemon doesn't start");
        rig_nap();
    }
}

bool rig_alive(const struct rig *r)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static void rig_clean(struct rig *r)
{
    unlink(r->socket);
    rmdir(r->dir);
    r->pid = 0;
}

void rig_stop(struct rig *r)
{
    uint64_t until = rig_now_ms() + 30000; /* TSan on a busy machine is slow */
    int status = 0;
    kill(r->pid, SIGTERM);
    while (rig_alive(r) && rig_now_ms() < until)
        rig_nap();
    if (rig_alive(r)) {
        kill(r->pid, SIGKILL);
        waitpid(r->pid, &status, 0);
        ck_abort_msg("the daemon doesn't end on SIGTERM");
    }
    waitpid(r->pid, &status, 0);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ended with status %x",
                  (unsigned)status);
    rig_clean(r);
}

void rig_kill(struct rig *r)
{
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    rig_clean(r);
}

int rig_request(const struct rig *r, const void *msg, size_t len, int fd, void *reply, size_t size)
{
    static _Alignas(16) uint8_t buf[IPC_MSG_MAX];
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct ipc_hello hello;
    struct ipc_hdr hdr;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, r->socket, strlen(r->socket) + 1);
    ck_assert_int_eq(connect(sock, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    ipc_hello_fill(&hello, 0);
    ck_assert_int_eq(ipc_send(sock, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(sock, buf, sizeof(buf), 0), 0);
    ck_assert_int_eq(ipc_send(sock, msg, len, &fd, fd >= 0, 0), 0);
    ssize_t n = recv(sock, buf, sizeof(buf), 0);
    ck_assert_int_ge(n, (ssize_t)sizeof(hdr));
    close(sock);
    memcpy(&hdr, buf, sizeof(hdr));
    memcpy(reply, buf, (size_t)n < size ? (size_t)n : size);
    return hdr.status;
}

/* ---- ends ---- */

uint64_t rig_counter(const struct rig *r, const char *device, const char *name)
{
    static union {
        struct ipc_stats s;
        uint8_t raw[IPC_MSG_MAX];
    } reply;
    struct ipc_by_device m = {.hdr.type = IPC_STATS};
    memcpy(m.device, device, strlen(device) + 1);
    ck_assert_int_eq(rig_request(r, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
    for (uint32_t i = 0; i < reply.s.count; i++) {
        if (strcmp(reply.s.counter[i].name, name) == 0)
            return reply.s.counter[i].value;
    }
    ck_abort_msg("no counter %s", name);
    return 0;
}

/* The first device is up before the second one is there: its link comes later. */
void rig_await_link(const struct rig *r, const char *device)
{
    uint64_t until = rig_now_ms() + RIG_START;
    struct ipc_by_device m = {.hdr.type = IPC_PORT_QUERY};
    struct ipc_port_attr port;
    memcpy(m.device, device, strlen(device) + 1);
    do {
        ck_assert_msg(rig_now_ms() < until, "%s has no link", device);
        sched_yield();
        memset(&port, 0, sizeof(port));
    } while (rig_request(r, &m, sizeof(m), -1, &port, sizeof(port)) != 0 || port.state != 4);
}

void rig_start_pair(struct rig *r, const char *link)
{
    char a[256], b[256];
    snprintf(a, sizeof(a), "name=urn0,port=mem:L%s,addr=10.0.0.1/24;fd00::1/64", link);
    snprintf(b, sizeof(b), "name=urn1,port=mem:L,addr=10.0.0.2/24;fd00::2/64");
    const char *args[] = {"--device", a, "--device", b, NULL};
    rig_start(r, args);
    rig_await_link(r, "urn0");
    rig_await_link(r, "urn1");
}

static int rig_worker = -1;

void rig_on_worker(int worker)
{
    rig_worker = worker;
}

/* A child of the test has a number of its own, so that it begins with another worker. */
int rig_next_worker(void)
{
    static unsigned opened;
    return rig_workers() > 1 ? (int)((++opened + (unsigned)getpid()) % rig_workers()) : rig_worker;
}

void end_open(struct end *e, const struct rig *r, const char *device, size_t size)
{
    const int worker = rig_next_worker();
    uint64_t until = rig_now_ms() + RIG_START;
    int rc;
    memset(e, 0, sizeof(*e));
    while ((rc = urnic_open_at(r->socket, device, worker, &e->ctx)) < 0 && rig_now_ms() < until)
        rig_nap();
    ck_assert_msg(rc == 0, "open %s: %s", device, strerror(-rc));
    ck_assert_int_eq(urnic_alloc_pd(e->ctx, &e->pd), 0);
    ck_assert_int_eq(urnic_create_channel(e->ctx, &e->channel), 0);
    ck_assert_int_eq(urnic_create_cq(e->ctx, 256, e, e->channel, &e->cq), 0);
    ck_assert_int_eq(urnic_alloc(e->ctx, size, (void **)&e->mem), 0);
    ck_assert_int_eq(urnic_reg_mr(e->pd, e->mem, size, END_ACCESS, &e->mr), 0);
    e->size = size;
}

void end_qp(struct end *e, enum urnic_qp_type type)
{
    struct urnic_qp_init_attr attr = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 64,
                .max_recv_wr = 64,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64},
        .qp_type = type,
    };
    ck_assert_int_eq(urnic_create_qp(e->pd, &attr, &e->qp), 0);
}

void end_datagrams(struct end *e)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1, .qkey = 0x11};
    end_qp(e, URNIC_QPT_UD);
    ck_assert_int_eq(
        urnic_modify_qp(e->qp, &attr,
                        URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT | URNIC_QP_QKEY),
        0);
    attr.qp_state = URNIC_QPS_RTR;
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE), 0);
    attr.qp_state = URNIC_QPS_RTS;
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE | URNIC_QP_SQ_PSN), 0);
}

void end_close(struct end *e)
{
    if (e->qp)
        ck_assert_int_eq(urnic_destroy_qp(e->qp), 0);
    ck_assert_int_eq(urnic_dereg_mr(e->mr), 0);
    ck_assert_int_eq(urnic_free(e->ctx, e->mem), 0);
    ck_assert_int_eq(urnic_destroy_cq(e->cq), 0);
    ck_assert_int_eq(urnic_destroy_channel(e->channel), 0);
    ck_assert_int_eq(urnic_dealloc_pd(e->pd), 0);
    ck_assert_int_eq(urnic_close(e->ctx), 0);
}

void rig_open_pair(struct rig *r, const char *link, struct end *a, struct end *b, size_t size)
{
    rig_start_pair(r, link);
    end_open(a, r, "urn0", size);
    end_open(b, r, "urn1", size);
}

void rig_close_pair(struct rig *r, struct end *a, struct end *b)
{
    end_close(a);
    end_close(b);
    rig_stop(r);
}

/* The first IPv4 address is at index 3. */
static void end_gid(struct end *e, uint8_t gid[16])
{
    struct urnic_gid g;
    ck_assert_int_eq(urnic_query_gid(e->ctx, 3, &g), 0);
    memcpy(gid, g.raw, 16);
}

static void end_move(struct end *e, struct end *peer)
{
    struct urnic_qp_attr a = {.qp_state = URNIC_QPS_INIT,
                              .port_num = 1,
                              .qp_access_flags = END_ACCESS & ~URNIC_ACCESS_LOCAL_WRITE};
    ck_assert_int_eq(urnic_modify_qp(e->qp, &a,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    a.qp_state = URNIC_QPS_RTR;
    a.path_mtu = (enum urnic_mtu)3; /* 1024 */
    a.dest_qp_num = urnic_qp_num(peer->qp);
    a.rq_psn = 77;
    a.max_dest_rd_atomic = 8;
    a.min_rnr_timer = 1;
    a.ah_attr.sgid_index = 3;
    a.ah_attr.hop_limit = 64;
    end_gid(peer, a.ah_attr.dgid);
    ck_assert_int_eq(urnic_modify_qp(e->qp, &a,
                                     URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU |
                                         URNIC_QP_DEST_QPN | URNIC_QP_RQ_PSN |
                                         URNIC_QP_MAX_DEST_RD_ATOMIC | URNIC_QP_MIN_RNR_TIMER),
                     0);
    a.qp_state = URNIC_QPS_RTS;
    a.sq_psn = 77;
    a.timeout = 14; /* 67 ms: the machine may be busy */
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.max_rd_atomic = 8;
    ck_assert_int_eq(urnic_modify_qp(e->qp, &a,
                                     URNIC_QP_STATE | URNIC_QP_TIMEOUT | URNIC_QP_RETRY_CNT |
                                         URNIC_QP_RNR_RETRY | URNIC_QP_SQ_PSN |
                                         URNIC_QP_MAX_QP_RD_ATOMIC),
                     0);
}

void end_connect(struct end *a, struct end *b)
{
    end_move(a, b);
    end_move(b, a);
}

int end_post(struct end *e, enum urnic_wr_opcode op, uint64_t local_off, uint32_t len,
             uint64_t remote, uint32_t rkey, uint64_t wr_id)
{
    const struct urnic_sge sge = {
        .addr = e->mr->iova + local_off, .length = len, .lkey = e->mr->lkey};
    struct urnic_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op,
        .send_flags = URNIC_SEND_SIGNALED,
        .rdma = {.remote_addr = remote, .rkey = rkey},
    };
    if (op == URNIC_WR_ATOMIC_FETCH_AND_ADD) {
        wr.atomic.remote_addr = remote;
        wr.atomic.rkey = rkey;
        wr.atomic.compare_add = 1;
        wr.atomic.swap = 0;
    }
    return urnic_post_send(e->qp, &wr, NULL);
}

int end_post_recv(struct end *e, uint64_t off, uint32_t len, uint64_t wr_id)
{
    const struct urnic_sge sge = {.addr = e->mr->iova + off, .length = len, .lkey = e->mr->lkey};
    const struct urnic_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    return urnic_post_recv(e->qp, &wr, NULL);
}

struct urnic_conn_attr end_conn_attr(const struct end *e, int timeout_ms)
{
    return (struct urnic_conn_attr){
        .pd = e->pd,
        .qp = {.send_cq = e->cq,
               .recv_cq = e->cq,
               .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
               .qp_type = URNIC_QPT_RC},
        .timeout_ms = timeout_ms};
}

void end_wait(struct end *e, struct urnic_wc *wc, int timeout_ms)
{
    uint64_t began = rig_now_ms(), limit = (uint64_t)timeout_ms;
    int n;
    while ((n = urnic_poll_cq(e->cq, 1, wc)) == 0) {
        ck_assert_msg(rig_now_ms() - began < limit ||
                          rig_now_ms() - began < limit * patience_factor(),
                      "no completion within %d ms", timeout_ms);
        sched_yield();
    }
    ck_assert_int_eq(n, 1);
}

void end_expect(struct end *e, enum urnic_wc_status status, uint64_t wr_id)
{
    struct urnic_wc wc;
    end_wait(e, &wc, 10000);
    ck_assert_msg(wc.status == status, "status %s, expected %s", urnic_wc_status_str(wc.status),
                  urnic_wc_status_str(status));
    ck_assert_uint_eq(wc.wr_id, wr_id);
}

struct urnic_cm_event await_cm(struct urnic_cm_channel *ch, enum urnic_cm_event_type want)
{
    struct urnic_cm_event ev;
    ck_assert_int_eq(urnic_get_cm_event(ch, &ev), 0);
    ck_assert_msg(ev.event == want, "%s: %d, not %s", urnic_cm_event_str(ev.event), ev.status,
                  urnic_cm_event_str(want));
    return ev;
}
