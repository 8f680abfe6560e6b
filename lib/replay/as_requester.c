/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our engine in the requester's place.
 *
 * The work requests are inferred from the request packets and posted when the first packet of each
 * is seen; the captured answers are given to our engine. In the end each captured request packet,
 * every retransmission included, must be what our engine sends with that PSN. When and how often it
 * is sent again is a freedom.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define SENT_MIN   65536u /* our engine may send this many packets, */
#define SENT_EACH  16u    /* and so many for each of the capture */
#define TIMERS_MAX 64u
#define NEW_MAX    4096u  /* packets sent on after a sequence NAK: on their way before it came */
#define HOLE_MAX   65536u /* PSNs never seen in a row that are bridged */

/* A PSN with a captured request. */
struct place {
    uint32_t off; /* from the base */
    const struct packet *first;
    bool again; /* a READ repeated from the middle: not a message of its own */
    bool emitted;
    struct wire_pkt ours;
    char *dump;
};

struct requester {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    struct place *place; /* by off */
    size_t places, next; /* next: first of the next message to post */
    uint32_t posted;     /* PSNs posted, from the base */
    bool refused;        /* by a fatal NAK */
};

static uint32_t off_of(const struct direction *d, uint32_t psn)
{
    return (psn - d->base) & WIRE_PSN_MASK;
}

static int by_off(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->off != y->off)
        return x->off < y->off ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static struct place *place_find(const struct requester *r, uint32_t off)
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

/* One place per PSN: its first transmission. A READ inside an earlier one is that one, again. */
static int places_find(struct requester *r)
{
    const struct direction *d = r->d;
    size_t n = 0, kept = 0;
    if (!(r->place = calloc(d->packets, sizeof(*r->place))))
        return -ENOMEM;
    for (size_t i = 0; i < d->packets; i++)
        if (packet_asks(d, &d->packet[i]) && off_of(d, d->packet[i].pkt.psn) < WIRE_PSN_MASK / 2)
            r->place[n++] =
                (struct place){.off = off_of(d, d->packet[i].pkt.psn), .first = &d->packet[i]};
    qsort(r->place, n, sizeof(*r->place), by_off);
    uint32_t read_end = 0;
    for (size_t i = 0; i < n; i++) {
        struct place *p = &r->place[i];
        if (kept && r->place[kept - 1].off == p->off)
            continue;
        p->again = p->off < read_end;
        if (!p->again)
            read_end = p->off + packet_psns(d, p->first);
        r->place[kept++] = *p;
    }
    r->places = kept;
    return 0;
}

/* ---- what the stage calls ---- */

static void on_sent(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len)
{
    struct requester *r = ctx;
    struct place *at = place_find(r, off_of(r->d, p->psn));
    if (!(wire_opcodes[p->opcode].flags & WIRE_F_REQUEST) || !at || at->emitted)
        return;
    char dump[REPLAY_DUMP_MAX];
    wire_dump(dump, sizeof(dump), frame, len, 0);
    at->ours = *p;
    at->dump = strdup(dump);
    at->emitted = true;
}

/* The local region holds each message at its first PSN's place. */
static void on_fetch(void *ctx, const struct mem_piece *from, uint8_t *to)
{
    const struct requester *r = ctx;
    uint64_t at = from->off;
    for (uint32_t done = 0; done < from->len;) {
        const struct place *p = place_find(r, (uint32_t)(at / r->d->mtu));
        uint32_t in = (uint32_t)(at % r->d->mtu), n = r->d->mtu - in;
        n = n < from->len - done ? n : from->len - done;
        memset(to + done, 0, n);
        const struct packet *c = p ? p->first : NULL;
        uint32_t begin = c ? c->pkt.payload_off + in : 0;
        if (c && in < c->pkt.payload_len && begin < c->have) {
            uint32_t have = c->pkt.payload_len - in;
            have = have < c->have - begin ? have : c->have - begin;
            memcpy(to + done, c->frame + begin, have < n ? have : n);
        }
        done += n;
        at += n;
    }
}

static int on_copy(void *ctx, const struct engine_copy *c, uint64_t *orig)
{
    (void)ctx, (void)c;
    *orig = 0;
    return 0; /* results: nobody looks at them */
}

/* ---- work requests ---- */

static uint8_t verb_of(unsigned flags)
{
    if (flags & WIRE_F_SEND)
        return flags & WIRE_F_IMM   ? WR_SEND_WITH_IMM
               : flags & WIRE_F_INV ? WR_SEND_WITH_INV
                                    : WR_SEND;
    return flags & WIRE_F_IMM ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
}

/* The SEND or WRITE that begins at place i: returns its PSNs, *last = its last packet seen. */
static uint32_t message_span(const struct requester *r, size_t i, size_t *last, bool *whole)
{
    const struct place *first = &r->place[i];
    unsigned kind = packet_flags(first->first) & (WIRE_F_SEND | WIRE_F_WRITE);
    uint64_t len = kind & WIRE_F_WRITE ? first->first->pkt.dma_len : WIRE_MSG_MAX;
    uint64_t most = (len + r->d->mtu - 1) / r->d->mtu;
    size_t k = i;
    *last = i;
    *whole = (packet_flags(first->first) & WIRE_F_ONLY) != 0;
    while (!*whole && ++k < r->places) {
        unsigned f = packet_flags(r->place[k].first);
        bool gap = r->place[k].off != r->place[k - 1].off + 1;
        if (!(f & kind) || f & WIRE_F_START || (gap && r->place[k].off - first->off >= most))
            break; /* of the next message, whose beginning is lost */
        *last = k;
        *whole = (f & WIRE_F_END) != 0;
    }
    return r->place[*last].off - first->off + 1;
}

/* Post it with `len` octets of the message at `off`. */
static int post(struct requester *r, struct engine_send_wr wr, uint32_t off, uint32_t len)
{
    struct engine_sge sge = {STAGE_LOCAL_VA + (uint64_t)off * r->d->mtu, len, r->stage.lkey};
    wr.flags |= WR_F_SIGNALED;
    wr.nsge = len ? 1 : 0;
    wr.sge = &sge;
    return engine_post_send(r->stage.e, r->stage.qp, &wr, r->stage.now);
}

/* PSNs that the capture doesn't show, or whose message began before it: something as long. */
static int post_hole(struct requester *r, uint32_t psns)
{
    struct engine_send_wr wr = {.opcode = WR_SEND};
    uint32_t n = psns < HOLE_MAX ? psns : HOLE_MAX;
    int rc = post(r, wr, r->posted, n * r->d->mtu);
    if (!rc)
        r->posted += n;
    return rc;
}

/* The SEND or WRITE that begins at the next place: fills in *wr, returns its octets. */
static uint32_t infer_message(const struct requester *r, struct engine_send_wr *wr, size_t *last,
                              uint32_t *psns)
{
    const struct direction *d = r->d;
    const struct packet *first = r->place[r->next].first;
    bool whole, write = packet_flags(first) & WIRE_F_WRITE;
    *psns = message_span(r, r->next, last, &whole);
    const struct packet *end = r->place[*last].first;
    uint32_t tail = end->pkt.payload_len < d->mtu ? end->pkt.payload_len : d->mtu;
    wr->opcode = verb_of(packet_flags(end));
    wr->flags = end->pkt.se ? WR_F_SOLICITED : 0;
    wr->imm = packet_flags(end) & WIRE_F_INV ? end->pkt.rkey : end->pkt.imm;
    uint32_t len = (*psns - 1) * d->mtu + (*psns > 1 && !tail ? 1 : tail);
    if (!whole && write && first->pkt.dma_len > len)
        len = first->pkt.dma_len;
    else if (!whole)
        len += 1; /* there is more of it, behind the capture's end */
    uint64_t all = ((uint64_t)len + d->mtu - 1) / d->mtu;
    *psns = all > *psns ? (uint32_t)all : *psns;
    return len;
}

static int post_next(struct requester *r)
{
    struct place *p = &r->place[r->next];
    const struct wire_pkt *w = &p->first->pkt;
    unsigned f = packet_flags(p->first);
    struct engine_send_wr wr = {
        .rkey = w->rkey, .remote_va = w->va, .compare_add = w->compare, .swap = w->swap_add};
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
        len = w->dma_len;
        psns = packet_psns(r->d, p->first);
    } else if (f & WIRE_F_ATOMIC) {
        bool add = (w->opcode & 31) == WIRE_FETCH_ADD;
        wr.opcode = add ? WR_ATOMIC_FETCH_AND_ADD : WR_ATOMIC_CMP_AND_SWP;
        wr.compare_add = add ? w->swap_add : w->compare;
        len = 8;
    } else if (!(f & WIRE_F_START) || packet_optional(p->first)) {
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

/* Everything up to the message that this packet belongs to. */
static void post_until(struct requester *r, uint32_t off)
{
    while (r->next < r->places && r->posted <= off && !post_next(r))
        ;
    stage_flush(&r->stage);
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
    if (off_of(r->d, p->pkt.psn) >= WIRE_PSN_MASK / 2) {
        r->j->out->passed++;
        return;
    }
    /* The capture's requester has sent it; ours may be waiting, for example after an RNR NAK. */
    for (unsigned i = 0; i < TIMERS_MAX && !p->selective && !sent_already(r, p->pkt.psn); i++)
        if (!stage_wait(&r->stage))
            break;
    if (p->pkt.opcode == WIRE_ACKNOWLEDGE && wire_aeth_kind(p->pkt.syndrome) == WIRE_AETH_NAK &&
        p->pkt.syndrome != WIRE_SYN_NAK_SEQ)
        r->refused = true;
    stage_feed(&r->stage, p, 0);
    r->j->out->fed++;
}

/* ---- comparing ---- */

struct field {
    const char *name, *rule;
};

/* Of a packet that was cut nobody can tell whether what is left of it was damaged on the way. The
 * first one may have had a length of its own, which was found with that one. */
static bool payload_same(const struct packet *a, const struct packet *b)
{
    uint32_t n = a->pkt.payload_len < b->pkt.payload_len ? a->pkt.payload_len : b->pkt.payload_len;
    if (!n || a->have < a->len || b->have < b->len)
        return true;
    return !memcmp(a->frame + a->pkt.payload_off, b->frame + b->pkt.payload_off, n);
}

/* The first field in which a captured request isn't what our engine sends; name NULL = none. */
static struct field differing(const struct place *at, const struct packet *p)
{
    const struct wire_pkt *a = &at->ours, *b = &p->pkt;
    unsigned headers = wire_opcodes[b->opcode].headers;
    bool again = at->first != p;
    if (a->opcode != b->opcode)
        return (struct field){"opcode", again ? "RTX-05" : "REQ-02"};
    bool cut = again && (p->have < p->len || at->first->have < at->first->len);
    if (a->payload_len != b->payload_len && cut)
        return (struct field){NULL, NULL}; /* one of them is perhaps several, merged by the host */
    if (a->payload_len != b->payload_len)
        return (struct field){"payload length", again ? "RTX-05" : "REQ-02"};
    if (!payload_same(at->first, p))
        return (struct field){"payload", "RTX-05"};
    if (headers & WIRE_H_RETH && a->dma_len != b->dma_len)
        return (struct field){"DMA length", again ? "RTX-05" : "RSP-16"};
    if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH) && a->va != b->va)
        return (struct field){"address", "RTX-05"};
    if (headers & (WIRE_H_RETH | WIRE_H_ATOMICETH | WIRE_H_IETH) && a->rkey != b->rkey)
        return (struct field){"R_Key", "RTX-05"};
    if (headers & WIRE_H_ATOMICETH && a->swap_add != b->swap_add)
        return (struct field){"swap or add operand", "RTX-05"};
    if (headers & WIRE_H_ATOMICETH && (b->opcode & 31) == WIRE_CMP_SWAP && a->compare != b->compare)
        return (struct field){"compare operand", "RTX-05"};
    if (headers & WIRE_H_IMMDT && a->imm != b->imm)
        return (struct field){"immediate", "RTX-05"};
    if (a->se != b->se)
        return (struct field){"SE", again ? "RTX-05" : "HDR-03"};
    if (a->pkey != b->pkey)
        return (struct field){"P_Key", "KEY-01"};
    if (wire_opcodes[b->opcode].service == WIRE_UC && a->ackreq != b->ackreq)
        return (struct field){"AckReq", "UC-02"};
    return (struct field){NULL, NULL};
}

/* A READ repeated from the middle asks for the rest of the first. */
static struct field differing_again(const struct requester *r, const struct place *at,
                                    const struct packet *p)
{
    const struct place *whole = at;
    while (whole > r->place && whole->again)
        whole--;
    const struct wire_pkt *a = &whole->first->pkt, *b = &p->pkt;
    uint64_t skip = (uint64_t)(at->off - whole->off) * r->d->mtu;
    if (a->opcode != b->opcode)
        return (struct field){"opcode", "REQ-06"};
    if (b->va != a->va + skip)
        return (struct field){"address", "RD-12"};
    if (b->dma_len > a->dma_len - skip)
        return (struct field){"DMA length", "RD-12"};
    if (b->rkey != a->rkey)
        return (struct field){"R_Key", "RD-12"};
    return (struct field){NULL, NULL};
}

static void compare(struct requester *r, const struct packet *p)
{
    struct place *at = place_find(r, off_of(r->d, p->pkt.psn));
    if (!at || (!at->emitted && !at->again) || packet_optional(p) || packet_optional(at->first)) {
        /* Our engine stands still: refused for good, or waiting for an answer not captured. Or it
         * has no such request. */
        r->j->out->passed++;
        return;
    }
    /* What bridges a hole is not a message of the capture. */
    unsigned f = packet_flags(p);
    if (!at->again && !(f & WIRE_F_START) && !(f & (WIRE_F_READ | WIRE_F_ATOMIC)) && at->emitted &&
        wire_opcodes[at->ours.opcode].flags & WIRE_F_ONLY &&
        wire_opcodes[at->ours.opcode].flags & WIRE_F_SEND) {
        r->j->out->passed++;
        return;
    }
    /* Sent again, a READ asks for what is missing of it, at its beginning too. */
    bool part =
        at->again || (f & WIRE_F_READ && at->first != p && p->pkt.opcode == at->ours.opcode);
    struct field what = part ? differing_again(r, at, p) : differing(at, p);
    r->j->out->compared++;
    if (!what.name)
        r->j->out->same++;
    else
        judge_differ(r->j, p, what.rule, what.name,
                     at->again  ? "(the rest of the READ)"
                     : at->dump ? at->dump
                                : "",
                     at->first != p ? "sent again, it is not what it was"
                                    : "our engine sends it otherwise");
}

/* A sequence NAK wants its PSN again, if the requester goes on. */
static void compare_nak(struct requester *r, size_t at)
{
    const struct direction *d = r->d;
    const struct packet *nak = &d->packet[at];
    unsigned fresh = 0;
    uint32_t highest = nak->pkt.psn;
    for (size_t i = 0; i < at; i++)
        if (packet_asks(d, &d->packet[i]) && wire_psn_diff(d->packet[i].pkt.psn, highest) > 0)
            highest = d->packet[i].pkt.psn;
    for (size_t i = at + 1; i < d->packets && fresh <= NEW_MAX; i++) {
        const struct packet *p = &d->packet[i];
        int32_t off = wire_psn_diff(p->pkt.psn, nak->pkt.psn);
        if (packet_asks(d, p) && off <= 0)
            return;
        if (packet_answers(d, p) && off >= 0 && packet_positive(p))
            return;
        fresh += packet_asks(d, p) && wire_psn_diff(p->pkt.psn, highest) > 0;
    }
    if (fresh > NEW_MAX)
        judge_differ(r->j, nak, "ACK-06", "retransmission", "(sends this PSN again)",
                     "the requester goes on without sending what is missing");
}

/* ---- the whole direction ---- */

int as_requester(struct direction *d, struct judge *j)
{
    struct requester r = {.d = d, .j = j};
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
        .now = d->packet[0].ns,
        .budget = SENT_MIN + (uint64_t)SENT_EACH * d->packets,
    };
    int rc = stage_init(&r.stage, &p, &owner);
    if (!rc)
        rc = places_find(&r);
    if (!rc && d->selective)
        stage_hello(&r.stage);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *c = &d->packet[i];
        if (packet_asks(d, c) && off_of(d, c->pkt.psn) < WIRE_PSN_MASK / 2) {
            stage_time(&r.stage, c->ns);
            post_until(&r, off_of(d, c->pkt.psn));
        } else if (packet_answers(d, c)) {
            stage_time(&r.stage, c->ns);
            give(&r, c);
        }
    }
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *c = &d->packet[i];
        if (packet_asks(d, c))
            compare(&r, c);
        else if (packet_answers(d, c) && c->pkt.opcode == WIRE_ACKNOWLEDGE &&
                 c->pkt.syndrome == WIRE_SYN_NAK_SEQ)
            compare_nak(&r, i);
    }
    stage_free(&r.stage);
    for (size_t i = 0; i < r.places; i++)
        free(r.place[i].dump);
    free(r.place);
    return rc == -EINVAL ? 0 : rc;
}
