/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Apply the rules to a frame. It is parsed once; then each rule that selects it acts. A drop ends
 * this; all other actions add up.
 */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_priv.h"
#include "wire_bytes.h"

#define PARSE_FLAGS                                                                                \
    (WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC | WIRE_P_QINQ | WIRE_P_LOOPBACK | WIRE_P_SELECTIVE |       \
     WIRE_P_V1)

/* ---- classes of frames ---- */

static uint32_t ack_class(uint8_t syndrome)
{
    switch (wire_aeth_kind(syndrome)) {
    case WIRE_AETH_ACK:
        return FAULT_C_ACK;
    case WIRE_AETH_RNR:
        return FAULT_C_RNR;
    case WIRE_AETH_NAK:
        return FAULT_C_NAK;
    default:
        return 0;
    }
}

static uint32_t classes_of(const struct wire_pkt *p, const struct wire_opcode_info *op)
{
    const uint32_t f = op->flags;
    uint32_t c = FAULT_C_ANY | FAULT_C_ROCE;
    if (op->service == WIRE_UD)
        c |= FAULT_C_UD;
    if (p->dqpn == WIRE_QPN_GSI)
        return c | FAULT_C_CM;
    if (f & WIRE_F_CNP)
        return c | FAULT_C_CNP;
    if (f & WIRE_F_ACK)
        c |= ack_class(p->syndrome);
    if (f & WIRE_F_SEND)
        c |= FAULT_C_SEND | FAULT_C_DATA;
    if (f & WIRE_F_WRITE)
        c |= FAULT_C_WRITE | FAULT_C_DATA;
    if (f & WIRE_F_REQUEST)
        return c | FAULT_C_REQUEST | (f & WIRE_F_READ ? FAULT_C_READ_REQUEST : 0) |
               (f & WIRE_F_ATOMIC ? FAULT_C_ATOMIC : 0);
    return c | FAULT_C_RESPONSE | (f & WIRE_F_READ ? FAULT_C_READ_RESPONSE | FAULT_C_DATA : 0) |
           (f & WIRE_F_ATOMIC ? FAULT_C_ATOMIC_ACK : 0);
}

static void look(struct fault *f, struct fault_view *v)
{
    v->at = (struct fault_place){0};
    v->whole = false;
    v->op = &wire_opcodes[0];
    v->roce = wire_parse_cut(v->frame, v->have, v->len, PARSE_FLAGS, &v->p) == WIRE_OK;
    if (!v->roce) {
        v->classes = FAULT_C_ANY | FAULT_C_OTHER;
        if (v->have >= WIRE_ETH_LEN && wire_get16(v->frame + 12) == WIRE_ETHERTYPE_PAUSE)
            v->classes |= FAULT_C_PAUSE;
        return;
    }
    f->roce++;
    v->op = v->p.selective ? &wire_selective[v->p.opcode & 31] : &wire_opcodes[v->p.opcode];
    v->classes = classes_of(&v->p, v->op);
    v->whole = v->p.icrc_off + WIRE_ICRC_LEN <= v->have;
    if (f->table)
        fault_conn_see(f->table, v, &v->at);
}

/* ---- selectors ---- */

static bool within(struct fault_range r, uint64_t x)
{
    return x >= r.lo && x <= r.hi;
}

static bool in_prefix(const struct wire_addr *a, const struct fault_prefix *p)
{
    unsigned octets = p->bits / 8, rest = p->bits % 8;
    return !memcmp(a->b, p->addr.b, octets) &&
           (!rest || !((a->b[octets] ^ p->addr.b[octets]) >> (8 - rest)));
}

static bool has_psn(const struct fault_match *m, const struct fault_view *v)
{
    if (v->classes & FAULT_C_CNP)
        return false;
    if (m->psn_relative)
        return v->at.rel_known && within(m->psn, v->at.rel);
    return ((v->p.psn - m->psn.lo) & WIRE_PSN_MASK) <= ((m->psn.hi - m->psn.lo) & WIRE_PSN_MASK);
}

/* The selectors that only a RoCE packet can match. */
static bool fits_roce(const struct fault_match *m, const struct fault_view *v)
{
    const uint32_t says = m->says;
    return v->roce && (!(says & FAULT_S_SRC) || in_prefix(&v->p.sip, &m->src)) &&
           (!(says & FAULT_S_DST) || in_prefix(&v->p.dip, &m->dst)) &&
           (!(says & FAULT_S_QPN) || v->p.dqpn == m->qpn) &&
           (!(says & FAULT_S_CONN) || within(m->conn, v->at.conn)) &&
           (!(says & FAULT_S_PSN) || has_psn(m, v)) &&
           (!(says & FAULT_S_TX) || (v->at.tx_known && v->at.retx == m->retx)) &&
           (!(says & FAULT_S_POS) || v->op->flags & m->pos) &&
           (!(says & FAULT_S_PAYLOAD) || within(m->payload, v->p.payload_len));
}

static bool fits_class(const struct fault_match *m, const struct fault_view *v)
{
    return m->classes & v->classes ||
           (v->roce && m->opcodes[v->p.opcode / 32] >> v->p.opcode % 32 & 1);
}

#define ROCE_ONLY                                                                                  \
    (FAULT_S_SRC | FAULT_S_DST | FAULT_S_QPN | FAULT_S_CONN | FAULT_S_PSN | FAULT_S_TX |           \
     FAULT_S_POS | FAULT_S_PAYLOAD)

static bool fits(const struct fault_match *m, const struct fault_view *v, uint32_t len, uint64_t t)
{
    const uint32_t says = m->says;
    return fits_class(m, v) && (!(says & FAULT_S_DIR) || v->dir == m->dir) &&
           (!(says & FAULT_S_SIZE) || within(m->size, len)) &&
           (!(says & FAULT_S_AFTER) || t >= m->after) &&
           (!(says & FAULT_S_UNTIL) || t < m->until) && (!(says & ROCE_ONLY) || fits_roce(m, v));
}

/* Among the frames that match: is it this one's turn? */
static bool turn(struct fault_rule *r)
{
    const struct fault_match *m = &r->m;
    r->matched++;
    if (m->says & FAULT_S_OCCUR &&
        (m->every ? r->matched % m->every != 0 : !within(m->occur, r->matched)))
        return false;
    if (m->says & FAULT_S_COUNT && r->done >= m->count)
        return false;
    return !(m->says & FAULT_S_PROB) || fault_draw_unit(&r->rng) < m->prob;
}

/* ---- the frame ---- */

static uint64_t flow_of(const struct fault_view *v)
{
    if (!v->roce)
        return 1;
    uint64_t x[4], h = v->p.dqpn;
    memcpy(x, &v->p.sip, 16);
    memcpy(x + 2, &v->p.dip, 16);
    for (unsigned i = 0; i < 4; i++) {
        h = (h ^ x[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h | 2;
}

unsigned fault_apply_cut(struct fault *f, enum fault_dir dir, uint8_t *frame, uint32_t have,
                         uint32_t len, uint64_t now, struct fault_out *out)
{
    struct fault_view v; /* look() and wire_parse fill it: clearing it costs more than most rules */
    unsigned bits = 0;
    v.frame = frame;
    v.have = have;
    v.len = len;
    v.dir = dir;
    out->len = len;
    out->copies = out->gap = out->ninject = 0;
    out->delay = out->within = out->flow = 0;
    f->frames++;
    if (!f->started)
        fault_start(f, now);
    if (!f->nrules)
        return 0;
    look(f, &v);
    if (f->reorders)
        out->flow = flow_of(&v);
    for (unsigned i = 0; i < f->nrules && !(bits & FAULT_DROP); i++) {
        struct fault_rule *r = &f->rule[i];
        if (!fits(&r->m, &v, len, now - f->zero) || !turn(r))
            continue;
        r->done++;
        for (unsigned a = 0; a < r->nactions; a++)
            r->failed += !fault_act(r, &r->action[a], &v, out, &bits);
    }
    out->len = v.len;
    return bits & FAULT_DROP ? bits & (FAULT_DROP | FAULT_INJECT) : bits;
}

unsigned fault_apply(struct fault *f, enum fault_dir dir, uint8_t *frame, uint32_t len,
                     uint64_t now, struct fault_out *out)
{
    return fault_apply_cut(f, dir, frame, len, len, now, out);
}

/* ---- the list ---- */

void fault_start(struct fault *f, uint64_t now)
{
    f->started = true;
    f->zero = now;
}

void fault_seed(struct fault *f, uint64_t seed)
{
    f->seed = seed;
    for (unsigned i = 0; i < f->nrules; i++) {
        uint64_t mixed = seed ^ (uint64_t)(i + 1) << 32;
        f->rule[i].rng = fault_draw(&mixed);
    }
}

/* Does a rule need the table of connections? */
static bool tracks(const struct fault_rule *r)
{
    if (r->m.says & (FAULT_S_CONN | FAULT_S_TX) || (r->m.says & FAULT_S_PSN && r->m.psn_relative))
        return true;
    for (unsigned i = 0; i < r->nactions; i++)
        if (r->action[i].verb == FAULT_V_INJECT && r->action[i].how != FAULT_PAUSE)
            return true;
    return false;
}

static bool complete(struct fault *f)
{
    bool table = false;
    for (unsigned i = 0; i < f->nrules; i++) {
        const struct fault_rule *r = &f->rule[i];
        table |= tracks(r);
        for (unsigned a = 0; a < r->nactions; a++)
            f->reorders |= r->action[a].verb == FAULT_V_REORDER;
    }
    fault_seed(f, f->seed);
    if (!table)
        return true;
    f->table = calloc(1, sizeof(*f->table));
    return f->table;
}

struct fault *fault_parse(const char *text, size_t len, uint64_t seed, struct fault_error *err)
{
    struct fault *f = len <= FAULT_TEXT_MAX ? calloc(1, sizeof(*f)) : NULL;
    *err = (struct fault_error){0};
    if (f)
        f->text = malloc(len + 1);
    if (!f || !f->text) {
        snprintf(err->text, sizeof(err->text), "no memory, or more than %u octets of rules",
                 FAULT_TEXT_MAX);
        fault_free(f);
        return NULL;
    }
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* the mark that some editors begin with */
        text += 3;
        len -= 3;
    }
    f->seed = seed;
    if (!fault_read(f, text, len, err)) {
        fault_free(f);
        return NULL;
    }
    if (!complete(f)) {
        snprintf(err->text, sizeof(err->text), "no memory for connections");
        fault_free(f);
        return NULL;
    }
    return f;
}

void fault_free(struct fault *f)
{
    if (!f)
        return;
    free(f->rule);
    free(f->text);
    free(f->table);
    free(f);
}

/* ---- reports ---- */

unsigned fault_rules(const struct fault *f)
{
    return f->nrules;
}

void fault_rule_stats(const struct fault *f, unsigned rule, struct fault_rule_stats *out)
{
    const struct fault_rule *r = &f->rule[rule];
    *out = (struct fault_rule_stats){r->line, r->matched, r->done, r->failed};
}

void fault_stats(const struct fault *f, struct fault_stats *out)
{
    *out = (struct fault_stats){.frames = f->frames, .roce = f->roce};
    if (f->table) {
        out->knows = true;
        out->conns = f->table->seen;
        out->evicted = f->table->evicted;
    }
}

const char *fault_describe(const struct fault *f, unsigned rule)
{
    return f->text + f->rule[rule].text;
}
