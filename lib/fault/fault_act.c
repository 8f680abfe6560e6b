/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Actions on frames: damage, set fields, correct checksums, and make frames in a peer's or a
 * switch's name.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fault_priv.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define ECN_MASK  3u
#define ECN_CE    3u
#define ECN_BIT   14u /* first bit of ECN in an IPv4 header, and in an IPv6 header */
#define ECN_BIT6  10u
#define CNP_DSCP  48u
#define CNP_PRIO  6u
#define DSCP(n)   ((uint8_t)((n) << 2))
#define PFC_OP    0x0101u /* IEEE 802.1Qbb */
#define FRAME_MIN 60u     /* without FCS */

/* ---- fields ---- */

static const struct fault_field fields[] = {
    {"dscp", FAULT_B_IP, 8, 4, 6, false},
    {"ecn", FAULT_B_IP, ECN_BIT, ECN_BIT6, 2, false},
    {"ttl", FAULT_B_IP, 64, 56, 8, false},
    {"sport", FAULT_B_UDP, 0, 0, 16, true},
    {"dport", FAULT_B_UDP, 16, 16, 16, true},
    {"opcode", FAULT_B_BTH, 0, 0, 8, true},
    {"se", FAULT_B_BTH, 8, 8, 1, true},
    {"migreq", FAULT_B_BTH, 9, 9, 1, true},
    {"pad", FAULT_B_BTH, 10, 10, 2, true},
    {"tver", FAULT_B_BTH, 12, 12, 4, true},
    {"pkey", FAULT_B_BTH, 16, 16, 16, true},
    {"fecn", FAULT_B_BTH, 32, 32, 1, false},
    {"becn", FAULT_B_BTH, 33, 33, 1, false},
    {"dqpn", FAULT_B_BTH, 40, 40, 24, true},
    {"ackreq", FAULT_B_BTH, 64, 64, 1, true},
    {"psn", FAULT_B_BTH, 72, 72, 24, true},
    {"va", FAULT_B_RETH, 0, 0, 64, true},
    {"rkey", FAULT_B_RETH, 64, 64, 32, true},
    {"dmalen", FAULT_B_RETH, 96, 96, 32, true},
    {"syndrome", FAULT_B_AETH, 0, 0, 8, true},
    {"msn", FAULT_B_AETH, 8, 8, 24, true},
    {"imm", FAULT_B_IMM, 0, 0, 32, true},
    {"qkey", FAULT_B_DETH, 0, 0, 32, true},
    {"sqpn", FAULT_B_DETH, 40, 40, 24, true},
    {"swap", FAULT_B_ATOMICETH, 96, 96, 64, true},
    {"compare", FAULT_B_ATOMICETH, 160, 160, 64, true},
};
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

const struct fault_field *fault_field_find(const char *name, size_t len)
{
    for (size_t i = 0; i < NFIELDS; i++)
        if (strlen(fields[i].name) == len && !strncasecmp(fields[i].name, name, len))
            return &fields[i];
    return NULL;
}

const char *fault_field_names(char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < NFIELDS && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? " " : "", fields[i].name);
    return buf;
}

static uint64_t bits_get(const uint8_t *p, unsigned at, unsigned width)
{
    uint64_t x = 0;
    for (unsigned i = at; i < at + width; i++)
        x = x << 1 | (p[i / 8] >> (7 - i % 8) & 1);
    return x;
}

static void bits_put(uint8_t *p, unsigned at, unsigned width, uint64_t x)
{
    for (unsigned i = at + width; i-- > at; x >>= 1)
        p[i / 8] = (uint8_t)((p[i / 8] & ~(0x80 >> i % 8)) | (x & 1) << (7 - i % 8));
}

/* Offset of a header in the frame; 0 = no such header. */
static unsigned header(const struct fault_view *v, enum fault_base base)
{
    unsigned at = 0;
    switch (base) {
    case FAULT_B_IP:
        return v->p.ip_off;
    case FAULT_B_UDP:
        return v->p.udp_off;
    case FAULT_B_BTH:
        return v->p.bth_off;
    case FAULT_B_RETH:
        at = v->op->reth;
        break;
    case FAULT_B_AETH:
        at = v->op->aeth;
        break;
    case FAULT_B_IMM:
        at = v->op->immdt;
        break;
    case FAULT_B_DETH:
        at = v->op->deth;
        break;
    case FAULT_B_ATOMICETH:
        at = v->op->atomiceth;
        break;
    }
    return at ? v->p.bth_off + at : 0;
}

/* ---- checksums ---- */

static void mend_icrc(struct fault_view *v)
{
    uint32_t end = v->p.icrc_off + WIRE_ICRC_LEN;
    if (v->whole)
        wire_put32le(v->frame + v->p.icrc_off, wire_icrc(v->frame, end, v->p.ip_off, v->p.bth_off));
}

/* Correct the iCRC, and the UDP checksum if there is one, after a change. */
static void changed(struct fault_view *v, bool repair, unsigned *bits)
{
    *bits |= FAULT_CHANGED;
    if (!v->roce)
        return;
    if (!repair) {
        *bits |= FAULT_DAMAGED;
        return;
    }
    if (v->p.udp_off)
        wire_put16(v->frame + v->p.udp_off + 6, 0);
    mend_icrc(v);
}

/* Put a value into an IP header. A checksum that was right stays right. */
static void ip_put(uint8_t *ip, bool v4, unsigned at, unsigned width, uint64_t x)
{
    bool right = v4 && wire_csum_add(0, ip, WIRE_IPV4_LEN) == 0xFFFF;
    bits_put(ip, at, width, x);
    if (right) {
        wire_put16(ip + 10, 0);
        wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
    }
}

/* ---- changes ---- */

static bool set(const struct fault_action *a, struct fault_view *v, unsigned *bits)
{
    const struct fault_field *f = a->field;
    unsigned base = v->roce ? header(v, f->base) : 0;
    bool v4 = v->p.ip_version == 4;
    unsigned at = f->base == FAULT_B_IP && !v4 ? f->bit6 : f->bit;
    if (!base || base + (at + f->width + 7) / 8 > v->have)
        return false;
    uint8_t *p = v->frame + base;
    uint64_t old = bits_get(p, at, f->width);
    uint64_t x = a->how == FAULT_PLUS    ? old + a->value
                 : a->how == FAULT_MINUS ? old - a->value
                                         : a->value;
    if (f->base == FAULT_B_IP)
        ip_put(p, v4 && a->repair, at, f->width, x);
    else
        bits_put(p, at, f->width, x);
    if (f->covered)
        changed(v, a->repair, bits);
    *bits |= FAULT_CHANGED;
    return true;
}

static bool mark(struct fault_view *v, unsigned *bits)
{
    uint8_t *ip = v->frame + v->p.ip_off;
    bool v4 = v->p.ip_version == 4;
    unsigned at = v4 ? ECN_BIT : ECN_BIT6;
    if (!v->roce || v->have < v->p.ip_off + WIRE_IPV4_LEN || !bits_get(ip, at, 2)) /* CC-01 */
        return false;
    ip_put(ip, v4, at, 2, ECN_CE);
    *bits |= FAULT_CHANGED;
    return true;
}

static void flip(struct fault_view *v, uint64_t at, uint64_t with)
{
    if (at < v->have)
        v->frame[at] ^= (uint8_t)with;
}

static bool corrupt(struct fault_rule *r, const struct fault_action *a, struct fault_view *v,
                    unsigned *bits)
{
    uint64_t at = a->n;
    switch (a->how) {
    case FAULT_ICRC:
        if (!v->roce || v->p.icrc_off + WIRE_ICRC_LEN > v->len)
            return false;
        flip(v, v->p.icrc_off, 0xFF);
        break;
    case FAULT_PAYLOAD:
        if (!v->roce || at >= v->p.payload_len || v->p.payload_off + at >= v->len)
            return false;
        flip(v, v->p.payload_off + at, a->value);
        break;
    case FAULT_BYTE:
        if (at >= v->len)
            return false;
        flip(v, at, a->value);
        break;
    default:
        for (uint64_t i = 0; i < a->n; i++)
            flip(v, fault_draw_below(&r->rng, v->len), 1 + fault_draw_below(&r->rng, 255));
        break;
    }
    changed(v, a->repair, bits);
    return true;
}

static bool trim(const struct fault_action *a, struct fault_view *v, unsigned *bits)
{
    if (a->n >= v->len)
        return false;
    v->len = (uint32_t)a->n;
    if (v->have > v->len)
        v->have = v->len;
    v->whole = v->whole && v->p.icrc_off + WIRE_ICRC_LEN <= v->len;
    *bits |= FAULT_CHANGED | FAULT_DAMAGED;
    return true;
}

/* ---- injected frames ---- */

/* A packet with the frame's addresses, or with these swapped. */
static struct wire_pkt headers(const struct fault_view *v, bool forth)
{
    const struct wire_pkt *p = &v->p;
    struct wire_pkt q = {.vlan = p->vlan,
                         .tci = p->tci,
                         .ip_version = p->ip_version,
                         .tclass = DSCP(CNP_DSCP),
                         .ttl = WIRE_TTL_DEFAULT,
                         .ip_flags = WIRE_IP_DF,
                         .sip = forth ? p->sip : p->dip,
                         .dip = forth ? p->dip : p->sip,
                         .sport = p->sport,
                         .migreq = true,
                         .pkey = p->pkey};
    memcpy(q.dmac, forth ? p->dmac : p->smac, 6);
    memcpy(q.smac, forth ? p->smac : p->dmac, 6);
    return q;
}

/* A packet without payload. Returns its length; 0 = it doesn't fit. */
static uint32_t build(struct fault_inject *in, struct wire_pkt *q)
{
    size_t len = wire_frame_len(q);
    if (!wire_build(in->data, sizeof(in->data), q))
        return 0;
    wire_icrc_seal(in->data, len, q->ip_off, q->bth_off);
    return (uint32_t)len;
}

/* The sender's QPN, from the packet or from the other direction; 0 = not known. */
static uint32_t sender_qpn(const struct fault_view *v)
{
    if (v->op->headers & WIRE_H_DETH)
        return v->p.sqpn;
    return v->at.back ? v->at.back->dqpn : 0;
}

static uint32_t make_cnp(const struct fault_action *a, const struct fault_view *v,
                         struct fault_inject *in)
{
    struct wire_pkt q = headers(v, a->forth);
    q.opcode = WIRE_OPCODE_CNP;
    q.becn = true;
    q.tci = (uint16_t)(CNP_PRIO << 13 | (q.tci & 0x1FFF));
    q.dqpn = a->forth ? v->p.dqpn : sender_qpn(v);
    return q.dqpn ? build(in, &q) : 0;
}

static uint32_t make_nak(const struct fault_action *a, const struct fault_view *v,
                         struct fault_inject *in)
{
    struct wire_pkt q = headers(v, false);
    bool reliable = v->op->service == WIRE_RC || v->op->service == WIRE_XRC;
    if (!reliable || !(v->op->flags & WIRE_F_REQUEST) || !v->at.back)
        return 0;
    q.opcode = WIRE_OPCODE(v->op->service, WIRE_ACKNOWLEDGE);
    q.tclass = v->p.tclass & ~ECN_MASK;
    q.dqpn = v->at.back->dqpn;
    q.psn = v->p.psn;
    q.syndrome = (uint8_t)a->n;
    q.msn = v->at.msn;
    return build(in, &q);
}

/* IEEE 802.1Qbb: MAC control, the opcode, a bit per priority, a time for each of the eight. */
static uint32_t make_pause(const struct fault_action *a, const struct fault_view *v,
                           struct fault_inject *in)
{
    static const uint8_t to[6] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};
    if (v->have < WIRE_ETH_LEN)
        return 0;
    memset(in->data, 0, FRAME_MIN);
    memcpy(in->data, to, 6);
    memcpy(in->data + 6, v->frame + (a->forth ? 6 : 0), 6);
    in->data[6] &= 0xFE; /* the answer to a frame to a group: a source is no group */
    wire_put16(in->data + 12, WIRE_ETHERTYPE_PAUSE);
    wire_put16(in->data + 14, PFC_OP);
    wire_put16(in->data + 16, (uint16_t)(1u << a->n));
    wire_put16(in->data + 18 + 2 * a->n, (uint16_t)a->value);
    return FRAME_MIN;
}

static bool inject(const struct fault_action *a, struct fault_view *v, struct fault_out *out,
                   unsigned *bits)
{
    if (out->ninject == FAULT_INJECTS)
        return false;
    struct fault_inject *in = &out->inject[out->ninject];
    in->dir = a->forth == (v->dir == FAULT_AB) ? FAULT_AB : FAULT_BA;
    if (a->how == FAULT_PAUSE)
        in->len = make_pause(a, v, in);
    else if (!v->roce || !v->p.udp_off)
        in->len = 0;
    else
        in->len = a->how == FAULT_CNP ? make_cnp(a, v, in) : make_nak(a, v, in);
    if (!in->len)
        return false;
    out->ninject++;
    *bits |= FAULT_INJECT;
    return true;
}

/* ---- dispatch ---- */

bool fault_act(struct fault_rule *r, const struct fault_action *a, struct fault_view *v,
               struct fault_out *out, unsigned *bits)
{
    switch (a->verb) {
    case FAULT_V_DROP:
        *bits |= FAULT_DROP;
        return true;
    case FAULT_V_DELAY:
        out->delay += a->range.lo + fault_draw_below(&r->rng, a->range.hi - a->range.lo + 1);
        *bits |= FAULT_HOLD;
        return true;
    case FAULT_V_DUPLICATE:
        out->copies += (uint32_t)a->n;
        if (out->copies > FAULT_COPIES_MAX)
            out->copies = FAULT_COPIES_MAX;
        *bits |= FAULT_COPY;
        return true;
    case FAULT_V_REORDER:
        out->gap = (uint32_t)a->n;
        out->within = a->value;
        *bits |= FAULT_HOLD;
        return true;
    case FAULT_V_CORRUPT:
        return corrupt(r, a, v, bits);
    case FAULT_V_MARK:
        return mark(v, bits);
    case FAULT_V_TRIM:
        return trim(a, v, bits);
    case FAULT_V_INJECT:
        return inject(a, v, out, bits);
    case FAULT_V_SET:
        return set(a, v, bits);
    }
    return false;
}
