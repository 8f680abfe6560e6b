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
    uint32_t off : 24; /* from the base */
    bool again : 1;    /* a READ repeated from the middle: not a message of its own */
    bool emitted : 1;
    bool ackreq : 1; /* of our engine's */
    bool odd : 1;    /* ours isn't like the first one, else the same in all that is compared */
    uint32_t first;  /* its first transmission, an index */
};

/* Our engine's packet where it isn't like the first one of the capture. */
struct odd {
    uint32_t off;
    struct wire_pkt ours;
    char dump[REPLAY_DUMP_MAX];
};

struct requester {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    struct place *place; /* by off */
    size_t places, next; /* next: first of the next message to post */
    struct odd *odd;     /* by off, from when all are there */
    size_t odds, odd_room;
    uint32_t posted; /* PSNs posted, from the base */
    bool refused;    /* by a fatal NAK */
    bool failed;     /* out of memory */
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

static const struct packet *first_of(const struct requester *r, const struct place *at)
{
    return &r->d->packet[at->first];
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

static bool is_place(const struct direction *d, const struct packet *p)
{
    return packet_asks(d, p) && off_of(d, p->psn) < WIRE_PSN_MASK / 2;
}

/* One place per PSN: its first transmission. A READ inside an earlier one is that one, again. */
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

/* ---- what the stage calls ---- */

/* Has it the same in all fields that are compared? */
static bool alike(const struct wire_pkt *a, const struct wire_pkt *b)
{
    return !a->selective && !b->selective && a->opcode == b->opcode &&
           a->payload_len == b->payload_len && a->dma_len == b->dma_len && a->va == b->va &&
           a->rkey == b->rkey && a->swap_add == b->swap_add && a->compare == b->compare &&
           a->imm == b->imm && a->se == b->se && a->pkey == b->pkey;
}

static void keep_odd(struct requester *r, uint32_t off, const struct wire_pkt *p,
                     const uint8_t *frame, uint32_t len)
{
    if (r->odds == r->odd_room) {
        size_t room = r->odd_room ? 2 * r->odd_room : 16;
        bool may = held_take(r->d->held, (room - r->odd_room) * sizeof(*r->odd));
        struct odd *more = may ? realloc(r->odd, room * sizeof(*r->odd)) : NULL;
        if (!more) {
            r->failed = true;
            return;
        }
        r->odd = more;
        r->odd_room = room;
    }
    struct odd *at = &r->odd[r->odds++];
    *at = (struct odd){.off = off, .ours = *p};
    wire_dump(at->dump, sizeof(at->dump), frame, len, 0);
}

static void on_sent(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len)
{
    struct requester *r = ctx;
    struct place *at = place_find(r, off_of(r->d, p->psn));
    if (!(wire_opcodes[p->opcode].flags & WIRE_F_REQUEST) || !at || at->emitted)
        return;
    struct wire_pkt first;
    packet_wire(first_of(r, at), &first);
    at->emitted = true;
    at->ackreq = p->ackreq;
    at->odd = !alike(p, &first);
    if (at->odd)
        keep_odd(r, at->off, p, frame, len);
}

static int by_odd_off(const void *a, const void *b)
{
    const struct odd *x = a, *y = b;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* What our engine has sent in this place, and as text. */
static void ours_of(const struct requester *r, const struct place *at, struct wire_pkt *ours,
                    char dump[REPLAY_DUMP_MAX])
{
    dump[0] = '\0';
    if (at->odd) {
        const struct odd key = {.off = at->off};
        const struct odd *o = bsearch(&key, r->odd, r->odds, sizeof(key), by_odd_off);
        *ours = o->ours;
        memcpy(dump, o->dump, REPLAY_DUMP_MAX);
        return;
    }
    packet_wire(first_of(r, at), ours);
    if (!at->emitted)
        return;
    ours->ackreq = at->ackreq;
    if (!r->j->mute)
        stage_dump(&r->stage, ours, r->d->flow.dqpn, dump);
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
    if (!whole && write && first->dma_len > len)
        len = first->dma_len;
    else if (!whole)
        len += 1; /* there is more of it, behind the capture's end */
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
        len = w.dma_len;
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
    if (off_of(r->d, p->psn) >= WIRE_PSN_MASK / 2) {
        r->j->out->passed++;
        return;
    }
    /* The capture's requester has sent it; ours may be waiting, for example after an RNR NAK. */
    for (unsigned i = 0; i < TIMERS_MAX && !p->selective && !sent_already(r, p->psn); i++)
        if (!stage_wait(&r->stage))
            break;
    if (p->opcode == WIRE_ACKNOWLEDGE && wire_aeth_kind(p->syndrome) == WIRE_AETH_NAK &&
        p->syndrome != WIRE_SYN_NAK_SEQ)
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
    uint32_t n = a->payload_len < b->payload_len ? a->payload_len : b->payload_len;
    if (!n || packet_cut(a) || packet_cut(b))
        return true;
    return !memcmp(packet_payload(a), packet_payload(b), n);
}

/* The first field in which a captured request isn't what our engine sends; name NULL = none. */
static struct field differing(const struct packet *first, const struct wire_pkt *a,
                              const struct packet *p)
{
    struct wire_pkt captured;
    packet_wire(p, &captured);
    const struct wire_pkt *b = &captured;
    unsigned headers = wire_opcodes[b->opcode].headers;
    bool again = first != p;
    if (a->opcode != b->opcode)
        return (struct field){"opcode", again ? "RTX-05" : "REQ-02"};
    bool cut = again && (packet_cut(p) || packet_cut(first));
    if (a->payload_len != b->payload_len && cut)
        return (struct field){NULL, NULL}; /* one of them is perhaps several, merged by the host */
    if (a->payload_len != b->payload_len)
        return (struct field){"payload length", again ? "RTX-05" : "REQ-02"};
    if (!payload_same(first, p))
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
    const struct packet *a = first_of(r, whole), *b = p;
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
    const struct place *at = place_find(r, off_of(r->d, p->psn));
    const struct packet *first = at ? first_of(r, at) : NULL;
    if (!at || (!at->emitted && !at->again) || packet_optional(p) || packet_optional(first)) {
        /* Our engine stands still: refused for good, or waiting for an answer not captured. Or it
         * has no such request. */
        r->j->out->passed++;
        return;
    }
    bool reliable = r->d->flow.service == WIRE_RC;
    if (first == p && at->emitted && !at->odd && !at->again && reliable) {
        r->j->out->compared++;
        r->j->out->same++;
        return;
    }
    struct wire_pkt ours;
    char dump[REPLAY_DUMP_MAX];
    ours_of(r, at, &ours, dump);
    /* What bridges a hole is not a message of the capture. */
    unsigned f = packet_flags(p);
    if (!at->again && !(f & WIRE_F_START) && !(f & (WIRE_F_READ | WIRE_F_ATOMIC)) && at->emitted &&
        wire_opcodes[ours.opcode].flags & WIRE_F_ONLY &&
        wire_opcodes[ours.opcode].flags & WIRE_F_SEND) {
        r->j->out->passed++;
        return;
    }
    /* Sent again, a READ asks for what is missing of it, at its beginning too. */
    bool part = at->again || (f & WIRE_F_READ && first != p && p->opcode == ours.opcode);
    struct field what = part ? differing_again(r, at, p) : differing(first, &ours, p);
    r->j->out->compared++;
    if (!what.name)
        r->j->out->same++;
    else
        judge_differ(r->j, p, what.rule, what.name, at->again ? "(the rest of the READ)" : dump,
                     first != p ? "sent again, it is not what it was"
                                : "our engine sends it otherwise");
}

/* A sequence NAK wants its PSN again, if the requester goes on. */
static void compare_nak(struct requester *r, size_t at)
{
    const struct direction *d = r->d;
    const struct packet *nak = &d->packet[at];
    unsigned fresh = 0;
    uint32_t highest = nak->psn;
    for (size_t i = 0; i < at; i++)
        if (packet_asks(d, &d->packet[i]) && wire_psn_diff(d->packet[i].psn, highest) > 0)
            highest = d->packet[i].psn;
    for (size_t i = at + 1; i < d->packets && fresh <= NEW_MAX; i++) {
        const struct packet *p = &d->packet[i];
        int32_t off = wire_psn_diff(p->psn, nak->psn);
        if (packet_asks(d, p) && off <= 0)
            return;
        if (packet_answers(d, p) && off >= 0 && packet_positive(p))
            return;
        fresh += packet_asks(d, p) && wire_psn_diff(p->psn, highest) > 0;
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
            post_until(&r, off_of(d, c->psn));
        } else if (packet_answers(d, c)) {
            stage_time(&r.stage, c->kept->ns);
            give(&r, c);
        }
        if (r.failed)
            rc = -ENOMEM;
    }
    if (r.odds)
        qsort(r.odd, r.odds, sizeof(*r.odd), by_odd_off);
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *c = &d->packet[i];
        if (packet_asks(d, c))
            compare(&r, c);
        else if (packet_answers(d, c) && c->opcode == WIRE_ACKNOWLEDGE &&
                 c->syndrome == WIRE_SYN_NAK_SEQ)
            compare_nak(&r, i);
    }
    stage_free(&r.stage);
    free(r.odd);
    free(r.place);
    return rc == -EINVAL ? 0 : rc;
}
