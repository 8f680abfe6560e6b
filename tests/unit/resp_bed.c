/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See resp_bed.h.
 */
#include "resp_bed.h"
#include "step.h"

#include <errno.h>
#include <string.h>

uint8_t region[REGION + 64], rbufs[RBUFS];

uint8_t region_octet(size_t i)
{
    return (uint8_t)(i * 7 + 3 + (i >> 8));
}

uint8_t payload_octet(uint32_t psn, size_t i)
{
    return (uint8_t)(psn * 31 + i * 5 + 1);
}

/* ---- hooks ---- */

static bool on_cq(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct bed *b = arg;
    (void)cq_arg;
    if (b->nwc >= b->cq_room)
        return false;
    b->wc[b->nwc++] = *wc;
    return true;
}

static void on_comm_est(void *arg, void *qp_arg, uint32_t qpn)
{
    (void)qpn;
    struct bed *b = arg;
    (void)qp_arg;
    if (b->s->setup.rtr) /* in RTS it is called, too, as tests/drill shows (CM-23) */
        b->ev[b->nev++] = EV_HOOK;
}

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    struct bed *b = arg;
    (void)obj;
    b->ev[b->nev++] = (int)ev;
}

/* ---- set-up ---- */

static void reg(struct bed *b, uint32_t pd, void *obj, uint64_t len, unsigned access, uint32_t *key)
{
    const struct mem_seg seg = {obj, 0, len};
    uint32_t rkey;
    ck_assert_int_eq(mem_mr_reg(engine_mem(b->e), pd, IOVA, len, access, &seg, 1, NULL, key, &rkey),
                     0);
}

void bed_modify(struct bed *b, struct engine_qp_attr *a, enum qp_state state, unsigned mask)
{
    a->state = state;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, a, mask | QPA_STATE, b->now), 0);
}

void bed_to_rts(struct bed *b)
{
    const struct script_setup *s = &b->s->setup;
    struct engine_qp_attr a = {
        .av = {.sgid = wire_addr_v4(0x0A000002),
               .dgid = wire_addr_v4(0x0A000001),
               .dmac = {2, 0, 0, 0, 0, 1},
               .hop_limit = 64},
        .qkey = QKEY,
        .rq_psn = b->psn0,
        .sq_psn = 0x400000,
        .dest_qpn = PEER_QPN,
        .access_flags = s->access ? s->access & 0xFF : MEM_REMOTE_ANY,
        .port = 1,
        .path_mtu = 1,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = s->rnr_timer ? s->rnr_timer : 12,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = s->rd_atomic == 255 ? 0
                              : s->rd_atomic      ? s->rd_atomic
                                                  : 4,
        .e2e_credits = s->credits,
    };
    if (s->type == QP_UD) {
        bed_modify(b, &a, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY);
        bed_modify(b, &a, QPS_RTR, 0);
        bed_modify(b, &a, QPS_RTS, QPA_SQ_PSN);
        return;
    }
    unsigned rtr = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    unsigned rts = QPA_SQ_PSN;
    if (s->type != QP_UC) {
        rtr |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
        rts |= QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC;
    }
    bed_modify(b, &a, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
    bed_modify(b, &a, QPS_RTR, rtr);
    if (!s->rtr)
        bed_modify(b, &a, QPS_RTS, rts);
}

static void make_engine(struct bed *b)
{
    const struct engine_params p = {
        .hooks = {.cq_push = on_cq, .event = on_event, .comm_est = on_comm_est},
        .hook_arg = b,
        .key = {1, 2},
        .max_qp = 8,
        .mem = {.max_pd = 4, .max_mr = 16, .max_mw = 16, .key = {3, 4}},
        .mac = {2, 0, 0, 0, 0, 2},
        .mtu = 3,
        .rnr_on_rd_res = b->s->setup.rnr_on_rd_res,
    };
    b->e = engine_create(&p, b->now);
    ck_assert_ptr_nonnull(b->e);
    const struct wire_addr local = wire_addr_v4(0x0A000002);
    ck_assert_int_eq(engine_addr_add(b->e, &local), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(b->e), &b->pd), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(b->e), &b->pd2), 0);
    ck_assert_int_eq(engine_cq_create(b->e, NULL, &b->cq), 0);
}

/* Returns the protection domain of its receives. */
static uint32_t make_qp(struct bed *b)
{
    const struct script_setup *s = &b->s->setup;
    struct engine_qp_params q = {
        .type = s->type ? s->type : QP_RC,
        .pd = b->pd,
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .max_send_wr = 8,
        .max_recv_wr = 64,
        .max_send_sge = 4,
        .max_recv_sge = 4,
    };
    uint32_t recv_pd = b->pd;
    if (s->srq) {
        const struct engine_srq_params sp = {
            .pd = b->pd2, .max_wr = 64, .max_sge = 4, .limit = s->srq_limit};
        ck_assert_int_eq(engine_srq_create(b->e, &sp, &b->srq), 0);
        q.srq = b->srq;
        recv_pd = b->pd2; /* SRQ-02 */
    }
    ck_assert_int_eq(engine_qp_create(b->e, &q, &b->qp), 0);
    b->qpn = engine_qp_num(b->qp);
    return recv_pd;
}

static void make_memory(struct bed *b, uint32_t recv_pd)
{
    const unsigned all = MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND;
    reg(b, b->pd, region, REGION, all, &b->rw);
    reg(b, b->pd, region, REGION, MEM_LOCAL_WRITE | MEM_REMOTE_READ, &b->ro);
    reg(b, b->pd, region, REGION, MEM_LOCAL_WRITE | MEM_REMOTE_WRITE, &b->wo);
    reg(b, b->pd, region, REGION, MEM_LOCAL_WRITE | MEM_REMOTE_ATOMIC, &b->at);
    reg(b, b->pd2, region, REGION, all, &b->other_pd);
    reg(b, recv_pd, rbufs, RBUFS, MEM_LOCAL_WRITE, &b->rkey_recv);
    reg(b, recv_pd, rbufs, RBUFS, 0, &b->bad);
    uint32_t w;
    ck_assert_int_eq(mem_mw_alloc(engine_mem(b->e), b->pd, 2, &w), 0);
    ck_assert_int_eq(mem_mw_bind(engine_mem(b->e), b->pd, b->qpn, w, w ^ 1, b->rw, IOVA, REGION,
                                 MEM_REMOTE_ANY, &b->win),
                     0);
}

void bed_setup(struct bed *b, const struct script *s, uint32_t psn0)
{
    memset(b, 0, offsetof(struct bed, out));
    b->nout = b->oout = b->nwc = b->owc = b->nev = b->oev = 0;
    b->nframes = b->burst_from = b->nburst = b->ncopies = 0;
    b->s = s;
    b->psn0 = psn0;
    b->now = 1000000;
    b->cq_room = s->setup.cq_room ? s->setup.cq_room : 256;
    for (size_t i = 0; i < sizeof(region); i++)
        region[i] = region_octet(i);
    memset(rbufs, 0xEE, sizeof(rbufs));
    make_engine(b);
    make_memory(b, make_qp(b));
    bed_to_rts(b);
}

/* ---- moving packets ---- */

static uint8_t *resolve(void *arg, const struct mem_piece *p)
{
    struct bed *b = arg;
    if (p->obj == region ? p->off + p->len > REGION : p->obj != rbufs || p->off + p->len > RBUFS)
        FAIL(b, "SEC-03 a piece outside of registered memory");
    return (uint8_t *)p->obj + p->off;
}

void bed_copies(struct bed *b, int status)
{
    for (unsigned i = 0; i < b->ncopies; i++) {
        const struct engine_copy *c = &b->copies[i];
        struct engine_result r = {.token = c->token, .status = status};
        uint8_t *dst = resolve(b, &c->dst);
        if (status == 0)
            r.orig = step_copy(c, dst);
        engine_copied(b->e, &r, 1, b->now);
    }
    b->ncopies = 0;
}

static int gather(void *arg, const struct engine_slot *s)
{
    struct bed *b = arg;
    step_gather(s, resolve, b);
    if (s->npieces == 0 || !b->gather_fail)
        return 0;
    b->gather_fail = false;
    return -EFAULT;
}

void bed_tx(struct bed *b)
{
    static uint8_t buf[BURST][WIRE_FRAME_MAX];
    static struct engine_slot slots[BURST];
    unsigned m;
    if (b->notx)
        return;
    do {
        for (unsigned i = 0; i < BURST; i++)
            slots[i] = (struct engine_slot){.buf = buf[i], .cap = sizeof(buf[i])};
        m = step_tx(b->e, slots, BURST, b->now, gather, b);
        for (unsigned i = 0; i < m; i++) {
            struct out *o = &b->out[b->nout];
            if (slots[i].len == 0)
                continue;
            if (wire_parse(slots[i].buf, slots[i].len, 0, &o->p) != WIRE_OK)
                FAIL(b, "a frame went out that doesn't parse");
            memcpy(o->payload, slots[i].buf + o->p.payload_off, o->p.payload_len);
            if (++b->nout == OUTS)
                FAIL(b, "too many frames");
        }
    } while (m > 0);
}

void bed_pump(struct bed *b)
{
    unsigned n = 0;
    if (b->nburst > 0) {
        unsigned took =
            engine_rx(b->e, b->burst, b->nburst, b->now, b->copies + b->ncopies,
                      (unsigned)(sizeof(b->copies) / sizeof(b->copies[0])) - b->ncopies, &n);
        if (took != b->nburst)
            FAIL(b, "engine_rx took %u of %u", took, b->nburst);
        b->ncopies += n;
        b->last_drop = b->burst[b->nburst - 1].drop;
        b->nburst = 0;
    }
    if (!b->hold)
        bed_copies(b, 0);
    if (!b->dead)
        bed_tx(b);
}

void bed_teardown(struct bed *b)
{
    for (size_t i = REGION; i < sizeof(region); i++)
        COMPARE(b, "guard octet", region[i], region_octet(i));
    if (!b->dead)
        engine_qp_destroy(b->e, b->qp);
    b->hold = false;
    bed_copies(b, 0);
    if (b->srq)
        ck_assert_int_eq(engine_srq_destroy(b->e, b->srq), 0);
    ck_assert_int_eq(engine_cq_destroy(b->e, b->cq), 0);
    struct engine_usage u;
    engine_usage(b->e, &u);
    ck_assert_msg(u.qps == 0 && u.records == 0, "%s: records or queue pairs leak", b->s->name);
    engine_destroy(b->e);
}
