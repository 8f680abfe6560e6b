/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loss matrix: every RC operation, at the sizes where segmentation changes, over a link that
 * loses, duplicates, reorders and damages, on virtual time.
 *
 *     test_loss_matrix [--sample N | --full] [--seed S] [--recovery MODE] [--verbose]
 *     test_loss_matrix --case NAME [--capture FILE]   pcapng: frames as sent, losses as comments
 *     test_loss_matrix --list
 *
 * Each case does several messages of one operation and asks: do the octets agree, did each request
 * complete exactly once and in order (CQ-01, REQ-33), did each atomic happen exactly once (ATM-08,
 * ATM-11), is the memory around the targets untouched? A queue pair may fail only with
 * RETRY_EXC_ERR, and only where the link's drop log shows that its retries really were exhausted
 * (TMR-05). Rules at work: RTX-01, RTX-02, RTX-05, RSP-20, RD-09, RD-12, RD-14, REQ-24, ACK-08.
 *
 * A case's seed follows from --seed and the case's name alone, so that the command printed with a
 * failure repeats it. Without --seed it is the date; --full has a fixed one.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fault_dice.h"
#include "loss_oracle.h"
#include "vnet.h"

#define MSGS_MAX   24u
#define GUARD      64u
#define GUARD_FILL 0xA5u
#define TIME_LIMIT 600000000000ull /* ten virtual minutes */
#define RETRIES    7u
#define PROGRESS   100u

enum op { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, CAS, FADD, OPS };

static const struct op_info {
    const char *name;
    uint8_t wr, wc;    /* of the requester */
    bool recv, from_b; /* consumes receives; data flows from the responder */
    bool atomic;
} ops[OPS] = {
    [SEND] = {"SEND", WR_SEND, WC_SEND, true, false, false},
    [SEND_IMM] = {"SEND_IMM", WR_SEND_WITH_IMM, WC_SEND, true, false, false},
    [SEND_INV] = {"SEND_INV", WR_SEND_WITH_INV, WC_SEND, true, false, false},
    [WRITE] = {"WRITE", WR_RDMA_WRITE, WC_RDMA_WRITE, false, false, false},
    [WRITE_IMM] = {"WRITE_IMM", WR_RDMA_WRITE_WITH_IMM, WC_RDMA_WRITE, true, false, false},
    [READ] = {"READ", WR_RDMA_READ, WC_RDMA_READ, false, true, false},
    [CAS] = {"CMP_SWAP", WR_ATOMIC_CMP_AND_SWP, WC_COMP_SWAP, false, false, true},
    [FADD] = {"FETCH_ADD", WR_ATOMIC_FETCH_AND_ADD, WC_FETCH_ADD, false, false, true},
};

static const struct fault {
    const char *name, *keys;
    bool loses; /* can take an octet away from a message, so that retries may be exhausted */
} faults[] = {
    {"none", "", false},
    {"loss0.1%", ",loss=0.001", true},
    {"loss1%", ",loss=0.01", true},
    {"loss5%", ",loss=0.05", true},
    {"loss20%", ",loss=0.2", true},
    {"dup", ",dup=0.05", false},
    {"reorder", ",reorder=0.05", false},
    {"corrupt", ",corrupt=0.05", true},
    {"all", ",loss=0.03,dup=0.03,reorder=0.03,corrupt=0.03", true},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static const unsigned mtus[] = {256, 1024, 4096};
#define MTUS 3u

static const char *const size_names[] = {"0", "1", "mtu-1", "mtu", "mtu+1", "3mtu", "1M"};
#define SIZES 7u

static uint32_t size_of(unsigned which, unsigned mtu)
{
    const uint32_t size[SIZES] = {0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu, 1u << 20};
    return size[which];
}

struct test_case {
    enum op op;
    unsigned size, mtu, fault;
    bool ipv6;
    char name[96];
    uint64_t seed;
};

/* ---- one case as it runs ---- */

/* How losses are repaired, at the requester and at the responder (LR-01). */
static const struct recovery {
    const char *name, *spec;
    uint8_t mode[2];
} recoveries[] = {
    {"gbn", "none", {RECOVER_GBN, RECOVER_GBN}},
    {"gbn-probe", "none,probe=1,adaptive=1", {RECOVER_GBN, RECOVER_GBN}},
    {"gbn-paced", "fixed,rate=20G,burst_pkts=4", {RECOVER_GBN, RECOVER_GBN}},
    {"gbn-ooo", "none", {RECOVER_GBN, RECOVER_GBN_OOO}},
    {"ooo-late", "none,reorder=10us", {RECOVER_GBN, RECOVER_GBN_OOO}},
    {"sr", "none", {RECOVER_SR, RECOVER_SR}},
    {"sr-late", "none,reorder=10us", {RECOVER_SR, RECOVER_SR}},
    {"sr-paced", "fixed,rate=20G,burst_pkts=4", {RECOVER_SR, RECOVER_SR}},
    {"sr-gbn", "none", {RECOVER_SR, RECOVER_GBN}}, /* a plain peer: go-back-N */
    {"gbn-sr", "none", {RECOVER_GBN, RECOVER_SR}},
};
#define RECOVERIES (sizeof(recoveries) / sizeof(recoveries[0]))
static const struct recovery *recovery = &recoveries[0];

struct run {
    const struct test_case *tc;
    struct vnet *net;
    struct vnet_host *a, *b;
    struct qp *qa, *qb;
    uint64_t rng;
    uint32_t len, stride; /* of a message; from one message's place to the next one's */
    unsigned msgs, posted, recvs;
    bool late_recv, slow_copies;
    uint8_t *local, *remote; /* both with guards between messages */
    uint32_t llkey, rlkey, rrkey;
    uint32_t inv_rkey[MSGS_MAX];
    struct loss_oracle oracle;
    struct pcapng *capture;
    char why[512];
};

static int fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct run *r, const char *fmt, ...)
{
    va_list ap;
    if (r->why[0])
        return -1;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
    return -1;
}

/* The octets of message m: different for every message, case and place. */
static uint8_t octet(const struct run *r, unsigned m, uint32_t i)
{
    return (uint8_t)(r->tc->seed + m * 89 + i * 13 + (i >> 8) * 7 + (i >> 16));
}

static uint8_t *place(uint8_t *arena, const struct run *r, unsigned m)
{
    return arena + (size_t)m * r->stride + GUARD;
}

/* A queue pair gave up: only where something can be lost, and was. */
static int check_exhausted(struct run *r)
{
    char why[256];

    if (!faults[r->tc->fault].loses)
        return fail(r, "RETRY_EXC_ERR although nothing was lost (TMR-05)");
    if (recovery->mode[0] == RECOVER_SR && recovery->mode[1] == RECOVER_SR)
        return 0; /* tries and retries aren't the same there (LR-04) */
    loss_oracle_poll(&r->oracle);
    return loss_oracle_exhausted(&r->oracle, RETRIES, why, sizeof(why)) ? fail(r, "%s", why) : 0;
}

/* ---- posting ---- */

static int post_recv(struct run *r)
{
    unsigned m = r->recvs;
    bool data = r->tc->op != WRITE_IMM && r->len > 0;
    struct engine_sge sge = {(uint64_t)(uintptr_t)place(r->remote, r, m), r->len, r->rlkey};
    struct engine_recv_wr wr = {.wr_id = 5000 + m, .nsge = data, .sge = &sge};

    if (engine_post_recv(r->b->engine, r->qb, &wr))
        return fail(r, "post_recv %u refused", m);
    r->recvs++;
    return 0;
}

static int post_send(struct run *r)
{
    unsigned m = r->posted;
    const struct op_info *op = &ops[r->tc->op];
    /* Two SGEs when there is something to split. */
    uint64_t at = (uint64_t)(uintptr_t)place(r->local, r, m);
    uint32_t first = op->atomic ? 8 : r->len > 2 && m % 2 ? r->len / 3 : r->len;
    uint32_t len = op->atomic ? 8 : r->len;
    struct engine_sge sge[2] = {{at, first, r->llkey}, {at + first, len - first, r->llkey}};
    struct engine_send_wr wr = {
        .wr_id = 1000 + m,
        .opcode = op->wr,
        .flags = WR_F_SIGNALED,
        .nsge = (uint8_t)(len == 0      ? 0
                          : len > first ? 2
                                        : 1),
        .imm = r->tc->op == SEND_INV ? r->inv_rkey[m] : 0x11220000u + m,
        .rkey = r->rrkey,
        .remote_va = (uint64_t)(uintptr_t)place(r->remote, r, op->atomic ? 0 : m),
        .sge = sge,
    };

    if (r->tc->op == CAS) {
        wr.compare_add = m;
        wr.swap = m + 1;
    } else if (r->tc->op == FADD) {
        wr.compare_add = 3 * m + 1;
    }
    int rc = engine_post_send(r->a->engine, r->qa, &wr, r->net->now);
    if (rc == -EAGAIN)
        return 1;
    if (rc)
        return fail(r, "post_send %u refused: %d", m, rc);
    r->posted++;
    return 0;
}

/* ---- set-up ---- */

/* Copies take up to 5 us, some of them. */
static int64_t slow_place(void *ctx, const struct engine_copy *copy, uint64_t now)
{
    struct run *r = ctx;

    (void)copy, (void)now;
    return fault_draw_hit(&r->rng, 0.3) ? (int64_t)fault_draw_below(&r->rng, 5000) : 0;
}

static int make_arena(struct run *r, struct vnet_host *h, uint8_t **arena, uint32_t *lkey,
                      uint32_t *rkey)
{
    size_t size = (size_t)r->stride * r->msgs + GUARD;

    *arena = aligned_alloc(64, (size + 63) & ~(size_t)63);
    if (!*arena)
        return fail(r, "no memory");
    memset(*arena, GUARD_FILL, size);
    /* Guards are registered too: rights must not be what saves them. */
    int rc = vnet_reg(h, *arena, size, MEM_LOCAL_WRITE | MEM_REMOTE_ANY, lkey, rkey);
    return rc ? fail(r, "registering: %d", rc) : 0;
}

static void fill_source(struct run *r)
{
    const struct op_info *op = &ops[r->tc->op];
    uint8_t *source = op->from_b ? r->remote : r->local;
    uint8_t *target = op->from_b ? r->local : r->remote;

    for (unsigned m = 0; m < r->msgs; m++) {
        for (uint32_t i = 0; i < r->len && !op->atomic; i++) {
            place(source, r, m)[i] = octet(r, m, i);
            place(target, r, m)[i] = (uint8_t)~octet(r, m, i);
        }
        if (op->atomic)
            memset(place(r->local, r, m), 0xEE, 8);
    }
    if (op->atomic)
        memset(place(r->remote, r, 0), 0, 8);
}

/* For SEND with invalidate: a fast-registered region of B for each message. */
static int make_invalidatable(struct run *r)
{
    struct mem_seg seg = vnet_seg(r->remote, r->stride);
    uint32_t lkey;

    for (unsigned m = 0; m < r->msgs; m++) {
        int rc = mem_fr_alloc(r->b->mem, r->b->pd, 1, &lkey, &r->inv_rkey[m]);
        if (rc == 0)
            rc = mem_fr_reg(r->b->mem, r->b->pd, r->inv_rkey[m], 0x10000, r->stride,
                            MEM_LOCAL_WRITE | MEM_REMOTE_ANY, &seg, 1);
        if (rc)
            return fail(r, "fast registration: %d", rc);
    }
    return 0;
}

static const char *capture_path; /* --capture */

static int set_up(struct run *r)
{
    const struct test_case *tc = r->tc;
    char keys[IO_SPEC_MAX];

    r->rng = tc->seed;
    r->len = ops[tc->op].atomic ? 8 : size_of(tc->size, mtus[tc->mtu]);
    r->stride = (r->len + 63 + GUARD) & ~63u;
    r->msgs = r->len > 100000 ? 2 : MSGS_MAX;
    r->late_recv = ops[tc->op].recv && fault_draw_hit(&r->rng, 0.3);
    r->slow_copies = fault_draw_hit(&r->rng, 0.3);
    snprintf(keys, sizeof(keys), ",rate=100G,delay=1us,log=65536%s", faults[tc->fault].keys);
    r->net = vnet_new(2, keys, tc->seed);
    if (!r->net)
        return fail(r, "no network");
    r->a = r->net->hosts[0];
    r->b = r->net->hosts[1];
    struct cc_conf conf;
    if (cc_conf_parse(&conf, recovery->spec, r->why, sizeof(r->why)))
        return -1;
    engine_set_cc(r->a->engine, &conf, 0);
    engine_set_cc(r->b->engine, &conf, 0);
    if (r->slow_copies)
        r->a->copier = r->b->copier = (struct vnet_copier){.ctx = r, .place = slow_place};
    struct vnet_qp_params q = {.mtu = mtus[tc->mtu],
                               .ipv6 = tc->ipv6,
                               .retry_cnt = RETRIES,
                               .timeout = 6,
                               .recovery = {recovery->mode[0], recovery->mode[1]},
                               .rd_atomic = (uint8_t)(1 + fault_draw_below(&r->rng, 16))};
    for (int i = 0; i < 2; i++) /* every fourth close to the wrap of PSNs */
        q.sq_psn[i] =
            fault_draw_hit(&r->rng, 0.25) ? 0xFFFFFA : (uint32_t)fault_draw(&r->rng) & 0xFFFFFF;
    int rc = vnet_connect(r->a, r->b, &q, &r->qa, &r->qb);
    if (rc)
        return fail(r, "connecting: %d", rc);
    if (make_arena(r, r->a, &r->local, &r->llkey, &(uint32_t){0}) ||
        make_arena(r, r->b, &r->remote, &r->rlkey, &r->rrkey))
        return -1;
    fill_source(r);
    if (tc->op == SEND_INV && make_invalidatable(r))
        return -1;
    loss_oracle_start(&r->oracle, r->net, r->qa, r->qb, q.sq_psn[0]);
    if (capture_path && pcapng_create(capture_path, NULL, &r->capture) == 0) {
        pcapng_interface(r->capture, "requester", NULL, 0);
        pcapng_interface(r->capture, "responder", NULL, 0);
        r->oracle.capture = r->capture;
    }
    return 0;
}

static void tear_down(struct run *r)
{
    loss_oracle_free(&r->oracle);
    if (r->capture && pcapng_close(r->capture))
        fprintf(stderr, "writing %s failed\n", capture_path);
    if (r->net)
        vnet_free(r->net);
    free(r->local);
    free(r->remote);
}

/* ---- running ---- */

/* Between the steps: post what is still to be posted; has everything completed? */
static bool done(void *ctx)
{
    struct run *r = ctx;
    bool recv = ops[r->tc->op].recv;

    loss_oracle_poll(&r->oracle);
    if (r->why[0])
        return true;
    /* Late receives: the next one when the sender is a message ahead, so that some RNR NAKs go out.
     */
    while (recv && r->recvs < r->msgs &&
           (!r->late_recv || r->recvs < r->b->wcs_n + 1 + fault_draw_below(&r->rng, 3)))
        if (post_recv(r))
            return true;
    while (r->posted < r->msgs)
        if (post_send(r))
            break;
    struct engine_qp_info info;
    engine_qp_info(r->a->engine, r->qa, &info);
    if (info.state == QPS_ERR)
        return r->a->wcs_n >= r->posted;
    return r->a->wcs_n >= r->msgs && (!recv || r->b->wcs_n >= r->msgs);
}

/* ---- judging ---- */

static int check_completions(struct run *r, unsigned *good)
{
    const struct op_info *op = &ops[r->tc->op];
    bool failed = false;

    *good = 0;
    for (size_t i = 0; i < r->a->wcs_n; i++) {
        const struct engine_wc *wc = &r->a->wcs[i].wc;
        if (wc->wr_id != 1000 + i)
            return fail(r, "completion %zu is for request %llu", i,
                        (unsigned long long)wc->wr_id - 1000);
        if (failed && wc->status != WC_WR_FLUSH_ERR)
            return fail(r, "completion %zu after the failure: %s", i,
                        engine_status_name(wc->status));
        if (failed)
            continue;
        if (wc->status == WC_RETRY_EXC_ERR) {
            failed = true;
            if (check_exhausted(r))
                return -1;
            continue;
        }
        if (wc->status != WC_SUCCESS)
            return fail(r, "completion %zu: %s", i, engine_status_name(wc->status));
        if (wc->opcode != op->wc)
            return fail(r, "completion %zu has opcode %u", i, wc->opcode);
        if ((op->from_b || op->atomic) && wc->byte_len != r->len)
            return fail(r, "completion %zu has %u octets", i, wc->byte_len);
        ++*good;
    }
    if (r->a->wcs_n != r->posted)
        return fail(r, "%zu completions for %u requests", r->a->wcs_n, r->posted);
    return 0;
}

static int check_receives(struct run *r, unsigned good)
{
    const struct test_case *tc = r->tc;
    unsigned n = 0;

    for (size_t i = 0; i < r->b->wcs_n; i++) {
        const struct engine_wc *wc = &r->b->wcs[i].wc;
        if (wc->status != WC_SUCCESS)
            return fail(r, "receive %zu: %s", i, engine_status_name(wc->status));
        if (wc->wr_id != 5000 + n)
            return fail(r, "receive %zu is for request %llu", i,
                        (unsigned long long)wc->wr_id - 5000);
        if (wc->byte_len != r->len)
            return fail(r, "receive %zu has %u octets", i, wc->byte_len);
        bool imm = tc->op == SEND_IMM || tc->op == WRITE_IMM;
        if (!(wc->wc_flags & WC_F_IMM) == imm || (imm && wc->imm != 0x11220000u + n))
            return fail(r, "receive %zu: immediate 0x%x", i, wc->imm);
        bool inv = tc->op == SEND_INV;
        if (!(wc->wc_flags & WC_F_INV) == inv || (inv && wc->imm != r->inv_rkey[n]))
            return fail(r, "receive %zu: invalidated 0x%x", i, wc->imm);
        if (wc->opcode != (tc->op == WRITE_IMM ? WC_RECV_RDMA_WITH_IMM : WC_RECV))
            return fail(r, "receive %zu has opcode %u", i, wc->opcode);
        n++;
    }
    if (ops[tc->op].recv ? n < good : n != 0)
        return fail(r, "%u receives for %u messages", n, good);
    return 0;
}

static int check_atomics(struct run *r, unsigned good)
{
    uint64_t value = 0, now, orig;

    memcpy(&now, place(r->remote, r, 0), 8);
    for (unsigned m = 0; m < r->msgs; m++) {
        memcpy(&orig, place(r->local, r, m), 8);
        if (m < good && orig != value)
            return fail(r, "atomic %u found %llu, not %llu (ATM-08)", m, (unsigned long long)orig,
                        (unsigned long long)value);
        if (m >= good) {
            /* May have happened without our knowing: one after the other, in order. */
            if (now == value)
                return 0;
        }
        value += r->tc->op == CAS ? 1 : 3 * m + 1;
    }
    if (now != value)
        return fail(r, "the word is %llu, not %llu: not exactly once (ATM-11)",
                    (unsigned long long)now, (unsigned long long)value);
    return 0;
}

static int check_guards(struct run *r, const uint8_t *arena, const char *whose, uint32_t len)
{
    for (unsigned m = 0; m < r->msgs; m++)
        for (uint32_t i = 0; i < r->stride; i++) {
            if (i >= GUARD && i < GUARD + len)
                continue;
            if (arena[(size_t)m * r->stride + i] != GUARD_FILL)
                return fail(r, "%s guard of message %u, octet %d, was overwritten", whose, m,
                            (int)i - (int)GUARD);
        }
    return 0;
}

static int check_data(struct run *r, unsigned good)
{
    bool from_b = ops[r->tc->op].from_b;
    uint8_t *source = from_b ? r->remote : r->local, *target = from_b ? r->local : r->remote;

    for (unsigned m = 0; m < r->msgs; m++) {
        for (uint32_t i = 0; i < r->len; i++) {
            if (place(source, r, m)[i] != octet(r, m, i))
                return fail(r, "message %u: source octet %u was changed", m, i);
            if (m < good && place(target, r, m)[i] != octet(r, m, i))
                return fail(r, "message %u: octet %u is wrong", m, i);
        }
    }
    return 0;
}

static int check_invalidated(struct run *r, unsigned good)
{
    struct mem_ref ref;

    for (unsigned m = 0; m < good; m++)
        if (mem_check(r->b->mem, r->b->pd, engine_qp_num(r->qb), r->inv_rkey[m], 0x10000, 1,
                      MEM_REMOTE_READ, false, &ref) == 0)
            return fail(r, "key of message %u is still valid (RSP-19)", m);
    return 0;
}

static int judge(struct run *r, bool *exhausted)
{
    unsigned good;
    uint32_t guard_len = r->len;

    if (check_completions(r, &good) || check_receives(r, good))
        return -1;
    *exhausted = good < r->msgs;
    if (ops[r->tc->op].atomic) {
        if (check_atomics(r, good))
            return -1;
        guard_len = 8;
    } else if (check_data(r, good)) {
        return -1;
    }
    if (r->tc->op == SEND_INV && check_invalidated(r, good))
        return -1;
    if (check_guards(r, r->local, "local", guard_len))
        return -1;
    return check_guards(r, r->remote, "remote", guard_len);
}

struct totals {
    unsigned run, failed, exhausted;
    uint64_t frames, lost, retransmitted;
    uint64_t virtual_ns;
};

static int run_case(const struct test_case *tc, struct totals *sum, bool verbose)
{
    struct run r = {.tc = tc};
    bool exhausted = false;
    int rc = set_up(&r);

    if (rc == 0) {
        rc = vnet_run(r.net, done, &r, TIME_LIMIT);
        if (rc)
            rc = fail(&r, "%s; %zu of %u requests, %zu receives completed", r.net->why, r.a->wcs_n,
                      r.msgs, r.b->wcs_n);
        /* What is still under way may do no harm. */
        if (rc == 0 && !r.why[0])
            rc = vnet_run_for(r.net, 1000000) ? fail(&r, "%s", r.net->why) : 0;
        if (rc == 0)
            rc = r.why[0] ? -1 : judge(&r, &exhausted);
        struct mem_link_stats st;
        mem_link_stats(r.net->link, MEM_LINK_ALL, r.net->now, &st);
        uint64_t again = engine_counters(r.a->engine)[ENGINE_C_tx_retransmit] +
                         engine_counters(r.b->engine)[ENGINE_C_tx_retransmit];
        sum->frames += st.frames;
        sum->lost += st.frames - st.delivered + st.duplicated + st.lost[MEM_LINK_R_CORRUPT];
        sum->retransmitted += again;
        sum->virtual_ns += r.net->now;
        if (verbose)
            printf("  %-48s %8llu frames %6llu again %10.3f ms%s\n", tc->name,
                   (unsigned long long)st.frames, (unsigned long long)again,
                   (double)r.net->now / 1e6, exhausted ? "  (retries exhausted)" : "");
    }
    sum->run++;
    sum->exhausted += exhausted;
    if (rc) {
        sum->failed++;
        printf("FAILED %s\n       %s%s%s\n", tc->name, r.why, r.late_recv ? " [late receives]" : "",
               r.slow_copies ? " [slow copies]" : "");
        if (r.qa) {
            struct engine_qp_info info;
            engine_qp_info(r.a->engine, r.qa, &info);
            printf("       requester: %s\n", info.error[0] ? info.error : "no error");
            for (unsigned i = 0; i < 2 && verbose; i++) {
                char text[4096];
                engine_qp_history(i ? r.b->engine : r.a->engine, i ? r.qb : r.qa, text,
                                  sizeof(text));
                printf("%s:\n%s", i ? "responder" : "requester", text);
            }
        }
    }
    tear_down(&r);
    return rc;
}

/* ---- the matrix ---- */

static size_t build(struct test_case *out)
{
    size_t n = 0;

    for (unsigned f = 0; f < FAULTS; f++)
        for (unsigned o = 0; o < OPS; o++)
            for (unsigned s = 0; s < (ops[o].atomic ? 1 : SIZES); s++)
                for (unsigned m = 0; m < MTUS; m++)
                    for (unsigned v6 = 0; v6 < 2; v6++) {
                        if (out) {
                            struct test_case *tc = &out[n];
                            *tc = (struct test_case){
                                .op = o, .size = s, .mtu = m, .fault = f, .ipv6 = v6};
                            snprintf(tc->name, sizeof(tc->name), "%s/%s/mtu%u/%s/ipv%d",
                                     ops[o].name, ops[o].atomic ? "8" : size_names[s], mtus[m],
                                     faults[f].name, v6 ? 6 : 4);
                        }
                        n++;
                    }
    return n;
}

static uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t h = 0xCBF29CE484222325u ^ seed * 0x9E3779B97F4A7C15u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return h ? h : 1;
}

static const struct test_case *current; /* for the signal handler */
static uint64_t current_seed;

static void on_crash(int sig)
{
    static char text[256];
    int n = snprintf(text, sizeof(text), "\nsignal %d in case %s --seed %llu\n", sig,
                     current ? current->name : "?", (unsigned long long)current_seed);
    ssize_t w = write(STDERR_FILENO, text, (size_t)n);
    (void)w;
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t seed_of_the_day(void)
{
    time_t t = time(NULL);
    struct tm tm;
    gmtime_r(&t, &tm);
    return (uint64_t)(tm.tm_year + 1900) * 10000 + (uint64_t)(tm.tm_mon + 1) * 100 +
           (uint64_t)tm.tm_mday;
}

struct settings {
    size_t sample; /* how many cases */
    const char *only;
    bool verbose, list, full, seeded;
    uint64_t seed;
};

static int usage(const char *name, bool asked)
{
    fprintf(asked ? stdout : stderr,
            "usage: %s [--sample N | --full] [--seed S] [--recovery NAME] [--verbose]\n"
            "       %s --case NAME [--capture FILE]\n"
            "       %s --list\n"
            "\n"
            "Every RC operation over a link that loses, repeats, reorders and damages: a\n"
            "sample of N cases chosen by seed S (default: the date), all of them, or the\n"
            "case NAME, its frames into a pcapng file. --list names the cases.\n"
            "Exit status: 0 all hold, 1 one does not, 2 wrong usage.\n",
            name, name, name);
    return asked ? 0 : 2;
}

static bool take_number(const char *option, const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end)
        fprintf(stderr, "%s: '%s' is not a number\n", option, text);
    return *text >= '0' && *text <= '9' && !*end;
}

static bool take_recovery(const char *name)
{
    for (recovery = recoveries; recovery < recoveries + RECOVERIES; recovery++)
        if (strcmp(recovery->name, name) == 0)
            return true;
    fprintf(stderr, "--recovery: '%s' is none of", name);
    for (size_t i = 0; i < RECOVERIES; i++)
        fprintf(stderr, " %s", recoveries[i].name);
    fprintf(stderr, "\n");
    return false;
}

/* An exit status, or -1: go on. */
static int take_options(struct settings *t, int argc, char **argv)
{
    static const struct option options[] = {
        {"sample", required_argument, NULL, 'n'},   {"full", no_argument, NULL, 'f'},
        {"capture", required_argument, NULL, 'p'},  {"seed", required_argument, NULL, 's'},
        {"case", required_argument, NULL, 'c'},     {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},           {"verbose", no_argument, NULL, 'v'},
        {"recovery", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0},
    };
    uint64_t n;
    int opt;

    while ((opt = getopt_long(argc, argv, "n:fs:c:p:lvr:h", options, NULL)) != -1) {
        switch (opt) {
        case 'n':
            if (!take_number("--sample", optarg, &n))
                return 2;
            t->sample = n;
            break;
        case 'f':
            t->full = true;
            break;
        case 's':
            if (!take_number("--seed", optarg, &t->seed))
                return 2;
            t->seeded = true;
            break;
        case 'c':
            t->only = optarg;
            break;
        case 'p':
            capture_path = optarg;
            break;
        case 'l':
            t->list = true;
            break;
        case 'r':
            if (!take_recovery(optarg))
                return 2;
            break;
        case 'v':
            t->verbose = true;
            break;
        default:
            return usage(argv[0], opt == 'h');
        }
    }
    if (capture_path && !t->only) {
        fprintf(stderr, "--capture needs --case\n");
        return 2;
    }
    if (t->full && !t->seeded)
        t->seed = 1;
    return -1;
}

/* A sample of n is the head of a shuffle. */
static void shuffle(struct test_case *cases, size_t total, size_t n, uint64_t seed)
{
    uint64_t rng = seed;
    for (size_t i = 0; n < total && i < n; i++) {
        size_t k = i + fault_draw_below(&rng, total - i);
        struct test_case t = cases[i];
        cases[i] = cases[k];
        cases[k] = t;
    }
}

static void run_cases(struct test_case *cases, const struct settings *t, const char *program,
                      struct totals *sum)
{
    for (size_t i = 0; i < t->sample; i++) {
        if (t->only && strcmp(t->only, cases[i].name))
            continue;
        cases[i].seed = seed_of(cases[i].name, t->seed);
        current = &cases[i];
        if (run_case(&cases[i], sum, t->verbose))
            printf("       again: %s --recovery %s --case '%s' --seed %llu\n", program,
                   recovery->name, cases[i].name, (unsigned long long)t->seed);
        if (!t->only && sum->run % PROGRESS == 0)
            printf("%u of %zu cases, %u failed\n", sum->run, t->sample, sum->failed);
        if (sum->failed >= 20) {
            printf("20 failures: enough\n");
            break;
        }
    }
}

int main(int argc, char **argv)
{
    struct settings t = {.sample = 200, .seed = seed_of_the_day()};
    struct totals sum = {0};
    size_t total = build(NULL);
    int status = take_options(&t, argc, argv);

    if (status >= 0)
        return status;
    if (t.full || t.only || t.sample > total)
        t.sample = total;
    struct test_case *cases = calloc(total, sizeof(*cases));
    if (!cases)
        return 1;
    build(cases);
    shuffle(cases, total, t.sample, t.seed);
    for (size_t i = 0; t.list && i < t.sample; i++)
        printf("%s\n", cases[i].name);
    if (t.list) {
        free(cases);
        return 0;
    }
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    current_seed = t.seed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_cases(cases, &t, argv[0], &sum);
    free(cases);
    printf(
        "loss matrix, %s: %u of %zu cases, seed %llu: %u failed; %u with retries really exhausted; "
        "%llu frames, %llu lost or damaged, %llu sent again, %.1f s of virtual time\n",
        recovery->name, sum.run, total, (unsigned long long)t.seed, sum.failed, sum.exhausted,
        (unsigned long long)sum.frames, (unsigned long long)sum.lost,
        (unsigned long long)sum.retransmitted, (double)sum.virtual_ns / 1e9);
    return sum.failed || !sum.run; /* nothing that ran proves nothing */
}
