/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See loss_case.h.
 */
#include "loss_case.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_dice.h"

#define TIME_LIMIT 600000000000ull /* ten virtual minutes */

const struct op_info ops[OPS] = {
    [SEND] = {"SEND", WR_SEND, WC_SEND, true, false, false},
    [SEND_IMM] = {"SEND_IMM", WR_SEND_WITH_IMM, WC_SEND, true, false, false},
    [SEND_INV] = {"SEND_INV", WR_SEND_WITH_INV, WC_SEND, true, false, false},
    [WRITE] = {"WRITE", WR_RDMA_WRITE, WC_RDMA_WRITE, false, false, false},
    [WRITE_IMM] = {"WRITE_IMM", WR_RDMA_WRITE_WITH_IMM, WC_RDMA_WRITE, true, false, false},
    [READ] = {"READ", WR_RDMA_READ, WC_RDMA_READ, false, true, false},
    [AWRITE] = {"ATOMIC_WRITE", WR_ATOMIC_WRITE, WC_ATOMIC_WRITE, false, false, false, true},
    [CAS] = {"CMP_SWAP", WR_ATOMIC_CMP_AND_SWP, WC_COMP_SWAP, false, false, true, true},
    [FADD] = {"FETCH_ADD", WR_ATOMIC_FETCH_AND_ADD, WC_FETCH_ADD, false, false, true, true},
};

const struct fault faults[FAULTS] = {
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

const unsigned mtus[MTUS] = {256, 1024, 4096};

const char *const size_names[SIZES] = {"0", "1", "mtu-1", "mtu", "mtu+1", "3mtu", "1M"};

static uint32_t size_of(unsigned which, unsigned mtu)
{
    const uint32_t size[SIZES] = {0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu, 1u << 20};
    return size[which];
}

const struct recovery recoveries[RECOVERIES] = {
    {"gbn", "none,shrink=0", {RECOVER_GBN, RECOVER_GBN}},
    {"gbn-shrink", "none,shrink=1", {RECOVER_GBN, RECOVER_GBN}},
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

int loss_fail(struct run *r, const char *fmt, ...)
{
    va_list ap;
    if (r->why[0])
        return -1;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
    return -1;
}

uint8_t loss_octet(const struct run *r, unsigned m, uint32_t i)
{
    return (uint8_t)(r->tc->seed + m * 89 + i * 13 + (i >> 8) * 7 + (i >> 16));
}

uint8_t *loss_place(uint8_t *arena, const struct run *r, unsigned m)
{
    return arena + (size_t)m * r->stride + LOSS_GUARD;
}

/* ---- posting ---- */

static int post_recv(struct run *r)
{
    unsigned m = r->recvs;
    bool data = r->tc->op != WRITE_IMM && r->len > 0;
    struct engine_sge sge = {(uint64_t)(uintptr_t)loss_place(r->remote, r, m), r->len, r->rlkey};
    struct engine_recv_wr wr = {.wr_id = LOSS_RECV_ID + m, .nsge = data, .sge = &sge};
    if (engine_post_recv(r->b->engine, r->qb, &wr))
        return loss_fail(r, "post_recv %u refused", m);
    r->recvs++;
    return 0;
}

static int post_send(struct run *r)
{
    unsigned m = r->posted;
    const struct op_info *op = &ops[r->tc->op];
    /* Two SGEs when there is something to split. */
    uint64_t at = (uint64_t)(uintptr_t)loss_place(r->local, r, m);
    uint32_t first = op->atomic ? 8 : r->len > 2 && m % 2 ? r->len / 3 : r->len;
    uint32_t len = op->atomic ? 8 : r->len;
    struct engine_sge sge[2] = {{at, first, r->llkey}, {at + first, len - first, r->llkey}};
    struct engine_send_wr wr = {
        .wr_id = LOSS_SEND_ID + m,
        .opcode = op->wr,
        .flags = WR_F_SIGNALED,
        .nsge = (uint8_t)(len == 0      ? 0
                          : len > first ? 2
                                        : 1),
        .imm = r->tc->op == SEND_INV ? r->inv_rkey[m] : LOSS_IMM + m,
        .rkey = r->rrkey,
        .remote_va = (uint64_t)(uintptr_t)loss_place(r->remote, r, op->atomic ? 0 : m),
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
        return loss_fail(r, "post_send %u refused: %d", m, rc);
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
    size_t size = (size_t)r->stride * r->msgs + LOSS_GUARD;
    *arena = aligned_alloc(64, (size + 63) & ~(size_t)63);
    if (!*arena)
        return loss_fail(r, "no memory");
    memset(*arena, LOSS_GUARD_FILL, size);
    /* Guards are registered too, so that missing rights don't protect them. */
    int rc = vnet_reg(h, *arena, size, MEM_LOCAL_WRITE | MEM_REMOTE_ANY, lkey, rkey);
    return rc ? loss_fail(r, "registering: %d", rc) : 0;
}

static void fill_source(struct run *r)
{
    const struct op_info *op = &ops[r->tc->op];
    uint8_t *source = op->from_b ? r->remote : r->local;
    uint8_t *target = op->from_b ? r->local : r->remote;
    for (unsigned m = 0; m < r->msgs; m++) {
        for (uint32_t i = 0; i < r->len && !op->atomic; i++) {
            loss_place(source, r, m)[i] = loss_octet(r, m, i);
            loss_place(target, r, m)[i] = (uint8_t)~loss_octet(r, m, i);
        }
        if (op->atomic)
            memset(loss_place(r->local, r, m), 0xEE, 8);
    }
    if (op->atomic)
        memset(loss_place(r->remote, r, 0), 0, 8);
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
            return loss_fail(r, "fast registration: %d", rc);
    }
    return 0;
}

static int set_up(struct run *r)
{
    const struct test_case *tc = r->tc;
    char keys[IO_SPEC_MAX];
    r->rng = tc->seed;
    r->len = ops[tc->op].word ? 8 : size_of(tc->size, mtus[tc->mtu]);
    r->stride = (r->len + 63 + LOSS_GUARD) & ~63u;
    r->msgs = r->len > 100000 ? 2 : LOSS_MSGS_MAX;
    r->late_recv = ops[tc->op].recv && fault_draw_hit(&r->rng, 0.3);
    r->slow_copies = fault_draw_hit(&r->rng, 0.3);
    snprintf(keys, sizeof(keys), ",rate=100G,delay=1us,log=65536%s", faults[tc->fault].keys);
    r->net = vnet_new(2, keys, tc->seed);
    if (!r->net)
        return loss_fail(r, "no network");
    r->a = r->net->hosts[0];
    r->b = r->net->hosts[1];
    struct cc_conf conf;
    if (cc_conf_parse(&conf, r->tc->recovery->spec, r->why, sizeof(r->why)))
        return -1;
    engine_set_cc(r->a->engine, &conf, 0);
    engine_set_cc(r->b->engine, &conf, 0);
    if (r->slow_copies)
        r->a->copier = r->b->copier = (struct vnet_copier){.ctx = r, .place = slow_place};
    struct vnet_qp_params q = {.mtu = mtus[tc->mtu],
                               .ipv6 = tc->ipv6,
                               .retry_cnt = LOSS_RETRIES,
                               .timeout = 6,
                               .recovery = {r->tc->recovery->mode[0], r->tc->recovery->mode[1]},
                               .rd_atomic = (uint8_t)(1 + fault_draw_below(&r->rng, 16))};
    for (int i = 0; i < 2; i++) /* every fourth close to the wrap of PSNs */
        q.sq_psn[i] =
            fault_draw_hit(&r->rng, 0.25) ? 0xFFFFFA : (uint32_t)fault_draw(&r->rng) & 0xFFFFFF;
    int rc = vnet_connect(r->a, r->b, &q, &r->qa, &r->qb);
    if (rc)
        return loss_fail(r, "connecting: %d", rc);
    if (make_arena(r, r->a, &r->local, &r->llkey, &(uint32_t){0}) ||
        make_arena(r, r->b, &r->remote, &r->rlkey, &r->rrkey))
        return -1;
    fill_source(r);
    if (tc->op == SEND_INV && make_invalidatable(r))
        return -1;
    loss_oracle_start(&r->oracle, r->net, r->qa, r->qb, q.sq_psn[0]);
    if (r->tc->capture && pcapng_create(r->tc->capture, PCAPNG_DROPS, NULL, &r->capture) == 0) {
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
        fprintf(stderr, "writing %s failed\n", r->tc->capture);
    if (r->net)
        vnet_free(r->net);
    free(r->local);
    free(r->remote);
}

/* ---- running ---- */

/* Between the steps: post the remaining requests. Has everything completed? */
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

int loss_case_run(const struct test_case *tc, struct totals *sum, bool verbose)
{
    struct run r = {.tc = tc};
    bool exhausted = false;
    int rc = set_up(&r);
    if (rc == 0) {
        rc = vnet_run(r.net, done, &r, TIME_LIMIT);
        if (rc)
            rc = loss_fail(&r, "%s; %zu of %u requests, %zu receives completed", r.net->why,
                           r.a->wcs_n, r.msgs, r.b->wcs_n);
        /* Packets still under way must do no harm. */
        if (rc == 0 && !r.why[0])
            rc = vnet_run_for(r.net, 1000000) ? loss_fail(&r, "%s", r.net->why) : 0;
        if (rc == 0)
            rc = r.why[0] ? -1 : loss_judge(&r, &exhausted);
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
