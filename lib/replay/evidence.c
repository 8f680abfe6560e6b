/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the packets of a connection tell about its two ends: where it begins, its MTU, and which
 * packets evidently did not arrive, found no receive work request or were refused.
 */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "replay_priv.h"

#define COPY_BACK   256u   /* packets between a packet and the network's copy of it */
#define TRIPS       65536u /* PSNs back to which times are known */
#define SAMPLES_MIN 4u
#define SAMPLES_MAX 4096u
#define ID_NEAR     64    /* from one packet's IP identification to the next one's, of a counter */
#define BACK_MAX    4096u /* packets looked back at for the cause of a NAK */

static uint32_t payload_mtu(const struct packet *p)
{
    return packet_flags(p) & (WIRE_F_FIRST | WIRE_F_MIDDLE) ? p->payload_len : 0;
}

/* Does `b` ask for the rest of the READ that `a` has asked for? Then how far it begins behind that
 * shows the MTU. */
static uint32_t rest_mtu(const struct packet *a, const struct packet *b)
{
    const struct packet *x = a, *y = b;
    uint64_t psns = (y->psn - x->psn) & WIRE_PSN_MASK, off = y->va - x->va;
    if (!b->usable || b->flow != a->flow || y->opcode != x->opcode || y->rkey != x->rkey || !psns ||
        off >= x->dma_len || off + y->dma_len != x->dma_len || off % psns ||
        off / psns > WIRE_MTU_MAX)
        return 0;
    return wire_mtu_enum((uint32_t)(off / psns)) ? (uint32_t)(off / psns) : 0;
}

/* For requests that only READs, whose responses the capture lacks. */
static void find_rest(struct direction *d)
{
    for (size_t i = 0; i < d->packets && !d->mtu; i++) {
        const struct packet *p = &d->packet[i];
        bool read = packet_asks(d, p) && packet_flags(p) & WIRE_F_READ;
        for (size_t k = i + 1; read && k < d->packets && k - i < COPY_BACK && !d->mtu; k++)
            d->mtu = rest_mtu(p, &d->packet[k]);
    }
}

void evidence_mtu(struct direction *d)
{
    for (size_t i = 0; i < d->packets && !d->mtu; i++) {
        const struct packet *p = &d->packet[i];
        if (p->usable && wire_mtu_enum(payload_mtu(p)))
            d->mtu = payload_mtu(p);
    }
    find_rest(d);
    if (!d->mtu) /* any that holds all there is looks the same */
        d->mtu = WIRE_MTU_MAX;
}

/* Is it a message's first PSN, as far as the capture tells? */
static bool begins_message(const struct direction *d, uint32_t psn)
{
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (packet_asks(d, p) && p->psn == psn)
            return packet_flags(p) & (WIRE_F_START | WIRE_F_READ | WIRE_F_ATOMIC);
    }
    return true;
}

/* The earliest request before the first answer, or what a NAK then asks for. Behind a beginning in
 * the middle of a message nothing can be told until the next one. */
static void find_base(struct direction *d)
{
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        bool asks = packet_asks(d, p) && packet_flags(p) & WIRE_F_START;
        if (!asks && d->known_base && packet_answers(d, p)) {
            bool nak = p->opcode == WIRE_ACKNOWLEDGE && !packet_positive(p);
            int32_t before = wire_psn_diff(d->base, p->psn);
            if (nak && before > 0 && before < (int32_t)BACK_MAX && begins_message(d, p->psn))
                d->base = p->psn;
            if (wire_psn_diff(p->psn, d->base) >= 0)
                return;
        }
        /* READ and ATOMIC are messages of one packet that the table marks neither first nor only */
        asks = asks || (packet_asks(d, p) && packet_flags(p) & (WIRE_F_READ | WIRE_F_ATOMIC));
        if (!asks)
            continue;
        int32_t before = wire_psn_diff(d->base, p->psn);
        if (!d->known_base || (before > 0 && before < (int32_t)BACK_MAX))
            d->base = p->psn;
        d->known_base = true;
    }
}

/* Does the capture show the packet that this answer is to? */
static bool asked_before(const struct direction *d, size_t at)
{
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++)
        if (packet_asks(d, &d->packet[i]) && d->packet[i].psn == d->packet[at].psn)
            return true;
    return false;
}

/* While the responder wants what was sent before the base, it discards everything behind. */
static void find_begin(struct direction *d)
{
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        int32_t off = wire_psn_diff(p->psn, d->base);
        if (packet_answers(d, p) && !packet_positive(p) && off > -(int32_t)BACK_MAX &&
            (off < 0 || (wire_aeth_kind(p->syndrome) == WIRE_AETH_RNR && !asked_before(d, i))))
            d->begin = i + 1;
    }
}

/* Was it sent so shortly before an answer that it can't have been the cause? */
static bool crossed(const struct direction *d, const struct packet *p, const struct packet *answer)
{
    return p->kept->ns <= answer->kept->ns && answer->kept->ns - p->kept->ns < d->trip;
}

/* When each PSN was sent. */
struct sent {
    uint64_t first, last; /* + 1, 0 = not seen */
};

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* From the capture to the responder and back takes no longer than from the first transmission of
 * any packet to an answer that names it. What is a little less is taken for what it takes, where
 * there are a few to go by. If that is far longer than it usually takes from the last transmission,
 * then all these first ones were lost. */
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

/* After a NAK that isn't fatal: does an answer show that the packet has arrived, before it is sent
 * again, or so soon after that the answer can't be to that? */
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
            return !again || crossed(d, again, p);
    }
    return false;
}

/* After an RNR NAK and what it asks for: does an answer show that packets behind had been executed,
 * which have not been sent again? Then so was this one, before. */
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

/* What was sent before something earlier was sent again, that a NAK had asked for, was not in its
 * turn. Returns the index of the latest such repetition before `at`, or 0. */
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
        if (!packet_asks(d, p) || p->psn != psn || crossed(d, p, &d->packet[at]))
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

/* A sequence NAK: no transmission of what it asks for has arrived in its turn, as far as it was
 * sent before a packet behind it. Only the last may have crossed with the NAK. */
static void mark_lost(struct direction *d, size_t at)
{
    uint32_t psn = d->packet[at].psn;
    bool behind = false, last = true;
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++) {
        struct packet *p = &d->packet[i];
        if (!packet_asks(d, p) || crossed(d, p, &d->packet[at]))
            continue;
        behind = behind || wire_psn_diff(p->psn, psn) > 0;
        if (p->psn != psn)
            continue;
        if (behind && !p->starve && !(last && answered_first(d, at)))
            p->lost = true;
        last = false;
    }
}

bool evidence_late(const struct direction *d, const struct packet *nak)
{
    size_t at = (size_t)(nak - d->packet);
    bool behind = false, late = false;
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX && !(behind && late); n++) {
        const struct packet *p = &d->packet[i];
        int32_t off = packet_asks(d, p) ? wire_psn_diff(p->psn, nak->psn) : -1;
        behind = behind || off > 0;
        /* An RNR NAK, later, is for that. */
        late = late ||
               (off == 0 && p->starve && d->packet[p->starve - 1].kept->number > nak->kept->number);
    }
    return behind && (late || answered_first(d, at));
}

/* The message of this packet finds a receive buffer that ends before the packet's end. */
static void shorten(struct direction *d, size_t at)
{
    const struct packet *p = &d->packet[at], *start = NULL;
    for (size_t k = at + 1, n = 0; k-- > 0 && n < BACK_MAX; n++) {
        struct packet *q = &d->packet[k];
        int32_t back = wire_psn_diff(p->psn, q->psn);
        if (!packet_asks(d, q) || !(packet_flags(q) & WIRE_F_START) || back < 0 ||
            back >= (int32_t)BACK_MAX || (start && start->psn != q->psn))
            continue;
        q->room = (uint32_t)back * d->mtu + p->payload_len - 1;
        start = q;
    }
}

/* A fatal NAK: its key was bad, or its receive buffer was too short or could not be written. The
 * capture may have the packet more than once: whichever it was, it was refused. */
static void mark_refused(struct direction *d, size_t at)
{
    const struct packet *nak = &d->packet[at];
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++) {
        struct packet *p = &d->packet[i];
        if (!packet_asks(d, p) || p->psn != nak->psn)
            continue;
        unsigned f = packet_flags(p);
        p->refused = nak->syndrome == WIRE_SYN_NAK_ACCESS;
        if (nak->syndrome == WIRE_SYN_NAK_OP)
            p->spoilt = true;
        if (nak->syndrome == WIRE_SYN_NAK_INV && f & WIRE_F_SEND && p->payload_len)
            shorten(d, i);
    }
}

static unsigned right_of(unsigned flags)
{
    if (flags & WIRE_F_ATOMIC)
        return MEM_REMOTE_ATOMIC;
    return flags & WIRE_F_READ ? MEM_REMOTE_READ : flags & WIRE_F_WRITE ? MEM_REMOTE_WRITE : 0;
}

bool evidence_refused(const struct direction *d, const struct packet *p, uint8_t syndrome)
{
    uint32_t psns = packet_flags(p) & WIRE_F_WRITE
                        ? (uint32_t)(((uint64_t)p->dma_len + d->mtu - 1) / d->mtu)
                        : packet_psns(d, p);
    const struct packet *end = d->packet + d->packets;
    if (end - p > AHEAD_MAX)
        end = p + AHEAD_MAX;
    for (const struct packet *q = p + 1; q < end; q++)
        if (packet_answers(d, q) && q->opcode == WIRE_ACKNOWLEDGE) {
            uint32_t off = (q->psn - p->psn) & WIRE_PSN_MASK;
            if (off >= WIRE_PSN_MASK / 2)
                continue;
            if (off < (psns ? psns : 1) && q->syndrome == syndrome)
                return true;
            if (off >= psns && packet_positive(q))
                return false;
        }
    return false;
}

/* Does an answer say that it was executed? */
static bool accepted(const struct direction *d, const struct packet *p)
{
    const struct packet *end = d->packet + d->packets;
    if (end - p > AHEAD_MAX)
        end = p + AHEAD_MAX;
    for (const struct packet *q = p + 1; q < end; q++)
        if (packet_answers(d, q) && packet_positive(q) &&
            ((q->psn - p->psn) & WIRE_PSN_MASK) < WIRE_PSN_MASK / 2)
            return true;
    return false;
}

/* A whole kind of request refused as invalid: the queue pair doesn't allow it. What was on its way
 * behind a refused one and had no answer tells nothing. */
static void find_rights(struct direction *d)
{
    unsigned good = 0, bad = 0;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        unsigned right = packet_asks(d, p) ? right_of(packet_flags(p)) : 0;
        bool start = packet_flags(p) & (WIRE_F_START | WIRE_F_READ | WIRE_F_ATOMIC);
        if (!right || !start || (good & right && bad & right))
            continue;
        if (right == MEM_REMOTE_ATOMIC && p->va % 8)
            continue; /* refused for that */
        if (evidence_refused(d, p, WIRE_SYN_NAK_INV))
            bad |= right;
        else if (!bad || accepted(d, p))
            good |= right;
    }
    d->qp_rights = MEM_REMOTE_ANY & ~(bad & ~good);
}

/* The same packet, but for what bridges and routers change: MAC addresses, tags, TOS, TTL? */
static bool same_packet(const struct packet *a, const struct packet *b)
{
    uint32_t have = a->kept->have, other = b->kept->have;
    return a->psn == b->psn && a->opcode == b->opcode && a->ip_id == b->ip_id &&
           a->payload_len == b->payload_len &&
           !memcmp(a->kept->octet, b->kept->octet, have < other ? have : other);
}

/* Does the IP identification tell an answer that is given twice from one that the network has
 * doubled? Not if all are the same. */
static bool ids_tell(const struct direction *d)
{
    const struct packet *first = NULL;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        if (first && p->ipv4 && p->ip_id != first->ip_id)
            return true;
        first = first ? first : p;
    }
    return false;
}

/* Was the very same answer there a little earlier? Where nothing tells, it is another one if what
 * it answers has been sent again meanwhile, and there was time to answer that. */
static bool network_copy(const struct direction *d, const struct packet *p, bool told)
{
    const struct packet *q = p;
    bool asked = false;
    for (unsigned n = 0; q > d->packet && n < COPY_BACK; n++) {
        q--;
        asked = asked || (!told && packet_asks(d, q) &&
                          ((p->psn - q->psn) & WIRE_PSN_MASK) < packet_psns(d, q));
        if (asked && !crossed(d, q, p))
            return false;
        if (q->flow == p->flow && q->usable && same_packet(q, p))
            return true;
    }
    return false;
}

/* Have answers overtaken each other? Where a counter is the IP identification, it tells which have.
 * Else that NAKs go back tells that some have: what the responder has, it doesn't ask for again. */
static void find_disorder(struct direction *d)
{
    unsigned steps = 0, near = 0, back = 0;
    const struct packet *last = NULL;
    bool any = false;
    uint32_t highest = 0;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (!packet_answers(d, p))
            continue;
        int16_t step = last ? (int16_t)(p->ip_id - last->ip_id) : 0;
        steps += last != NULL;
        near += step && step > -ID_NEAR && step < ID_NEAR;
        last = p;
        if (p->opcode != WIRE_ACKNOWLEDGE)
            continue;
        uint32_t next = (p->psn + packet_positive(p)) & WIRE_PSN_MASK;
        back += any && !packet_positive(p) && wire_psn_diff(next, highest) < 0;
        highest = any && wire_psn_diff(next, highest) < 0 ? highest : next;
        any = true;
    }
    bool count = last && last->ipv4 && near > steps - steps / 8;
    uint16_t id = 0;
    any = false;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        p->overtaken = false;
        if (!packet_answers(d, p))
            continue;
        bool older = any && (int16_t)(p->ip_id - id) < 0;
        p->overtaken = count ? older : back > 1 || d->doubled;
        id = older ? id : p->ip_id;
        any = true;
    }
}

void evidence_find(struct direction *d)
{
    bool acked = false;
    uint32_t highest = 0;
    evidence_mtu(d);
    find_base(d);
    find_begin(d);
    d->trip = 0;
    if (d->trip_share)
        find_trip(d);
    d->rnr_timer = 1;
    bool told = ids_tell(d);
    find_disorder(d);
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        p->lost = p->doubled = p->spoilt = p->refused = false;
        p->starve = 0;
        p->room = UINT32_MAX;
        p->duplicate = packet_answers(d, p) && network_copy(d, p, told);
    }
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (packet_asks(d, p) && !d->pkey)
            d->pkey = p->pkey;
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
                mark_refused(d, i);
            break;
        default:
            break;
        }
    }
    d->qp_rights = MEM_REMOTE_ANY;
    if (d->answers.id != LINT_NO_FLOW)
        find_rights(d);
}
