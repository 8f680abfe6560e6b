/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `<`: a statement's fields to a frame.
 */
#include <inttypes.h>
#include <string.h>

#include "drill_priv.h"

bool drill_packet_qp(struct drill_run *run, const struct drill_stmt *st, struct drill_object **out)
{
    const struct drill_arg *a = drill_arg(st, PKT_QP);
    *out = run->qp;
    if (!a)
        return true;
    struct drill_object *o = drill_find(run, a->v.name);
    if (!o || o->kind != KIND_QP)
        return drill_end(run, DRILL_WRONG, st, "'%s' is no queue pair", a->v.name);
    *out = o;
    return true;
}

static void begin_packet(struct drill_run *run, const struct drill_object *qp,
                         const struct drill_stmt *st, struct wire_pkt *p)
{
    const struct wire_opcode_info *info = drill_opcode_info(st->word);
    *p = (struct wire_pkt){.opcode = (uint8_t)(st->word & 0xFF),
                           .ip_version = wire_addr_is_v4(&run->local) ? 4 : 6,
                           .ttl = WIRE_TTL_DEFAULT,
                           .ip_flags = WIRE_IP_DF,
                           .sip = run->peer,
                           .dip = run->local,
                           .sport = 0xC000,
                           .migreq = true,
                           .pkey = WIRE_PKEY_DEFAULT,
                           .syndrome = WIRE_SYN_ACK};
    p->selective = st->word & DRILL_OP_SELECTIVE;
    memcpy(p->dmac, drill_device_mac, 6);
    memcpy(p->smac, drill_peer_mac, 6);
    if (run->wire) {
        memcpy(p->dmac, run->device.dmac, 6);
        memcpy(p->smac, run->device.smac, 6);
    }
    if (qp) {
        p->dip = qp->local;
        p->sip = qp->peer;
        p->ip_version = wire_addr_is_v4(&qp->local) ? 4 : 6;
        p->dqpn = qp->qpn;
        p->sqpn = qp->peer_qpn;
        p->qkey = qp->qkey;
        p->sport = qp->sport;
    }
    if (info->flags & WIRE_F_CNP) {
        p->migreq = false;
        p->becn = true;
    }
    if (st->word & DRILL_OP_NAK)
        p->syndrome = (uint8_t)(st->word >> 16);
    if (st->word & DRILL_OP_RNR)
        p->syndrome = WIRE_SYN_RNR;
    if (st->word & DRILL_OP_CM) {
        p->migreq = false;
        p->dqpn = p->sqpn = WIRE_QPN_GSI;
        p->qkey = WIRE_QKEY_GSI;
    }
    if (run->ep.vlan) {
        p->vlan = true;
        p->tci = run->ep.vlan;
    }
}

/* A field that isn't a plain member. */
static void set_own(struct wire_pkt *p, const struct drill_arg *a, uint64_t v)
{
    switch (a->field->id) {
    case PKT_VLAN:
        p->vlan = true;
        p->tci = (uint16_t)v;
        break;
    case PKT_DSCP:
        p->tclass = (uint8_t)((p->tclass & 3) | v << 2);
        break;
    case PKT_ECN:
        p->tclass = (uint8_t)((p->tclass & 0xFC) | (v & 3));
        break;
    case PKT_DF:
        p->ip_flags = (uint8_t)((p->ip_flags & ~WIRE_IP_DF) | (a->off ? 0 : WIRE_IP_DF));
        break;
    case PKT_MF:
        p->ip_flags = (uint8_t)((p->ip_flags & ~WIRE_IP_MF) | (a->off ? 0 : WIRE_IP_MF));
        break;
    case PKT_CREDITS:
        p->syndrome = (uint8_t)(v & 0x1F);
        break;
    case PKT_TIMER:
        p->syndrome = (uint8_t)(WIRE_SYN_RNR | (v & 0x1F));
        break;
    case PKT_IMM:
        p->imm = drill_imm((uint32_t)v);
        break;
    default:
        break;
    }
}

bool drill_right_version(struct drill_run *run, const struct drill_stmt *st, unsigned version)
{
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        const struct drill_field *f = a->field;
        bool v4 = f->offset == offsetof(struct wire_pkt, ip_id) || f->id == PKT_DF ||
                  f->id == PKT_MF || f->id == PKT_IP_CSUM;
        bool v6 = f->offset == offsetof(struct wire_pkt, flow_label);
        if (f->type == TYPE_ADDR) {
            v4 = wire_addr_is_v4(&a->v.addr);
            v6 = !v4;
        }
        if (!drill_field_is_mad(f) && (version == 4 ? v6 : v4))
            return drill_end(run, DRILL_WRONG, st, "'%s' is of IPv%d, the packet is IPv%u", f->name,
                             v4 ? 4 : 6, version);
    }
    return true;
}

static bool set_fields(struct drill_run *run, const struct drill_stmt *st, struct wire_pkt *p)
{
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        const struct drill_field *f = a->field;
        uint64_t v = 0;
        if (drill_field_is_mad(f))
            continue;
        if (f->type == TYPE_NUM && !drill_one(run, st, a, &v))
            return false;
        if (f->offset == DRILL_NO_MEMBER)
            set_own(p, a, v);
        else if (f->type == TYPE_MAC || f->type == TYPE_ADDR)
            memcpy((uint8_t *)p + f->offset, a->v.addr.b, f->size);
        else
            drill_put_member(p, f, f->type == TYPE_FLAG ? !a->off : v);
    }
    return true;
}

/* The default PSN of our next packet: for a request the next one; for a response that of the
 * device's last request, or the one after our last response if it continues that. */
static uint32_t next_psn(const struct drill_object *qp, unsigned flags)
{
    if (!(flags & WIRE_F_RESPONSE))
        return qp->rq_psn + qp->next_psn;
    return flags & WIRE_F_START ? qp->seen_psn : qp->answer_psn + 1;
}

static bool set_psn(struct drill_run *run, const struct drill_stmt *st, struct drill_object *qp,
                    struct wire_pkt *p)
{
    unsigned flags = drill_opcode_info(st->word)->flags;
    uint64_t rel, v;
    if (st->word & DRILL_OP_CM)
        qp = NULL;
    uint32_t base = !qp ? 0 : flags & WIRE_F_RESPONSE ? qp->sq_psn : qp->rq_psn;
    if (!drill_number(run, st, PKT_PSN, qp ? next_psn(qp, flags) - base : 0, &rel) ||
        !drill_number(run, st, PKT_APSN, base + rel, &v))
        return false;
    p->psn = (uint32_t)v & WIRE_PSN_MASK;
    if (qp && flags & WIRE_F_RESPONSE) {
        qp->answer_psn = p->psn;
    } else if (qp && !(flags & WIRE_F_CNP)) {
        uint32_t n = 1;
        if (flags & WIRE_F_READ && qp->mtu)
            n = p->dma_len ? (uint32_t)(((uint64_t)p->dma_len + qp->mtu - 1) / qp->mtu) : 1;
        qp->next_psn = (p->psn - qp->rq_psn + n) & WIRE_PSN_MASK;
    }
    return true;
}

static uint16_t ip_csum(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2)
        sum += i == 10 ? 0 : (uint32_t)(ip[i] << 8 | ip[i + 1]);
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

bool drill_place(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
                 const struct wire_pkt *p, uint32_t len, uint64_t *at, uint8_t *octet)
{
    const struct {
        const char *name;
        uint32_t at;
    } bases[] = {{"eth", 0},          {"ip", p->ip_off},           {"udp", p->udp_off},
                 {"bth", p->bth_off}, {"payload", p->payload_off}, {"icrc", len - 4}};
    struct drill_expr e = a->v.lo;
    uint64_t base = UINT64_MAX, v;
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
        if (e.t[0].name && !strcmp(e.t[0].name, bases[i].name))
            base = bases[i].at;
    if (base == UINT64_MAX)
        return drill_end(run, DRILL_WRONG, st,
                         "%s: expected one of eth, ip, udp, bth, payload, icrc, found '%s'",
                         a->field->name, e.t[0].name ? e.t[0].name : "a number");
    e.t[0].name = NULL;
    e.t[0].num = 0;
    if (!drill_eval(run, st, &e, ROLE_VALUE, at) || !drill_eval(run, st, &a->v.hi, ROLE_VALUE, &v))
        return false;
    *at += base;
    *octet = (uint8_t)v;
    if (v > 255)
        return drill_end(run, DRILL_WRONG, st, "%s: 0x%" PRIx64 " is no octet", a->field->name, v);
    return *at < len ||
           drill_end(run, DRILL_WRONG, st, "%s: the frame has %u octets", a->field->name, len);
}

/* Octets that the script sets by place. */
static bool patch(struct drill_run *run, const struct drill_stmt *st, const struct wire_pkt *p,
                  uint8_t *frame, uint32_t len)
{
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        uint64_t at;
        uint8_t octet;
        if (a->field->type != TYPE_PATCH)
            continue;
        if (!drill_place(run, st, a, p, len, &at, &octet))
            return false;
        frame[at] = octet;
    }
    return true;
}

/* Apply deliberate faults, and the checksums. */
static bool finish_frame(struct drill_run *run, const struct drill_stmt *st,
                         const struct wire_pkt *p, uint8_t *frame, uint32_t *len, uint32_t cap)
{
    uint64_t v, extra;
    if (st->word & DRILL_OP_RAW)
        frame[p->bth_off] = (uint8_t)st->word;
    if (drill_arg(st, PKT_PAD)) {
        if (!drill_number(run, st, PKT_PAD, 0, &v))
            return false;
        frame[p->bth_off + 1] = (uint8_t)((frame[p->bth_off + 1] & ~0x30u) | (v & 3) << 4);
    }
    if (!drill_number(run, st, PKT_DPORT, WIRE_UDP_PORT, &v))
        return false;
    frame[p->udp_off + 2] = (uint8_t)(v >> 8);
    frame[p->udp_off + 3] = (uint8_t)v;
    if (!drill_number(run, st, PKT_UDP_CSUM, 0, &v))
        return false;
    frame[p->udp_off + 6] = (uint8_t)(v >> 8);
    frame[p->udp_off + 7] = (uint8_t)v;
    if (!patch(run, st, p, frame, *len))
        return false;
    if (p->ip_version == 4) {
        uint16_t sum = ip_csum(frame + p->ip_off);
        sum = drill_arg(st, PKT_IP_CSUM) ? sum ^ 0x0100 : sum;
        frame[p->ip_off + 10] = (uint8_t)(sum >> 8);
        frame[p->ip_off + 11] = (uint8_t)sum;
    }
    wire_icrc_seal(frame, *len, p->ip_off, p->bth_off);
    if (drill_arg(st, PKT_ICRC))
        frame[*len - 1] ^= 0x5A;
    if (!drill_number(run, st, PKT_EXTRA, 0, &extra))
        return false;
    if (extra > cap - *len)
        return drill_end(run, DRILL_WRONG, st, "extra %" PRIu64 ": at most %u", extra, cap - *len);
    if (!drill_number(run, st, PKT_CUT, *len + extra, &v))
        return false;
    if (v > *len + extra)
        return drill_end(run, DRILL_WRONG, st, "cut %" PRIu64 ": the frame has %" PRIu64 " octets",
                         v, *len + extra);
    memset(frame + *len, 0, extra);
    *len = (uint32_t)v;
    return true;
}

static bool payload(struct drill_run *run, const struct drill_stmt *st, struct drill_object *qp,
                    uint8_t *out, uint32_t len)
{
    static const struct drill_data stream = {.kind = DATA_STREAM, .a = {.n = 1, .t = {{.num = 1}}}};
    const struct drill_arg *a = drill_arg(st, PKT_DATA);
    bool response = drill_opcode_info(st->word)->flags & WIRE_F_RESPONSE;
    uint32_t *at = !qp ? NULL : response ? &qp->answer_at : &qp->message_at;
    uint64_t from = at ? *at : 0;
    if (drill_opcode_info(st->word)->flags & WIRE_F_START)
        from = 0;
    if (at)
        *at = (uint32_t)from + len;
    const struct drill_data *d = a ? &a->v.data : &stream;
    uint32_t own;
    if (drill_octets_len(d, &own) && own < len) { /* zeros follow */
        memset(out + own, 0, len - own);
        len = own;
    }
    return drill_octets_fit(run, st, d, len) &&
           drill_octets(run, st, d, d->kind == DATA_STREAM ? from : 0, out, len);
}

bool drill_build(struct drill_run *run, const struct drill_stmt *st, uint8_t *frame, uint32_t cap,
                 uint32_t *size)
{
    struct drill_object *qp;
    struct wire_pkt p;
    uint8_t data[8192];
    uint64_t len;
    const struct drill_arg *given = drill_arg(st, PKT_DATA);
    uint32_t own = 0;
    if (given && !drill_octets_len(&given->v.data, &own) && !drill_arg(st, PKT_LEN))
        return drill_end(run, DRILL_WRONG, st, "data: how many octets? 'len' is missing");
    if (!drill_packet_qp(run, st, &qp) || !drill_number(run, st, PKT_LEN, own, &len))
        return false;
    if (len > sizeof(data))
        return drill_end(run, DRILL_WRONG, st, "len %" PRIu64 ": at most %zu", len, sizeof(data));
    begin_packet(run, qp, st, &p);
    p.dma_len = (uint32_t)len;
    uint32_t n = (uint32_t)len;
    if (st->word & DRILL_OP_CM ? !drill_mad_build(run, st, data, &n)
                               : !payload(run, st, qp, data, n))
        return false;
    if (!drill_right_version(run, st, p.ip_version) || !set_fields(run, st, &p) ||
        !set_psn(run, st, qp, &p))
        return false;
    if (st->word & DRILL_OP_RAW)
        p.opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY);
    p.payload_len = n;
    size_t at = wire_build(frame, cap, &p);
    if (!at)
        return drill_end(run, DRILL_WRONG, st, "this can't be built");
    memcpy(frame + at, data, n);
    *size = (uint32_t)wire_frame_len(&p);
    return finish_frame(run, st, &p, frame, size, cap);
}
