/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The neighbour table.
 *
 *     (new) ---ask---> INCOMPLETE --answer--> REACHABLE --30 s--> STALE    (PROBE when watched)
 *                          |  ^                   ^                 |
 *                     no answer \            answer|              used
 *                          v     `--no answer--- PROBE <------------'
 *                        FAILED  --after a while--> forgotten (asked again when watched)
 *
 * A timer belongs to a state (neigh.due). `neigh_due` of the port is a lower bound of them all, so
 * that a deadline costs nothing and only neigh_expire walks the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_port.h"

static uint32_t hash_of(const struct net_port *p, const struct wire_addr *addr)
{
    uint64_t h = wire_get64(addr->b) * 0x9E3779B97F4A7C15u ^ wire_get64(addr->b + 8);
    h *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32) & p->hash_mask;
}

int neigh_table_init(struct net_port *p)
{
    uint32_t n = p->config.neighbours;
    uint32_t chains = 1;
    while (chains < n)
        chains *= 2;
    p->hash_mask = chains - 1;
    p->table = calloc(n, sizeof(*p->table));
    p->hash = calloc(chains, sizeof(struct neigh *));
    if (!p->table || !p->hash)
        return -ENOMEM;
    TAILQ_INIT(&p->free);
    TAILQ_INIT(&p->learned);
    TAILQ_INIT(&p->asked);
    TAILQ_INIT(&p->tx);
    TAILQ_INIT(&p->change);
    for (uint32_t i = 0; i < n; i++)
        TAILQ_INSERT_TAIL(&p->free, &p->table[i], use);
    p->neigh_due = NET_NEVER;
    return 0;
}

struct neigh *neigh_find(const struct net_port *p, const struct wire_addr *addr)
{
    struct neigh *n = p->hash[hash_of(p, addr)];
    while (n && memcmp(&n->addr, addr, sizeof(*addr)) != 0)
        n = n->next;
    return n;
}

static void set_state(struct net_port *p, struct neigh *n, enum net_state state, uint64_t due)
{
    n->state = state;
    n->due = due;
    if (due < p->neigh_due)
        p->neigh_due = due;
}

static void want_tx(struct net_port *p, struct neigh *n)
{
    if (!n->wants_tx) {
        n->wants_tx = true;
        TAILQ_INSERT_TAIL(&p->tx, n, tx);
    }
}

static void drop_tx(struct net_port *p, struct neigh *n)
{
    if (n->wants_tx) {
        n->wants_tx = false;
        TAILQ_REMOVE(&p->tx, n, tx);
    }
}

static void tell(struct net_port *p, struct neigh *n)
{
    if (!n->changed) {
        n->changed = true;
        TAILQ_INSERT_TAIL(&p->change, n, change);
    }
}

/* Move to the recently used end of its list. */
static void touch(struct net_port *p, struct neigh *n)
{
    struct neigh_list *list = n->asked ? &p->asked : &p->learned;
    TAILQ_REMOVE(list, n, use);
    TAILQ_INSERT_TAIL(list, n, use);
}

static void forget(struct net_port *p, struct neigh *n)
{
    struct neigh **at = &p->hash[hash_of(p, &n->addr)];
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    drop_tx(p, n);
    if (n->changed)
        TAILQ_REMOVE(&p->change, n, change);
    TAILQ_REMOVE(n->asked ? &p->asked : &p->learned, n, use);
    p->learned_count -= !n->asked;
    memset(n, 0, sizeof(*n));
    TAILQ_INSERT_HEAD(&p->free, n, use);
}

/* Make room: neighbours that only asked for us go first, then the least recently used one that is
 * not watched. */
static bool evict(struct net_port *p)
{
    struct neigh *n = TAILQ_FIRST(&p->learned);
    if (!n) {
        n = TAILQ_FIRST(&p->asked);
        while (n && n->watchers)
            n = TAILQ_NEXT(n, use);
    }
    if (!n)
        return false;
    forget(p, n);
    p->counters[NET_NEIGH_EVICTED]++;
    return true;
}

/* A new entry; NULL when there is no room. */
static struct neigh *create(struct net_port *p, const struct wire_addr *addr, bool asked)
{
    if (TAILQ_EMPTY(&p->free) && !evict(p))
        return NULL;
    struct neigh *n = TAILQ_FIRST(&p->free);
    TAILQ_REMOVE(&p->free, n, use);
    n->addr = *addr;
    n->asked = asked;
    n->due = NET_NEVER;
    struct neigh **chain = &p->hash[hash_of(p, addr)];
    n->next = *chain;
    *chain = n;
    TAILQ_INSERT_TAIL(asked ? &p->asked : &p->learned, n, use);
    p->learned_count += !asked;
    return n;
}

/* Ask by broadcast, from the first try. */
static void start_request(struct net_port *p, struct neigh *n, uint64_t now)
{
    n->tries = 1;
    set_state(p, n, NET_INCOMPLETE, now + NET_RETRY_NS);
    want_tx(p, n);
}

/* How long an answer to a probe is waited for. */
static uint64_t probe_wait(const struct neigh *n)
{
    return n->claimed ? NET_CLAIM_NS : NET_RETRY_NS;
}

/* Ask the neighbour itself whether it is still there. */
static void start_probe(struct net_port *p, struct neigh *n, uint64_t now)
{
    n->tries = 1;
    set_state(p, n, NET_PROBE, now + probe_wait(n));
    want_tx(p, n);
}

/* WIRE-35: queue pairs send to this neighbour, and a message gives it another MAC. Ask at the known
 * MAC first, at most once a second. */
static void claim(struct net_port *p, struct neigh *n, const uint8_t mac[6], uint64_t now)
{
    p->counters[NET_NEIGH_CLAIMED]++;
    n->claimed = true;
    memcpy(n->claim, mac, 6);
    if (n->state == NET_STALE || (n->state == NET_REACHABLE && now >= n->locked))
        start_probe(p, n, now);
    else if (n->state == NET_REACHABLE && n->locked < n->due)
        set_state(p, n, NET_REACHABLE, n->locked);
}

/* The MAC that we knew is silent. */
static void take_claim(struct net_port *p, struct neigh *n, uint64_t now)
{
    n->claimed = false;
    memcpy(n->mac, n->claim, 6);
    n->locked = now + NET_LOCK_NS;
    p->counters[NET_NEIGH_CHANGED]++;
    tell(p, n);
    start_probe(p, n, now);
}

static void fail(struct net_port *p, struct neigh *n, uint64_t now)
{
    drop_tx(p, n);
    set_state(p, n, NET_FAILED, now + NET_FAILED_NS);
    p->counters[NET_NEIGH_FAILED]++;
    tell(p, n);
}

/* Find or create the entry of a neighbour that we send to. */
static struct neigh *ask(struct net_port *p, const struct wire_addr *addr)
{
    struct neigh *n = neigh_find(p, addr);
    if (!n)
        return create(p, addr, true);
    if (!n->asked) {
        TAILQ_REMOVE(&p->learned, n, use);
        p->learned_count--;
        n->asked = true;
        TAILQ_INSERT_TAIL(&p->asked, n, use);
    }
    return n;
}

/* The result of net_resolve for an entry; starts the work that its state needs. */
static int use(struct net_port *p, struct neigh *n, uint64_t now, uint8_t mac[6])
{
    touch(p, n);
    if (n->state == NET_NONE || (n->state == NET_FAILED && now >= n->due))
        start_request(p, n, now);
    else if (n->state == NET_STALE)
        start_probe(p, n, now);
    memcpy(mac, n->mac, 6);
    if (n->state == NET_INCOMPLETE)
        return -EINPROGRESS;
    return n->state == NET_FAILED ? -EHOSTUNREACH : 0;
}

int net_resolve(struct net_port *port, const struct wire_addr *dst, uint64_t now, uint8_t mac[6])
{
    struct wire_addr hop;
    int rc = net_next_hop(port, dst, &hop);
    if (rc)
        return rc;
    if (wire_addr_is_multicast(dst)) {
        wire_mcast_mac(dst, mac);
        return 0;
    }
    if (net_addr_has(port, dst)) {
        memcpy(mac, port->config.mac, 6);
        return 0;
    }
    struct neigh *n = ask(port, &hop);
    return n ? use(port, n, now, mac) : -ENOBUFS;
}

int net_watch(struct net_port *port, const struct wire_addr *hop, uint64_t now)
{
    uint8_t mac[6];
    if (wire_addr_is_multicast(hop) || net_addr_has(port, hop))
        return 0;
    if (!net_is_unicast(hop) || !net_reaching(port, hop))
        return -ENETUNREACH;
    struct neigh *n = ask(port, hop);
    if (!n)
        return -ENOBUFS;
    n->watchers++;
    return use(port, n, now, mac);
}

void net_unwatch(struct net_port *port, const struct wire_addr *hop)
{
    struct neigh *n = neigh_find(port, hop);
    if (n && n->watchers)
        n->watchers--;
}

void neigh_learn(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6])
{
    struct neigh *n = neigh_find(p, addr);
    if (n)
        return;
    /* They have a quarter of the table; after that they replace each other. */
    uint32_t quota = p->config.neighbours / 4;
    if (p->learned_count >= quota || TAILQ_EMPTY(&p->free)) {
        n = TAILQ_FIRST(&p->learned);
        if (!n)
            return;
        forget(p, n);
        p->counters[NET_NEIGH_EVICTED]++;
    }
    n = create(p, addr, false);
    if (!n)
        return;
    memcpy(n->mac, mac, 6);
    set_state(p, n, NET_STALE, NET_NEVER);
}

static bool has_mac(const struct neigh *n)
{
    return n->state == NET_REACHABLE || n->state == NET_STALE || n->state == NET_PROBE;
}

bool neigh_is_at(const struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6])
{
    const struct neigh *n = neigh_find(p, addr);
    return n && has_mac(n) && memcmp(n->mac, mac, 6) == 0;
}

bool neigh_locked(const struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                  uint64_t now)
{
    const struct neigh *n = neigh_find(p, addr);
    return n && has_mac(n) && now < n->locked && memcmp(n->mac, mac, 6) != 0;
}

static void heard(struct net_port *p, struct neigh *n, const uint8_t mac[6], bool solicited,
                  bool override, uint64_t now)
{
    bool had_mac = has_mac(n);
    bool other = memcmp(n->mac, mac, 6) != 0;
    if (had_mac && other && !override) {
        if (n->state == NET_REACHABLE && n->watchers)
            start_probe(p, n, now);
        else if (n->state == NET_REACHABLE)
            set_state(p, n, NET_STALE, NET_NEVER);
        return;
    }
    if (had_mac && other)
        p->counters[NET_NEIGH_CHANGED]++;
    if (!had_mac || other)
        tell(p, n);
    memcpy(n->mac, mac, 6);
    n->claimed = n->claimed && !other && !solicited;
    bool asked_now = n->state == NET_INCOMPLETE || n->state == NET_PROBE;
    if (!had_mac || other || (solicited && asked_now))
        n->locked = now + NET_LOCK_NS;
    if (solicited && asked_now) {
        drop_tx(p, n);
        set_state(p, n, NET_REACHABLE, now + NET_REACHABLE_NS);
    } else if (!had_mac || other) {
        /* An unsolicited MAC is good enough to send to; check it when a queue pair does. */
        drop_tx(p, n);
        if (n->watchers)
            start_probe(p, n, now);
        else
            set_state(p, n, NET_STALE, NET_NEVER);
    }
}

void neigh_heard(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                 bool solicited, bool override, uint64_t now)
{
    struct neigh *n = neigh_find(p, addr);
    if (!n)
        return;
    if (n->watchers && override && has_mac(n) && memcmp(n->mac, mac, 6) != 0)
        claim(p, n, mac, now);
    else
        heard(p, n, mac, solicited, override, now);
}

void net_neigh_told(struct net_port *port, const struct wire_addr *addr, const uint8_t *mac,
                    uint64_t now)
{
    struct neigh *n = neigh_find(port, addr);
    if (n && mac)
        heard(port, n, mac, true, true, now);
    else if (n && (n->state == NET_INCOMPLETE || n->state == NET_PROBE))
        fail(port, n, now);
}

void neigh_flush_unreachable(struct net_port *p)
{
    for (uint32_t i = 0; i < p->config.neighbours; i++) {
        struct neigh *n = &p->table[i];
        if (n->state == NET_NONE || net_reaching(p, &n->addr))
            continue;
        if (!n->watchers) {
            forget(p, n);
        } else if (n->state != NET_FAILED) {
            fail(p, n, 0); /* net_expire looks again and again whether there is a prefix */
        }
    }
}

/* The timer of `n` has run out. */
static void expire_one(struct net_port *p, struct neigh *n, uint64_t now)
{
    switch (n->state) {
    case NET_INCOMPLETE:
        if (n->tries == NET_TRIES) {
            fail(p, n, now);
        } else {
            set_state(p, n, NET_INCOMPLETE, now + (NET_RETRY_NS << n->tries));
            n->tries++;
            want_tx(p, n);
        }
        break;
    case NET_REACHABLE:
        if (n->watchers)
            start_probe(p, n, now);
        else
            set_state(p, n, NET_STALE, NET_NEVER);
        break;
    case NET_PROBE:
        if (n->tries == NET_PROBES && n->claimed) {
            take_claim(p, n, now);
        } else if (n->tries == NET_PROBES) {
            start_request(p, n, now);
        } else {
            n->tries++;
            set_state(p, n, NET_PROBE, now + probe_wait(n));
            want_tx(p, n);
        }
        break;
    case NET_FAILED:
        if (!n->watchers)
            forget(p, n);
        else if (net_reaching(p, &n->addr))
            start_request(p, n, now);
        else
            set_state(p, n, NET_FAILED, now + NET_FAILED_NS);
        break;
    case NET_NONE:
    case NET_STALE:
        n->due = NET_NEVER;
        break;
    }
}

void neigh_expire(struct net_port *p, uint64_t now)
{
    if (now < p->neigh_due)
        return;
    p->neigh_due = NET_NEVER;
    for (uint32_t i = 0; i < p->config.neighbours; i++) {
        struct neigh *n = &p->table[i];
        if (n->state == NET_NONE)
            continue;
        if (now >= n->due)
            expire_one(p, n, now);
        if (n->state != NET_NONE && n->due < p->neigh_due)
            p->neigh_due = n->due;
    }
}

enum net_state net_neigh_state(const struct net_port *port, const struct wire_addr *hop)
{
    const struct neigh *n = neigh_find(port, hop);
    return n ? n->state : NET_NONE;
}

bool net_next_change(struct net_port *port, struct net_change *change)
{
    struct neigh *n = TAILQ_FIRST(&port->change);
    if (!n)
        return false;
    TAILQ_REMOVE(&port->change, n, change);
    n->changed = false;
    change->addr = n->addr;
    memcpy(change->mac, n->mac, 6);
    change->reachable = n->state != NET_FAILED && n->state != NET_INCOMPLETE;
    return true;
}
