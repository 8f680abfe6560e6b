/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `>`: a frame against a statement's fields.
 */
#include <stdio.h>
#include <string.h>

#include "drill_priv.h"

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

/* Compare the opcode, and the kind of acknowledgement. */
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
    if (!drill_place(m->run, m->st, a, m->p, m->len, &at, &octet))
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

/* Compare the defaults for packets of a queue pair, where the statement says nothing else. */
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
    if (!drill_packet_qp(run, st, &qp))
        return false;
    enum wire_verdict v = wire_parse(frame, len, WIRE_P_LOOPBACK | WIRE_P_SELECTIVE, &p);
    if (v != WIRE_OK)
        drill_differs(why, size, "frame", "a good one", wire_verdict_name(v));
    struct match m = {run, st, qp, &p, frame, frame + p.payload_off, len, why, size};
    if (!*why)
        match_opcode(&m);
    if (!*why) {
        bool mad_fits = true;
        if (!drill_right_version(run, st, p.ip_version))
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
