/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Token buckets in a table that never grows. A new guesser takes the place of another one with the
 * same hash, unless that one's bucket is closed. Rule: SEC-09.
 */
#include "guess.h"

#include <string.h>

#include "engine_priv.h"
#include "rx.h"

/* Keyed: a sender can't aim at another sender's entry. */
static uint64_t hash(const struct guess *g, const struct wire_addr *ip, uint32_t qpn,
                     enum guess_kind kind)
{
    uint64_t half[2], h = g->key ^ ((uint64_t)kind << 32 | qpn);
    memcpy(half, ip->b, sizeof(half));
    for (unsigned i = 0; i < 2; i++) {
        h = (h ^ half[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        h ^= h >> 32;
    }
    return h;
}

static uint32_t place(const struct guess *g, const struct wire_addr *ip, uint32_t qpn,
                      enum guess_kind kind)
{
    uint32_t h = (uint32_t)hash(g, ip, qpn, kind);
    return kind == GUESS_HOST_KEY ? GUESS_TABLE + h % GUESS_HOSTS : h % GUESS_TABLE;
}

/* The factor of GUESS_BURST and of the rate of refills: a host may have many senders. */
static uint32_t times(enum guess_kind kind)
{
    return kind == GUESS_HOST_KEY ? GUESS_HOST : 1;
}

static bool is(const struct guess_entry *en, const struct wire_addr *ip, uint32_t qpn,
               enum guess_kind kind)
{
    return en->qpn == qpn && en->kind == kind && !memcmp(&en->ip, ip, sizeof(*ip));
}

static void refill(struct guess_entry *en, uint64_t now)
{
    uint64_t refill_ns = GUESS_REFILL / times(en->kind),
             most = (uint64_t)GUESS_BURST * times(en->kind);
    uint64_t n = now > en->at ? (now - en->at) / refill_ns : 0;
    en->at += n * refill_ns;
    en->tokens = (uint32_t)(n < most - en->tokens ? en->tokens + n : most);
}

/* Charge one failure to this guesser. Returns the counter of the drop: `counter`, or
 * rx_rate_limited while the kind is closed. */
static enum engine_counter charge(const struct rx *rx, uint32_t qpn, enum guess_kind kind,
                                  enum engine_counter counter)
{
    struct engine *e = rx->e;
    struct guess *g = e->guess;
    const struct wire_addr *ip = &rx->pkt.sip;
    struct guess_entry *en = &g->entry[place(g, ip, qpn, kind)];
    if (!is(en, ip, qpn, kind)) {
        if (en->closed > rx->now)
            return counter;
        *en = (struct guess_entry){*ip, qpn, kind, GUESS_BURST * times(kind), rx->now, 0};
    }
    if (en->closed > rx->now)
        return ENGINE_C_rx_rate_limited;
    refill(en, rx->now);
    if (--en->tokens > 0)
        return counter;
    en->closed = rx->now + GUESS_CLOSED;
    if (g->closed < en->closed)
        g->closed = en->closed;
    engine_count(e, ENGINE_C_guess_limit);
    if (e->p.hooks.guess)
        e->p.hooks.guess(e->p.hook_arg, ip, counter);
    return counter;
}

void guess_drop(struct rx *rx, const struct qp *qp, enum guess_kind kind,
                enum engine_counter counter)
{
    rx_drop(rx, charge(rx, qp ? qp->qpn : 0, kind, counter));
}

static void remember_wrong(const struct rx *rx)
{
    struct guess *g = rx->e->guess;
    uint64_t h = hash(g, &rx->pkt.sip, rx->pkt.sqpn, GUESS_HOST_KEY) % GUESS_WRONG;
    if (rx->now - g->wrong_since >= GUESS_FORGET) {
        memset(g->wrong, 0, sizeof(g->wrong));
        g->wrong_since = rx->now;
    }
    g->wrong[h / 64] |= 1ull << h % 64;
}

static bool was_wrong(const struct rx *rx)
{
    const struct guess *g = rx->e->guess;
    uint64_t h = hash(g, &rx->pkt.sip, rx->pkt.sqpn, GUESS_HOST_KEY) % GUESS_WRONG;
    return g->wrong[h / 64] >> h % 64 & 1;
}

void guess_drop_datagram(struct rx *rx, enum engine_counter counter)
{
    rx->e->guess->watch = rx->now + GUESS_WATCH;
    remember_wrong(rx);
    enum engine_counter why = charge(rx, rx->pkt.sqpn, GUESS_SENDER, counter);
    if (why == counter) /* a sender that is cut off can't cut off its host */
        charge(rx, 0, GUESS_HOST_KEY, counter);
    rx_drop(rx, why);
}

void guess_right(const struct rx *rx)
{
    struct guess *g = rx->e->guess;
    if (g->watch <= rx->now)
        return;
    uint64_t h = hash(g, &rx->pkt.sip, rx->pkt.sqpn, GUESS_HOST_KEY);
    g->good[h % GUESS_GOOD] = h;
}

static bool was_right(const struct rx *rx)
{
    const struct guess *g = rx->e->guess;
    uint64_t h = hash(g, &rx->pkt.sip, rx->pkt.sqpn, GUESS_HOST_KEY);
    return g->good[h % GUESS_GOOD] == h;
}

void guess_cnp(struct engine *e, const struct wire_addr *peer, uint64_t now)
{
    struct guess *g = e->guess;
    engine_count(e, ENGINE_C_rp_cnp_unearned);
    if (now - g->cnps_since >= GUESS_CLOSED) {
        g->cnps_since = now;
        g->cnps = 0;
    }
    if (++g->cnps == GUESS_CNPS && e->p.hooks.guess)
        e->p.hooks.guess(e->p.hook_arg, peer, ENGINE_C_rp_cnp_unearned);
}

static bool closed(const struct rx *rx, uint32_t qpn, enum guess_kind kind)
{
    const struct guess *g = rx->e->guess;
    const struct wire_addr *ip = &rx->pkt.sip;
    const struct guess_entry *en = &g->entry[place(g, ip, qpn, kind)];
    return en->closed > rx->now && is(en, ip, qpn, kind);
}

bool guess_sender_closed(const struct rx *rx)
{
    return rx->e->guess->closed > rx->now &&
           (closed(rx, rx->pkt.sqpn, GUESS_SENDER) ||
            (was_wrong(rx) && !was_right(rx) && closed(rx, 0, GUESS_HOST_KEY)));
}

bool guess_peer_closed(const struct rx *rx, const struct qp *qp, enum guess_kind kind)
{
    return rx->e->guess->closed > rx->now && closed(rx, qp->qpn, kind);
}
