/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interpreter of packet scripts: resp_script.h says what they are.
 */
#include "resp_script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "unit.h"
#include "wire.h"

enum {
    REGION = 16384,
    RBUFS = 65536,
    FRAMES = 512,
    OUTS = 512,
    BURST = 64,
    PEER_QPN = 0x123,
    QKEY = 0x11111111,
};
#define IOVA 0x7F0000000000ull

struct out {
    struct wire_pkt p;
    uint8_t payload[4096];
};

struct bed {
    const struct script *s;
    const char *line; /* under way, for messages */
    uint32_t psn0;
    uint64_t now;
    struct engine *e;
    struct qp *qp;
    uint32_t qpn;
    struct cq *cq;
    struct srq *srq;
    uint32_t pd, pd2;
    uint32_t rw, ro, wo, at, other_pd, win, rkey_recv, bad;
    unsigned recvs;
    size_t rbuf[64]; /* where receive i begins in rbufs */
    size_t rbuf_end;
    bool hold, notx, gather_fail, dead;
    /* what has happened and was not yet expected */
    struct out out[OUTS];
    unsigned nout, oout;
    struct engine_wc wc[256];
    unsigned nwc, owc, cq_room;
    int ev[64];
    unsigned nev, oev;
    /* frames stay until the script ends: copies may wait */
    uint8_t frame[FRAMES][5000];
    unsigned nframes, burst_from;
    struct engine_frame burst[BURST];
    unsigned nburst;
    struct engine_copy copies[5000];
    unsigned last_drop; /* counter of the last frame's drop */
    unsigned ncopies;
};

static struct bed bed;
static uint8_t region[REGION + 64], rbufs[RBUFS];

#define FAIL(b, ...)                                                                               \
    do {                                                                                           \
        char text_[400];                                                                           \
        snprintf(text_, sizeof text_, __VA_ARGS__);                                                \
        ck_abort_msg("%s [PSN 0x%06x]: at \"%s\": %s", (b)->s->name, (b)->psn0,                    \
                     (b)->line ? (b)->line : "end", text_);                                        \
    } while (0)

static uint8_t region_octet(size_t i)
{
    return (uint8_t)(i * 7 + 3 + (i >> 8));
}

static uint8_t payload_octet(uint32_t psn, size_t i)
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

enum { EV_HOOK = 1000 }; /* the comm_est hook, of a queue pair in RTR */

static void on_comm_est(void *arg, void *qp_arg)
{
    struct bed *b = arg;
    (void)qp_arg;
    if (b->s->setup.rtr) /* in RTS it is called all the same; tests/drill says so (CM-23) */
        b->ev[b->nev++] = EV_HOOK;
}

static void on_event(void *arg, enum engine_event ev, void *obj)
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

static void modify(struct bed *b, struct engine_qp_attr *a, enum qp_state state, unsigned mask)
{
    a->state = state;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, a, mask | QPA_STATE, b->now), 0);
}

static void to_rts(struct bed *b)
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
        modify(b, &a, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY);
        modify(b, &a, QPS_RTR, 0);
        modify(b, &a, QPS_RTS, QPA_SQ_PSN);
        return;
    }
    unsigned rtr = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    unsigned rts = QPA_SQ_PSN;
    if (s->type != QP_UC) {
        rtr |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
        rts |= QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC;
    }
    modify(b, &a, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
    modify(b, &a, QPS_RTR, rtr);
    if (!s->rtr)
        modify(b, &a, QPS_RTS, rts);
}

static void setup(struct bed *b, const struct script *s, uint32_t psn0)
{
    memset(b, 0, offsetof(struct bed, out));
    b->nout = b->oout = b->nwc = b->owc = b->nev = b->oev = 0;
    b->nframes = b->burst_from = b->nburst = b->ncopies = 0;
    b->s = s;
    b->psn0 = psn0;
    b->now = 1000000;
    b->cq_room = s->setup.cq_room ? s->setup.cq_room : 256;
    for (size_t i = 0; i < sizeof region; i++)
        region[i] = region_octet(i);
    memset(rbufs, 0xEE, sizeof rbufs);
    const struct engine_params p = {
        .hooks = {.cq_push = on_cq, .event = on_event, .comm_est = on_comm_est},
        .hook_arg = b,
        .key = {1, 2},
        .max_qp = 8,
        .mem = {.max_pd = 4, .max_mr = 16, .max_mw = 16, .key = {3, 4}},
        .mac = {2, 0, 0, 0, 0, 2},
        .mtu = 3,
        .rnr_on_rd_res = s->setup.rnr_on_rd_res,
    };
    b->e = engine_create(&p, b->now);
    ck_assert_ptr_nonnull(b->e);
    const struct wire_addr local = wire_addr_v4(0x0A000002);
    ck_assert_int_eq(engine_addr_add(b->e, &local), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(b->e), &b->pd), 0);
    ck_assert_int_eq(mem_pd_alloc(engine_mem(b->e), &b->pd2), 0);
    ck_assert_int_eq(engine_cq_create(b->e, NULL, &b->cq), 0);
    struct engine_qp_params q = {
        .type = s->setup.type ? s->setup.type : QP_RC,
        .pd = b->pd,
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .max_send_wr = 8,
        .max_recv_wr = 64,
        .max_send_sge = 4,
        .max_recv_sge = 4,
    };
    uint32_t recv_pd = b->pd;
    if (s->setup.srq) {
        const struct engine_srq_params sp = {
            .pd = b->pd2, .max_wr = 64, .max_sge = 4, .limit = s->setup.srq_limit};
        ck_assert_int_eq(engine_srq_create(b->e, &sp, &b->srq), 0);
        q.srq = b->srq;
        recv_pd = b->pd2; /* SRQ-02 */
    }
    ck_assert_int_eq(engine_qp_create(b->e, &q, &b->qp), 0);
    b->qpn = engine_qp_num(b->qp);
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
    to_rts(b);
}

/* ---- moving packets ---- */

static uint8_t *resolve(struct bed *b, const struct mem_piece *p)
{
    if (p->obj == region ? p->off + p->len > REGION : p->obj != rbufs || p->off + p->len > RBUFS)
        FAIL(b, "SEC-03 a piece outside of registered memory");
    return (uint8_t *)p->obj + p->off;
}

static void do_copies(struct bed *b, int status)
{
    for (unsigned i = 0; i < b->ncopies; i++) {
        const struct engine_copy *c = &b->copies[i];
        struct engine_result r = {.token = c->token, .status = status};
        uint8_t *dst = resolve(b, &c->dst);
        uint64_t v;
        if (status == 0 && c->kind == ENGINE_PUT) {
            memcpy(dst, c->src, c->len);
        } else if (status == 0) {
            memcpy(&r.orig, dst, 8);
            v = c->kind == ENGINE_FADD ? r.orig + c->a : r.orig == c->b ? c->a : r.orig;
            memcpy(dst, &v, 8);
        }
        engine_copied(b->e, &r, 1, b->now);
    }
    b->ncopies = 0;
}

static void tx(struct bed *b)
{
    static uint8_t buf[BURST][WIRE_FRAME_MAX];
    static struct engine_slot slots[BURST];
    unsigned m;
    if (b->notx)
        return;
    do {
        for (unsigned i = 0; i < BURST; i++)
            slots[i] = (struct engine_slot){.buf = buf[i], .cap = sizeof buf[i]};
        m = engine_tx(b->e, slots, BURST, b->now);
        for (unsigned i = 0; i < m; i++) {
            struct engine_slot *s = &slots[i];
            uint8_t *to = s->buf + s->payload_off;
            for (unsigned k = 0; k < s->npieces; to += s->pieces[k++].len)
                memcpy(to, resolve(b, &s->pieces[k]), s->pieces[k].len);
            if (s->npieces > 0 && b->gather_fail) {
                s->status = -EFAULT;
                b->gather_fail = false;
            }
        }
        engine_sent(b->e, slots, m, b->now);
        for (unsigned i = 0; i < m; i++) {
            struct out *o = &b->out[b->nout];
            if (slots[i].len == 0)
                continue;
            wire_icrc_seal(slots[i].buf, slots[i].len, slots[i].ip_off, slots[i].bth_off);
            if (wire_parse(slots[i].buf, slots[i].len, 0, &o->p) != WIRE_OK)
                FAIL(b, "a frame went out that doesn't parse");
            memcpy(o->payload, slots[i].buf + o->p.payload_off, o->p.payload_len);
            if (++b->nout == OUTS)
                FAIL(b, "too many frames");
        }
    } while (m > 0);
}

static void pump(struct bed *b)
{
    unsigned n = 0;
    if (b->nburst > 0) {
        unsigned took =
            engine_rx(b->e, b->burst, b->nburst, b->now, b->copies + b->ncopies,
                      (unsigned)(sizeof b->copies / sizeof b->copies[0]) - b->ncopies, &n);
        if (took != b->nburst)
            FAIL(b, "engine_rx took %u of %u", took, b->nburst);
        b->ncopies += n;
        b->last_drop = b->burst[b->nburst - 1].drop;
        b->nburst = 0;
    }
    if (!b->hold)
        do_copies(b, 0);
    if (!b->dead)
        tx(b);
}

/* ---- words and fields ---- */

static char words[24][40];
static unsigned nwords;

static void split(struct bed *b, const char *line)
{
    nwords = 0;
    for (const char *p = line; *p;) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, " \t");
        if (n == 0)
            break;
        if (nwords == 24 || n >= sizeof words[0])
            FAIL(b, "line too long");
        memcpy(words[nwords], p, n);
        words[nwords++][n] = 0;
        p += n;
    }
}

/* The value of "name=", NULL if the line has none. */
static const char *field(const char *name)
{
    size_t n = strlen(name);
    for (unsigned i = 1; i < nwords; i++)
        if (!strncmp(words[i], name, n) && words[i][n] == '=')
            return words[i] + n + 1;
    return NULL;
}

static bool flag(const char *name)
{
    for (unsigned i = 1; i < nwords; i++)
        if (!strcmp(words[i], name))
            return true;
    return false;
}

static uint64_t number(const char *name, uint64_t other)
{
    const char *v = field(name);
    return v ? strtoull(v, NULL, 0) : other;
}

static uint32_t key_of(struct bed *b, const char *name)
{
    const struct {
        const char *name;
        uint32_t key;
    } keys[] = {{"rw", b->rw},   {"ro", b->ro},          {"wo", b->wo},
                {"at", b->at},   {"recv", b->rkey_recv}, {"pd2", b->other_pd},
                {"win", b->win}, {"none", 0x1234},       {"variant", b->rw ^ 1},
                {"0", 0}};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(keys[i].name, name))
            return keys[i].key;
    FAIL(b, "no key %s", name);
    return 0;
}

static uint8_t opcode_of(struct bed *b, const char *name)
{
    const char *svc = b->s->setup.type == QP_UC ? "UC" : b->s->setup.type == QP_UD ? "UD" : "RC";
    char full[64];
    snprintf(full, sizeof full, "%s_%s", svc, name);
    for (unsigned i = 0; i < 256; i++)
        if (wire_opcodes[i].name && !strcmp(wire_opcodes[i].name, full))
            return (uint8_t)i;
    FAIL(b, "no opcode %s", full);
    return 0;
}

/* ---- steps ---- */

static void nothing_left(struct bed *b)
{
    if (b->oout < b->nout)
        FAIL(b, "unexpected frame %s psn %+d syndrome 0x%02x",
             wire_opcodes[b->out[b->oout].p.opcode].name,
             (int32_t)((b->out[b->oout].p.psn - b->psn0) << 8) >> 8, b->out[b->oout].p.syndrome);
    if (b->owc < b->nwc)
        FAIL(b, "unexpected completion %s", engine_status_name(b->wc[b->owc].status));
    if (b->oev < b->nev)
        FAIL(b, "unexpected event %d", b->ev[b->oev]);
}

static void step_in(struct bed *b)
{
    if (b->nburst == 0)
        nothing_left(b);
    if (b->nframes == FRAMES || b->nburst == BURST)
        FAIL(b, "too many frames");
    uint8_t *buf = b->frame[b->nframes++];
    uint32_t psn = b->psn0 + (uint32_t)strtol(words[2], NULL, 0);
    struct wire_pkt p = {
        .dmac = {2, 0, 0, 0, 0, 2},
        .smac = {2, 0, 0, 0, 0, 1},
        .ethertype = 0x0800,
        .ip_version = 4,
        .ttl = 64,
        .ip_flags = 2,
        .sip = wire_addr_v4(0x0A000001),
        .dip = wire_addr_v4(0x0A000002),
        .sport = 0xC123,
        .dport = WIRE_UDP_PORT,
        .opcode = opcode_of(b, words[1]),
        .migreq = true,
        .ackreq = flag("ack"),
        .se = flag("se"),
        .pkey = WIRE_PKEY_DEFAULT,
        .dqpn = b->qpn,
        .psn = psn & WIRE_PSN_MASK,
        .va = IOVA + (uint64_t)strtoll(field("va") ? field("va") : "0", NULL, 0),
        .rkey = key_of(b, field("key") ? field("key") : "rw"),
        .imm = (uint32_t)number("imm", 0),
        .swap_add = number("add", 0),
        .compare = number("cmp", 0),
        .sqpn = (uint32_t)number("src", PEER_QPN),
        .qkey = (uint32_t)number("qkey", QKEY),
        .payload_len = (uint32_t)number("len", 0),
    };
    p.dma_len = (uint32_t)number("dma", p.payload_len);
    size_t off = wire_build(buf, sizeof b->frame[0], &p);
    if (off == 0)
        FAIL(b, "can't build");
    size_t len = wire_frame_len(&p);
    for (uint32_t i = 0; i < p.payload_len; i++)
        buf[off + i] = payload_octet(psn - b->psn0, i);
    if (field("pad")) /* another PadCnt, with the octets that it counts */
        buf[p.bth_off + 1] = (uint8_t)((buf[p.bth_off + 1] & 0xCF) | number("pad", 0) << 4);
    wire_icrc_seal(buf, len, p.ip_off, p.bth_off);
    b->burst[b->nburst++] = (struct engine_frame){.data = buf, .len = (uint32_t)len};
}

#define COMPARE(b, what, got, want)                                                                \
    do {                                                                                           \
        if ((uint64_t)(got) != (uint64_t)(want))                                                   \
            FAIL(b, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)(got),                   \
                 (unsigned long long)(want));                                                      \
    } while (0)

static void step_out(struct bed *b)
{
    if (b->oout == b->nout)
        FAIL(b, "nothing went out");
    const struct out *o = &b->out[b->oout++];
    char name[64];
    snprintf(name, sizeof name, "RC_%s", words[1]);
    if (strcmp(wire_opcodes[o->p.opcode].name, name))
        FAIL(b, "%s went out, syndrome 0x%02x", wire_opcodes[o->p.opcode].name, o->p.syndrome);
    COMPARE(b, "PSN", (o->p.psn - b->psn0) & WIRE_PSN_MASK,
            (uint32_t)strtol(words[2], NULL, 0) & WIRE_PSN_MASK);
    COMPARE(b, "AckReq", o->p.ackreq, 0);
    COMPARE(b, "SE", o->p.se, 0);
    COMPARE(b, "DestQP", o->p.dqpn, PEER_QPN);
    COMPARE(b, "P_Key", o->p.pkey, WIRE_PKEY_DEFAULT);
    if (field("len"))
        COMPARE(b, "length", o->p.payload_len, number("len", 0));
    if (field("syn"))
        COMPARE(b, "syndrome", o->p.syndrome, strtoul(field("syn"), NULL, 16));
    if (field("msn"))
        COMPARE(b, "MSN", o->p.msn, number("msn", 0));
    if (field("orig"))
        COMPARE(b, "original value", o->p.orig, number("orig", 0));
    for (uint32_t i = 0; field("from") && i < o->p.payload_len; i++)
        COMPARE(b, "payload", o->payload[i], region_octet(number("from", 0) + i));
}

static void step_wc(struct bed *b)
{
    if (b->owc == b->nwc)
        FAIL(b, "no completion");
    const struct engine_wc *wc = &b->wc[b->owc++];
    if (strcmp(engine_status_name(wc->status), words[1]))
        FAIL(b, "status %s", engine_status_name(wc->status));
    COMPARE(b, "QPN", wc->qpn, b->qpn);
    if (field("id"))
        COMPARE(b, "wr_id", wc->wr_id, number("id", 0));
    if (wc->status != WC_SUCCESS)
        return;
    COMPARE(b, "length", wc->byte_len, number("len", 0));
    COMPARE(b, "opcode", wc->opcode,
            field("op") && !strcmp(field("op"), "IMM") ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
    COMPARE(b, "flags", wc->wc_flags,
            (field("imm") ? WC_F_IMM : 0) | (flag("inv") ? WC_F_INV : 0) |
                (flag("grh") ? WC_F_GRH : 0));
    if (field("imm"))
        COMPARE(b, "immediate", wc->imm, number("imm", 0));
    if (flag("inv"))
        COMPARE(b, "invalidated key", wc->imm, b->win);
    COMPARE(b, "solicited", wc->solicited, flag("sol"));
    if (field("src"))
        COMPARE(b, "source QP", wc->src_qpn, number("src", 0));
}

static void step_event(struct bed *b)
{
    static const struct {
        const char *name;
        int ev;
    } events[] = {{"CQ_ERR", EVT_CQ_ERR},
                  {"QP_FATAL", EVT_QP_FATAL},
                  {"QP_REQ_ERR", EVT_QP_REQ_ERR},
                  {"QP_ACCESS_ERR", EVT_QP_ACCESS_ERR},
                  {"COMM_EST", EVT_COMM_EST},
                  {"HOOK", EV_HOOK},
                  {"SRQ_ERR", EVT_SRQ_ERR},
                  {"SRQ_LIMIT_REACHED", EVT_SRQ_LIMIT_REACHED},
                  {"LAST_WQE_REACHED", EVT_QP_LAST_WQE_REACHED}};
    if (b->oev == b->nev)
        FAIL(b, "no event");
    int ev = b->ev[b->oev++];
    for (unsigned i = 0; i < sizeof events / sizeof events[0]; i++)
        if (!strcmp(events[i].name, words[1]) && events[i].ev == ev)
            return;
    FAIL(b, "event %d", ev);
}

static void step_recv(struct bed *b, bool bad, bool malformed)
{
    struct engine_sge sge[8];
    struct engine_recv_wr wr = {.wr_id = b->recvs, .sge = sge};
    b->rbuf[b->recvs++] = b->rbuf_end;
    for (unsigned i = 1; i < nwords; i++) {
        uint32_t len = (uint32_t)strtoul(words[i], NULL, 0);
        sge[wr.nsge++] = (struct engine_sge){IOVA + b->rbuf_end, len, bad ? b->bad : b->rkey_recv};
        b->rbuf_end += len;
    }
    if (malformed)
        for (wr.nsge = 0; wr.nsge < 5; wr.nsge++)
            sge[wr.nsge] = (struct engine_sge){IOVA, 1, b->rkey_recv};
    b->rbuf_end += 16; /* guard */
    ck_assert_int_eq(
        b->srq ? engine_post_srq_recv(b->e, b->srq, &wr) : engine_post_recv(b->e, b->qp, &wr), 0);
}

/* "mem OFF LEN is PSN:OFF", "mem OFF LEN clean", "mem OFF LEN val=N"; rbuf the same after its
 * number. */
static void step_mem(struct bed *b, bool recv)
{
    const unsigned at = recv ? 2 : 1;
    size_t off = strtoul(words[at], NULL, 0), len = strtoul(words[at + 1], NULL, 0);
    const uint8_t *p = recv ? rbufs + b->rbuf[strtoul(words[1], NULL, 0)] + off : region + off;
    if (!strcmp(words[at + 2], "is")) {
        char *end;
        uint32_t psn = (uint32_t)strtoul(words[at + 3], &end, 0);
        size_t from = strtoul(end + 1, NULL, 0);
        for (size_t i = 0; i < len; i++)
            COMPARE(b, "octet", p[i], payload_octet(psn, from + i));
    } else if (field("val")) {
        uint64_t v;
        memcpy(&v, p, 8);
        COMPARE(b, "value", v, number("val", 0));
    } else {
        for (size_t i = 0; i < len; i++)
            COMPARE(b, "octet", p[i], recv ? 0xEE : region_octet(off + i));
    }
}

static unsigned counter_of(struct bed *b, const char *name)
{
    for (unsigned i = 0; i < ENGINE_COUNTER_MAX; i++)
        if (!strcmp(engine_counter_names[i], name))
            return i;
    FAIL(b, "no such counter");
    return 0;
}

static void step_count(struct bed *b)
{
    COMPARE(b, "counter", engine_counters(b->e)[counter_of(b, words[1])],
            strtoul(words[2], NULL, 0));
}

static void step_state(struct bed *b)
{
    struct engine_qp_info info;
    engine_qp_info(b->e, b->qp, &info);
    if (strcmp(qp_state_names[info.state], words[1]))
        FAIL(b, "state %s: %s", qp_state_names[info.state], info.error);
}

static void step_put(void)
{
    uint64_t v = number("val", 0);
    memcpy(region + strtoul(words[1], NULL, 0), &v, 8);
}

/* To SQD, where max_dest_rd_atomic may change, and back. */
static void step_dest(struct bed *b)
{
    struct engine_qp_attr a = {.state = QPS_SQD};
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE, b->now), 0);
    a.max_dest_rd_atomic = (uint8_t)strtoul(words[1], NULL, 0);
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE | QPA_MAX_DEST_RD_ATOMIC, b->now),
                     0);
    a.state = QPS_RTS;
    ck_assert_int_eq(engine_qp_modify(b->e, b->qp, &a, QPA_STATE, b->now), 0);
}

static void step_modify(struct bed *b, enum qp_state to)
{
    struct engine_qp_attr a = {0};
    modify(b, &a, to, 0);
}

/* "flood N OPCODE PSN ...": N bursts of one request each; answers are counted and forgotten.
 * "flood+": each with the next PSN. */
static void step_flood(struct bed *b, bool next)
{
    unsigned n = (unsigned)strtoul(words[1], NULL, 0);
    memmove(words[1], words[2], (nwords - 2) * sizeof words[0]);
    nwords--;
    for (unsigned i = 0; i < n; i++) {
        b->nframes = 0;
        step_in(b);
        pump(b);
        b->nout = b->oout = 0;
        if (next)
            snprintf(words[2], sizeof words[2], "%ld", strtol(words[2], NULL, 0) + 1);
    }
}

static void step(struct bed *b)
{
    const char *w = words[0];
    if (!strcmp(w, "<")) {
        step_in(b);
        return;
    }
    pump(b);
    if (!strcmp(w, "flood") || !strcmp(w, "flood+"))
        step_flood(b, w[5] == '+');
    else if (!strcmp(w, "drop"))
        COMPARE(b, "drop", b->last_drop, counter_of(b, words[1]));
    else if (!strcmp(w, "room"))
        COMPARE(b, "room", b->srq ? engine_srq_room(b->srq) : engine_rq_room(b->qp),
                strtoul(words[1], NULL, 0));
    else if (!strcmp(w, "rts"))
        to_rts(b);
    else if (!strcmp(w, ">"))
        step_out(b);
    else if (!strcmp(w, "="))
        step_wc(b);
    else if (!strcmp(w, "!"))
        step_event(b);
    else if (!strcmp(w, "recv") || !strcmp(w, "recv-bad") || !strcmp(w, "recv-malformed"))
        step_recv(b, !strcmp(w, "recv-bad"), !strcmp(w, "recv-malformed"));
    else if (!strcmp(w, "mem") || !strcmp(w, "rbuf"))
        step_mem(b, !strcmp(w, "rbuf"));
    else if (!strcmp(w, "put"))
        step_put();
    else if (!strcmp(w, "count"))
        step_count(b);
    else if (!strcmp(w, "state"))
        step_state(b);
    else if (!strcmp(w, "hold"))
        b->hold = true;
    else if (!strcmp(w, "copy")) {
        do_copies(b, nwords > 1 ? -EFAULT : 0);
        b->hold = false;
        if (!b->dead)
            tx(b);
    } else if (!strcmp(w, "gather"))
        b->gather_fail = true;
    else if (!strcmp(w, "notx") || !strcmp(w, "tx")) {
        b->notx = !strcmp(w, "notx");
        pump(b);
    } else if (!strcmp(w, "revoke"))
        COMPARE(b, "deregistration", mem_mr_dereg(engine_mem(b->e), key_of(b, words[1])),
                flag("busy") ? -EINPROGRESS : 0);
    else if (!strcmp(w, "wait"))
        b->now += strtoull(words[1], NULL, 0);
    else if (!strcmp(w, "err")) {
        step_modify(b, QPS_ERR);
    } else if (!strcmp(w, "sqd"))
        step_modify(b, QPS_SQD);
    else if (!strcmp(w, "reset"))
        step_modify(b, QPS_RESET);
    else if (!strcmp(w, "dest"))
        step_dest(b);
    else if (!strcmp(w, "limit"))
        ck_assert_int_eq(
            engine_srq_modify(b->e, b->srq, 0, (uint32_t)strtoul(words[1], NULL, 0), SRQA_LIMIT),
            0);
    else if (!strcmp(w, "dead")) {
        engine_qp_destroy(b->e, b->qp);
        b->dead = true;
    } else {
        FAIL(b, "no such step");
    }
}

static void run(const struct script *s, uint32_t psn0)
{
    struct bed *b = &bed;
    setup(b, s, psn0);
    for (const char *p = s->text; *p;) {
        static char line[200];
        size_t n = strcspn(p, ";\n");
        size_t k = n < sizeof line ? n : sizeof line - 1;
        memcpy(line, p, k);
        line[k] = 0;
        p += n + (p[n] != 0);
        b->line = line;
        split(b, line);
        if (nwords > 0)
            step(b);
    }
    b->line = NULL;
    pump(b);
    nothing_left(b);
    for (size_t i = REGION; i < sizeof region; i++)
        COMPARE(b, "guard octet", region[i], region_octet(i));
    if (!b->dead)
        engine_qp_destroy(b->e, b->qp);
    b->hold = false;
    do_copies(b, 0);
    if (b->srq)
        ck_assert_int_eq(engine_srq_destroy(b->e, b->srq), 0);
    ck_assert_int_eq(engine_cq_destroy(b->e, b->cq), 0);
    struct engine_usage u;
    engine_usage(b->e, &u);
    ck_assert_msg(u.qps == 0 && u.records == 0, "%s: records or queue pairs leak", s->name);
    engine_destroy(b->e);
}

static const struct script *all;

START_TEST(one_script)
{
    static const uint32_t psns[] = {0x1000, 0xFFFFF0, 0x7FFFF8, 0xFFFFFF}; /* PSN-05 */
    const struct script *s = &all[_i];
    for (unsigned i = 0; i < sizeof psns / sizeof psns[0]; i++)
        run(s, psns[i]);
}
END_TEST

int script_main(const char *suite, const struct script *scripts, unsigned n)
{
    Suite *s = suite_create(suite);
    TCase *t = tcase_create("scripts");
    all = scripts;
    tcase_add_loop_test(t, one_script, 0, (int)n);
    suite_add_tcase(s, t);
    return unit_run(s);
}
