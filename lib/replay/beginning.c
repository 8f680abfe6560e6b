/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The start of a direction, by its packets: its MTU, the first PSN that can be tracked, the first
 * packet that counts.
 */
#include "evidence.h"

#define REST_BACK 256u /* packets between a READ and its repetition from the middle */

static uint32_t payload_mtu(const struct packet *p)
{
    return packet_flags(p) & (WIRE_F_FIRST | WIRE_F_MIDDLE) ? p->payload_len : 0;
}

/* Does `b` request the rest of the READ in `a`? Then the distance between their starts shows the
 * MTU. */
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

/* The READ whose rest `b` may be: of the recent ones, the one with the nearest PSN before `b`;
 * several may name the same memory. */
static const struct packet *whole_of(const struct direction *d, const struct packet *b)
{
    const struct packet *best = NULL, *p = b;
    for (unsigned n = 0; n < REST_BACK && p > d->packet; n++) {
        p--;
        if (packet_asks(d, p) && wire_psn_diff(p->psn, b->psn) < 0 &&
            (!best || wire_psn_diff(p->psn, best->psn) > 0))
            best = p;
    }
    return best && packet_flags(best) & WIRE_F_READ ? best : NULL;
}

/* For requests that only READs, whose responses the capture lacks. */
static void find_rest(struct direction *d)
{
    for (size_t i = 0; i < d->packets && !d->mtu; i++) {
        const struct packet *p = &d->packet[i];
        const struct packet *whole =
            packet_asks(d, p) && packet_flags(p) & WIRE_F_READ ? whole_of(d, p) : NULL;
        d->mtu = whole ? rest_mtu(whole, p) : 0;
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
    if (!d->mtu) /* any MTU that holds all payloads looks the same */
        d->mtu = WIRE_MTU_MAX;
}

/* By the capture, is it a message's first PSN? */
static bool begins_message(const struct direction *d, uint32_t psn)
{
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        if (packet_asks(d, p) && p->psn == psn)
            return packet_flags(p) & (WIRE_F_START | WIRE_F_READ | WIRE_F_ATOMIC);
    }
    return true;
}

/* The earliest request before the first answer, or the PSN of a NAK there. If the start is in the
 * middle of a message, nothing can be judged until the next message. */
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

/* Does the capture have this answer's packet? */
static bool asked_before(const struct direction *d, size_t at)
{
    for (size_t i = at, n = 0; i-- > 0 && n < BACK_MAX; n++)
        if (packet_asks(d, &d->packet[i]) && d->packet[i].psn == d->packet[at].psn)
            return true;
    return false;
}

/* While the responder expects a PSN before the base, it discards all later ones. */
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

void beginning_find(struct direction *d)
{
    find_base(d);
    find_begin(d);
}
