/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READs that are repeated from the middle: are they answered as READs of their own, or as a
 * continuation of the first one (RD-10)?
 */
#include "as_responder.h"

#define COPY_NS 50000u /* a round trip, when none is known */

static void differ_repeated(struct responder *r, const struct packet *p)
{
    const struct answer *due = NULL;
    for (uint32_t i = r->bucket[p->psn % LEDGER_BUCKETS]; i; i = r->ledger[i - 1].next)
        if (r->ledger[i - 1].psn == p->psn && r->ledger[i - 1].opcode != p->opcode)
            due = &r->ledger[i - 1];
    responder_differ(r, p, "RD-10", "opcode", due, responder_why("RD-10"));
}

/* Was the start of the execution captured to which our answer belongs? If not, the captured answer
 * may be from this very execution. */
static bool started_before(const struct responder *r, const struct answer *found)
{
    const struct answer *a = found;
    while (a > r->ledger && !(wire_opcodes[a->opcode].flags & WIRE_F_START) &&
           a[-1].psn == ((a->psn - 1) & WIRE_PSN_MASK))
        a--;
    return a->used;
}

/* Our responder gives the answer `a`. Does the capture have the same answer after `p`? Then `p` is
 * another, late answer. */
static bool follows(const struct responder *r, const struct packet *p, const struct answer *a)
{
    const struct packet *end = r->d->packet + r->d->packets;
    for (unsigned n = 0; ++p < end && n < BACK; n++)
        if (packet_answers(r->d, p) && p->psn == a->psn && p->opcode == a->opcode)
            return true;
    return false;
}

/* Was the response before it captured just now, after the READ was repeated from here? Then this
 * one continues an execution that started before. */
static bool goes_on(const struct responder *r, const struct packet *p)
{
    const struct packet *q = p;
    for (unsigned n = 0; q > r->d->packet && n < BACK; n++) {
        if (packet_asks(r->d, --q) && q->psn == p->psn)
            return false;
        if (packet_answers(r->d, q) && packet_flags(q) & WIRE_F_READ)
            return q->psn == ((p->psn - 1) & WIRE_PSN_MASK);
    }
    return false;
}

bool reread_missed(const struct responder *r, const struct packet *p)
{
    const struct packet *q = p;
    bool data = packet_flags(p) & WIRE_F_READ && packet_flags(p) & WIRE_F_START, within = false;
    uint64_t trip = r->d->answers.rtt_samples ? r->d->answers.rtt_min : COPY_NS;
    for (unsigned n = 0; data && q > r->d->packet && n < BACK; n++) {
        q--;
        uint32_t off = (p->psn - q->psn) & WIRE_PSN_MASK;
        bool read = packet_flags(q) & WIRE_F_READ;
        if (packet_answers(r->d, q) && read && off == 1 && p->kept->ns - q->kept->ns < trip)
            return false; /* it continues */
        if (packet_asks(r->d, q) && off == 0)
            return false;
        within = packet_asks(r->d, q) && read && off < packet_psns(r->d, q);
        if (within)
            break;
    }
    return within;
}

/* Is `found` the answer to the first execution of a READ, at a place that needs one to a later
 * execution, which starts here? */
bool reread_oddly(struct responder *r, const struct packet *p, const struct answer *found)
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
                   p->kept->ns - r->reread[p->psn % REREADS].ns < least; /* in flight already */
    if (!later || at_once || r->regular || p->overtaken || goes_on(r, p) ||
        (!r->stale_told && !started_before(r, found)))
        return false;
    if (!r->stale) {
        r->stale = p;
        return false;
    }
    if (!r->stale_told) {
        r->j->out->same--;
        differ_repeated(r, r->stale);
    }
    r->stale_told = true;
    differ_repeated(r, p);
    return true;
}
