/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of connections. A packet of a connected queue pair names only its destination QPN, so
 * the table holds halves: addresses and destination QPN. Two halves make a connection when CM
 * messages say so, when both use one UDP source port (WIRE-20 derives it from both QPNs), or when a
 * response has a PSN that only one waiting half can have requested.
 *
 * Each half counts PSNs of requests from its first PSN: from the CM message, else the first one
 * seen. A PSN that was seen, or lies before all seen, is a retransmission.
 */
#include <string.h>

#include "cm_msg.h"
#include "fault_priv.h"
#include "wire_bytes.h"

#define TRIES     64u /* responses after which the search for a half's other direction ends */
#define LOST_MOST 64u /* most packets missing before the first one seen */
#define LOOK_MOST 64u /* most waiting halves looked at in one search */

/* a comes before b in PSN order. */
static bool before(uint32_t a, uint32_t b)
{
    return wire_psn_diff(a, b) < 0;
}

static bool same(const struct wire_addr *a, const struct wire_addr *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* A damaged packet may name a wrong queue pair or PSN. */
static bool intact(const struct fault_view *v)
{
    size_t len = v->p.icrc_off + WIRE_ICRC_LEN;
    return !v->whole || wire_icrc(v->frame, len, v->p.ip_off, v->p.bth_off) ==
                            wire_get32le(v->frame + v->p.icrc_off);
}

/* ---- the table ---- */

static uint32_t *bucket(struct fault_table *t, const struct wire_addr *src,
                        const struct wire_addr *dst, uint32_t dqpn)
{
    uint64_t v[4], h = 0x243F6A8885A308D3u ^ dqpn;
    memcpy(v, src, 16);
    memcpy(v + 2, dst, 16);
    for (unsigned i = 0; i < 4; i++) {
        h = (h ^ v[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return &t->bucket[h & (FAULT_BUCKETS - 1)];
}

static uint32_t find(struct fault_table *t, const struct wire_addr *src,
                     const struct wire_addr *dst, uint32_t dqpn)
{
    uint32_t i = *bucket(t, src, dst, dqpn);
    while (i &&
           !(t->half[i].dqpn == dqpn && same(&t->half[i].src, src) && same(&t->half[i].dst, dst)))
        i = t->half[i].chain;
    return i;
}

static void wait_add(struct fault_table *t, uint32_t i)
{
    struct fault_half *h = &t->half[i];
    h->waits_prev = 0;
    h->waits_next = t->waits;
    if (t->waits)
        t->half[t->waits].waits_prev = i;
    t->waits = i;
}

static void wait_remove(struct fault_table *t, uint32_t i)
{
    struct fault_half *h = &t->half[i];
    if (h->waits_prev)
        t->half[h->waits_prev].waits_next = h->waits_next;
    else
        t->waits = h->waits_next;
    if (h->waits_next)
        t->half[h->waits_next].waits_prev = h->waits_prev;
}

static bool alone(const struct fault_table *t, const struct fault_half *h)
{
    const struct fault_conn *c = &t->conn[h->conn];
    return !c->half[0] || !c->half[1];
}

static uint32_t other(const struct fault_table *t, uint32_t i)
{
    const struct fault_conn *c = &t->conn[t->half[i].conn];
    return c->half[c->half[0] == i];
}

/* Forget a half. A connection ends with its last half. */
static void half_free(struct fault_table *t, uint32_t i)
{
    struct fault_half *h = &t->half[i];
    uint32_t *at = bucket(t, &h->src, &h->dst, h->dqpn);
    while (*at != i)
        at = &t->half[*at].chain;
    *at = h->chain;
    h->chain = t->free_half;
    t->free_half = i;
}

static void conn_free(struct fault_table *t, uint32_t n)
{
    struct fault_conn *c = &t->conn[n];
    for (unsigned i = 0; i < 2; i++) {
        if (!c->half[i])
            continue;
        if (!c->half[1 - i])
            wait_remove(t, c->half[i]);
        half_free(t, c->half[i]);
    }
    *c = (struct fault_conn){.half = {t->free_conn}};
    t->free_conn = n;
}

/* A free connection; when there is none, the one idle for longest. */
static uint32_t conn_new(struct fault_table *t)
{
    uint32_t n = t->free_conn;
    if (!n && t->conns < FAULT_CONNS) {
        n = ++t->conns;
    } else if (!n) {
        n = 1;
        for (uint32_t i = 2; i <= t->conns; i++)
            if (t->conn[i].used < t->conn[n].used)
                n = i;
        conn_free(t, n);
        t->evicted++;
    }
    if (n == t->free_conn)
        t->free_conn = t->conn[n].half[0];
    t->conn[n] = (struct fault_conn){.number = (uint32_t)++t->seen, .used = t->clock};
    return n;
}

/* A half of connection n, as its side 0 or 1. */
static uint32_t half_new(struct fault_table *t, uint32_t n, unsigned side,
                         const struct wire_addr *src, const struct wire_addr *dst, uint32_t dqpn)
{
    uint32_t i = t->free_half;
    if (i)
        t->free_half = t->half[i].chain;
    else
        i = ++t->halves;
    uint32_t *at = bucket(t, src, dst, dqpn);
    t->half[i] =
        (struct fault_half){.src = *src, .dst = *dst, .dqpn = dqpn, .conn = n, .chain = *at};
    *at = i;
    t->conn[n].half[side] = i;
    return i;
}

/* ---- which halves belong together ---- */

/* Half i, which has no connection, joins the connection of half `to`. */
static void join(struct fault_table *t, uint32_t to, uint32_t i)
{
    uint32_t keep = t->half[to].conn, gone = t->half[i].conn;
    struct fault_conn *c = &t->conn[keep], *d = &t->conn[gone];
    wait_remove(t, to);
    wait_remove(t, i);
    c->half[c->half[0] == to] = i;
    t->half[i].conn = keep;
    if (d->number < c->number)
        c->number = d->number;
    if (!c->mtu)
        c->mtu = d->mtu;
    *d = (struct fault_conn){.half = {t->free_conn}};
    t->free_conn = gone;
}

static bool reverse(const struct fault_half *h, const struct wire_pkt *p)
{
    return same(&h->src, &p->dip) && same(&h->dst, &p->sip);
}

/* Can this half have requested a response with that PSN? A READ may take more PSNs than we know,
 * and the packet that a NAK asks for may have been lost before this place. */
static bool asked(const struct fault_half *h, const struct wire_pkt *p)
{
    bool ack = wire_opcodes[p->opcode].flags & WIRE_F_ACK;
    bool nak = ack && wire_aeth_kind(p->syndrome) != WIRE_AETH_ACK;
    uint32_t first = h->first - (nak ? LOST_MOST : 0), end = h->next;
    if (h->read_len && before(end, h->read_psn + h->read_len / 256 + 1))
        end = h->read_psn + h->read_len / 256 + 1;
    return h->requests && ((p->psn - first) & WIRE_PSN_MASK) < ((end - first) & WIRE_PSN_MASK);
}

/* The waiting half that is the other direction of packet p; 0 = none, or several. */
static uint32_t find_back(const struct fault_table *t, const struct wire_pkt *p, bool response,
                          uint32_t self)
{
    uint32_t found[2] = {0}, n[2] = {0}; /* by PSN alone, by port too */
    unsigned looks = LOOK_MOST;
    for (uint32_t i = t->waits; i && looks; i = t->half[i].waits_next, looks--) {
        const struct fault_half *h = &t->half[i];
        if (i == self || !reverse(h, p) || (response && !asked(h, p)))
            continue;
        bool port = p->udp_off && h->sport == p->sport;
        found[0] = i;
        n[0]++;
        found[1] = port ? i : found[1];
        n[1] += port;
    }
    if (n[1] == 1)
        return found[1];
    return response && n[0] == 1 ? found[0] : 0;
}

/* The half of a connection that the packet belongs to: a known one, or a new one. No new one is
 * made for a CNP or a damaged packet: 0. */
static uint32_t half_of(struct fault_table *t, const struct fault_view *v)
{
    const struct wire_pkt *p = &v->p;
    uint32_t i = find(t, &p->sip, &p->dip, p->dqpn);
    bool response = v->op->flags & WIRE_F_RESPONSE;
    if (i && (!alone(t, &t->half[i]) || !response || t->half[i].tries >= TRIES))
        return i;
    if (v->op->flags & WIRE_F_CNP || (!i && !intact(v)))
        return i;
    uint32_t back = find_back(t, p, response, i);
    if (i && back) {
        join(t, back, i);
    } else if (i) {
        t->half[i].tries++;
    } else if (back) {
        struct fault_conn *c = &t->conn[t->half[back].conn];
        wait_remove(t, back);
        i = half_new(t, t->half[back].conn, c->half[0] == back, &p->sip, &p->dip, p->dqpn);
    } else {
        i = half_new(t, conn_new(t), 0, &p->sip, &p->dip, p->dqpn);
        wait_add(t, i);
    }
    t->half[i].sport = p->sport;
    return i;
}

/* ---- PSNs ---- */

/* PSNs that a READ of `len` octets takes. */
static uint32_t read_span(uint32_t len, uint32_t mtu)
{
    return mtu && len ? (len - 1) / mtu + 1 : 1;
}

/* The MTU is known now, and with it the last PSN of an open READ. */
static void mtu_learned(struct fault_table *t, struct fault_conn *c, uint32_t mtu)
{
    c->mtu = mtu;
    for (unsigned i = 0; i < 2; i++) {
        struct fault_half *h = &t->half[c->half[i]];
        uint32_t end = h->read_psn + read_span(h->read_len, mtu);
        if (c->half[i] && h->read_len && before(h->next, end))
            h->next = end & WIRE_PSN_MASK;
    }
}

static void see_request(struct fault_half *h, const struct fault_view *v, uint32_t mtu,
                        struct fault_place *out)
{
    const struct wire_pkt *p = &v->p;
    if (!h->requests) {
        h->requests = true;
        h->first = h->next = p->psn;
    }
    if (p->psn != h->next && !intact(v))
        return;
    out->rel_known = out->tx_known = true;
    out->rel = (p->psn - h->first) & WIRE_PSN_MASK;
    out->retx = before(p->psn, h->next);
    if (out->retx)
        return;
    out->msn = h->ends;
    if (v->op->flags & WIRE_F_END)
        h->ends = (h->ends + 1) & 0xFFFFFFu;
    bool read = v->op->flags & WIRE_F_READ;
    if (read) {
        h->read_psn = p->psn;
        h->read_len = p->dma_len;
    }
    h->next = (p->psn + (read ? read_span(p->dma_len, mtu) : 1)) & WIRE_PSN_MASK;
}

/* Responses of one kind: was this PSN seen? */
static bool again(bool *any, uint32_t *next, uint32_t psn)
{
    bool had = *any && before(psn, *next);
    *any = true;
    if (!had)
        *next = (psn + 1) & WIRE_PSN_MASK;
    return had;
}

static void see_response(struct fault_half *h, struct fault_half *back, const struct fault_view *v,
                         struct fault_place *out)
{
    const struct wire_pkt *p = &v->p;
    const struct wire_opcode_info *op = v->op;
    if (p->psn != h->resp_next && !intact(v))
        return;
    out->tx_known = true;
    if (!(op->flags & WIRE_F_ACK))
        out->retx = again(&h->responses, &h->resp_next, p->psn);
    else if (wire_aeth_kind(p->syndrome) == WIRE_AETH_ACK)
        out->retx = again(&h->acks, &h->ack_next, p->psn);
    else
        out->retx = again(&h->naks, &h->nak_next, p->psn);
    if (op->headers & WIRE_H_AETH)
        h->msn = p->msn;
    if (back && op->headers & WIRE_H_AETH && ((p->psn + 1) & WIRE_PSN_MASK) == back->next)
        back->ends = p->msn; /* all is answered: this is the number of messages */
    if (back && back->requests) {
        out->rel_known = true;
        out->rel = (p->psn - back->first) & WIRE_PSN_MASK;
    }
}

/* ---- CM ---- */

static void cm_request(struct fault_table *t, const struct wire_pkt *p, const struct cm_msg *m)
{
    struct fault_cm *e = NULL;
    for (uint32_t i = 0; i < FAULT_CMS && i < t->cms; i++)
        if (t->cm[i].id == m->local_id && same(&t->cm[i].a, &p->sip) && same(&t->cm[i].b, &p->dip))
            e = &t->cm[i];
    if (e && e->qpn == m->qpn && e->psn == m->psn) /* repeated */
        return;
    if (!e)
        e = &t->cm[t->cms++ % FAULT_CMS];
    *e = (struct fault_cm){.a = p->sip,
                           .b = p->dip,
                           .id = m->local_id,
                           .qpn = m->qpn,
                           .psn = m->psn,
                           .mtu = wire_mtu_octets(m->mtu)};
}

static uint32_t announce(struct fault_table *t, uint32_t n, unsigned side,
                         const struct wire_addr *src, const struct wire_addr *dst, uint32_t dqpn,
                         uint32_t psn)
{
    uint32_t i = half_new(t, n, side, src, dst, dqpn);
    t->half[i].requests = true;
    t->half[i].first = t->half[i].next = psn;
    return i;
}

/* Both queue pairs are known now: make a new connection, also when an old one had the same numbers.
 * Each message names the first PSN that its sender expects (CM-08). */
static void cm_reply(struct fault_table *t, const struct wire_pkt *p, const struct cm_msg *m)
{
    struct fault_cm *e = NULL;
    for (uint32_t i = 0; i < FAULT_CMS && i < t->cms; i++)
        if (t->cm[i].id == m->remote_id && same(&t->cm[i].a, &p->dip) && same(&t->cm[i].b, &p->sip))
            e = &t->cm[i];
    if (!e || e->rep_qpn == m->qpn)
        return;
    e->rep_qpn = m->qpn;
    uint32_t old[2] = {find(t, &e->a, &e->b, m->qpn), 0};
    if (old[0])
        conn_free(t, t->half[old[0]].conn);
    old[1] = find(t, &e->b, &e->a, e->qpn);
    if (old[1])
        conn_free(t, t->half[old[1]].conn);
    uint32_t n = conn_new(t);
    announce(t, n, 0, &e->a, &e->b, m->qpn, m->psn);
    announce(t, n, 1, &e->b, &e->a, e->qpn, e->psn);
    t->conn[n].mtu = e->mtu;
}

static void see_cm(struct fault_table *t, const struct fault_view *v)
{
    struct cm_msg m;
    if (!v->whole || !intact(v) || cm_msg_unpack(&m, v->frame + v->p.payload_off, v->p.payload_len))
        return;
    if (m.attr == CM_REQ && m.transport <= 1)
        cm_request(t, &v->p, &m);
    else if (m.attr == CM_REP)
        cm_reply(t, &v->p, &m);
}

/* ---- a packet ---- */

void fault_conn_see(struct fault_table *t, const struct fault_view *v, struct fault_place *out)
{
    const struct wire_pkt *p = &v->p;
    t->clock++;
    if (v->classes & FAULT_C_CM)
        see_cm(t, v);
    if (v->op->service == WIRE_UD || p->dqpn == WIRE_QPN_MULTICAST)
        return;
    uint32_t i = half_of(t, v);
    if (!i)
        return;
    struct fault_half *h = &t->half[i];
    struct fault_conn *c = &t->conn[h->conn];
    uint32_t back = other(t, i);
    c->used = t->clock;
    out->conn = c->number;
    out->back = back ? &t->half[back] : NULL;
    out->msn = back ? t->half[back].msn : 0;
    if (v->op->flags & WIRE_F_REQUEST)
        see_request(h, v, c->mtu, out);
    else if (v->op->flags & WIRE_F_RESPONSE)
        see_response(h, back ? &t->half[back] : NULL, v, out);
    if (!c->mtu && v->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE) && wire_mtu_enum(p->payload_len))
        mtu_learned(t, c, p->payload_len);
}
