/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "core_rig.h"
#include "step.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};

static bool on_cq_push(void *arg, void *cq_arg, const struct engine_wc *wc)
{
    struct rig *r = arg;
    (void)cq_arg;
    if (!r->cq_room)
        return false;
    r->cq_room--;
    ck_assert_uint_lt(r->nwc, RIG_LOG);
    r->wc[r->nwc++] = *wc;
    return true;
}

static void on_event(void *arg, enum ib_event ev, void *obj)
{
    struct rig *r = arg;
    (void)obj;
    if (r->nev < 64)
        r->ev[r->nev++] = ev;
}

static void on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len)
{
    (void)pkt, (void)payload, (void)len;
    ((struct rig *)arg)->gsi++;
}

static void on_trace(void *arg, uint32_t qpn, const char *what, uint32_t psn, uint64_t v)
{
    struct rig *r = arg;
    (void)qpn;
    (void)psn;
    r->traced[r->ntraced % 64].what = what;
    r->traced[r->ntraced++ % 64].v = v;
}

static void on_comm_est(void *arg, void *qp_arg, uint32_t qpn)
{
    (void)qpn;
    (void)qp_arg;
    ((struct rig *)arg)->comm_est++;
}

static void on_sq_room(void *arg, void *qp_arg)
{
    (void)qp_arg;
    ((struct rig *)arg)->sq_room++;
}

static void on_copies(void *arg, const struct engine_copy *copies, unsigned n)
{
    struct rig *r = arg;
    ck_assert_uint_gt(n, 0);
    r->listed[r->nlisted++ % 64] = copies[n - 1];
}

static void on_guess(void *arg, const struct wire_addr *source, enum engine_counter why)
{
    (void)source;
    (void)why;
    ((struct rig *)arg)->guesses++;
}

static void on_mr_freed(void *arg, void *owner)
{
    (void)owner;
    ((struct rig *)arg)->mr_freed++;
}

uint32_t rig_psn(uint32_t first, uint32_t n)
{
    return (first + n) & 0xFFFFFF;
}

enum qp_state rig_state(const struct rig *r)
{
    struct engine_qp_attr a;
    engine_qp_query(r->qp, &a, NULL);
    return a.state;
}

uint64_t rig_count(const struct rig *r, enum engine_counter c)
{
    return engine_counters(r->e)[c];
}

static uint8_t value(int given, uint8_t fallback)
{
    return given < 0 ? 0 : given ? (uint8_t)given : fallback;
}

struct engine_qp_attr rig_attr(const struct rig *r, const struct rig_opts *o)
{
    struct engine_qp_attr a = {
        .av = {.sgid = r->lip, .dgid = r->rip, .hop_limit = 64},
        .qkey = 0x11111111,
        .rq_psn = o->rq_psn ? o->rq_psn : RIG_RQPSN,
        .sq_psn = o->sq_psn ? o->sq_psn : RIG_PSN,
        .dest_qpn = o->dest_qpn ? o->dest_qpn : RIG_PEER,
        .access_flags = MEM_REMOTE_ANY,
        .port = 1,
        .path_mtu = (uint8_t)(o->mtu ? o->mtu : 3),
        .timeout = o->no_timer ? 0 : 8,
        .retry_cnt = value(o->retry_cnt, 3),
        .rnr_retry = value(o->rnr_retry, 3),
        .min_rnr_timer = 1,
        .max_rd_atomic = value(o->max_rd_atomic, 4),
        .max_dest_rd_atomic = value(o->max_rd_atomic, 4),
        .e2e_credits = o->credits,
    };
    memcpy(a.av.dmac, peer_mac, 6);
    return a;
}

void rig_connect(struct rig *r, struct qp *qp, const struct rig_opts *o, enum qp_state to)
{
    enum qp_type type = o->type ? o->type : QP_RC;
    bool rc = type == QP_RC, ud = type == QP_UD;
    struct engine_qp_attr a = rig_attr(r, o);
    a.state = QPS_INIT;
    ck_assert_int_eq(
        engine_qp_modify(r->e, qp, &a,
                         QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | (ud ? QPA_QKEY : QPA_ACCESS_FLAGS),
                         r->now),
        0);
    if (to == QPS_INIT)
        return;
    a.state = QPS_RTR;
    unsigned mask = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    if (rc)
        mask |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
    ck_assert_int_eq(engine_qp_modify(r->e, qp, &a, QPA_STATE | (ud ? 0 : mask), r->now), 0);
    if (to == QPS_RTR)
        return;
    a.state = QPS_RTS;
    mask = QPA_STATE | QPA_SQ_PSN;
    if (rc)
        mask |= QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC;
    ck_assert_int_eq(engine_qp_modify(r->e, qp, &a, mask, r->now), 0);
}

struct rig *rig_new(const struct rig_opts *o)
{
    static const struct rig_opts plain;
    if (!o)
        o = &plain;
    struct rig *r = calloc(1, sizeof(*r));
    r->now = o->start ? o->start : 1000000;
    r->cq_room = RIG_LOG;
    r->ipv6 = o->ipv6;
    wire_addr_parse(o->ipv6 ? "fd00::1" : "10.0.0.1", &r->lip);
    wire_addr_parse(o->ipv6 ? "fd00::2" : "10.0.0.2", &r->rip);
    struct engine_params p = {
        .hooks = {.cq_push = on_cq_push,
                  .event = on_event,
                  .gsi_rx = on_gsi,
                  .comm_est = on_comm_est,
                  .trace = on_trace,
                  .sq_room = on_sq_room,
                  .mr_freed = on_mr_freed,
                  .copies = on_copies,
                  .guess = on_guess},
        .hook_arg = r,
        .key = {0x0123456789ABCDEF, 0xFEDCBA9876543210},
        .max_qp = o->max_qp ? o->max_qp : 64,
        .block = o->block,
        .mem = {.max_pd = 16, .max_mr = 64, .max_mw = 64, .key = {1, 2}},
        .window = o->window,
        .records = o->records,
        .strict_resp = o->strict_resp,
        .nak_confirm = o->nak_confirm,
        .rnr_on_rd_res = o->rnr_on_rd_res,
    };
    memcpy(p.mac, our_mac, 6);
    r->e = engine_create(&p, r->now);
    ck_assert_ptr_nonnull(r->e);
    ck_assert_int_eq(engine_addr_add(r->e, &r->lip), 0);
    struct mem *m = engine_mem(r->e);
    r->mem = calloc(1, RIG_MEM);
    ck_assert_int_eq(mem_pd_alloc(m, &r->pd), 0);
    struct mem_seg seg = {r->mem, 0, RIG_MEM};
    ck_assert_int_eq(mem_mr_reg(m, r->pd, RIG_VA, RIG_MEM,
                                MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND, &seg, 1, r->mem,
                                &r->lkey, &r->rkey),
                     0);
    ck_assert_int_eq(engine_cq_create(r->e, r, &r->cq), 0);
    struct engine_qp_params qp = {
        .arg = r,
        .type = o->type ? o->type : QP_RC,
        .pd = r->pd,
        .send_cq = r->cq,
        .recv_cq = r->cq,
        .srq = o->srq,
        .max_send_wr = o->max_send_wr ? o->max_send_wr : 1024,
        .max_recv_wr = 256,
        .max_send_sge = 4,
        .max_recv_sge = 4,
        .max_inline = 64,
        .sq_sig_all = o->sig_all,
    };
    ck_assert_int_eq(engine_qp_create(r->e, &qp, &r->qp), 0);
    if (!o->stay)
        rig_connect(r, r->qp, o, QPS_RTS);
    return r;
}

void rig_clear(struct rig *r)
{
    for (unsigned i = 0; i < r->nsent; i++)
        free(r->payload[i]);
    r->nsent = r->nwc = r->nev = 0;
}

void rig_free(struct rig *r)
{
    rig_clear(r);
    engine_destroy(r->e);
    free(r->mem);
    free(r);
}

void rig_same_sent(const struct rig *a, const struct rig *b)
{
    ck_assert_uint_eq(a->nsent, b->nsent);
    for (unsigned i = 0; i < a->nsent; i++) {
        const struct wire_pkt *x = &a->sent[i], *y = &b->sent[i];
        ck_assert_uint_eq(x->opcode, y->opcode);
        ck_assert_uint_eq(x->psn, y->psn);
        ck_assert_uint_eq(x->ackreq, y->ackreq);
        ck_assert_uint_eq(x->tclass, y->tclass);
        ck_assert_uint_eq(x->syndrome, y->syndrome);
        ck_assert_uint_eq(x->msn, y->msn);
        ck_assert_uint_eq(x->va, y->va);
        ck_assert_uint_eq(x->dma_len, y->dma_len);
        ck_assert_uint_eq(x->payload_len, y->payload_len);
        ck_assert_mem_eq(a->payload[i], b->payload[i], x->payload_len);
    }
}

struct engine_send_wr rig_wr(struct rig *r, enum wr_opcode op, uint64_t wr_id, uint32_t off,
                             uint32_t len)
{
    static struct engine_sge sge[8];
    static unsigned turn;
    struct engine_sge *s = &sge[turn++ % 8];
    *s = (struct engine_sge){RIG_VA + off, len, r->lkey};
    return (struct engine_send_wr){
        .wr_id = wr_id,
        .opcode = (uint8_t)op,
        .flags = WR_F_SIGNALED,
        .nsge = 1,
        .imm = 0xABCD1234,
        .rkey = 0x5555,
        .remote_va = 0x7000000,
        .compare_add = 7,
        .swap = 9,
        .sge = s,
        .av = {.sgid = r->lip, .dgid = r->rip, .hop_limit = 64, .dmac = {2, 0, 0, 0, 0, 2}},
        .rqpn = RIG_PEER,
        .rqkey = 0x22222222,
    };
}

int rig_post(struct rig *r, enum wr_opcode op, uint64_t wr_id, uint32_t len, unsigned flags)
{
    struct engine_send_wr wr = rig_wr(r, op, wr_id, 0, len);
    wr.flags = (uint8_t)flags;
    return engine_post_send(r->e, r->qp, &wr, r->now);
}

int rig_post_recv(struct rig *r, uint64_t wr_id, uint32_t off, uint32_t len)
{
    struct engine_sge s = {RIG_VA + off, len, r->lkey};
    struct engine_recv_wr wr = {.wr_id = wr_id, .nsge = 1, .sge = &s};
    return engine_post_recv(r->e, r->qp, &wr);
}

static uint8_t *at(void *arg, const struct mem_piece *p)
{
    (void)arg;
    return (uint8_t *)p->obj + p->off;
}

static int gather(void *arg, const struct engine_slot *s)
{
    struct rig *r = arg;
    if (r->fail_gather && --r->fail_gather == 0)
        return -EFAULT;
    step_gather(s, at, NULL);
    return 0;
}

static void log_sent(struct rig *r, const struct engine_slot *s)
{
    ck_assert_uint_lt(r->nsent, RIG_LOG);
    struct wire_pkt *p = &r->sent[r->nsent];
    ck_assert_int_eq(wire_parse(s->buf, s->len, WIRE_P_SELECTIVE, p), WIRE_OK);
    ck_assert_uint_eq(p->payload_off, s->payload_off);
    ck_assert_uint_eq(p->payload_len, s->payload_len);
    ck_assert_uint_eq(p->psn, s->psn);
    r->payload[r->nsent] = malloc(p->payload_len + 1);
    memcpy(r->payload[r->nsent], s->buf + p->payload_off, p->payload_len);
    r->nsent++;
}

unsigned rig_tx(struct rig *r, unsigned max)
{
    static struct engine_slot slots[ENGINE_BURST];
    static uint8_t frames[ENGINE_BURST][WIRE_FRAME_MAX];
    unsigned total = 0;
    for (;;) {
        unsigned want = max && max - total < ENGINE_BURST ? max - total : ENGINE_BURST;
        for (unsigned i = 0; i < want; i++) {
            slots[i].buf = frames[i];
            slots[i].cap = WIRE_FRAME_MAX;
        }
        unsigned n = step_tx(r->e, slots, want, r->now, gather, r);
        ck_assert_uint_le(n, want);
        for (unsigned i = 0; i < n; i++) {
            if (!slots[i].len)
                continue;
            log_sent(r, &slots[i]);
            total++;
        }
        if (!n || (max && total >= max))
            return total;
    }
}

void rig_copy(struct rig *r, unsigned n, int status)
{
    ck_assert_uint_le(n, r->ncopies);
    for (unsigned i = 0; i < n; i++) {
        struct engine_result res = {r->copies[i].token, r->orig[i], status};
        engine_copied(r->e, &res, 1, r->now);
    }
    r->ncopies -= n;
    memmove(r->copies, r->copies + n, r->ncopies * sizeof(r->copies[0]));
    memmove(r->orig, r->orig + n, r->ncopies * sizeof(r->orig[0]));
}

struct wire_pkt rig_pkt(struct rig *r, unsigned opcode, uint32_t psn)
{
    struct wire_pkt p = {
        .ethertype = r->ipv6 ? 0x86DD : 0x0800,
        .ip_version = r->ipv6 ? 6 : 4,
        .ttl = 64,
        .ip_flags = 2,
        .sip = r->rip,
        .dip = r->lip,
        .sport = 0xC000,
        .dport = WIRE_UDP_PORT,
        .opcode = (uint8_t)opcode,
        .pkey = 0xFFFF,
        .dqpn = engine_qp_num(r->qp),
        .psn = psn & 0xFFFFFF,
        .syndrome = WIRE_SYN_ACK,
    };
    memcpy(p.dmac, our_mac, 6);
    memcpy(p.smac, peer_mac, 6);
    return p;
}

void rig_rx(struct rig *r, struct wire_pkt *p, const void *data)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t off = wire_build(frame, sizeof(frame), p);
    ck_assert_uint_gt(off, 0);
    for (uint32_t i = 0; i < p->payload_len; i++)
        frame[off + i] = data ? ((const uint8_t *)data)[i] : (uint8_t)(i * 7);
    size_t len = wire_frame_len(p);
    wire_icrc_seal(frame, len, p->ip_off, p->bth_off);
    r->last = (struct engine_frame){.data = frame, .len = (uint32_t)len};
    unsigned n;
    struct engine_copy *c = r->copies + r->ncopies;
    ck_assert_uint_eq(engine_rx(r->e, &r->last, 1, r->now, c, 64, &n), 1);
    /* The data moves now, as the frame doesn't last; only the result may be late. */
    for (unsigned i = 0; i < n; i++)
        r->orig[r->ncopies + i] = step_copy(&c[i], at(NULL, &c[i].dst));
    r->ncopies += n;
    if (!r->late)
        rig_copy(r, r->ncopies, 0);
}

void rig_aeth(struct rig *r, uint32_t psn, unsigned syndrome, uint32_t msn)
{
    struct wire_pkt p = rig_pkt(r, WIRE_ACKNOWLEDGE, psn);
    p.syndrome = (uint8_t)syndrome;
    p.msn = msn;
    rig_rx(r, &p, NULL);
}

void rig_ack(struct rig *r, uint32_t psn)
{
    rig_aeth(r, psn, WIRE_SYN_ACK, 1);
}

void rig_read_resp(struct rig *r, unsigned op, uint32_t psn, uint32_t len, int fill)
{
    uint8_t data[4096];
    memset(data, fill, sizeof(data));
    struct wire_pkt p = rig_pkt(r, op, psn);
    p.payload_len = len;
    rig_rx(r, &p, data);
}

void rig_pass(struct rig *r, uint64_t ns)
{
    uint64_t end = r->now + ns;
    for (uint64_t d; (d = engine_deadline(r->e)) <= end;) {
        if (d > r->now)
            r->now = d;
        engine_expire(r->e, r->now);
    }
    r->now = end;
    engine_expire(r->e, r->now);
}
