/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Does our engine give a captured answer, too? Its ledger is searched by PSN. If it has no such
 * answer, and nothing else explains the captured one (responder_excuse.c), that is a difference,
 * with its rule.
 */
#include <stdio.h>
#include <string.h>

#include "as_responder.h"
#include "fields.h"

static bool same_kind(const struct answer *a, const struct packet *p)
{
    if (a->psn != p->psn || a->opcode != p->opcode)
        return false;
    if (!(wire_opcodes[a->opcode].headers & WIRE_H_AETH))
        return true;
    enum wire_aeth_kind kind = wire_aeth_kind(p->syndrome);
    return kind == wire_aeth_kind(a->syndrome) &&
           (kind != WIRE_AETH_NAK || a->syndrome == p->syndrome);
}

static bool same_content(const struct answer *a, const struct packet *p, const char **field)
{
    if (a->payload_len < p->payload_len && packet_cut(p))
        return true; /* cut: perhaps several packets, merged by the capturing host */
    if (a->payload_len != p->payload_len) {
        *field = "payload length";
        return false;
    }
    bool whole = packet_payload_have(p) == p->payload_len, atomic = p->opcode == WIRE_ATOMIC_ACK;
    if (!atomic && whole && a->content != responder_hash(packet_payload(p), p->payload_len)) {
        *field = "payload";
        return false;
    }
    struct wire_pkt w;
    if (atomic)
        packet_wire(p, &w);
    if (atomic && a->content != w.orig) {
        *field = "original value";
        return false;
    }
    if (a->pkey != p->pkey) {
        *field = "P_Key";
        return false;
    }
    return true;
}

/* Has our engine executed the SEND or WRITE packet with this PSN? Also true for PSNs before the
 * first. */
static bool acknowledgeable(const struct responder *r, uint32_t psn)
{
    return wire_psn_diff(stage_epsn(&r->stage), psn) > 0;
}

/* The latest request with this answer's PSN, or NULL. */
static const struct packet *asked_last(const struct responder *r, const struct packet *answer)
{
    const struct packet *q = answer;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++)
        if (packet_asks(r->d, --q) &&
            ((answer->psn - q->psn) & WIRE_PSN_MASK) < packet_psns(r->d, q))
            return q;
    return NULL;
}

/* Does this PSN belong to the latest transmission of a READ or an ATOMIC? No ACK names it then. */
static bool answered_otherwise(const struct responder *r, const struct packet *ack)
{
    const struct packet *q = asked_last(r, ack);
    return q && packet_flags(q) & (WIRE_F_READ | WIRE_F_ATOMIC);
}

/* A READ response or ATOMIC acknowledge whose AETH is no ACK? */
static bool wrong_syndrome(const struct packet *p)
{
    return !(packet_flags(p) & WIRE_F_ACK) && wire_opcodes[p->opcode].headers & WIRE_H_AETH &&
           wire_aeth_kind(p->syndrome) != WIRE_AETH_ACK;
}

/* A READ response or ATOMIC acknowledge that our engine doesn't give. */
static const char *rule_of_data(const struct responder *r, const struct packet *p,
                                const struct answer *near)
{
    const unsigned kinds = WIRE_F_READ | WIRE_F_ATOMIC;
    const struct packet *asked = asked_last(r, p);
    unsigned f = packet_flags(p);
    if (asked && (packet_flags(asked) & kinds) != (f & kinds))
        return "REQ-28";
    if (f & WIRE_F_ATOMIC)
        return "ATM-08";
    if (!acknowledgeable(r, p->psn))
        return "RD-01";
    return near && near->opcode != p->opcode && !near->used ? "REQ-30" : "RD-10";
}

/* Has the capture's responder refused it for good? */
static bool refused_there(const struct responder *r, const struct packet *end)
{
    const struct packet *q = end;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++)
        if (packet_answers(r->d, --q) && !packet_positive(q) && q->psn == r->refused->psn &&
            q->syndrome > WIRE_SYN_NAK_SEQ)
            return true;
    return false;
}

/* The rule by which our engine doesn't accept a captured request, though this answer shows its
 * acceptance; NULL = there is another cause. */
static const char *rule_of_refused(struct responder *r, const struct packet *p)
{
    const struct packet *q = NULL;
    const char *rule = NULL, *how = "refused", *end = " for good";
    if (!packet_positive(p))
        return NULL;
    if (stage_state(&r->stage) == QPS_ERR) {
        q = r->refused;
        rule = q && !refused_there(r, p) ? fields_rule(r->d->fields, q) : NULL;
        rule = rule ? rule : "RSP-22";
    } else if (r->dropped && r->dropped->psn == stage_epsn(&r->stage)) {
        q = r->dropped;
        rule = r->dropped_rule;
        how = "dropped";
        end = "";
    }
    if (q)
        snprintf(r->why, sizeof(r->why), "our engine has %s packet %llu%s", how,
                 (unsigned long long)q->kept->number, end);
    return rule;
}

static const char *rule_of_missing(struct responder *r, const struct packet *p,
                                   const struct answer *near)
{
    const char *refused = rule_of_refused(r, p);
    if (wrong_syndrome(p))
        return "REQ-31";
    if (refused)
        return refused;
    if (packet_flags(p) & (WIRE_F_READ | WIRE_F_ATOMIC))
        return rule_of_data(r, p, near);
    switch (wire_aeth_kind(p->syndrome)) {
    case WIRE_AETH_RNR:
        return "RNR-01";
    case WIRE_AETH_NAK:
        if (p->syndrome != WIRE_SYN_NAK_SEQ)
            return "ACK-06";
        return (near && wire_aeth_kind(near->syndrome) == WIRE_AETH_RNR) ||
                       excuse_refused_since(r, r->d->packet, p)
                   ? "RNR-02"
               : near && near->syndrome == WIRE_SYN_NAK_SEQ ? "ACK-08"
                                                            : "ACK-07";
    default:
        return "ACK-05";
    }
}

const char *responder_why(const char *rule)
{
    static const char *const text[][2] = {
        {"RD-10", "a READ repeated from the middle is answered as one of its own"},
        {"REQ-31", "a READ response or ATOMIC acknowledge says ACK in its AETH"},
        {"REQ-28", "this PSN asks for something else"},
        {"RD-01", "our engine has not executed this READ"},
        {"REQ-30", "the opcode follows from the packet's place in the READ"},
        {"ATM-08", "no ATOMIC with this PSN is executed here"},
        {"RNR-01", "this request takes no receive work request, or none that was missing"},
        {"RNR-02", "after the RNR NAK our engine waits in silence"},
        {"ACK-08", "our engine has sent its one NAK for this gap"},
        {"ACK-07", "our engine misses no packet here"},
        {"ACK-06", "our engine finds nothing to refuse"},
        {"ACK-05", "our engine has not executed this packet"},
        {"RSP-22", "our engine has refused an earlier request for good"},
    };
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        if (!strcmp(text[i][0], rule))
            return text[i][1];
    return "";
}

/* Report a difference; our engine has this answer instead, NULL = none. */
void responder_differ(struct responder *r, const struct packet *p, const char *rule,
                      const char *field, const struct answer *ours, const char *why)
{
    char text[REPLAY_DUMP_MAX] = "(nothing)";
    if (ours && !r->j->mute) {
        const struct wire_pkt w = {.opcode = ours->opcode,
                                   .psn = ours->psn,
                                   .msn = ours->msn,
                                   .syndrome = ours->syndrome,
                                   .pkey = ours->pkey,
                                   .orig = ours->content,
                                   .payload_len = ours->payload_len,
                                   .ttl = WIRE_TTL_DEFAULT};
        stage_dump(&r->stage, &w, r->stage.p.remote_qpn, text);
    }
    judge_differ(r->j, p, rule, field, text, why);
}

/* The ledger's answers with a captured answer's PSN. */
struct match {
    struct answer *found; /* same kind, not used yet, with equal content if possible */
    const char *wrong;    /* the field that differs, if the content does */
    struct answer *near;  /* any answer with this PSN */
    bool repeated;        /* an equal answer, used or not: perhaps to an uncaptured request */
    bool again;           /* our engine has answered with this PSN more than once */
};

/* The READ response differs only in this field: memory may have changed between two executions. */
static bool memory_changed(const struct packet *p, const char *field)
{
    return packet_flags(p) & WIRE_F_READ && !strcmp(field, "payload");
}

static struct match look_up(const struct responder *r, const struct packet *p)
{
    struct match m = {0};
    bool redone = packet_flags(p) & (WIRE_F_READ | WIRE_F_ATOMIC);
    for (uint32_t i = r->bucket[p->psn % LEDGER_BUCKETS]; i; i = r->ledger[i - 1].next) {
        struct answer *a = &r->ledger[i - 1];
        if (a->psn != p->psn)
            continue;
        m.again = m.again || m.near;
        if (!m.near || (m.near->used && !a->used))
            m.near = a;
        const char *what = NULL;
        bool kind = same_kind(a, p), same = kind && same_content(a, p, &what);
        m.repeated = m.repeated || (redone && (same || (kind && memory_changed(p, what))));
        if (!kind || a->used || (m.found && (!m.wrong || !same)))
            continue;
        m.found = a;
        m.wrong = same ? NULL : what;
    }
    return m;
}

/* Judge an answer of a kind that our engine gives. */
static void compare_found(struct responder *r, const struct packet *p, const struct match *m)
{
    unsigned f = packet_flags(p);
    m->found->used = true;
    if (f & WIRE_F_READ && reread_oddly(r, p, m->found))
        return;
    if (!m->wrong || (m->again && memory_changed(p, m->wrong))) {
        r->j->out->same++;
        return;
    }
    const char *rule = !strcmp(m->wrong, "P_Key") ? "KEY-01"
                       : f & WIRE_F_ATOMIC        ? "ATM-08"
                                                  : "RD-05";
    responder_differ(r, p, rule, m->wrong, m->found, "the same answer, with other content");
}

/* A capture may start during retransmissions of packets that were executed before. The ACK of the
 * last of them then appears before that packet, and counts no more messages than the answer before
 * it. */
static bool counts_no_more(struct responder *r, const struct packet *p)
{
    if (wire_opcodes[p->opcode].headers & WIRE_H_AETH && !r->first)
        r->first = p;
    return packet_flags(p) & WIRE_F_ACK && packet_positive(p) && r->first != p &&
           p->msn == r->first->msn && p - r->d->packet < EARLY;
}

/* An answer to a PSN that our engine has not reached, or never will: true if an earlier answer has
 * reported it. */
static bool lags_already(struct responder *r, const struct packet *p)
{
    uint32_t epsn = stage_epsn(&r->stage);
    if (!packet_positive(p) ||
        (wire_psn_diff(p->psn, epsn) < 0 && stage_state(&r->stage) != QPS_ERR))
        return false;
    bool told = r->lags && r->lags_at == epsn;
    r->lags = true;
    r->lags_at = epsn;
    return told;
}

/* This answer can't be judged after all. */
static void pass_over(struct responder *r)
{
    r->j->out->passed++;
    r->j->out->compared--;
}

static void other_pkey(struct responder *r, const struct packet *p)
{
    char ours[REPLAY_DUMP_MAX];
    snprintf(ours, sizeof(ours), "P_Key 0x%x", r->d->answers_pkey);
    judge_differ(r->j, p, "KEY-01", "P_Key", ours, "our engine sends with one P_Key");
}

/* An ACK of a PSN that our engine has also executed: it may be sent or left out. */
static void compare_ack(struct responder *r, const struct packet *p, const struct match *m)
{
    if (answered_otherwise(r, p))
        responder_differ(r, p, "ACK-05", "opcode", m->near,
                         "this PSN is a READ's or an ATOMIC's: no ACK has it");
    else if (p->pkey != r->d->answers_pkey)
        other_pkey(r, p);
    else
        r->j->out->same++;
}

/* Our engine doesn't give this answer: does the capture or an earlier report explain it? */
static bool explained(struct responder *r, const struct packet *p, const struct match *m,
                      bool no_more)
{
    bool nak = p->opcode == WIRE_ACKNOWLEDGE && !packet_positive(p);
    bool middle = r->middle && p - r->d->packet < EARLY;
    if (r->declined[p->psn % LEDGER_BUCKETS] || !r->stage.budget || m->repeated || middle ||
        no_more || excuse_missed(r, p) || reread_missed(r, p))
        return true;
    if (nak && (excuse_delayed(r, p) || excuse_copied(r, p)))
        return true;
    return lags_already(r, p);
}

/* Judge an answer that our engine doesn't give, and that nothing explains. */
static void missing_differs(struct responder *r, const struct packet *p, const struct match *m)
{
    bool ack = p->opcode == WIRE_ACKNOWLEDGE;
    const char *field = ack && packet_positive(p) ? "PSN" : "opcode";
    if (ack && m->near && m->near->opcode == p->opcode)
        field = "syndrome";
    r->why[0] = '\0';
    const char *rule = rule_of_missing(r, p, m->near);
    responder_differ(r, p, rule, field, m->near && !m->near->used ? m->near : NULL,
                     r->why[0] ? r->why : responder_why(rule));
}

void responder_compare(struct responder *r, const struct packet *p)
{
    bool no_more = counts_no_more(r, p);
    r->hole = r->hole || (!p->selective && excuse_hole(r, p));
    bool before = wire_psn_diff(p->psn, r->d->base) < 0 || !r->j->out->fed || p->selective;
    if (r->hole || p->duplicate || before) {
        r->j->out->passed++;
        return;
    }
    excuse_order(r, p);
    r->j->out->compared++;
    struct match m = look_up(r, p);
    bool ack = p->opcode == WIRE_ACKNOWLEDGE && packet_positive(p);
    if (ack && acknowledgeable(r, p->psn)) {
        compare_ack(r, p, &m);
    } else if (m.found) {
        compare_found(r, p, &m);
    } else if (wrong_syndrome(p)) {
        responder_differ(r, p, "REQ-31", "syndrome", m.near, responder_why("REQ-31"));
    } else if (explained(r, p, &m, no_more)) {
        pass_over(r);
    } else if (excuse_starved(r, p)) {
        pass_over(r);
        r->j->excused++;
    } else {
        missing_differs(r, p, &m);
    }
}
