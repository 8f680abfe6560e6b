/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `<` and `>`: a statement's fields to a frame, and a frame against a statement's fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drill_priv.h"

/* The queue pair that a statement's packet belongs to; NULL = none. */
static bool packet_qp(struct drill_run *run, const struct drill_stmt *st, struct drill_object **out)
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

/* ---- building ---- */

static void begin_packet(struct drill_run *run, const struct drill_object *qp,
                         const struct drill_stmt *st, struct wire_pkt *p)
{
    const struct wire_opcode_info *info = drill_opcode_info(st->word);
    *p = (struct wire_pkt){.opcode = (uint8_t)(st->word & 0xFF),
                           .ip_version = wire_addr_is_v4(&run->local) ? 4 : 6,
                           .ttl = 64,
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

/* Headers of the other IP version have no place in a packet. */
static bool right_version(struct drill_run *run, const struct drill_stmt *st, unsigned version)
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

/* The PSN of what comes next: our next request; of a response that of the device's last request, or
 * the one behind our last response when it goes on. */
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

/* `bth+4 0x80`: a place in a frame, and the octet that is to be there. */
static bool place(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
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
        if (!place(run, st, a, p, len, &at, &octet))
            return false;
        frame[at] = octet;
    }
    return true;
}

/* What is wrong on purpose, and the checksums. */
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
    if (!packet_qp(run, st, &qp) || !drill_number(run, st, PKT_LEN, own, &len))
        return false;
    if (len > sizeof(data))
        return drill_end(run, DRILL_WRONG, st, "len %" PRIu64 ": at most %zu", len, sizeof(data));
    begin_packet(run, qp, st, &p);
    p.dma_len = (uint32_t)len;
    uint32_t n = (uint32_t)len;
    if (st->word & DRILL_OP_CM ? !drill_mad_build(run, st, data, &n)
                               : !payload(run, st, qp, data, n))
        return false;
    if (!right_version(run, st, p.ip_version) || !set_fields(run, st, &p) ||
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

/* ---- matching ---- */

void drill_differs(char *why, size_t size, const char *name, const char *expected, const char *got)
{
    size_t at = strlen(why);
    snprintf(why + at, size - at, "%s%s: expected %s, got %s", at ? "; " : "", name, expected, got);
}

void drill_octets_differ(char *why, size_t size, const char *name, const uint8_t *want,
                         const uint8_t *got, uint32_t n)
{
    char which[48], x[8], y[8];
    uint32_t i = 0;
    while (i < n && want[i] == got[i])
        i++;
    if (i == n)
        return;
    snprintf(which, sizeof(which), "%s octet %u", name, i);
    snprintf(x, sizeof(x), "0x%02x", want[i]);
    snprintf(y, sizeof(y), "0x%02x", got[i]);
    drill_differs(why, size, which, x, y);
}

struct match {
    struct drill_run *run;
    const struct drill_stmt *st;
    const struct drill_object *qp;
    const struct wire_pkt *p;
    const uint8_t *frame, *payload;
    uint32_t len;
    char *why;
    size_t size;
};

static void differ(struct match *m, const char *name, const char *expected, const char *got)
{
    drill_differs(m->why, m->size, name, expected, got);
}

/* The opcode, and what kind of acknowledgement it is. */
static void match_opcode(struct match *m)
{
    uint64_t op = m->st->word;
    const char *name = drill_opcode_info(op)->name;
    const struct wire_opcode_info *got =
        m->p->selective ? &wire_selective[m->p->opcode & 31] : &wire_opcodes[m->p->opcode];
    char syn[32], want[32];
    if (m->p->opcode != (op & 0xFF) || m->p->selective != !!(op & DRILL_OP_SELECTIVE)) {
        differ(m, "opcode", name ? name : "?", got->name ? got->name : "?");
        return;
    }
    enum wire_aeth_kind kind = wire_aeth_kind(m->p->syndrome);
    snprintf(syn, sizeof(syn), "0x%02x", m->p->syndrome);
    if (op & DRILL_OP_ACK && kind != WIRE_AETH_ACK)
        differ(m, "syndrome", "an ACK", syn);
    if (op & DRILL_OP_RNR && kind != WIRE_AETH_RNR)
        differ(m, "syndrome", "an RNR NAK", syn);
    snprintf(want, sizeof(want), "0x%02x", (unsigned)(op >> 16) & 0xFF);
    if (op & DRILL_OP_NAK && m->p->syndrome != (op >> 16 & 0xFF))
        differ(m, "syndrome", want, syn);
}

static uint32_t psn_base(const struct match *m)
{
    if (!m->qp)
        return 0;
    return drill_opcode_info(m->st->word)->flags & WIRE_F_RESPONSE ? m->qp->rq_psn : m->qp->sq_psn;
}

static uint64_t own_value(const struct match *m, int id)
{
    const struct wire_pkt *p = m->p;
    switch (id) {
    case PKT_VLAN:
        return p->vlan ? p->tci : 0;
    case PKT_DSCP:
        return p->tclass >> 2;
    case PKT_ECN:
        return p->tclass & 3;
    case PKT_DF:
        return (p->ip_flags & WIRE_IP_DF) != 0;
    case PKT_MF:
        return (p->ip_flags & WIRE_IP_MF) != 0;
    case PKT_DPORT:
        return p->dport;
    case PKT_UDP_CSUM:
        return p->udp_csum;
    case PKT_PAD:
        return p->pad;
    case PKT_PSN:
        return (p->psn - psn_base(m)) & WIRE_PSN_MASK;
    case PKT_APSN:
        return p->psn;
    case PKT_CREDITS:
        return wire_aeth_kind(p->syndrome) == WIRE_AETH_ACK ? p->syndrome & 0x1F : UINT64_MAX;
    case PKT_TIMER:
        return wire_aeth_kind(p->syndrome) == WIRE_AETH_RNR ? p->syndrome & 0x1F : UINT64_MAX;
    case PKT_IMM:
        return drill_imm(p->imm);
    case PKT_LEN:
        return p->payload_len;
    default:
        return 0;
    }
}

static bool match_number(struct match *m, const struct drill_arg *a)
{
    const struct drill_field *f = a->field;
    bool psn = f->id == PKT_PSN || f->id == PKT_APSN || f->role == ROLE_PSN;
    uint64_t got = f->offset == DRILL_NO_MEMBER ? own_value(m, f->id) : drill_get_member(m->p, f);
    char want[64], text[DRILL_NUMBER_LEN];
    bool fits;
    if (f->type == TYPE_FLAG) {
        if (!!got == a->off)
            differ(m, f->name, a->off ? "0" : "1", got ? "1" : "0");
        return true;
    }
    if (!drill_fits(m->run, m->st, &a->v, f->role, got, psn ? WIRE_PSN_MASK : UINT64_MAX, &fits))
        return false;
    if (fits)
        return true;
    drill_value_text(m->run, m->st, &a->v, f->role, want, sizeof(want));
    differ(m, f->name, want, drill_number_text(got, text));
    return true;
}

static void match_address(struct match *m, const char *name, const struct wire_addr *want,
                          const struct wire_addr *got)
{
    char a[64], b[64];
    if (memcmp(want, got, sizeof(*want)) != 0)
        differ(m, name, wire_addr_str(want, a, sizeof(a)), wire_addr_str(got, b, sizeof(b)));
}

static void match_mac(struct match *m, const char *name, const uint8_t want[6],
                      const uint8_t got[6])
{
    char text[2][24];
    const uint8_t *const macs[2] = {want, got};
    for (unsigned i = 0; i < 2; i++)
        snprintf(text[i], sizeof(text[i]), "%02x:%02x:%02x:%02x:%02x:%02x", macs[i][0], macs[i][1],
                 macs[i][2], macs[i][3], macs[i][4], macs[i][5]);
    if (memcmp(want, got, 6) != 0)
        differ(m, name, text[0], text[1]);
}

static bool match_data(struct match *m, const struct drill_arg *a)
{
    uint8_t want[DRILL_FRAME_MAX];
    uint32_t len, n = m->p->payload_len;
    char x[DRILL_NUMBER_LEN], y[DRILL_NUMBER_LEN];
    if (drill_octets_len(&a->v.data, &len) && len != n) {
        drill_number_text(len, x);
        drill_number_text(n, y);
        differ(m, "len", x, y);
        return true;
    }
    if (!drill_octets(m->run, m->st, &a->v.data, 0, want, n))
        return false;
    drill_octets_differ(m->why, m->size, "data", want, m->payload, n);
    return true;
}

static bool match_octet(struct match *m, const struct drill_arg *a)
{
    char want[24], got[24];
    uint64_t at;
    uint8_t octet;
    if (!place(m->run, m->st, a, m->p, m->len, &at, &octet))
        return false;
    if (m->frame[at] == octet)
        return true;
    snprintf(want, sizeof(want), "0x%02x", octet);
    snprintf(got, sizeof(got), "0x%02x", m->frame[at]);
    differ(m, "octet", want, got);
    return true;
}

static bool match_field(struct match *m, const struct drill_arg *a)
{
    const struct drill_field *f = a->field;
    switch ((enum drill_type)f->type) {
    case TYPE_FLAG:
    case TYPE_NUM:
        return match_number(m, a);
    case TYPE_ADDR:
        match_address(m, f->name, &a->v.addr, (const void *)((const uint8_t *)m->p + f->offset));
        return true;
    case TYPE_MAC:
        match_mac(m, f->name, a->v.addr.b, (const uint8_t *)m->p + f->offset);
        return true;
    case TYPE_DATA:
        return match_data(m, a);
    case TYPE_PATCH:
        return match_octet(m, a);
    default:
        return true;
    }
}

static bool has(const struct drill_stmt *st, const char *name)
{
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (!drill_field_is_mad(a->field) && !strcmp(a->field->name, name))
            return true;
    return false;
}

/* What holds for every packet that belongs to a queue pair unless the statement says otherwise. */
static void match_path(struct match *m)
{
    char want[24], got[24];
    const struct drill_object *qp = m->qp;
    bool cm = m->st->word & DRILL_OP_CM;
    uint32_t dqpn = cm ? WIRE_QPN_GSI : qp ? qp->peer_qpn : m->p->dqpn;
    if (!has(m->st, "sip"))
        match_address(m, "sip", qp ? &qp->local : &m->run->local, &m->p->sip);
    if (!has(m->st, "dip"))
        match_address(m, "dip", qp ? &qp->peer : &m->run->peer, &m->p->dip);
    if (!has(m->st, "dqpn") && m->p->dqpn != dqpn) {
        snprintf(want, sizeof(want), "0x%x", dqpn);
        snprintf(got, sizeof(got), "0x%x", m->p->dqpn);
        differ(m, "dqpn", want, got);
    }
}

static bool match_frame(struct drill_run *run, const struct drill_stmt *st, const uint8_t *frame,
                        uint32_t len, bool *fits, char *why, size_t size)
{
    struct drill_object *qp;
    struct wire_pkt p;
    *why = 0;
    if (!packet_qp(run, st, &qp))
        return false;
    enum wire_verdict v = wire_parse(frame, len, WIRE_P_LOOPBACK | WIRE_P_SELECTIVE, &p);
    if (v != WIRE_OK)
        drill_differs(why, size, "frame", "a good one", wire_verdict_name(v));
    struct match m = {run, st, qp, &p, frame, frame + p.payload_off, len, why, size};
    if (!*why)
        match_opcode(&m);
    if (!*why) {
        bool mad_fits = true;
        if (!right_version(run, st, p.ip_version))
            return false;
        match_path(&m);
        for (const struct drill_arg *a = st->args; a; a = a->next)
            if (!drill_field_is_mad(a->field) && !match_field(&m, a))
                return false;
        if (st->word & DRILL_OP_CM &&
            !drill_mad_match(run, st, m.payload, p.payload_len, &mad_fits, why, size))
            return false;
    }
    *fits = !*why;
    if (*fits && qp && drill_opcode_info(st->word)->flags & WIRE_F_REQUEST)
        qp->seen_psn = p.psn;
    return true;
}

bool drill_match(struct drill_run *run, const struct drill_stmt *st, const uint8_t *frame,
                 uint32_t len, bool *fits, char *why, size_t size)
{
    run->trial = true; /* ?name takes nothing from a frame that doesn't fit */
    bool ok = match_frame(run, st, frame, len, fits, why, size);
    run->trial = false;
    return ok && (!*fits || match_frame(run, st, frame, len, fits, why, size));
}
