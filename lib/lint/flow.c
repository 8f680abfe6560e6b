/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows: one per direction of a connection, found by addresses and destination QPN, the only names
 * in a packet of a connected queue pair. The two flows of a connection are known from CM messages,
 * or inferred: both use the source port that follows from their QPNs (WIRE-20), or a response
 * carries a PSN that fits the requests of only one open flow. Flows in doubt stay apart: a wrong
 * pair would accuse the innocent.
 */
#include <stdlib.h>
#include <string.h>

#include "lint_priv.h"

#define LOOK_BACK   4096  /* the largest distance in PSNs of a response from the latest request */
#define LOOK_MOST   1024u /* flows compared to find the other direction */
#define FITS        4u    /* answers that fit only one flow, enough to choose it */
#define FITS_ALONE  16384 /* PSNs: a flow within this distance also fits */
#define BUCKETS_MIN 64u

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v;
    h *= 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct wire_addr *src, const struct wire_addr *dst, uint32_t dqpn,
                        uint32_t sqpn)
{
    uint64_t v[4];
    memcpy(v, src, 16);
    memcpy(v + 2, dst, 16);
    uint64_t h = mix(0x243F6A8885A308D3ull, (uint64_t)dqpn << 32 | sqpn);
    for (int i = 0; i < 4; i++)
        h = mix(h, v[i]);
    return h;
}

/* Datagram flows have a source QPN in their key, connected ones have 0 there until it is known. */
static struct lint_flow *find(const struct lint *l, const struct wire_addr *src,
                              const struct wire_addr *dst, uint32_t dqpn, uint32_t sqpn)
{
    if (!l->buckets)
        return NULL;
    uint64_t h = hash_of(src, dst, dqpn, sqpn);
    struct lint_flow *f = l->bucket[h & (l->buckets - 1)];
    while (f && !(f->hash == h && f->info.dqpn == dqpn && !memcmp(&f->info.src, src, 16) &&
                  !memcmp(&f->info.dst, dst, 16)))
        f = f->chain;
    return f;
}

static struct lint_flow **head_between(const struct lint *l, const struct wire_addr *src,
                                       const struct wire_addr *dst)
{
    return &l->between[hash_of(src, dst, 0, 0) & (l->buckets - 1)];
}

struct lint_flow *lint_flow_between(const struct lint *l, const struct wire_addr *src,
                                    const struct wire_addr *dst)
{
    return l->buckets ? *head_between(l, src, dst) : NULL;
}

/* Into the hash tables, as the newest. */
static void enter(struct lint *l, struct lint_flow *f)
{
    struct lint_flow **head = &l->bucket[f->hash & (l->buckets - 1)];
    f->chain = *head;
    *head = f;
    head = head_between(l, &f->info.src, &f->info.dst);
    f->older = *head;
    *head = f;
}

static bool grow(struct lint *l)
{
    uint32_t n = l->buckets ? 2 * l->buckets : BUCKETS_MIN;
    struct lint_flow **b = calloc(n, sizeof(struct lint_flow *));
    struct lint_flow **between = calloc(n, sizeof(struct lint_flow *));
    if (!b || !between) {
        free(b);
        free(between);
        return false;
    }
    free(l->bucket);
    free(l->between);
    l->bucket = b;
    l->between = between;
    l->buckets = n;
    for (uint32_t i = 0; i < l->totals.flows; i++)
        if (!l->flow[i]->detached)
            enter(l, l->flow[i]);
    return true;
}

static bool list(struct lint *l, struct lint_flow *f)
{
    if (l->totals.flows == l->room) {
        uint32_t room = l->room ? 2 * l->room : 64;
        void *more = realloc(l->flow, room * sizeof(struct lint_flow *));
        if (!more)
            return false;
        l->flow = more;
        l->room = room;
    }
    f->info.id = l->totals.flows;
    l->flow[l->totals.flows++] = f;
    return true;
}

static struct lint_flow *make(struct lint *l, const struct wire_addr *src,
                              const struct wire_addr *dst, uint32_t dqpn, uint64_t hash)
{
    if (l->totals.flows >= l->max_flows || (l->totals.flows >= l->buckets && !grow(l)))
        return NULL;
    struct lint_flow *f = calloc(1, sizeof(*f));
    if (!f || !list(l, f)) {
        free(f);
        return NULL;
    }
    f->hash = hash;
    f->recs_octets = &l->recs_octets;
    f->info.src = *src;
    f->info.dst = *dst;
    f->info.dqpn = dqpn;
    f->info.peer = LINT_NO_FLOW;
    f->info.first_ns = UINT64_MAX;
    f->info.rtt_min = UINT64_MAX;
    f->retry = f->read_limit = UINT32_MAX;
    enter(l, f);
    return f;
}

struct lint_flow *lint_flow_get(struct lint *l, const struct wire_pkt *p, uint32_t dqpn,
                                uint32_t sqpn, bool make_it)
{
    struct lint_flow *f = find(l, &p->sip, &p->dip, dqpn, sqpn);
    if (f || !make_it)
        return f;
    f = make(l, &p->sip, &p->dip, dqpn, hash_of(&p->sip, &p->dip, dqpn, sqpn));
    if (!f)
        return NULL;
    f->info.sqpn = sqpn;
    f->info.ip_version = p->ip_version;
    f->info.v1 = p->ethertype == WIRE_ETHERTYPE_V1;
    f->info.service = wire_opcodes[p->opcode].service;
    return f;
}

unsigned lint_flow_stranger(struct lint *l, const struct wire_pkt *p)
{
    uint64_t id = hash_of(&p->sip, &p->dip, p->dqpn, 0);
    uint32_t at = (uint32_t)id % LINT_STRANGERS;
    if (l->stranger[at].id != id)
        l->stranger[at].run = 0;
    l->stranger[at].id = id;
    return l->stranger[at].run++;
}

static uint64_t hash_of_host(const struct wire_addr *a)
{
    static const struct wire_addr none;
    return hash_of(&none, a, 0, 0);
}

/* An unreadable packet may have any source. */
void lint_flow_unread(struct lint *l, const struct wire_pkt *p, uint64_t number)
{
    uint64_t host = hash_of_host(&p->dip);
    l->unread[host % LINT_STRANGERS].host = host;
    l->unread[host % LINT_STRANGERS].number = number;
}

bool lint_flow_any_unread(const struct lint *l, const struct lint_flow *f, uint64_t since)
{
    uint64_t host = hash_of_host(&f->info.dst);
    return l->unread[host % LINT_STRANGERS].host == host &&
           l->unread[host % LINT_STRANGERS].number > since;
}

void lint_flow_free(struct lint_flow *f)
{
    *f->recs_octets -= f->recs * sizeof(*f->rec);
    free(f->rec);
    free(f->read);
    free(f->held.finding);
    free(f->reread.held);
    free(f->counted.head);
    free(f->highest.head);
    f->counted.head = f->highest.head = NULL;
    f->counted.on = f->highest.on = false;
    f->reread.held = NULL;
    f->reread.n = 0;
    f->held.finding = NULL;
    f->held.n = 0;
    f->rec = NULL;
    f->read = NULL;
    f->recs = f->reads = 0;
}

struct lint_flow *lint_flow_renew(struct lint *l, struct lint_flow *f)
{
    struct lint_flow **at = &l->bucket[f->hash & (l->buckets - 1)];
    while (*at && *at != f)
        at = &(*at)->chain;
    if (!*at)
        return NULL;
    *at = f->chain;
    f->detached = true;
    lint_flow_end(l, f);
    lint_held(l, f);
    lint_flow_free(f);
    struct lint_flow *n = make(l, &f->info.src, &f->info.dst, f->info.dqpn, f->hash);
    if (!n)
        return NULL;
    n->used_again = true;
    n->info.ip_version = f->info.ip_version;
    n->info.v1 = f->info.v1;
    n->info.service = f->info.service;
    return n;
}

bool lint_renew(struct lint_ctx *c)
{
    struct lint_flow *back = c->f->peer, *n = lint_flow_renew(c->l, c->f);
    if (!n)
        return false;
    if (back && (back = lint_flow_renew(c->l, back)) != NULL) {
        lint_flow_pair(n, back); /* both directions of a queue pair start anew */
        n->by_psn = back->by_psn = c->f->by_psn;
        n->info.unsure = back->info.unsure = c->f->info.unsure;
    }
    struct lint_flow_info *o = &c->f->info;
    o->packets--; /* this packet was counted in `o` */
    o->octets -= c->in->wire_len;
    c->f = n;
    c->view->flow = n->info.id;
    n->info.first_ns = n->info.last_ns = c->in->ns;
    n->info.first_number = n->info.last_number = c->in->number;
    n->info.packets = 1;
    n->info.octets = c->in->wire_len;
    n->info.service = c->op->service;
    return true;
}

void lint_flow_pair(struct lint_flow *a, struct lint_flow *b)
{
    a->peer = b;
    b->peer = a;
    a->info.peer = b->info.id;
    b->info.peer = a->info.id;
    a->by_psn = b->by_psn = false;
    a->info.unsure = b->info.unsure = false;
    a->info.sqpn = b->info.dqpn;
    b->info.sqpn = a->info.dqpn;
    if (a->info.mtu && !b->info.mtu)
        lint_mtu_learned(b, a->info.mtu);
    else if (b->info.mtu && !a->info.mtu)
        lint_mtu_learned(a, b->info.mtu);
}

bool lint_id_tells(const struct lint_flow *f, const struct wire_pkt *p)
{
    return p->ip_version == 4 && p->ip_id && !f->id.same && !(f->peer && f->peer->id.same);
}

bool lint_id_counts(const struct lint_flow *f, const struct wire_pkt *p)
{
    return lint_id_tells(f, p) && f->id.near >= f->id.steps - f->id.steps / 8;
}

/* Can the response with this PSN answer a request of `g`? */
static bool asked(const struct lint_flow *g, uint32_t psn)
{
    if (!g->started)
        return false;
    int32_t d = wire_psn_diff(psn, g->hi);
    return d < 0 && (uint32_t)-d <= g->span && -d <= LOOK_BACK;
}

/* Does the response fit the recorded request with its PSN? A READ or ATOMIC gets no ACK, a SEND or
 * WRITE only ACKs; any of them may get a NAK. */
static bool asked_that(const struct lint_flow *g, const struct lint_ctx *c)
{
    if (!asked(g, c->p.psn))
        return false;
    const struct lint_rec *r = lint_rec_at(g, c->p.psn);
    if (c->op->flags & WIRE_F_ACK)
        return !c->headers || wire_aeth_kind(c->p.syndrome) != WIRE_AETH_ACK ||
               !lint_read_at(g, c->p.psn);
    return !r || !(r->flags & LINT_R_SEEN) || lint_answers(r->opcode, c->p.opcode);
}

/* Of several flows only `g` has a request with this answer's PSN. Once may be chance: is it the
 * other direction? */
static bool fits_again(const struct lint_ctx *c, const struct lint_flow *g)
{
    struct lint_fits *fits = &c->f->fits;
    if (!fits->n || fits->id != g->info.id)
        *fits = (struct lint_fits){.id = g->info.id};
    fits->n += !fits->n || fits->psn != c->p.psn;
    fits->psn = c->p.psn;
    return fits->n >= FITS;
}

void lint_flow_find_peer(struct lint_ctx *c)
{
    struct lint_flow *f = c->f, *by_port = NULL, *by_psn = NULL, *by_both = NULL;
    unsigned ports = 0, psns = 0, both = 0, open = 0, near = 0;
    bool response = c->op->flags & WIRE_F_RESPONSE;
    /* The other direction may be any flow between the two hosts: compare the newest ones. For a
     * request the result is the same as before. */
    uint32_t looked = 0, since = response ? 0 : f->looked_at;
    ports = response ? 0 : f->ports;
    f->looked_at = response ? f->looked_at : c->l->totals.flows;
    struct lint_flow *g = lint_flow_between(c->l, &f->info.dst, &f->info.src);
    for (; g && looked < LOOK_MOST && g->info.id >= since; g = g->older, looked++) {
        if (g == f || g->peer || g->detached ||
            (g->info.service != f->info.service && g->info.service != WIRE_CNP_GROUP) ||
            memcmp(&g->info.src, &f->info.dst, 16) || memcmp(&g->info.dst, &f->info.src, 16))
            continue;
        bool same_port = g->sport.seen && g->sport.now == c->p.sport && !f->info.v1;
        open++;
        near += g->started && abs(wire_psn_diff(c->p.psn, g->hi)) < FITS_ALONE;
        if (same_port && g->sport.now == wire_udp_sport(0, f->info.dqpn, g->info.dqpn)) {
            by_port = g;
            ports++;
        }
        if (response && asked_that(g, c)) {
            by_psn = g;
            psns++;
            by_both = same_port ? g : by_both;
            both += same_port;
        }
    }
    f->ports = response ? f->ports : ports;
    if (ports == 1 && by_port)
        lint_flow_pair(f, by_port);
    bool alone = psns == 1 && (open == 1 || (near == 1 && !ports && fits_again(c, by_psn)));
    by_psn = both == 1 ? by_both : alone ? by_psn : NULL;
    if (!ports && by_psn) {
        lint_flow_pair(f, by_psn);
        f->by_psn = by_psn->by_psn = true;
    }
}

/* The right flow may appear only after a wrong pair was made: several connections often start with
 * the same PSN. If both directions have one source port, the right flow has it, too. */
void lint_flow_doubt_peer(struct lint_ctx *c)
{
    struct lint_flow *f = c->f, *peer = f->peer;
    bool same_port = peer->sport.seen && peer->sport.now == c->p.sport;
    uint32_t looked = 0;
    const struct lint_flow *g = lint_flow_between(c->l, &peer->info.src, &peer->info.dst);
    for (; g && looked < LOOK_MOST; g = g->older, looked++) {
        if (g == f || g == peer || g->detached || (g->peer && !g->by_psn) ||
            g->info.service != peer->info.service || (same_port && g->sport.now != c->p.sport) ||
            memcmp(&g->info.src, &peer->info.src, 16) ||
            memcmp(&g->info.dst, &peer->info.dst, 16) || !asked(g, c->p.psn))
            continue;
        f->info.unsure = peer->info.unsure = true;
        return;
    }
}

/* No responder answers SENDs and WRITEs with data, again and again: such responses are another
 * connection's. */
void lint_flow_misfit(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    bool data = c->rec && (c->rec->flags & LINT_R_SEEN) && !(c->op->flags & WIRE_F_ACK) &&
                wire_opcodes[c->rec->opcode].flags & (WIRE_F_SEND | WIRE_F_WRITE) &&
                !lint_answers(c->rec->opcode, c->p.opcode);
    if (f->by_psn && c->where == LINT_W_KNOWN && data && ++f->misfits >= FITS)
        f->info.unsure = f->peer->info.unsure = true;
}

struct lint_rec *lint_rec_at(const struct lint_flow *f, uint32_t psn)
{
    if (!f->recs)
        return NULL;
    struct lint_rec *r = &f->rec[psn & (f->recs - 1)];
    return r->psn == psn && r->flags ? r : NULL;
}

/* Enlarge the table if unacknowledged packets would be overwritten, unless all flows together would
 * take too much memory. */
static void rec_grow(struct lint_flow *f)
{
    uint32_t n = f->recs ? 2 * f->recs : LINT_RECS_MIN;
    uint64_t more = (n - f->recs) * sizeof(struct lint_rec);
    if (f->recs && *f->recs_octets + more > LINT_RECS_OCTETS)
        return;
    struct lint_rec *r = calloc(n, sizeof(*r));
    if (!r)
        return;
    *f->recs_octets += more;
    for (uint32_t i = 0; i < f->recs; i++)
        if (f->rec[i].flags)
            r[f->rec[i].psn & (n - 1)] = f->rec[i];
    free(f->rec);
    f->rec = r;
    f->recs = n;
}

struct lint_rec *lint_rec_make(struct lint_flow *f, uint32_t psn)
{
    if (!f->recs)
        rec_grow(f);
    /* Keep twice the open requests: a go-back also repeats packets whose ACKs were lost after the
     * capture point. */
    uint32_t open = f->ack_on ? (f->hi - f->acked) & WIRE_PSN_MASK : f->span;
    while (f->recs && f->recs < LINT_RECS_MAX && 2 * open > f->recs) {
        uint32_t before = f->recs;
        rec_grow(f);
        if (f->recs == before)
            break;
    }
    if (!f->recs)
        return NULL;
    struct lint_rec *r = &f->rec[psn & (f->recs - 1)];
    if (r->flags && r->psn != psn && wire_psn_diff(r->psn, psn) > 0)
        return NULL; /* older than all records */
    if (r->psn != psn)
        *r = (struct lint_rec){.psn = psn};
    return r;
}

struct lint_read *lint_read_at(const struct lint_flow *f, uint32_t psn)
{
    uint32_t n = f->reads < LINT_READS ? f->reads : LINT_READS;
    for (uint32_t i = 1; i <= n; i++) {
        struct lint_read *r = &f->read[(f->reads - i) % LINT_READS];
        uint32_t off = (psn - r->psn) & WIRE_PSN_MASK;
        if (r->valid && off < (r->n ? r->n : 1))
            return r;
    }
    return NULL;
}

void lint_mtu_learned(struct lint_flow *f, uint32_t mtu)
{
    f->info.mtu = mtu;
    uint32_t n = f->reads < LINT_READS ? f->reads : LINT_READS;
    for (uint32_t i = 1; i <= n; i++) {
        struct lint_read *r = &f->read[(f->reads - i) % LINT_READS];
        if (r->n || r->blind)
            continue;
        r->n = mtu && r->len > mtu ? (r->len - 1) / mtu + 1 : 1;
        if (f->hi == lint_add(r->psn, 1)) {
            f->hi = lint_add(r->psn, r->n);
            uint32_t span = f->span + r->n - 1;
            f->span = span < LINT_SPAN_MAX ? span : LINT_SPAN_MAX;
            f->hi_uncertain = false;
        }
    }
    if (f->peer && !f->peer->info.mtu)
        lint_mtu_learned(f->peer, mtu);
}

bool lint_read_shared(const struct lint_flow *f, uint32_t psn)
{
    uint32_t n = f->reads < LINT_READS ? f->reads : LINT_READS;
    for (uint32_t i = 0; i < n; i++)
        if (f->read[i].valid && ((psn - f->read[i].psn) & WIRE_PSN_MASK) < f->read[i].asked)
            return true;
    return false;
}

/* The packet that has shown the MTU was too short. */
static void mtu_was_wrong(struct lint_ctx *c, struct lint_flow *teacher)
{
    struct lint_flow *f = c->f;
    lint_held_forget(f);
    if (f->peer)
        lint_held_forget(f->peer);
    c->f = teacher;
    c->wait = &teacher->mtu.first;
    lint_run(c, LINT_S_MTU);
    c->wait = NULL;
    c->f = f;
    teacher->mtu.first.on = false;
    lint_renew(c);
}

void lint_mtu_watch(struct lint_ctx *c)
{
    struct lint_flow *f = c->f, *peer = f->peer;
    uint32_t payload = c->p.payload_len;
    if (!(c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE)) || !wire_mtu_enum(payload))
        return;
    struct lint_flow *teacher = f->mtu.first.on ? f : peer && peer->mtu.first.on ? peer : NULL;
    if (teacher && payload > f->info.mtu && !c->cut &&
        f->mtu.shown + (peer ? peer->mtu.shown : 0) == 1)
        mtu_was_wrong(c, teacher);
    f = c->f;
    if (!f->info.mtu) {
        lint_mtu_learned(f, payload);
        lint_remember(c, &f->mtu.first);
    }
    f->mtu.shown += payload == f->info.mtu && f->mtu.shown < 2;
}

void lint_responder_reset(struct lint_flow *f)
{
    f->ack_on = f->base.on = f->base.lo_on = f->base.maybe_on = f->counted.on = f->msn_on = false;
    f->highest.on = f->most.on = f->most.less.on = f->place.on = false;
    f->nak.on = f->rnr.on = f->fatal.on = f->unseen.on = f->reread.continued.on = f->ahead.on =
        false;
    f->epoch++;
    f->msgs = 0;
}
