/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of a connection manager: found by our id, by the peer's id (a repeated REQ,
 * CM-20) and by the peer's queue pair (a stale connection, CM-21); their timers (a binary heap);
 * messages to send and events to report. Look-ups by a peer's numbers are keyed with a secret, so
 * that a peer can't choose numbers that share a bucket (SEC-19).
 */
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

static inline uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

#define SIP_ROUND                                                                                  \
    do {                                                                                           \
        v0 += v1, v1 = rotl(v1, 13) ^ v0, v0 = rotl(v0, 32);                                       \
        v2 += v3, v3 = rotl(v3, 16) ^ v2;                                                          \
        v0 += v3, v3 = rotl(v3, 21) ^ v0;                                                          \
        v2 += v1, v1 = rotl(v1, 17) ^ v2, v2 = rotl(v2, 32);                                       \
    } while (0)

/* SipHash-2-4 (Aumasson, Bernstein 2012). */
uint64_t cm_hash(const struct cm *cm, const void *data, size_t len)
{
    const uint64_t k0 = cm->params.key[0], k1 = cm->params.key[1];
    uint64_t v0 = k0 ^ 0x736f6d6570736575u, v1 = k1 ^ 0x646f72616e646f6du;
    uint64_t v2 = k0 ^ 0x6c7967656e657261u, v3 = k1 ^ 0x7465646279746573u;
    const uint8_t *p = data;
    uint64_t last = (uint64_t)len << 56;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t m;
        memcpy(&m, p, 8);
        v3 ^= m;
        SIP_ROUND;
        SIP_ROUND;
        v0 ^= m;
    }
    for (size_t i = 0; i < len; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v3 ^= last;
    SIP_ROUND;
    SIP_ROUND;
    v0 ^= last;
    v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        SIP_ROUND;
    return v0 ^ v1 ^ v2 ^ v3;
}

uint64_t cm_random(struct cm *cm)
{
    cm->ctr++;
    return cm_hash(cm, &cm->ctr, sizeof(cm->ctr));
}

bool cm_addr_eq(const struct wire_addr *a, const struct wire_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* ---- look-ups ---- */

struct peer_key {
    struct wire_addr addr;
    uint64_t guid;
    uint64_t number; /* communication id or QPN */
};

static uint32_t peer_bucket(const struct cm *cm, const struct wire_addr *addr, uint64_t guid,
                            uint32_t number)
{
    struct peer_key k = {*addr, guid, number};
    return (uint32_t)cm_hash(cm, &k, sizeof(k)) & cm->bucket_mask;
}

struct cm_conn *cm_find_local(const struct cm *cm, uint32_t local_id)
{
    struct cm_conn *c = cm->by_local[local_id & cm->bucket_mask];
    while (c && c->local_id != local_id)
        c = c->next_local;
    return c;
}

struct cm_conn *cm_find_remote(const struct cm *cm, const struct wire_addr *addr, uint64_t guid,
                               uint32_t remote_id)
{
    struct cm_conn *c = cm->by_remote[peer_bucket(cm, addr, guid, remote_id)];
    while (c && (c->remote_id != remote_id || c->peer_guid != guid ||
                 !cm_addr_eq(&c->path.remote, addr)))
        c = c->next_remote;
    return c;
}

struct cm_conn *cm_find_qpn(const struct cm *cm, const struct wire_addr *addr, uint64_t guid,
                            uint32_t qpn)
{
    struct cm_conn *c = cm->by_qpn[peer_bucket(cm, addr, guid, qpn)];
    while (c && (c->peer_qpn != qpn || c->peer_guid != guid || !cm_addr_eq(&c->path.remote, addr)))
        c = c->next_qpn;
    return c;
}

static void unlink_remote(struct cm *cm, struct cm_conn *c)
{
    if (!c->in_remote)
        return;
    struct cm_conn **at =
        &cm->by_remote[peer_bucket(cm, &c->path.remote, c->peer_guid, c->remote_id)];
    while (*at != c)
        at = &(*at)->next_remote;
    *at = c->next_remote;
    c->in_remote = false;
}

static void unlink_qpn(struct cm *cm, struct cm_conn *c)
{
    if (!c->in_qpn)
        return;
    struct cm_conn **at = &cm->by_qpn[peer_bucket(cm, &c->path.remote, c->peer_guid, c->peer_qpn)];
    while (*at != c)
        at = &(*at)->next_qpn;
    *at = c->next_qpn;
    c->in_qpn = false;
}

void cm_conn_set_remote(struct cm *cm, struct cm_conn *c, uint64_t guid, uint32_t remote_id)
{
    c->peer_guid = guid;
    c->remote_id = remote_id;
    struct cm_conn **at = &cm->by_remote[peer_bucket(cm, &c->path.remote, guid, remote_id)];
    c->next_remote = *at;
    *at = c;
    c->in_remote = true;
}

void cm_conn_set_peer_qpn(struct cm *cm, struct cm_conn *c, uint32_t qpn)
{
    c->peer_qpn = qpn;
    struct cm_conn **at = &cm->by_qpn[peer_bucket(cm, &c->path.remote, c->peer_guid, qpn)];
    c->next_qpn = *at;
    *at = c;
    c->in_qpn = true;
}

bool cm_hold_peer(struct cm *cm, struct cm_conn *c, uint64_t guid, uint32_t qpn, uint32_t except)
{
    if (!cm->params.hold)
        return true;
    c->peer = (struct cm_peer){.addr = c->path.remote, .guid = guid, .qpn = qpn, .id = c->local_id};
    return cm->params.hold(cm->params.peers, &c->peer, except);
}

void cm_drop_peer(struct cm *cm, struct cm_conn *c)
{
    if (c->peer.held)
        cm->params.drop(cm->params.peers, &c->peer);
    c->peer.held = false;
}

/* ---- timers: a binary heap, each connection knows its place ---- */

static void heap_put(struct cm *cm, uint32_t at, struct cm_conn *c)
{
    cm->heap[at] = c;
    c->heap_at = at;
}

static void heap_up(struct cm *cm, uint32_t at, struct cm_conn *c)
{
    while (at > 0 && cm->heap[(at - 1) / 2]->deadline > c->deadline) {
        heap_put(cm, at, cm->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(cm, at, c);
}

static void heap_down(struct cm *cm, uint32_t at, struct cm_conn *c)
{
    for (;;) {
        uint32_t kid = at * 2 + 1;
        if (kid >= cm->heap_len)
            break;
        if (kid + 1 < cm->heap_len && cm->heap[kid + 1]->deadline < cm->heap[kid]->deadline)
            kid++;
        if (cm->heap[kid]->deadline >= c->deadline)
            break;
        heap_put(cm, at, cm->heap[kid]);
        at = kid;
    }
    heap_put(cm, at, c);
}

static void heap_remove(struct cm *cm, struct cm_conn *c)
{
    uint32_t at = c->heap_at;
    if (at == CM_NONE)
        return;
    struct cm_conn *last = cm->heap[--cm->heap_len];
    c->heap_at = CM_NONE;
    if (last == c)
        return;
    if (at > 0 && cm->heap[(at - 1) / 2]->deadline > last->deadline)
        heap_up(cm, at, last);
    else
        heap_down(cm, at, last);
}

/* The heap has room for every connection there can be, so that setting a timer can't fail. */
void cm_timer_set(struct cm *cm, struct cm_conn *c, uint64_t deadline)
{
    heap_remove(cm, c);
    c->deadline = deadline;
    if (deadline != UINT64_MAX)
        heap_up(cm, cm->heap_len++, c);
}

/* ---- connections ---- */

static bool heap_reserve(struct cm *cm)
{
    if (cm->live < cm->heap_cap)
        return true;
    uint32_t cap = cm->heap_cap ? cm->heap_cap * 2 : 64;
    struct cm_conn **heap = realloc(cm->heap, cap * sizeof(struct cm_conn *));
    if (!heap)
        return false;
    cm->heap = heap;
    cm->heap_cap = cap;
    return true;
}

struct cm_conn *cm_conn_new(struct cm *cm, enum cm_state state, void *arg)
{
    if (cm->live >= cm->params.max_conns || !heap_reserve(cm))
        return NULL;
    struct cm_conn *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->state = state;
    c->arg = arg;
    c->heap_at = CM_NONE;
    c->deadline = UINT64_MAX;
    do {
        c->local_id = (uint32_t)cm_random(cm);
        if (cm->params.part_bits)
            c->local_id = c->local_id >> cm->params.part_bits | (uint32_t)cm->params.part
                                                                    << (32 - cm->params.part_bits);
    } while (c->local_id == 0 || cm_find_local(cm, c->local_id)); /* CM-15 */

    struct cm_conn **at = &cm->by_local[c->local_id & cm->bucket_mask];
    c->next_local = *at;
    *at = c;
    c->all_next = cm->all;
    if (cm->all)
        cm->all->all_prev = c;
    cm->all = c;
    cm->live++;
    return c;
}

/* The slot that counts the pending requests of a source. */
static size_t source_slot(const struct cm *cm, const struct wire_addr *src)
{
    return cm_hash(cm, src, sizeof(*src)) % CM_SRC_BUCKETS;
}

bool cm_source_busy(const struct cm *cm, const struct wire_addr *src)
{
    return cm->src_pending[source_slot(cm, src)] > CM_SRC_PENDING / 2 ||
           cm->half_open > cm->params.max_conns / 4;
}

/* Half of the room that the others leave: a host may start a thousand connections at once, and
 * there is room for another one. */
bool cm_source_full(const struct cm *cm, const struct cm_listener *l, const struct wire_addr *src)
{
    uint32_t own = cm->src_pending[source_slot(cm, src)];
    uint32_t others = l->pending > own ? l->pending - own : 0;
    uint32_t most = (l->backlog - others) / 2;
    if (most < CM_SRC_PENDING)
        most = CM_SRC_PENDING;
    return own >= most || own == UINT16_MAX;
}

void cm_half_open(struct cm *cm, struct cm_conn *c, bool on)
{
    if (c->half_open == on)
        return;
    c->half_open = on;
    uint16_t *src = &cm->src_pending[source_slot(cm, &c->path.remote)];
    if (on) {
        cm->half_open++;
        (*src)++;
        cm_awaits(c);
    } else {
        cm->half_open--;
        (*src)--;
        cm_answered(c);
    }
}

static void unlink_tx(struct cm *cm, struct cm_conn *c)
{
    if (!c->tx_queued)
        return;
    struct cm_conn **at = &cm->tx_head;
    while (*at != c)
        at = &(*at)->tx_next;
    *at = c->tx_next;
    if (cm->tx_tail == &c->tx_next)
        cm->tx_tail = at;
    c->tx_queued = false;
}

void cm_conn_free(struct cm *cm, struct cm_conn *c)
{
    if (c->all_prev)
        c->all_prev->all_next = c->all_next;
    else
        cm->all = c->all_next;
    if (c->all_next)
        c->all_next->all_prev = c->all_prev;
    free(c);
}

void cm_conn_close(struct cm *cm, struct cm_conn *c)
{
    if (c->state != CMS_CLOSED) {
        cm_half_open(cm, c, false);
        unlink_remote(cm, c);
        unlink_qpn(cm, c);
        cm_drop_peer(cm, c);
        struct cm_conn **at = &cm->by_local[c->local_id & cm->bucket_mask];
        while (*at != c)
            at = &(*at)->next_local;
        *at = c->next_local;
        heap_remove(cm, c);
        unlink_tx(cm, c);
        c->state = CMS_CLOSED;
        cm->live--;
        if (c->account && cm->params.left)
            cm->params.left(c->account);
    }
    if (c->released && c->ev_refs == 0)
        cm_conn_free(cm, c);
}

/* ---- messages to send and events to report ---- */

void cm_tx_queue(struct cm *cm, struct cm_conn *c)
{
    if (c->tx_queued)
        return;
    c->tx_queued = true;
    c->tx_next = NULL;
    *cm->tx_tail = c;
    cm->tx_tail = &c->tx_next;
}

bool cm_tx(struct cm *cm, struct cm_out *out)
{
    struct cm_conn *c = cm->tx_head;
    if (c) {
        cm->tx_head = c->tx_next;
        if (!cm->tx_head)
            cm->tx_tail = &cm->tx_head;
        c->tx_queued = false;
        *out = (struct cm_out){
            .src = c->path.local,
            .dst = c->path.remote,
            .tclass = c->path.tclass,
            .hop_limit = c->path.hop_limit,
            .sl = c->path.sl,
            .pkey = c->path.pkey,
        };
        memcpy(out->mad, c->mad, CM_MAD_LEN);
    } else if (cm->out_head != cm->out_tail) {
        *out = cm->out[cm->out_head++ % CM_OUT_RING];
    } else {
        return false;
    }
    cm_count(cm, CM_C_cm_tx);
    return true;
}

/* Out of memory here loses an event; the connection then ends by its timers. The dummy saves a
 * check in each caller. */
struct cm_event *cm_event_push(struct cm *cm, struct cm_conn *c, enum cm_event_type type)
{
    static _Thread_local struct cm_event lost;
    struct cm_event_node *n = c->released ? NULL : calloc(1, sizeof(*n));
    struct cm_event *ev = n ? &n->ev : &lost;
    ev->type = type;
    ev->conn = c;
    ev->arg = c->arg;
    ev->local = c->path.local;
    ev->remote = c->path.remote;
    ev->local_port = c->lport;
    ev->remote_port = c->rport;
    ev->qpn = c->peer_qpn;
    ev->retry_count = c->retry_cnt;
    ev->rnr_retry_count = c->rnr_retry;
    ev->srq = c->peer_srq;
    ev->flow_control = c->peer_flow_control;
    if (n) {
        c->ev_refs++;
        *cm->ev_tail = n;
        cm->ev_tail = &n->next;
    }
    return ev;
}

bool cm_event(struct cm *cm, struct cm_event *out)
{
    for (;;) {
        struct cm_event_node *n = cm->ev_head;
        if (!n)
            return false;
        cm->ev_head = n->next;
        if (!cm->ev_head)
            cm->ev_tail = &cm->ev_head;
        struct cm_conn *c = n->ev.conn;
        bool wanted = !c->released;
        c->ev_refs--;
        if (wanted) {
            *out = n->ev;
            if (n->ev.type == CM_EV_REQ || n->ev.type == CM_EV_SIDR_REQ)
                c->req_delivered = true;
        } else if (c->state == CMS_CLOSED && c->ev_refs == 0) {
            cm_conn_free(cm, c);
        }
        free(n);
        if (wanted)
            return true;
    }
}

uint64_t cm_deadline(const struct cm *cm)
{
    return cm->heap_len ? cm->heap[0]->deadline : UINT64_MAX;
}
