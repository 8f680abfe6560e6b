/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vt.h: shared by all programs of this folder (verbs conformance, see README.md).
 *
 * Every program: PROG [-d DEV[,DEV2]] [-g GIDX[,GIDX2]] [-i IP[,IP2]] [-p PORT] [-v] (environment:
 * VT_ARGS holds the same words). Defaults: first device, its first RoCE v2 GID that is an IPv4
 * address, both ends on that device, IP out of the GID. It prints one line, `PASS name` or `FAIL
 * name: seen value, expected value`, and exits 0 or 1; SIGALRM after 20 s is a FAIL too. Only
 * public headers are used. */
#ifndef VT_H
#define VT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VT_SECONDS 20
#define VT_ACCESS                                                                                  \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static const char *vt_name = "?";
static int vt_verbose;
static struct {
    struct ibv_context *ctx[2];
    char dev[2][64];
    int gidx[2];
    union ibv_gid gid[2];
    char ip[2][64]; /* dotted IPv4 of the GID, for rdma_cm */
    uint8_t port;
    enum ibv_mtu mtu;
    struct ibv_device_attr attr;
    bool same; /* both ends on one device (one context) */
} vt;

static void vt_line(const char *verdict, const char *fmt, va_list ap)
{
    char text[900] = "", *c;
    if (fmt)
        vsnprintf(text, sizeof(text), fmt, ap);
    for (c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    printf("%s %s%s%s\n", verdict, vt_name, *text ? (*verdict == 'F' ? ": " : " - ") : "", text);
    fflush(stdout);
}
__attribute__((noreturn, format(printf, 1, 2))) static void vt_fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vt_line("FAIL", fmt, ap);
    va_end(ap);
    _exit(1);
}
__attribute__((noreturn)) static void vt_pass(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vt_line("PASS", fmt, ap);
    va_end(ap);
    exit(0); /* runs the library's destructors: they must not hang */
}
#define WANT(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            vt_fail(__VA_ARGS__);                                                                  \
    } while (0)
#define say(...)                                                                                   \
    do {                                                                                           \
        if (vt_verbose) {                                                                          \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

static void vt_alarm(int sig)
{
    (void)sig;
    static const char m[] = "FAIL (time): no end within the time limit, expected to finish\n";
    char line[200];
    int n = snprintf(line, sizeof(line), "FAIL %s: no end within %d s, expected to finish\n",
                     vt_name, VT_SECONDS);
    if (write(1, n > 0 ? line : m, n > 0 ? (size_t)n : sizeof(m) - 1) < 0)
        _exit(1);
    _exit(1);
}
static uint64_t vt_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}
static void vt_sleep(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* ---------------------------------------------------------------- devices */
static int vt_find_gid(struct ibv_context *c, uint8_t port, bool v6)
{
    struct ibv_port_attr pa;
    if (ibv_query_port(c, port, &pa))
        return -1;
    for (int i = 0; i < pa.gid_tbl_len; i++) {
        struct ibv_gid_entry e;
        if (ibv_query_gid_ex(c, port, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        bool is4 = !memcmp(e.gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
        bool ll = e.gid.raw[0] == 0xfe && (e.gid.raw[1] & 0xc0) == 0x80;
        if (v6 ? !is4 && !ll : is4)
            return i;
    }
    return -1;
}
static void vt_args(int argc, char **argv, const char *name, char *dev, char *gid, char *ip)
{
    static char *words[64];
    int n = 0, o;
    vt_name = name;
    vt.port = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, vt_alarm);
    alarm(VT_SECONDS);
    words[n++] = argv[0];
    if (getenv("VT_ARGS")) {
        static char env[512];
        snprintf(env, sizeof(env), "%s", getenv("VT_ARGS"));
        for (char *w = strtok(env, " "); w && n < 40; w = strtok(NULL, " "))
            words[n++] = w;
    }
    for (int i = 1; i < argc && n < 63; i++)
        words[n++] = argv[i];
    optind = 1;
    while ((o = getopt(n, words, "d:g:i:p:v")) != -1)
        switch (o) {
        case 'd':
            snprintf(dev, 128, "%s", optarg);
            break;
        case 'g':
            snprintf(gid, 128, "%s", optarg);
            break;
        case 'i':
            snprintf(ip, 128, "%s", optarg);
            break;
        case 'p':
            vt.port = atoi(optarg);
            break;
        case 'v':
            vt_verbose = 1;
            break;
        default:
            vt_fail("bad argument, expected [-d DEV[,DEV2]] [-g GIDX[,GIDX2]] [-i IP[,IP2]] [-p "
                    "PORT] [-v]");
        }
}
static void vt_split(char *s, char *part[2])
{
    part[0] = *s ? s : NULL;
    part[1] = NULL;
    char *comma = strchr(s, ',');
    if (comma) {
        *comma = 0;
        part[1] = comma + 1;
    }
}
static void vt_open_devices(char *dev, char *gid, char *ip)
{
    char *d[2], *g[2], *a[2];
    int count = -1;
    vt_split(dev, d);
    vt_split(gid, g);
    vt_split(ip, a);
    struct ibv_device **list = ibv_get_device_list(&count);
    WANT(list && count > 0,
         "ibv_get_device_list gave %p with %d devices (errno %d), expected at least one",
         (void *)list, count, errno);
    for (int s = 0; s < 2; s++) {
        struct ibv_device *found = NULL;
        if (s && (!d[1] || (d[0] && !strcmp(d[0], d[1])))) {
            vt.ctx[1] = vt.ctx[0];
            vt.same = true;
            vt.gidx[1] = vt.gidx[0];
            vt.gid[1] = vt.gid[0];
            memcpy(vt.dev[1], vt.dev[0], 64);
            memcpy(vt.ip[1], vt.ip[0], 64);
            break;
        }
        for (int i = 0; i < count; i++)
            if (!d[s] ? i == 0 : !strcmp(ibv_get_device_name(list[i]), d[s]))
                found = list[i];
        WANT(found, "no device named %s in the list", d[s]);
        snprintf(vt.dev[s], 64, "%s", ibv_get_device_name(found));
        vt.ctx[s] = ibv_open_device(found);
        WANT(vt.ctx[s], "ibv_open_device(%s) failed, errno %d", vt.dev[s], errno);
        vt.gidx[s] = g[s] ? atoi(g[s]) : vt_find_gid(vt.ctx[s], vt.port, false);
        WANT(vt.gidx[s] >= 0, "no RoCE v2 IPv4 GID on %s, expected one", vt.dev[s]);
        WANT(!ibv_query_gid(vt.ctx[s], vt.port, vt.gidx[s], &vt.gid[s]), "ibv_query_gid failed");
        if (a[s])
            snprintf(vt.ip[s], 64, "%s", a[s]);
        else
            inet_ntop(AF_INET, vt.gid[s].raw + 12, vt.ip[s], 64);
    }
    ibv_free_device_list(list);
    struct ibv_port_attr pa, pb;
    WANT(!ibv_query_port(vt.ctx[0], vt.port, &pa), "ibv_query_port failed");
    WANT(!ibv_query_port(vt.ctx[1], vt.port, &pb), "ibv_query_port failed");
    vt.mtu = pa.active_mtu < pb.active_mtu ? pa.active_mtu : pb.active_mtu;
    WANT(!ibv_query_device(vt.ctx[0], &vt.attr), "ibv_query_device failed");
}
static char vt_adev[128], vt_agid[128], vt_aip[128];
/* vt_start: arguments, alarm, devices. Programs that fork first use the two halves. */
static void vt_start(int argc, char **argv, const char *name)
{
    vt_args(argc, argv, name, vt_adev, vt_agid, vt_aip);
    vt_open_devices(vt_adev, vt_agid, vt_aip);
}

/* ------------------------------------------------------------------- ends */
struct vt_cfg {
    enum ibv_qp_type type;
    int swr, rwr, ssge, rsge, inl, cqe;
    int sigall, onecq; /* onecq: one CQ for sends and receives */
    int qpaccess;      /* rights of the QP, and of the end's own region */
    int rd, retry, rnr, timeout, rnr_timer;
    size_t len; /* own buffer, registered */
    struct ibv_srq *srq;
    struct ibv_pd *pd;
    struct ibv_cq *scq, *rcq;
    int noqp;
};
static const struct vt_cfg VT_RC = {.type = IBV_QPT_RC,
                                    .swr = 64,
                                    .rwr = 64,
                                    .ssge = 2,
                                    .rsge = 2,
                                    .cqe = 256,
                                    .qpaccess = VT_ACCESS,
                                    .rd = 4,
                                    .retry = 7,
                                    .rnr = 7,
                                    .timeout = 14,
                                    .rnr_timer = 12,
                                    .len = 65536};

struct vt_end {
    int side;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *ch;
    struct ibv_cq *scq, *rcq;
    struct ibv_qp *qp;
    struct ibv_qp_cap cap;
    struct ibv_mr *mr;
    char *buf;
    size_t len;
    struct vt_cfg c;
};
struct vt_info {
    uint32_t qpn, rkey;
    uint64_t addr;
    union ibv_gid gid;
};

static void vt_qp(struct vt_end *e)
{
    struct ibv_qp_init_attr ia = {
        .qp_context = e,
        .send_cq = e->scq,
        .recv_cq = e->rcq,
        .srq = e->c.srq,
        .qp_type = e->c.type,
        .sq_sig_all = e->c.sigall,
        .cap = {e->c.swr, e->c.srq ? 0 : e->c.rwr, e->c.ssge, e->c.srq ? 0 : e->c.rsge, e->c.inl}};
    e->qp = ibv_create_qp(e->pd, &ia);
    WANT(e->qp, "ibv_create_qp(type %d, %d+%d WRs, %d inline) failed, errno %d (%s)", e->c.type,
         e->c.swr, e->c.rwr, e->c.inl, errno, strerror(errno));
    e->cap = ia.cap;
}
static void vt_end(struct vt_end *e, int side, const struct vt_cfg *c)
{
    memset(e, 0, sizeof(*e));
    e->c = c ? *c : VT_RC;
    e->side = side;
    e->ctx = vt.ctx[side];
    e->pd = e->c.pd ? e->c.pd : ibv_alloc_pd(e->ctx);
    WANT(e->pd, "ibv_alloc_pd failed, errno %d", errno);
    if (!e->c.scq) {
        e->ch = ibv_create_comp_channel(e->ctx);
        WANT(e->ch, "ibv_create_comp_channel failed, errno %d", errno);
    }
    e->scq = e->c.scq ? e->c.scq : ibv_create_cq(e->ctx, e->c.cqe, e, e->ch, 0);
    e->rcq = e->c.rcq     ? e->c.rcq
             : e->c.onecq ? e->scq
                          : ibv_create_cq(e->ctx, e->c.cqe, e, e->ch, 0);
    WANT(e->scq && e->rcq, "ibv_create_cq(%d) failed, errno %d", e->c.cqe, errno);
    if (e->c.len) {
        e->len = e->c.len;
        e->buf = mmap(NULL, e->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        e->mr = ibv_reg_mr(e->pd, e->buf, e->len, e->c.qpaccess | IBV_ACCESS_LOCAL_WRITE);
        WANT(e->mr, "ibv_reg_mr(%zu) failed, errno %d", e->len, errno);
    }
    if (!e->c.noqp)
        vt_qp(e);
}
static int vt_try_init(struct vt_end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = vt.port,
                            .qp_access_flags = e->c.qpaccess,
                            .qkey = 0x11223344};
    return ibv_modify_qp(e->qp, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             (e->c.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}
static int vt_try_rtr(struct vt_end *e, uint32_t qpn, const union ibv_gid *gid)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};
    int m = IBV_QP_STATE;
    if (e->c.type != IBV_QPT_UD) {
        m |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        a.path_mtu = vt.mtu;
        a.dest_qp_num = qpn;
        a.rq_psn = 0x123456;
        a.ah_attr.is_global = 1;
        a.ah_attr.port_num = vt.port;
        a.ah_attr.grh = (struct ibv_global_route){
            // NOLINTNEXTLINE(clang-analyzer-*): a move to RTR names the peer's
            .dgid = *gid,
            .sgid_index = vt.gidx[e->side],
            .hop_limit = 64};
    }
    if (e->c.type == IBV_QPT_RC) {
        m |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        a.max_dest_rd_atomic = e->c.rd;
        a.min_rnr_timer = e->c.rnr_timer;
    }
    return ibv_modify_qp(e->qp, &a, m);
}
static int vt_try_rts(struct vt_end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .sq_psn = 0x123456,
                            .timeout = e->c.timeout,
                            .retry_cnt = e->c.retry,
                            .rnr_retry = e->c.rnr,
                            .max_rd_atomic = e->c.rd};
    return ibv_modify_qp(
        e->qp, &a,
        IBV_QP_STATE | IBV_QP_SQ_PSN |
            (e->c.type != IBV_QPT_RC
                 ? 0
                 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}
static void vt_up(struct vt_end *e, uint32_t qpn, const union ibv_gid *gid)
{
    int r;
    r = vt_try_init(e);
    WANT(!r, "ibv_modify_qp to INIT gave %d (%s), expected 0", r, strerror(r));
    r = vt_try_rtr(e, qpn, gid);
    WANT(!r, "ibv_modify_qp to RTR gave %d (%s), expected 0", r, strerror(r));
    r = vt_try_rts(e);
    WANT(!r, "ibv_modify_qp to RTS gave %d (%s), expected 0", r, strerror(r));
}
static void vt_join(struct vt_end *a, struct vt_end *b)
{
    vt_up(a, b->qp->qp_num, &vt.gid[b->side]);
    vt_up(b, a->qp->qp_num, &vt.gid[a->side]);
}
/* two connected ends: a on the first device, b on the second (or the same) */
static void vt_pair(struct vt_end *a, struct vt_end *b, const struct vt_cfg *c)
{
    vt_end(a, 0, c);
    vt_end(b, 1, c);
    vt_join(a, b);
}
static int vt_modify(struct ibv_qp *qp, enum ibv_qp_state s)
{
    struct ibv_qp_attr a = {.qp_state = s};
    return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}
static int vt_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    int r = ibv_query_qp(qp, &a, IBV_QP_STATE, &i);
    WANT(!r, "ibv_query_qp gave %d, expected 0", r);
    return a.qp_state;
}
/* the state may follow the completion by a moment */
static int vt_wait_state(struct ibv_qp *qp, int s, int ms)
{
    uint64_t end = vt_ms() + ms;
    int now;
    while ((now = vt_state(qp)) != s && vt_ms() < end)
        vt_sleep(5);
    return now;
}

/* ---------------------------------------------------------- work requests */
static int vt_recv(struct vt_end *e, uint64_t id, void *p, uint32_t len)
{
    struct ibv_sge s = {(uintptr_t)p, len, e->mr ? e->mr->lkey : 0};
    struct ibv_recv_wr w = {.wr_id = id, .sg_list = &s, .num_sge = p ? 1 : 0}, *bad;
    return ibv_post_recv(e->qp, &w, &bad);
}
/* op: any of send, write, read, atomic; imm in network order; raddr/rkey for one-sided */
static int vt_post(struct vt_end *e, int op, uint64_t id, void *p, uint32_t len, int flags,
                   uint64_t raddr, uint32_t rkey, uint32_t imm)
{
    struct ibv_sge s = {(uintptr_t)p, len, e->mr ? e->mr->lkey : 0};
    struct ibv_send_wr w = {.wr_id = id,
                            .sg_list = &s,
                            .num_sge = p ? 1 : 0,
                            .opcode = op,
                            .send_flags = flags,
                            .imm_data = imm},
                       *bad;
    w.wr.rdma.remote_addr = raddr;
    w.wr.rdma.rkey = rkey;
    return ibv_post_send(e->qp, &w, &bad);
}
static int vt_atomic(struct vt_end *e, int op, uint64_t id, void *p, uint64_t raddr, uint32_t rkey,
                     uint64_t compare_add, uint64_t swap)
{
    struct ibv_sge s = {(uintptr_t)p, 8, e->mr->lkey};
    struct ibv_send_wr w = {.wr_id = id,
                            .sg_list = &s,
                            .num_sge = 1,
                            .opcode = op,
                            .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    w.wr.atomic.remote_addr = raddr;
    w.wr.atomic.rkey = rkey;
    w.wr.atomic.compare_add = compare_add;
    w.wr.atomic.swap = swap;
    return ibv_post_send(e->qp, &w, &bad);
}
#define OK0(call)                                                                                  \
    do {                                                                                           \
        int r_ = (call);                                                                           \
        WANT(!r_, "%s gave %d (%s), expected 0", #call, r_, strerror(r_ < 0 ? errno : r_));        \
    } while (0)

/* up to n completions within ms; the number found */
static int vt_poll(struct ibv_cq *cq, struct ibv_wc *wc, int n, int ms)
{
    uint64_t end = vt_ms() + ms;
    int got = 0;
    for (;;) {
        int r = ibv_poll_cq(cq, n - got, wc + got);
        WANT(r >= 0, "ibv_poll_cq gave %d, expected >= 0", r);
        got += r;
        if (got == n || vt_ms() >= end)
            return got;
        if (!r)
            sched_yield();
    }
}
/* one completion, which must be that of wr_id with this status (and opcode, if >= 0 and success) */
static struct ibv_wc vt_want(struct ibv_cq *cq, const char *what, uint64_t id, int status,
                             int opcode)
{
    struct ibv_wc wc;
    memset(&wc, 0xee, sizeof(wc));
    WANT(vt_poll(cq, &wc, 1, 8000) == 1,
         "%s: no completion within 8 s, expected wr_id %llu status %s", what,
         (unsigned long long)id, ibv_wc_status_str(status));
    WANT(wc.wr_id == id, "%s: completion of wr_id %llu (%s), expected wr_id %llu", what,
         (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), (unsigned long long)id);
    WANT((int)wc.status == status, "%s: status %d (%s), expected %d (%s)", what, wc.status,
         ibv_wc_status_str(wc.status), status, ibv_wc_status_str(status));
    WANT(status || opcode < 0 || (int)wc.opcode == opcode, "%s: opcode %d, expected %d", what,
         wc.opcode, opcode);
    return wc;
}
static void vt_none(struct ibv_cq *cq, const char *what, int ms)
{
    struct ibv_wc wc;
    WANT(!vt_poll(cq, &wc, 1, ms), "%s: completion wr_id %llu %s, expected none", what,
         (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}
static bool vt_readable(int fd, int ms)
{
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}
static void vt_fill(void *p, size_t n, unsigned seed)
{
    unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(seed + i * 7 + (i >> 8) * 13);
}
static long vt_diff(const void *p, size_t n, unsigned seed)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        if (b[i] != (unsigned char)(seed + i * 7 + (i >> 8) * 13))
            return (long)i;
    return -1;
}
#define SAME(p, n, seed, what)                                                                     \
    do {                                                                                           \
        long d_ = vt_diff(p, n, seed);                                                             \
        WANT(d_ < 0, "%s: byte %ld of %zu is wrong, expected the data sent", what, d_,             \
             (size_t)(n));                                                                         \
    } while (0)

/* keeps -Wunused quiet for helpers that a program does not call */
__attribute__((unused)) static void *vt_all[] = {
    vt_start, vt_find_gid, vt_pair,     vt_modify, vt_wait_state, vt_recv, vt_post, vt_atomic,
    vt_want,  vt_none,     vt_readable, vt_fill,   vt_diff,       vt_pass, vt_sleep};
#endif
