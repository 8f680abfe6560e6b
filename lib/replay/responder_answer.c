/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is a captured answer what our engine says, too? Its ledger is asked by PSN; where it has no such
 * answer, what else explains it: the capture's beginning, a hole in it, delay, a receive that was
 * not there. What is left is a difference, with the rule that it is about.
 */
#include <string.h>

#include "as_responder.h"

#define LATE   64u   /* packets in which a delayed one comes */
#define BACK   4096u /* packets in which what has been overtaken is looked for */
#define MISSED 256u  /* packets that are put in order for one answer */

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
        return true; /* cut: perhaps several packets, merged by the host that captured */
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

/* Has our engine executed the SEND or WRITE packet with this PSN, or all before the first? */
static bool acknowledgeable(const struct responder *r, uint32_t psn)
{
    return wire_psn_diff(stage_epsn(&r->stage), psn) > 0;
}

/* Has the responder refused what this NAK asks for, for want of a receive, between `from` and the
 * NAK and said nothing else of it since? */
static bool refused_since(const struct responder *r, const struct packet *from,
                          const struct packet *nak)
{
    const struct packet *q = nak;
    for (unsigned n = 0; q-- > from && n < BACK; n++) {
        if (!packet_answers(r->d, q) || wire_psn_diff(q->psn, nak->psn) < 0)
            continue;
        if (q->psn != nak->psn || q->opcode != WIRE_ACKNOWLEDGE || packet_positive(q))
            return false;
        if (wire_aeth_kind(q->syndrome) == WIRE_AETH_RNR)
            return true;
    }
    return false;
}

/* Does this PSN belong to a READ or an ATOMIC, as it was last asked for? No ACK names it then. */
static bool answered_otherwise(const struct responder *r, const struct packet *ack)
{
    const struct packet *q = ack;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++)
        if (packet_asks(r->d, --q) && ((ack->psn - q->psn) & WIRE_PSN_MASK) < packet_psns(r->d, q))
            return packet_flags(q) & (WIRE_F_READ | WIRE_F_ATOMIC);
    return false;
}

static const char *rule_of_missing(const struct responder *r, const struct packet *p,
                                   const struct answer *near)
{
    unsigned f = packet_flags(p);
    if (!(f & WIRE_F_ACK) && wire_opcodes[p->opcode].headers & WIRE_H_AETH &&
        wire_aeth_kind(p->syndrome) != WIRE_AETH_ACK)
        return "REQ-31";
    if (packet_positive(p) && stage_state(&r->stage) == QPS_ERR)
        return "RSP-22";
    if (f & WIRE_F_READ)
        return near && near->opcode != p->opcode ? near->used ? "RD-10" : "REQ-30" : "RD-10";
    if (f & WIRE_F_ATOMIC)
        return "ATM-08";
    switch (wire_aeth_kind(p->syndrome)) {
    case WIRE_AETH_RNR:
        return "RNR-01";
    case WIRE_AETH_NAK:
        if (p->syndrome != WIRE_SYN_NAK_SEQ)
            return "ACK-06";
        return (near && wire_aeth_kind(near->syndrome) == WIRE_AETH_RNR) ||
                       refused_since(r, r->d->packet, p)
                   ? "RNR-02"
               : near && near->syndrome == WIRE_SYN_NAK_SEQ ? "ACK-08"
                                                            : "ACK-07";
    default:
        return "ACK-05";
    }
}

static const char *why_missing(const char *rule)
{
    static const char *const text[][2] = {
        {"RD-10", "a READ repeated from the middle is answered as one of its own"},
        {"REQ-31", "a READ response or ATOMIC acknowledge says ACK in its AETH"},
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

/* It differs; our engine has this answer instead, NULL = nothing. */
static void differ(struct responder *r, const struct packet *p, const char *rule, const char *field,
                   const struct answer *ours, const char *why)
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
                                   .ttl = 64};
        stage_dump(&r->stage, &w, r->stage.p.remote_qpn, text);
    }
    judge_differ(r->j, p, rule, field, text, why);
}

static void differ_repeated(struct responder *r, const struct packet *p)
{
    const struct answer *due = NULL;
    for (uint32_t i = r->bucket[p->psn % LEDGER_BUCKETS]; i; i = r->ledger[i - 1].next)
        if (r->ledger[i - 1].psn == p->psn && r->ledger[i - 1].opcode != p->opcode)
            due = &r->ledger[i - 1];
    differ(r, p, "RD-10", "opcode", due, why_missing("RD-10"));
}

/* Has the capture shown how the execution began that this answer of ours is from? If not, perhaps
 * it is this very execution that is seen here. */
static bool begun_before(const struct responder *r, const struct answer *found)
{
    const struct answer *a = found;
    while (a > r->ledger && !(wire_opcodes[a->opcode].flags & WIRE_F_START) &&
           a[-1].psn == ((a->psn - 1) & WIRE_PSN_MASK))
        a--;
    return a->used;
}

/* Does the capture have this answer of ours behind `p`? Then what it has here is another one, late.
 */
static bool follows(const struct responder *r, const struct packet *p, const struct answer *a)
{
    const struct packet *end = r->d->packet + r->d->packets;
    for (unsigned n = 0; ++p < end && n < BACK; n++)
        if (packet_answers(r->d, p) && p->psn == a->psn && p->opcode == a->opcode)
            return true;
    return false;
}

/* Has the response before it just come, since the READ was repeated from here? Then this one goes
 * on with an execution that began before. */
static bool goes_on(const struct responder *r, const struct packet *p)
{
    const struct packet *q = p;
    for (unsigned n = 0; q-- > r->d->packet && n < BACK; n++) {
        if (packet_asks(r->d, q) && q->psn == p->psn)
            return false;
        if (packet_answers(r->d, q) && packet_flags(q) & WIRE_F_READ)
            return q->psn == ((p->psn - 1) & WIRE_PSN_MASK);
    }
    return false;
}

/* Is `found` the answer to the first execution of a READ, but seen where one to a later execution,
 * which begins here, is due? */
static bool repeated_oddly(struct responder *r, const struct packet *p, const struct answer *found)
{
    bool later = false;
    for (uint32_t i = r->bucket[p->psn % LEDGER_BUCKETS]; i; i = r->ledger[i - 1].next) {
        const struct answer *a = &r->ledger[i - 1];
        if (a->psn != p->psn || a->opcode == found->opcode ||
            !(wire_opcodes[a->opcode].flags & WIRE_F_READ))
            continue;
        r->regular = r->regular || a < found;
        if (a > found && !a->used) {
            later = true;
            r->regular = r->regular || follows(r, p, a);
        }
    }
    uint64_t least = r->d->answers.rtt_samples ? r->d->answers.rtt_min / 8 : 0;
    bool at_once = r->reread[p->psn % REREADS].psn == p->psn &&
                   p->kept->ns - r->reread[p->psn % REREADS].ns < least; /* under way already */
    if (!later || at_once || r->regular || p->overtaken || goes_on(r, p) ||
        (!r->odd_told && !begun_before(r, found)))
        return false;
    if (!r->odd) {
        r->odd = p;
        return false;
    }
    if (!r->odd_told) {
        r->j->out->same--;
        differ_repeated(r, r->odd);
    }
    r->odd_told = true;
    differ_repeated(r, p);
    return true;
}

/* The latest packet before `end` that asks with this PSN (`fed`: and found what it needed); or
 * NULL. */
static const struct packet *asked_before(const struct responder *r, const struct packet *end,
                                         uint32_t psn, bool fed)
{
    for (unsigned n = 0; end > r->d->packet && n < BACK; n++)
        if (packet_asks(r->d, --end) && end->psn == psn && !(fed && end->starve))
            return end;
    return NULL;
}

/* The first PSN that this answer covers, from what our engine waits for on, which the capture
 * hasn't shown before it; the answer's own end if there is none. */
static uint32_t never_shown(const struct responder *r, const struct packet *p, uint32_t end)
{
    uint32_t psn = stage_epsn(&r->stage);
    for (unsigned n = 0; wire_psn_diff(end, psn) > 0 && n < MISSED; n++) {
        const struct packet *q = asked_before(r, p, psn, false);
        if (!q)
            return psn;
        psn = (psn + packet_psns(r->d, q)) & WIRE_PSN_MASK;
    }
    return end;
}

/* Has the requester sent what the capture hasn't shown before this answer? What comes later for the
 * first time may not have been sent before; if what was sent behind it was seen before, it has.
 * Nobody guesses the answer to a READ. */
static bool missed(const struct responder *r, const struct packet *p, uint32_t wanted)
{
    bool ack = packet_flags(p) & WIRE_F_ACK, before = false;
    const struct packet *end = ack ? r->d->packet + r->d->packets : p;
    for (const struct packet *q = r->d->packet; q < end; q++) {
        if (!packet_asks(r->d, q))
            continue;
        if (q->psn == wanted)
            return q > p && before;
        before = before || wire_psn_diff(q->psn, wanted) > 0;
    }
    return true;
}

/* An answer that covers what our engine waits for, or something behind it, though the capture has
 * never shown it. From here on nothing can be told. */
static bool finds_hole(const struct responder *r, const struct packet *p)
{
    uint32_t end = (p->psn + packet_positive(p)) & WIRE_PSN_MASK; /* a NAK covers what was before */
    if (wire_psn_diff(end, stage_epsn(&r->stage)) <= 0 || stage_state(&r->stage) == QPS_ERR)
        return false;
    uint32_t wanted = never_shown(r, p, end);
    return wanted != end && missed(r, p, wanted);
}

/* Does it refuse a packet that the capture has missed? */
static bool refuses_missed(const struct responder *r, const struct packet *p)
{
    return packet_flags(p) & WIRE_F_ACK && !packet_positive(p) && p->syndrome != WIRE_SYN_NAK_SEQ &&
           !asked_before(r, p, p->psn, false) && missed(r, p, p->psn);
}

/* Does it refuse what takes a receive, for want of one, or a READ or ATOMIC, for want of room
 * (RNR-08)? Anybody may, and which transmission of it came when can't always be told; but not what
 * an answer has long covered. */
static bool may_starve(const struct responder *r, const struct packet *p)
{
    const struct packet *asked = asked_before(r, p, p->psn, false), *q = p;
    if (wire_aeth_kind(p->syndrome) != WIRE_AETH_RNR || !asked)
        return false;
    unsigned f = packet_flags(asked);
    if (!(f & (WIRE_F_READ | WIRE_F_ATOMIC)) &&
        (f & WIRE_F_SEND ? !(f & WIRE_F_START) : !(f & WIRE_F_IMM && f & WIRE_F_END)))
        return false;
    for (unsigned n = 0; q-- > r->d->packet && n < BACK; n++)
        if (packet_answers(r->d, q) && packet_positive(q) && wire_psn_diff(q->psn, p->psn) >= 0)
            return n < LATE;
    return true;
}

/* An answer that shows that the responder is further than our engine: the capture has all that it
 * needed, but in another order, or it is thought lost. Give it in order. */
static void catch_up(struct responder *r, const struct packet *p)
{
    uint32_t goal = (p->psn + packet_positive(p)) & WIRE_PSN_MASK, psn = stage_epsn(&r->stage);
    const struct packet *missed[MISSED];
    unsigned n = 0;
    if (r->d->exact || p->selective || stage_state(&r->stage) == QPS_ERR)
        return;
    for (; wire_psn_diff(goal, psn) > 0; n++) {
        if (n == MISSED || !(missed[n] = asked_before(r, p, psn, true)))
            return;
        psn = (psn + packet_psns(r->d, missed[n])) & WIRE_PSN_MASK;
    }
    for (unsigned i = 0; i < n; i++)
        responder_give(r, (size_t)(missed[i] - r->d->packet));
}

/* Was something sent behind `last`, which this NAK asks for, that the capture has missed? Then it
 * has more of that before what was missed comes, or the requester goes back to `last` and on from
 * there at once, or an answer is to what has never been seen. Not if the requester's packets are
 * numbered, and none is missing. */
static bool gap_missed(const struct responder *r, const struct packet *nak,
                       const struct packet *last)
{
    const struct packet *q = nak, *end = r->d->packet + r->d->packets, *again = NULL;
    int32_t next = (int32_t)packet_psns(r->d, last);
    bool answered = false;
    for (unsigned n = 0; ++q < end && n < BACK; n++) {
        int32_t off = wire_psn_diff(q->psn, nak->psn);
        if (packet_answers(r->d, q) && packet_positive(q) && off >= 0) {
            if (off >= next)
                return again != NULL;
            answered = true;
        }
        if (!packet_asks(r->d, q) || off < 0)
            continue;
        if (off == 0)
            again = again ? again : q;
        else if (!again && off > next)
            return true;
        else if (again)
            return !answered && (!q->ipv4 || (uint16_t)(again->ip_id - last->ip_id) != 1);
    }
    return false;
}

/* Could what this NAK asks for have come late, behind packets that were sent after it? Not if an
 * answer has covered it before, or a NAK named it. If it hasn't been captured, then what was behind
 * it need not have been, either; but at the responder's own port it would have been. */
static bool first_missing(const struct responder *r, const struct packet *p)
{
    bool behind = false;
    const struct packet *q = p, *last = NULL;
    for (unsigned n = 0; q-- > r->d->packet && n < BACK; n++) {
        int32_t off = wire_psn_diff(q->psn, p->psn);
        /* (one from before it was sent has covered nothing, whatever it says) */
        if (packet_answers(r->d, q) && off >= 0 && (!last || asked_before(r, q, p->psn, false)))
            return false;
        behind = behind || (packet_asks(r->d, q) && off > 0);
        if (!last && packet_asks(r->d, q) && off == 0)
            last = q;
    }
    return behind || (!r->d->own_port && (!last || gap_missed(r, p, last)));
}

/* A second NAK for one gap, by a responder that says it again once in a while in case the first was
 * lost: two round trips after that, and what it asks for has been sent since. */
static bool said_again(const struct responder *r, const struct packet *p)
{
    uint64_t rtt = r->d->answers.rtt_samples ? r->d->answers.rtt_min : 0;
    const struct packet *q = p;
    bool sent = false;
    for (unsigned n = 0; rtt && q-- > r->d->packet && n < BACK; n++) {
        sent = sent || (packet_asks(r->d, q) && q->psn == p->psn);
        if (packet_answers(r->d, q) && wire_psn_diff(q->psn, p->psn) >= 0)
            return sent && q->psn == p->psn && q->syndrome == p->syndrome &&
                   q->opcode == p->opcode && p->kept->ns > q->kept->ns &&
                   p->kept->ns - q->kept->ns >= 2 * rtt;
    }
    return false;
}

/* A NAK that the network explains: what it asks for was delayed behind the capture; or it was
 * overtaken itself by answers to that. Long after them it would be a NAK of a repetition. */
static bool delayed(const struct responder *r, const struct packet *p)
{
    bool covered = false;
    if (p->syndrome != WIRE_SYN_NAK_SEQ)
        return false;
    if (p->overtaken || said_again(r, p))
        return true;
    const struct packet *early =
        r->d->exact && p->psn == stage_epsn(&r->stage) ? asked_before(r, p, p->psn, true) : NULL;
    if (early && !refused_since(r, early, p))
        return true; /* it came early; what it came before, just before the NAK was made */
    if (!r->d->exact && (evidence_late(r->d, p) || first_missing(r, p)))
        return true;
    size_t i = (size_t)(p - r->d->packet);
    for (unsigned n = 0; i-- > 0 && n < 2 * LATE; n++) {
        const struct packet *q = &r->d->packet[i];
        bool covers =
            packet_answers(r->d, q) && packet_positive(q) && wire_psn_diff(q->psn, p->psn) >= 0;
        if (covers && n >= LATE)
            return false;
        covered = covered || covers;
    }
    return covered;
}

/* A fatal NAK for the second time: a copy that a mirror or the network has made, as far as the IP
 * identification tells? */
static bool copied(const struct responder *r, const struct packet *p)
{
    const struct packet *q = p;
    if (p->syndrome <= WIRE_SYN_NAK_SEQ)
        return false;
    for (unsigned n = 0; q-- > r->d->packet && n < BACK; n++)
        if (packet_answers(r->d, q) && q->psn == p->psn && q->opcode == p->opcode &&
            q->syndrome == p->syndrome)
            return q->ip_id == p->ip_id;
    return false;
}

/* What the ledger has with a captured answer's PSN. */
struct match {
    struct answer *found; /* of the same kind, and not used yet; the same content if there is one */
    const char *wrong;    /* ... else the field that differs */
    struct answer *near;  /* with this PSN at least */
    bool repeated;        /* the same, used or not: perhaps to a request that wasn't captured */
    bool again;           /* our engine has answered with this PSN more than once */
};

/* The response of a READ differs in this only: memory may have changed between two executions. */
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

/* Our engine has an answer of this kind. */
static void compare_found(struct responder *r, const struct packet *p, const struct match *m)
{
    unsigned f = packet_flags(p);
    m->found->used = true;
    if (f & WIRE_F_READ && repeated_oddly(r, p, m->found))
        return;
    if (!m->wrong || (m->again && memory_changed(p, m->wrong))) {
        r->j->out->same++;
        return;
    }
    const char *rule = f & WIRE_F_ATOMIC            ? "ATM-08"
                       : !strcmp(m->wrong, "P_Key") ? "KEY-01"
                                                    : "RD-05";
    differ(r, p, rule, m->wrong, m->found, "the same answer, with other content");
}

/* A capture may begin while packets are sent again that were executed before. The ACK of the last
 * of them then comes before it, and counts no message more than the answer before it did. */
static bool counts_no_more(struct responder *r, const struct packet *p)
{
    if (wire_opcodes[p->opcode].headers & WIRE_H_AETH && !r->first)
        r->first = p;
    return packet_flags(p) & WIRE_F_ACK && packet_positive(p) && r->first != p &&
           p->msn == r->first->msn && p - r->d->packet < EARLY;
}

/* An answer to what our engine hasn't got to, or won't: true if one before it has said so. */
static bool behind_already(struct responder *r, const struct packet *p)
{
    uint32_t epsn = stage_epsn(&r->stage);
    if (!packet_positive(p) ||
        (wire_psn_diff(p->psn, epsn) < 0 && stage_state(&r->stage) != QPS_ERR))
        return false;
    bool told = r->behind && r->behind_at == epsn;
    r->behind = true;
    r->behind_at = epsn;
    return told;
}

/* Nothing can be told of this answer after all. */
static void pass_over(struct responder *r)
{
    r->j->out->passed++;
    r->j->out->compared--;
}

void responder_compare(struct responder *r, const struct packet *p)
{
    bool no_more = counts_no_more(r, p);
    bool ack = p->opcode == WIRE_ACKNOWLEDGE, positive = packet_positive(p);
    r->hole = r->hole || (!p->selective && finds_hole(r, p));
    bool before = wire_psn_diff(p->psn, r->d->base) < 0 || !r->j->out->fed || p->selective;
    if (r->hole || p->duplicate || before) {
        r->j->out->passed++;
        return;
    }
    catch_up(r, p);
    r->j->out->compared++;
    struct match m = look_up(r, p);
    if (ack && positive && acknowledgeable(r, p->psn)) {
        if (answered_otherwise(r, p))
            differ(r, p, "ACK-05", "opcode", m.near,
                   "this PSN is a READ's or an ATOMIC's: no ACK has it");
        else
            r->j->out->same++;
        return;
    }
    if (m.found) {
        compare_found(r, p, &m);
        return;
    }
    if (r->declined[p->psn % LEDGER_BUCKETS] || !r->stage.budget || m.repeated ||
        (r->middle && p - r->d->packet < EARLY) || no_more || refuses_missed(r, p) ||
        (ack && !positive && (delayed(r, p) || copied(r, p)))) {
        pass_over(r);
        return;
    }
    const char *field = ack && positive ? "PSN" : "opcode";
    if (ack && m.near && m.near->opcode == p->opcode)
        field = "syndrome";
    if (behind_already(r, p)) {
        pass_over(r);
        return;
    }
    if (may_starve(r, p)) {
        pass_over(r);
        r->j->excused++;
        return;
    }
    const char *rule = rule_of_missing(r, p, m.near);
    differ(r, p, rule, field, m.near && !m.near->used ? m.near : NULL, why_missing(rule));
}
