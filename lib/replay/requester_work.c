/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests are inferred from the request packets of the capture. Each is posted at its first
 * packet.
 */
#include "as_requester.h"

#define HOLE_MAX 65536u /* successive uncaptured PSNs that are bridged */

static uint8_t verb_of(unsigned flags)
{
    if (flags & WIRE_F_SEND)
        return flags & WIRE_F_IMM   ? WR_SEND_WITH_IMM
               : flags & WIRE_F_INV ? WR_SEND_WITH_INV
                                    : WR_SEND;
    return flags & WIRE_F_IMM ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
}

/* The SEND or WRITE that starts at place i: returns the number of its PSNs, *last = its last
 * captured packet. */
static uint32_t message_span(const struct requester *r, size_t i, size_t *last, bool *whole)
{
    const struct place *first = &r->place[i];
    const struct packet *begin = first_of(r, first);
    unsigned kind = packet_flags(begin) & (WIRE_F_SEND | WIRE_F_WRITE);
    uint64_t len = kind & WIRE_F_WRITE ? begin->dma_len : WIRE_MSG_MAX;
    uint64_t most = (len + r->d->mtu - 1) / r->d->mtu;
    size_t k = i;
    *last = i;
    *whole = (packet_flags(begin) & WIRE_F_ONLY) != 0;
    while (!*whole && ++k < r->places) {
        unsigned f = packet_flags(first_of(r, &r->place[k]));
        bool gap = r->place[k].off != r->place[k - 1].off + 1;
        if (!(f & kind) || f & WIRE_F_START ||
            (gap && r->place[k].off - (uint64_t)first->off >= most))
            break; /* of the next message, whose start is missing */
        *last = k;
        *whole = (f & WIRE_F_END) != 0;
    }
    return r->place[*last].off - first->off + 1;
}

/* Post a request with `len` octets for the message at `off`. */
static int post(struct requester *r, struct engine_send_wr wr, uint32_t off, uint32_t len)
{
    struct engine_sge sge = {STAGE_LOCAL_VA + (uint64_t)off * r->d->mtu, len, r->stage.lkey};
    wr.flags |= WR_F_SIGNALED;
    wr.nsge = len ? 1 : 0;
    wr.sge = &sge;
    return engine_post_send(r->stage.e, r->stage.qp, &wr, r->stage.now);
}

/* For uncaptured PSNs, or a message that started before the capture: post a request of equal
 * length. */
static int post_hole(struct requester *r, uint32_t psns)
{
    struct engine_send_wr wr = {.opcode = WR_SEND};
    uint32_t n = psns < HOLE_MAX ? psns : HOLE_MAX;
    int rc = post(r, wr, r->posted, n * r->d->mtu);
    if (!rc)
        r->posted += n;
    return rc;
}

/* Does the next message start directly after this place? */
static bool goes_on(const struct requester *r, size_t last)
{
    return last + 1 < r->places && r->place[last + 1].off == r->place[last].off + 1 &&
           !(packet_flags(first_of(r, &r->place[last + 1])) & (WIRE_F_MIDDLE | WIRE_F_LAST));
}

/* The SEND or WRITE that starts at the next place: fills in *wr, returns the number of its octets.
 */
static uint32_t infer_message(const struct requester *r, struct engine_send_wr *wr, size_t *last,
                              uint32_t *psns)
{
    const struct direction *d = r->d;
    const struct packet *first = first_of(r, &r->place[r->next]);
    bool whole, write = packet_flags(first) & WIRE_F_WRITE;
    *psns = message_span(r, r->next, last, &whole);
    const struct packet *end = first_of(r, &r->place[*last]);
    struct wire_pkt w;
    packet_wire(end, &w);
    uint32_t tail = end->payload_len < d->mtu ? end->payload_len : d->mtu;
    wr->opcode = verb_of(packet_flags(end));
    wr->flags = w.se ? WR_F_SOLICITED : 0;
    wr->imm = packet_flags(end) & WIRE_F_INV ? w.rkey : w.imm;
    uint32_t len = (*psns - 1) * d->mtu + (*psns > 1 && !tail ? 1 : tail);
    bool fits = (first->dma_len + (uint64_t)d->mtu - 1) / d->mtu == *psns;
    if (write && ((whole && *psns > 1 && !tail && fits) || (!whole && first->dma_len > len)))
        len = first->dma_len;
    else if (!whole && !(write && first->dma_len <= len && goes_on(r, *last)))
        len += 1; /* it continues after the capture's end */
    uint64_t all = ((uint64_t)len + d->mtu - 1) / d->mtu;
    *psns = all > *psns ? (uint32_t)all : *psns;
    return len;
}

static int post_next(struct requester *r)
{
    struct place *p = &r->place[r->next];
    const struct packet *first = first_of(r, p);
    struct wire_pkt w;
    packet_wire(first, &w);
    unsigned f = packet_flags(first);
    struct engine_send_wr wr = {
        .rkey = w.rkey, .remote_va = w.va, .compare_add = w.compare, .swap = w.swap_add};
    uint32_t psns = 1, len;
    size_t last = r->next;
    if (p->off < r->posted) { /* a READ again */
        r->next++;
        return 0;
    }
    if (p->off > r->posted)
        return post_hole(r, p->off - r->posted);
    if (f & WIRE_F_READ) {
        wr.opcode = WR_RDMA_READ;
        len = first->dma_len;
        psns = packet_psns(r->d, first);
    } else if (f & WIRE_F_ATOMIC) {
        bool add = (w.opcode & 31) == WIRE_FETCH_ADD;
        wr.opcode = add ? WR_ATOMIC_FETCH_AND_ADD : WR_ATOMIC_CMP_AND_SWP;
        wr.compare_add = add ? w.swap_add : w.compare;
        len = 8;
    } else if (!(f & WIRE_F_START) || packet_optional(first)) {
        r->next++;
        return post_hole(r, 1);
    } else {
        len = infer_message(r, &wr, &last, &psns);
    }
    int rc = post(r, wr, p->off, len);
    if (rc)
        return rc;
    r->posted = p->off + psns;
    r->next = last + 1;
    return 0;
}

/* Post all messages up to this packet's one. */
void requester_post(struct requester *r, uint32_t off)
{
    while (r->next < r->places && r->posted <= off && !post_next(r))
        ;
    stage_flush(&r->stage);
}
