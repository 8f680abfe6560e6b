/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Facts about the two ends of a connection from its packets: packets that evidently did not arrive,
 * or found no receive work request. The connection's start is in beginning.c, fatal NAKs are in
 * refusal.c, copies and order of answers in answers.c.
 */
#include <stdlib.h>

#include "evidence.h"
#include "mem.h"

#define TRIPS       65536u /* PSNs whose times are remembered */
#define SAMPLES_MIN 4u
#define SAMPLES_MAX 4096u

/* Was it sent too shortly before an answer to be its cause? */
bool evidence_crossed(const struct direction *d, const struct packet *p,
                      const struct packet *answer)
{
    return p->kept->ns <= answer->kept->ns && answer->kept->ns - p->kept->ns < d->trip;
}

/* The times at which each PSN was sent. */
struct sent {
    uint64_t first, last; /* + 1, 0 = not seen */
};

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The time from the capture point to the responder and back is at most the time from any packet's
 * first transmission to an answer that names it. With a few samples, take a little less than their
 * minimum. If that is far longer than the usual time from the last transmission, all these first
 * transmissions were lost. */
static void find_trip(struct direction *d)
{
    struct sent *sent = calloc(TRIPS, sizeof(*sent));
    uint64_t *again = calloc(SAMPLES_MAX, sizeof(*again)), least = UINT64_MAX;
    uint32_t highest = d->base, samples = 0, agains = 0;
    for (size_t i = 0; sent && again && i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        struct sent *at = &sent[p->psn % TRIPS];
        int32_t ahead = wire_psn_diff(p->psn, highest);
        if (packet_asks(d, p) && ahead >= 0 && ahead < (int32_t)TRIPS) {
            for (uint32_t psn = highest; psn != p->psn; psn = (psn + 1) & WIRE_PSN_MASK)
                sent[psn % TRIPS] = (struct sent){0};
            *at = (struct sent){p->kept->ns + 1, p->kept->ns + 1};
            highest = (p->psn + 1) & WIRE_PSN_MASK;
        } else if (packet_asks(d, p) && ahead < 0 && ahead > -(int32_t)TRIPS) {
            at->last = p->kept->ns + 1;
        } else if (packet_answers(d, p) && ahead < 0 && ahead > -(int32_t)TRIPS && at->first &&
                   p->kept->ns + 1 >= at->first) {
            uint64_t took = p->kept->ns + 1 - at->first;
            least = took < least ? took : least;
            samples++;
            if (agains < SAMPLES_MAX && p->kept->ns + 1 >= at->last)
                again[agains++] = p->kept->ns + 1 - at->last;
        }
    }
    if (agains) {
        qsort(again, agains, sizeof(*again), by_size);
        if (least / 4 > again[agains / 2])
            least = again[agains / 2];
    }
    free(again);
    free(sent);
    d->trip = samples < SAMPLES_MIN ? 0 : least / 8 * d->trip_share;
}

/* After a NAK that isn't fatal: does an answer show the packet's arrival before its retransmission,
 * or too soon after that to be caused by it? */
static bool answered_first(const struct direction *d, size_t at)
{
    uint32_t psn = d->packet[at].psn;
    const struct packet *again = NULL;
    for (size_t i = at + 1; i < d->packets && i - at < BACK_MAX; i++) {
        const struct packet *p = &d->packet[i];
        if (packet_asks(d, p) && p->psn == psn) {
            if (!d->trip)
                return false;
            again = again ? again : p;
        }
        if (packet_answers(d, p) && wire_psn_diff(p->psn, psn) >= !packet_positive(p))
            return !again || evidence_crossed(d, again, p);
    }
    return false;
}

/* After an RNR NAK and its retransmission: does an answer show that later packets were executed
 * without a retransmission? Then this one was executed before them. */
static bool overtaken(const struct direction *d, size_t at)
{
    uint32_t highest = d->packet[at].psn;
    bool again = false;
    for (size_t i = at + 1; i < d->packets && i - at < BACK_MAX; i++) {
        const struct packet *p = &d->packet[i];
        int32_t ahead = wire_psn_diff(p->psn, highest);
        again = again || (packet_asks(d, p) && ahead == 0);
        if (again && packet_asks(d, p) && ahead >= 0) {
            if (ahead > 1)
                return false;
            highest = (p->psn + packet_psns(d, p) - 1) & WIRE_PSN_MASK;
        } else if (again && packet_answers(d, p) && ahead > !packet_positive(p)) {
            return true;
        }
    }
    return false;
}

/* A packet was out of turn if it was sent before the retransmission of an earlier PSN that a NAK
 * had requested. Returns the index of the latest such retransmission before `at`, or 0. */
static size_t turn_begins(const struct direction *d, size_t at)
{
    uint32_t psn = d->packet[at].psn;
    size_t i = at;
    for (size_t n = 0; i-- > 0 && n < BACK_MAX; n++)
        if (packet_answers(d, &d->packet[i]) && !packet_positive(&d->packet[i]) &&
            wire_psn_diff(psn, d->packet[i].psn) > 0) {
            for (size_t k = i + 1; k < at; k++)
                if (packet_asks(d, &d->packet[k]) && d->packet[k].psn == d->packet[i].psn)
                    return k;
            return i;
        }
    return 0;
}

/* An RNR NAK: the last transmission before it found no receive work request, or the one before that
 * if two were refused; earlier ones have not arrived in their turn. If an answer shows that one has
 * been executed without being sent again, then it was the last, or the network's copy of it. */
static void mark_starved(struct direction *d, size_t at)
{
    uint32_t psn = d->packet[at].psn;
    struct packet *done = NULL, *starved = NULL;
    bool found = answered_first(d, at) || overtaken(d, at);
    size_t turn = turn_begins(d, at);
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++) {
        struct packet *p = &d->packet[i];
        if (!packet_asks(d, p) || p->psn != psn || evidence_crossed(d, p, &d->packet[at]))
            continue;
        if (found && !done) {
            done = p;
        } else if (!starved && (!p->starve || i < turn)) {
            if (done && i < turn)
                break;
            starved = p;
        } else if (!p->starve) {
            p->lost = true;
        }
    }
    if (!starved && done) {
        starved = done;
        done->doubled = true;
    }
    if (starved) {
        starved->starve = (uint32_t)at + 1;
        starved->lost = false;
    }
}

/* A sequence NAK names a PSN. Transmissions of that PSN that were sent before a later packet have
 * not arrived in their turn. Only the last of them may have crossed with the NAK. */
static void mark_lost(struct direction *d, size_t at)
{
    uint32_t psn = d->packet[at].psn;
    bool after = false, last = true;
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++) {
        struct packet *p = &d->packet[i];
        if (!packet_asks(d, p) || evidence_crossed(d, p, &d->packet[at]))
            continue;
        after = after || wire_psn_diff(p->psn, psn) > 0;
        if (p->psn != psn)
            continue;
        if (after && !p->starve && !(last && answered_first(d, at)))
            p->lost = true;
        last = false;
    }
}

bool evidence_late(const struct direction *d, const struct packet *nak)
{
    size_t at = (size_t)(nak - d->packet);
    bool after = false, late = false;
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX && !(after && late); n++) {
        const struct packet *p = &d->packet[i];
        int32_t off = packet_asks(d, p) ? wire_psn_diff(p->psn, nak->psn) : -1;
        after = after || off > 0;
        /* A later RNR NAK is for that transmission. */
        late = late ||
               (off == 0 && p->starve && d->packet[p->starve - 1].kept->number > nak->kept->number);
    }
    return after && (late || answered_first(d, at));
}

/* Both ends are in one partition, and one of them may be a limited member. An end that answers a
 * limited member is a full one; otherwise the majority of the answers decides. */
static void find_pkeys(struct direction *d)
{
    size_t full = 0, limited = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (packet_asks(d, p) && !d->pkey)
            d->pkey = p->pkey;
        else if (packet_answers(d, p) && !((p->pkey ^ d->pkey) & 0x7FFF))
            (*(p->pkey & FULL_MEMBER ? &full : &limited))++;
    }
    bool is_full = !(d->pkey & FULL_MEMBER) || full >= limited;
    d->answers_pkey = (uint16_t)((d->pkey & 0x7FFF) | (is_full ? FULL_MEMBER : 0));
}

void evidence_find(struct direction *d)
{
    bool acked = false;
    uint32_t highest = 0;
    evidence_mtu(d);
    find_pkeys(d);
    beginning_find(d);
    d->trip = 0;
    if (d->trip_share)
        find_trip(d);
    d->rnr_timer = 1;
    answers_find(d);
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        p->lost = p->doubled = p->spoilt = p->refused = false;
        p->starve = 0;
        p->room = UINT32_MAX;
    }
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        bool done = acked && wire_psn_diff(highest, p->psn) >= 0;
        if (packet_positive(p)) {
            if (!done)
                highest = p->psn;
            acked = true;
            continue;
        }
        if (done || p->duplicate)
            continue;
        switch (wire_aeth_kind(p->syndrome)) {
        case WIRE_AETH_RNR:
            d->rnr_timer = p->syndrome & 31;
            mark_starved(d, i);
            break;
        case WIRE_AETH_NAK:
            if (p->syndrome == WIRE_SYN_NAK_SEQ)
                mark_lost(d, i);
            else
                refusal_mark(d, i);
            break;
        default:
            break;
        }
    }
    d->qp_rights = MEM_REMOTE_ANY;
    if (d->answers.id != LINT_NO_FLOW)
        refusal_rights(d);
}
