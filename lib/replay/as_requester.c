/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine in the requester's place.
 *
 * The captured work requests are posted, the captured answers are given to our engine, and the
 * packets that it sends are remembered by PSN. At the end the captured requests are compared with
 * these packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "as_requester.h"

#define SENT_MIN   65536u /* packets that our engine may send, at least */
#define SENT_EACH  16u    /* more of them, for each packet of the capture */
#define TIMERS_MAX 64u

static int by_off(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->off != y->off)
        return x->off < y->off ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

struct place *requester_place(const struct requester *r, uint32_t off)
{
    size_t lo = 0, hi = r->places;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (r->place[mid].off < off)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->places && r->place[lo].off == off ? &r->place[lo] : NULL;
}

static bool is_place(const struct direction *d, const struct packet *p)
{
    return packet_asks(d, p) && off_of(d, p->psn) < WIRE_PSN_MASK / 2;
}

/* One place per PSN: its first transmission. A READ inside an earlier one is a repetition of that
 * one. */
static int places_find(struct requester *r)
{
    const struct direction *d = r->d;
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < d->packets; i++)
        n += is_place(d, &d->packet[i]);
    if (!held_take(d->held, n * sizeof(*r->place)))
        return -EFBIG;
    if (!(r->place = calloc(n ? n : 1, sizeof(*r->place))))
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < d->packets; i++)
        if (is_place(d, &d->packet[i]))
            r->place[n++] =
                (struct place){.off = off_of(d, d->packet[i].psn), .first = (uint32_t)i};
    qsort(r->place, n, sizeof(*r->place), by_off);
    uint32_t read_end = 0;
    for (size_t i = 0; i < n; i++) {
        struct place *p = &r->place[i];
        if (kept && r->place[kept - 1].off == p->off)
            continue;
        p->again = p->off < read_end;
        if (!p->again)
            read_end = p->off + packet_psns(d, first_of(r, p));
        r->place[kept++] = *p;
    }
    r->places = kept;
    return 0;
}

/* ---- callbacks of the stage ---- */

/* Are all compared fields equal? */
static bool alike(const struct wire_pkt *a, const struct wire_pkt *b)
{
    return !a->selective && !b->selective && a->opcode == b->opcode &&
           a->payload_len == b->payload_len && a->dma_len == b->dma_len && a->va == b->va &&
           a->rkey == b->rkey && a->swap_add == b->swap_add && a->compare == b->compare &&
           a->imm == b->imm && a->se == b->se && a->pkey == b->pkey;
}

static void keep_unlike(struct requester *r, uint32_t off, const struct wire_pkt *p,
                        const uint8_t *frame, uint32_t len)
{
    if (r->unlikes == r->unlike_room) {
        size_t room = r->unlike_room ? 2 * r->unlike_room : 16;
        bool may = held_take(r->d->held, (room - r->unlike_room) * sizeof(*r->unlike));
        struct unlike *more = may ? realloc(r->unlike, room * sizeof(*r->unlike)) : NULL;
        if (!more) {
            r->failed = true;
            return;
        }
        r->unlike = more;
        r->unlike_room = room;
    }
    struct unlike *at = &r->unlike[r->unlikes++];
    *at = (struct unlike){.off = off, .ours = *p};
    wire_dump(at->dump, sizeof(at->dump), frame, len, WIRE_D_SELECTIVE);
}

static void on_sent(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len)
{
    struct requester *r = ctx;
    struct place *at = requester_place(r, off_of(r->d, p->psn));
    if (!(wire_opcodes[p->opcode].flags & WIRE_F_REQUEST) || !at || at->emitted)
        return;
    struct wire_pkt first;
    packet_wire(first_of(r, at), &first);
    at->emitted = true;
    at->ackreq = p->ackreq;
    at->unlike = !alike(p, &first);
    if (at->unlike)
        keep_unlike(r, at->off, p, frame, len);
}

/* The local region holds each message at its first PSN's place. */
static void on_fetch(void *ctx, const struct mem_piece *from, uint8_t *to)
{
    const struct requester *r = ctx;
    uint64_t at = from->off;
    for (uint32_t done = 0; done < from->len;) {
        const struct place *p = requester_place(r, (uint32_t)(at / r->d->mtu));
        uint32_t in = (uint32_t)(at % r->d->mtu), n = r->d->mtu - in;
        n = n < from->len - done ? n : from->len - done;
        memset(to + done, 0, n);
        const struct packet *c = p ? first_of(r, p) : NULL;
        if (c && in < packet_payload_have(c)) {
            uint32_t have = packet_payload_have(c) - in;
            memcpy(to + done, packet_payload(c) + in, have < n ? have : n);
        }
        done += n;
        at += n;
    }
}

static int on_copy(void *ctx, const struct engine_copy *c, uint64_t *orig)
{
    (void)ctx, (void)c;
    *orig = 0;
    return 0; /* results are never read */
}

/* ---- answers ---- */

static bool sent_already(const struct requester *r, uint32_t psn)
{
    struct engine_qp_info info;
    engine_qp_info(r->stage.e, r->stage.qp, &info);
    return wire_psn_diff(info.sq_psn, psn) > 0;
}

static void give(struct requester *r, const struct packet *p)
{
    if (off_of(r->d, p->psn) >= WIRE_PSN_MASK / 2) {
        r->j->out->passed++;
        return;
    }
    /* The capture's requester has sent this packet; our engine may still wait, for example after an
     * RNR NAK. */
    for (unsigned i = 0; i < TIMERS_MAX && !p->selective && !sent_already(r, p->psn); i++)
        if (!stage_wait(&r->stage))
            break;
    if (p->opcode == WIRE_ACKNOWLEDGE && wire_aeth_kind(p->syndrome) == WIRE_AETH_NAK &&
        p->syndrome != WIRE_SYN_NAK_SEQ)
        r->refused = true;
    stage_feed(&r->stage, p, 0);
    r->j->out->fed++;
}

/* ---- the whole direction ---- */

int as_requester(struct direction *d, struct judge *j)
{
    struct requester r = {.d = d, .j = j, .highest = d->base};
    const struct stage_owner owner = {&r, on_sent, on_fetch, on_copy};
    const struct stage_params p = {
        .type = d->flow.service == WIRE_UC ? QP_UC : QP_RC,
        .local = d->flow.src,
        .remote = d->flow.dst,
        .remote_qpn = d->flow.dqpn,
        .sq_psn = d->base,
        .mtu = d->mtu,
        .pkey = d->pkey,
        .recovery = d->selective ? RECOVER_SR : RECOVER_GBN,
        .now = d->packet[0].kept->ns,
        .budget = SENT_MIN + (uint64_t)SENT_EACH * d->packets,
    };
    int rc = stage_init(&r.stage, &p, &owner);
    if (!rc)
        rc = places_find(&r);
    if (!rc && d->selective)
        stage_hello(&r.stage);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *c = &d->packet[i];
        if ((rc = judge_step(j)))
            break;
        if (packet_asks(d, c) && off_of(d, c->psn) < WIRE_PSN_MASK / 2) {
            stage_time(&r.stage, c->kept->ns);
            requester_post(&r, off_of(d, c->psn));
        } else if (packet_answers(d, c)) {
            stage_time(&r.stage, c->kept->ns);
            give(&r, c);
        }
        if (r.failed)
            rc = -ENOMEM;
    }
    if (r.unlikes)
        qsort(r.unlike, r.unlikes, sizeof(*r.unlike), requester_by_off);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *c = &d->packet[i];
        if (packet_asks(d, c))
            requester_compare(&r, c);
        else if (packet_answers(d, c) && c->opcode == WIRE_ACKNOWLEDGE &&
                 c->syndrome == WIRE_SYN_NAK_SEQ)
            requester_compare_nak(&r, i);
    }
    stage_free(&r.stage);
    free(r.unlike);
    free(r.place);
    return rc == -EINVAL ? 0 : rc;
}
