/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Facts from fatal NAKs: the bad key, the short receive buffer, the operation that the queue pair
 * doesn't allow.
 */
#include "evidence.h"
#include "mem.h"

/* Give this packet's message a receive buffer that ends before the packet's end. */
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
 * capture may have the packet more than once: all of its transmissions count as refused. */
void refusal_mark(struct direction *d, size_t at)
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
    size_t at = (size_t)(p - d->packet);
    if (!(d->naks >> (syndrome & 31) & 1))
        return false;
    for (size_t i = answers_after(d, at); i < d->answered && d->answer[i] - at < AHEAD_MAX; i++) {
        const struct packet *q = &d->packet[d->answer[i]];
        uint32_t off = (q->psn - p->psn) & WIRE_PSN_MASK;
        if (off >= WIRE_PSN_MASK / 2)
            continue;
        if (q->opcode == WIRE_ACKNOWLEDGE && off < (psns ? psns : 1) && q->syndrome == syndrome)
            return true;
        if (off >= psns && packet_positive(q))
            return false; /* a later packet has been executed */
    }
    return false;
}

/* Does an answer show that it was executed? */
static bool accepted(const struct direction *d, const struct packet *p)
{
    size_t at = (size_t)(p - d->packet);
    for (size_t i = answers_after(d, at); i < d->answered && d->answer[i] - at < AHEAD_MAX; i++) {
        const struct packet *q = &d->packet[d->answer[i]];
        if (packet_positive(q) && ((q->psn - p->psn) & WIRE_PSN_MASK) < WIRE_PSN_MASK / 2)
            return true;
    }
    return false;
}

/* A whole kind of request is refused as invalid: the queue pair doesn't allow it. A request in
 * flight after a refused one, without an answer, proves nothing. */
void refusal_rights(struct direction *d)
{
    unsigned good = 0, bad = 0;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        unsigned right = packet_asks(d, p) ? right_of(packet_flags(p)) : 0;
        bool start = packet_flags(p) & (WIRE_F_START | WIRE_F_READ | WIRE_F_ATOMIC);
        if (!right || !start || (good & right && bad & right))
            continue;
        if (right == MEM_REMOTE_ATOMIC && p->va % 8)
            continue; /* refused for its kind */
        if (evidence_refused(d, p, WIRE_SYN_NAK_INV))
            bad |= right;
        else if (!bad || accepted(d, p))
            good |= right;
    }
    d->qp_rights = MEM_REMOTE_ANY & ~(bad & ~good);
}
