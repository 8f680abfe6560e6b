/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The neighbour table, seen from outside: two ports that talk to each other over a wire made of a
 * function call, and forged answers.
 */
#include <errno.h>
#include <string.h>

#include "net_rig.h"

#define MS NET_NS_PER_MS

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xA};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xB};
static const uint8_t mac_c[6] = {2, 0, 0, 0, 0, 0xC};

static void drain(struct net_port *p)
{
    uint8_t b[NET_TX_MAX];
    while (net_deadline(p) != UINT64_MAX) {
        net_expire(p, net_deadline(p));
        while (net_tx(p, b, sizeof(b), 0))
            ;
    }
}

static struct net_port *port_new(const uint8_t *mac, const char *v4, const char *v6, uint32_t size)
{
    struct net_config c = {.neighbours = size};
    uint8_t b[NET_TX_MAX];
    memcpy(c.mac, mac, 6);
    struct net_port *p = net_port_new(&c, 0);
    ck_assert_ptr_nonnull(p);
    struct wire_addr a = addr(v4);
    ck_assert_int_eq(net_addr_add(p, &a, 16, 0), 0);
    a = addr(v6);
    ck_assert_int_eq(net_addr_add(p, &a, 64, 0), 0);
    while (net_tx(p, b, sizeof(b), 0))
        ;
    drain(p);
    return p;
}

/* Carry what `from` sends to `to` and back; returns the frames that `from` sent. */
static unsigned carry(struct net_port *from, struct net_port *to, uint64_t now)
{
    uint8_t b[NET_TX_MAX];
    uint8_t r[NET_TX_MAX];
    uint8_t none[NET_TX_MAX];
    unsigned frames = 0;
    size_t n;
    while ((n = net_tx(from, b, sizeof(b), now))) {
        frames++;
        size_t m = to ? net_rx(to, b, n, now, r, sizeof(r)) : 0;
        if (m)
            ck_assert_uint_eq(net_rx(from, r, m, now, none, sizeof(none)), 0);
    }
    return frames;
}

/* Run deadlines until one changes the neighbour's state; returns when that was. */
static uint64_t expire_next(struct net_port *p, const struct wire_addr *who)
{
    enum net_state before = net_neigh_state(p, who);
    uint64_t now;
    do {
        now = net_deadline(p);
        ck_assert_uint_ne(now, UINT64_MAX);
        net_expire(p, now);
    } while (net_neigh_state(p, who) == before);
    return now;
}

/* A gratuitous ARP reply. */
static void gratuitous(struct net_port *p, const char *who, const uint8_t *mac, uint64_t now)
{
    uint8_t f[60] = {0};
    uint8_t r[NET_TX_MAX];
    memcpy(f, all_mac, 6);
    memcpy(f + 6, mac, 6);
    memcpy(f + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 2}, 10);
    memcpy(f + 22, mac, 6);
    memcpy(f + 28, addr(who).b + 12, 4);
    memcpy(f + 38, addr(who).b + 12, 4);
    ck_assert_uint_eq(net_rx(p, f, sizeof(f), now, r, sizeof(r)), 0);
}

static const char *const peers[] = {"10.0.0.2", "2001:db8::2", "fe80::ff:fe00:b"};

/* WIRE-07 resolve over ARP and ND: in progress, then the MAC, and one change is told. */
START_TEST(wire_07_resolve)
{
    for (size_t i = 0; i < 3; i++) {
        struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
        struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
        struct wire_addr dst = addr(peers[i]);
        struct net_change c;
        uint8_t mac[6];
        ck_assert_int_eq(net_resolve(a, &dst, 0, mac), -EINPROGRESS);
        ck_assert_int_eq(net_resolve(a, &dst, 0, mac), -EINPROGRESS);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_INCOMPLETE);
        ck_assert(!net_next_change(a, &c));
        ck_assert_uint_eq(carry(a, b, 1), 1); /* asked once */
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        ck_assert_int_eq(net_resolve(a, &dst, 1, mac), 0);
        ck_assert_mem_eq(mac, mac_b, 6);
        ck_assert(net_next_change(a, &c));
        ck_assert(c.reachable);
        ck_assert_mem_eq(c.mac, mac_b, 6);
        ck_assert_mem_eq(&c.addr, &dst, sizeof(dst));
        ck_assert(!net_next_change(a, &c));
        /* The other side has learned us from the request. */
        struct wire_addr us = addr(i == 0   ? "10.0.0.1"
                                   : i == 1 ? "2001:db8::1"
                                            : "fe80::ff:fe00:a");
        ck_assert_int_eq(net_neigh_state(b, &us), NET_STALE);
        ck_assert_int_eq(net_resolve(b, &us, 1, mac), 0);
        ck_assert_mem_eq(mac, mac_a, 6);
        net_port_free(a);
        net_port_free(b);
    }
}
END_TEST

/* WIRE-07 requests go to everybody: broadcast for ARP, the solicited-node group for ND. */
START_TEST(wire_07_request_frames)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint8_t b[NET_TX_MAX];
    uint8_t mac[6];
    net_resolve(a, &dst, 0, mac);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 60);
    ck_assert_mem_eq(b, all_mac, 6);
    ck_assert_mem_eq(b + 12, ((const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}), 10);
    ck_assert_mem_eq(b + 28, addr("10.0.0.1").b + 12, 4);
    ck_assert_mem_eq(b + 38, dst.b + 12, 4);
    dst = addr("2001:db8::12:3456");
    net_resolve(a, &dst, 0, mac);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 14 + 40 + 32);
    ck_assert_mem_eq(b, ((const uint8_t[]){0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}), 6);
    ck_assert_mem_eq(b + 14 + 8, addr("2001:db8::1").b, 16);
    ck_assert_mem_eq(b + 14 + 24, addr("ff02::1:ff12:3456").b, 16);
    ck_assert_uint_eq(b[14 + 7], 255);
    ck_assert_uint_eq(b[14 + 40], 135);
    ck_assert_mem_eq(b + 14 + 48, dst.b, 16);
    ck_assert_mem_eq(b + 14 + 64, ((const uint8_t[]){1, 1}), 2);
    ck_assert_mem_eq(b + 14 + 66, mac_a, 6);
    ck_assert_uint_eq(net_tx(a, b, NET_TX_MAX - 1, 0), 0); /* too little room: nothing is lost */
    net_port_free(a);
}
END_TEST

/* WIRE-07 nobody answers: four requests with growing pauses, then EHOSTUNREACH for a while. */
START_TEST(wire_07_unreachable)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.9");
    struct net_change c;
    uint8_t mac[6];
    uint64_t now = 1000 * MS;
    ck_assert_int_eq(net_resolve(a, &dst, now, mac), -EINPROGRESS);
    uint64_t wait = NET_RETRY_NS;
    for (unsigned i = 0; i < NET_TRIES; i++) {
        ck_assert_uint_eq(carry(a, NULL, now), 1);
        ck_assert_uint_eq(net_deadline(a), now + wait);
        net_expire(a, now + wait - 1);
        ck_assert_uint_eq(carry(a, NULL, now), 0);
        now += wait;
        wait *= 2;
        net_expire(a, now);
    }
    ck_assert_uint_eq(carry(a, NULL, now), 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_FAILED);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_FAILED), 1);
    ck_assert_int_eq(net_resolve(a, &dst, now + NET_FAILED_NS - 1, mac), -EHOSTUNREACH);
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_int_eq(net_resolve(a, &dst, now + NET_FAILED_NS, mac), -EINPROGRESS);
    gratuitous(a, "10.0.0.9", mac_c, now); /* any news end the wait */
    ck_assert_int_eq(net_resolve(a, &dst, now, mac), 0);
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    net_port_free(a);
}
END_TEST

/* WIRE-07 a failed neighbour that nobody asks for again is forgotten. */
START_TEST(wire_07_failed_forgotten)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.9");
    uint8_t mac[6];
    net_resolve(a, &dst, 0, mac);
    drain(a);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_NONE);
    struct net_change c;
    ck_assert(!net_next_change(a, &c)); /* nothing is told of what isn't there any more */
    net_port_free(a);
}
END_TEST

/* WIRE-07 a confirmation lasts 30 s; then the MAC is used on and confirmed when somebody sends. */
START_TEST(wire_07_refresh_on_use)
{
    for (size_t i = 0; i < 3; i++) {
        struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
        struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
        struct wire_addr dst = addr(peers[i]);
        uint8_t mac[6];
        uint8_t f[NET_TX_MAX];
        uint8_t r[NET_TX_MAX];
        net_resolve(a, &dst, 0, mac);
        carry(a, b, 0);
        net_expire(a, net_deadline(a)); /* the deadline of the request was too early */
        ck_assert_uint_eq(net_deadline(a), NET_REACHABLE_NS);
        net_expire(a, NET_REACHABLE_NS - 1);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        net_expire(a, NET_REACHABLE_NS);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
        ck_assert_uint_eq(net_deadline(a), UINT64_MAX);
        ck_assert_uint_eq(net_tx(a, f, sizeof(f), NET_REACHABLE_NS), 0);
        ck_assert_int_eq(net_resolve(a, &dst, NET_REACHABLE_NS, mac), 0);
        ck_assert_mem_eq(mac, mac_b, 6);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
        size_t n = net_tx(a, f, sizeof(f), NET_REACHABLE_NS);
        ck_assert_mem_eq(f, mac_b, 6); /* by unicast */
        n = net_rx(b, f, n, NET_REACHABLE_NS, r, sizeof(r));
        ck_assert_uint_ne(n, 0);
        net_rx(a, r, n, NET_REACHABLE_NS, f, sizeof(f));
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
        net_port_free(a);
        net_port_free(b);
    }
}
END_TEST

/* WIRE-07 a watched neighbour is confirmed without being used; when it has gone, that is told, and
 * it is asked for again and again. */
START_TEST(wire_07_watched)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    uint64_t now = 0;
    ck_assert_int_eq(net_watch(a, &dst, now), -EINPROGRESS);
    ck_assert_int_eq(net_watch(a, &dst, now), -EINPROGRESS);
    carry(a, b, now);
    ck_assert(net_next_change(a, &c));
    for (unsigned i = 0; i < 3; i++) {
        now = expire_next(a, &dst);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
        ck_assert_uint_eq(carry(a, b, now), 1);
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    }
    ck_assert(!net_next_change(a, &c)); /* the same MAC is no news */
    /* The peer vanishes. */
    unsigned frames = 0;
    uint64_t gone = expire_next(a, &dst);
    frames += carry(a, NULL, gone);
    while (net_neigh_state(a, &dst) != NET_FAILED) {
        now = net_deadline(a);
        net_expire(a, now);
        frames += carry(a, NULL, now);
    }
    ck_assert_uint_eq(frames, NET_PROBES + NET_TRIES);
    ck_assert_uint_eq(now - gone, NET_RETRY_NS * (NET_PROBES + 1 + 2 + 4 + 8));
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_mem_eq(c.mac, mac_b, 6);
    ck_assert(!net_next_change(a, &c));
    uint64_t failed = now;
    now = expire_next(a, &dst);
    ck_assert_uint_eq(now - failed, NET_FAILED_NS);
    ck_assert_uint_eq(carry(a, b, now), 1); /* and comes back */
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    net_unwatch(a, &dst);
    now = expire_next(a, &dst);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE); /* one watcher is left */
    carry(a, b, now);
    net_unwatch(a, &dst);
    net_unwatch(a, &dst); /* one too many does no harm */
    expire_next(a, &dst);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-07 the peer has another MAC: told at once; a watched one is also asked whether it's true. */
START_TEST(wire_07_new_mac)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    uint8_t mac[6];
    net_watch(a, &dst, 0);
    carry(a, b, 0);
    ck_assert(net_next_change(a, &c));
    gratuitous(a, "10.0.0.2", mac_c, 5);
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    ck_assert_mem_eq(c.mac, mac_c, 6);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_CHANGED), 1);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert_int_eq(net_resolve(a, &dst, 5, mac), 0);
    ck_assert_mem_eq(mac, mac_c, 6);
    gratuitous(a, "10.0.0.2", mac_c, 6); /* the same again is no news */
    ck_assert(!net_next_change(a, &c));
    gratuitous(a, "10.0.0.77", mac_c, 6); /* nor is somebody we don't know */
    struct wire_addr other = addr("10.0.0.77");
    ck_assert_int_eq(net_neigh_state(a, &other), NET_NONE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* An ARP answer to us in a frame of `src`: 10.0.0.2 is at `mac`. */
static void answer_by(struct net_port *p, const uint8_t *src, const uint8_t *mac, uint64_t now)
{
    uint8_t f[60] = {0};
    uint8_t r[NET_TX_MAX];
    memcpy(f, mac_a, 6);
    memcpy(f + 6, src, 6);
    memcpy(f + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 2}, 10);
    memcpy(f + 22, mac, 6);
    memcpy(f + 28, addr("10.0.0.2").b + 12, 4);
    memcpy(f + 32, mac_a, 6);
    memcpy(f + 38, addr("10.0.0.1").b + 12, 4);
    ck_assert_uint_eq(net_rx(p, f, sizeof(f), now, r, sizeof(r)), 0);
}

static void answer(struct net_port *p, const uint8_t *mac, uint64_t now)
{
    answer_by(p, mac, mac, now);
}

static bool is_at(struct net_port *p, const uint8_t *want, uint64_t now)
{
    struct wire_addr dst = addr("10.0.0.2");
    uint8_t mac[6];
    ck_assert_int_eq(net_resolve(p, &dst, now, mac), 0);
    return memcmp(mac, want, 6) == 0;
}

/* WIRE-07 SEC-03 of two ARP answers the first one counts for a second, whether it is the forged one
 * or not; later ones are checked. An announcement counts at once. */
START_TEST(wire_07_first_answer)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    ck_assert_int_eq(net_watch(a, &dst, 0), -EINPROGRESS);
    answer(a, mac_b, 10 * MS);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert(net_next_change(a, &c));
    answer(a, mac_c, 11 * MS);
    answer(a, mac_c, 10 * MS + NET_LOCK_NS - 1);
    ck_assert(is_at(a, mac_b, NET_LOCK_NS));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert(!net_next_change(a, &c));
    answer(a, mac_b, 500 * MS); /* the same again doesn't make it longer */
    answer(a, mac_c, 10 * MS + NET_LOCK_NS);
    ck_assert(is_at(a, mac_c, 10 * MS + NET_LOCK_NS));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert(net_next_change(a, &c));
    answer(a, mac_b, 11 * MS + NET_LOCK_NS);
    ck_assert(is_at(a, mac_c, 11 * MS + NET_LOCK_NS));
    gratuitous(a, "10.0.0.2", mac_b, 12 * MS + NET_LOCK_NS);
    ck_assert(is_at(a, mac_b, 12 * MS + NET_LOCK_NS));
    net_port_free(a);
}
END_TEST

/* WIRE-07 nothing guards an ARP answer against damage: one that names another MAC than its frame
 * comes from is checked before it counts for long. */
START_TEST(wire_07_damaged_answer)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint64_t now = 0;
    for (unsigned watched = 0; watched < 2; watched++) {
        if (watched) {
            ck_assert_int_eq(net_watch(a, &dst, now), 0);
            now = expire_next(a, &dst);
            ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
            answer_by(a, mac_b, mac_c, now); /* what we know already wins */
        } else {
            uint8_t mac[6];
            ck_assert_int_eq(net_resolve(a, &dst, now, mac), -EINPROGRESS);
            answer_by(a, mac_b, mac_c, now);
            ck_assert(is_at(a, mac_c, now)); /* better than nothing */
        }
        ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
        uint64_t begin = now;
        while (net_neigh_state(a, &dst) != NET_REACHABLE) {
            now = net_deadline(a);
            net_expire(a, now);
            /* Nobody has the wrong MAC; questions to everybody, and to the right one, arrive. */
            if (net_neigh_state(a, &dst) == NET_INCOMPLETE || is_at(a, mac_b, now))
                carry(a, b, now);
            else
                carry(a, NULL, now);
        }
        ck_assert_uint_le(now - begin, 1000 * MS);
        ck_assert(is_at(a, mac_b, now));
    }
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-07 there are hosts that answer for others, or for a MAC that they share: asked once more,
 * they say the same. */
START_TEST(wire_07_answer_by_another)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    ck_assert_int_eq(net_watch(a, &dst, 0), -EINPROGRESS);
    answer_by(a, mac_b, mac_c, 0);
    ck_assert(is_at(a, mac_c, 0));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert_uint_eq(carry(a, NULL, 0), 1);
    answer_by(a, mac_b, mac_c, 1);
    ck_assert(is_at(a, mac_c, 1));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    net_port_free(a);
}
END_TEST

/* An advertisement for 2001:db8::2. */
static void advertise(struct net_port *p, uint8_t flags, const uint8_t *mac, uint64_t now)
{
    uint8_t f[14 + 40 + 32] = {0};
    uint8_t r[NET_TX_MAX];
    size_t n = mac ? 32 : 24;
    memcpy(f, mac_a, 6);
    memcpy(f + 6, mac_b, 6);
    wire_put16(f + 12, 0x86DD);
    uint8_t *ip = f + 14;
    ip[0] = 0x60;
    wire_put16(ip + 4, (uint16_t)n);
    ip[6] = 58;
    ip[7] = 255;
    memcpy(ip + 8, addr("fe80::2").b, 16);
    memcpy(ip + 24, addr("2001:db8::1").b, 16);
    ip[40] = 136;
    ip[44] = flags;
    memcpy(ip + 48, addr("2001:db8::2").b, 16);
    if (mac) {
        ip[64] = 2;
        ip[65] = 1;
        memcpy(ip + 66, mac, 6);
    }
    uint32_t sum = 58 + (uint32_t)n;
    for (size_t i = 8; i < 40 + n; i += 2)
        sum += wire_get16(ip + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    wire_put16(ip + 42, (uint16_t)~sum);
    ck_assert_uint_eq(net_rx(p, f, 54 + n, now, r, sizeof(r)), 0);
    ck_assert_uint_eq(net_counter(p, NET_RX_BAD), 0);
}

/* WIRE-07 what the flags of an advertisement do (RFC 4861 section 7.2.5). */
START_TEST(wire_07_advertisement_flags)
{
    enum { S = 0x40, O = 0x20 };
    static const struct {
        const char *name;
        enum net_state before;
        uint8_t flags;
        char mac; /* b: the one known, c: another, 0: none */
        enum net_state after;
        char mac_after;
    } rows[] = {
        {"WIRE-07 answer", NET_INCOMPLETE, S, 'b', NET_REACHABLE, 'b'},
        {"WIRE-07 unasked", NET_INCOMPLETE, 0, 'b', NET_STALE, 'b'},
        {"WIRE-07 answer without MAC", NET_INCOMPLETE, S, 0, NET_INCOMPLETE, 0},
        {"WIRE-07 another, no override", NET_REACHABLE, S, 'c', NET_STALE, 'b'},
        {"WIRE-07 another, override", NET_REACHABLE, O, 'c', NET_STALE, 'c'},
        {"WIRE-07 the same again", NET_REACHABLE, O, 'b', NET_REACHABLE, 'b'},
        {"WIRE-07 unasked news of one that is stale", NET_STALE, O, 'b', NET_STALE, 'b'},
        {"WIRE-07 another, no override, stale", NET_STALE, 0, 'c', NET_STALE, 'b'},
        {"WIRE-07 probe answered", NET_PROBE, S, 'b', NET_REACHABLE, 'b'},
        {"WIRE-07 probe answered without MAC", NET_PROBE, S, 0, NET_REACHABLE, 'b'},
        {"WIRE-07 probe answered by another", NET_PROBE, S | O, 'c', NET_REACHABLE, 'c'},
        {"WIRE-07 probe, unasked news", NET_PROBE, O, 'b', NET_PROBE, 'b'},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
        struct wire_addr dst = addr("2001:db8::2");
        uint8_t mac[6];
        net_resolve(a, &dst, 0, mac);
        if (rows[i].before != NET_INCOMPLETE)
            advertise(a, S, mac_b, 0);
        if (rows[i].before == NET_STALE || rows[i].before == NET_PROBE)
            net_expire(a, NET_REACHABLE_NS);
        if (rows[i].before == NET_PROBE)
            net_resolve(a, &dst, NET_REACHABLE_NS, mac);
        ck_assert_int_eq(net_neigh_state(a, &dst), rows[i].before);
        const uint8_t *said = rows[i].mac == 'b' ? mac_b : rows[i].mac == 'c' ? mac_c : NULL;
        advertise(a, rows[i].flags, said, NET_REACHABLE_NS);
        ck_assert_msg(net_neigh_state(a, &dst) == rows[i].after, "%s: state %d", rows[i].name,
                      net_neigh_state(a, &dst));
        net_resolve(a, &dst, NET_REACHABLE_NS, mac);
        if (rows[i].mac_after)
            ck_assert_msg(memcmp(mac, rows[i].mac_after == 'b' ? mac_b : mac_c, 6) == 0, "%s",
                          rows[i].name);
        net_port_free(a);
    }
}
END_TEST

/* WIRE-07 who is watched is asked whether it is still there when somebody else claims its address,
 * and goes on being asked. */
START_TEST(wire_07_watched_in_doubt)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("2001:db8::2");
    net_watch(a, &dst, 0);
    advertise(a, 0x40, mac_b, 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    while (carry(a, NULL, 0))
        ;
    advertise(a, 0, mac_c, MS);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert_uint_eq(carry(a, NULL, MS), 1);
    advertise(a, 0x40, mac_b, 2 * MS);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert_uint_le(net_deadline(a), 2 * MS + NET_REACHABLE_NS);
    net_port_free(a);
}
END_TEST

/* WIRE-31 WIRE-07 groups and our own address need no neighbour. */
START_TEST(wire_31_no_neighbour)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    uint8_t mac[6];
    struct wire_addr dst = addr("239.129.1.2");
    ck_assert_int_eq(net_resolve(a, &dst, 0, mac), 0);
    ck_assert_mem_eq(mac, ((const uint8_t[]){1, 0, 0x5E, 1, 1, 2}), 6);
    dst = addr("10.0.0.1");
    ck_assert_int_eq(net_resolve(a, &dst, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_a, 6);
    ck_assert_int_eq(net_watch(a, &dst, 0), 0);
    net_unwatch(a, &dst);
    dst = addr("192.0.2.1");
    ck_assert_int_eq(net_watch(a, &dst, 0), -ENETUNREACH);
    ck_assert_uint_eq(carry(a, NULL, 0), 0);
    net_port_free(a);
}
END_TEST

/* WIRE-07 beyond the gateway: the gateway is asked for, and its MAC is used. */
START_TEST(wire_07_gateway)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr gw = addr("10.0.0.2");
    struct wire_addr far = addr("192.0.2.77");
    uint8_t mac[6];
    net_gateway_set(a, &gw);
    ck_assert_int_eq(net_resolve(a, &far, 0, mac), -EINPROGRESS);
    carry(a, b, 0);
    ck_assert_int_eq(net_resolve(a, &far, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_b, 6);
    ck_assert_int_eq(net_neigh_state(a, &gw), NET_REACHABLE);
    ck_assert_int_eq(net_neigh_state(a, &far), NET_NONE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* One ARP request from 10.0.x.y for 10.0.0.1. */
static void ask_us(struct net_port *p, uint32_t ip)
{
    uint8_t f[60] = {0};
    uint8_t r[NET_TX_MAX];
    memcpy(f, all_mac, 6);
    memcpy(f + 6, mac_c, 6);
    memcpy(f + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, 10);
    memcpy(f + 22, mac_c, 6);
    wire_put32(f + 28, ip);
    wire_put32(f + 38, 0x0A000001u);
    ck_assert_uint_ne(net_rx(p, f, sizeof(f), 0, r, sizeof(r)), 0);
}

static unsigned count(const struct net_port *p, enum net_state s)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->config.neighbours; i++)
        n += p->table[i].state == s;
    return n;
}

/* SEC-03 SEC-18 a flood of askers takes a quarter of the table and no more; all get an answer. */
START_TEST(sec_03_flood_of_askers)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 64);
    struct wire_addr mine[48];
    uint8_t mac[6];
    for (uint32_t i = 0; i < 48; i++) {
        mine[i] = wire_addr_v4(0x0A000100u + i + 1);
        ck_assert_int_eq(net_resolve(a, &mine[i], 0, mac), -EINPROGRESS);
    }
    for (uint32_t i = 0; i < 5000; i++)
        ask_us(a, 0x0A001000u + i);
    for (uint32_t i = 0; i < 48; i++)
        ck_assert_int_eq(net_neigh_state(a, &mine[i]), NET_INCOMPLETE);
    ck_assert_uint_eq(count(a, NET_STALE), 16);
    /* The latest askers are the ones that are known. */
    struct wire_addr last = wire_addr_v4(0x0A001000u + 4999);
    ck_assert_int_eq(net_neigh_state(a, &last), NET_STALE);
    net_port_free(a);
}
END_TEST

/* WIRE-07 a probe has its own tries, however many the first answer took. */
START_TEST(wire_07_probe_tries)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint64_t now = 0;
    net_watch(a, &dst, now);
    for (unsigned i = 1; i < NET_PROBES; i++) { /* the first requests are lost */
        carry(a, NULL, now);
        now = net_deadline(a);
        net_expire(a, now);
    }
    ck_assert_uint_eq(carry(a, b, now), 1);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    now = expire_next(a, &dst);
    unsigned probes = 0;
    while (net_neigh_state(a, &dst) == NET_PROBE) {
        probes += carry(a, NULL, now);
        now = net_deadline(a);
        net_expire(a, now);
    }
    ck_assert_uint_eq(probes, NET_PROBES);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* SEC-03 an asker that we send to is no mere asker any more: a flood doesn't push it out, and it
 * leaves its place in their quarter. */
START_TEST(sec_03_asker_becomes_asked)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 64);
    struct wire_addr friend = wire_addr_v4(0x0A000900u + 1);
    uint8_t mac[6];
    ask_us(a, 0x0A000901u);
    ck_assert_int_eq(net_neigh_state(a, &friend), NET_STALE);
    ck_assert_int_eq(net_resolve(a, &friend, 0, mac), 0);
    ck_assert_mem_eq(mac, mac_c, 6);
    for (uint32_t i = 0; i < 100; i++)
        ask_us(a, 0x0A001000u + i);
    ck_assert_int_eq(net_neigh_state(a, &friend), NET_PROBE);
    ck_assert_uint_eq(count(a, NET_STALE), 16);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_EVICTED), 100 - 16);
    /* Those that fail are forgotten from the right list: again and again, nothing leaks. */
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 48; i++) {
            struct wire_addr n = wire_addr_v4(0x0A002000u + round * 64 + i + 1);
            int rc = net_resolve(a, &n, round * 20000 * MS, mac);
            ck_assert_int_eq(rc, -EINPROGRESS);
        }
        for (unsigned k = 0; k < 400 && count(a, NET_INCOMPLETE) + count(a, NET_FAILED); k++)
            net_expire(a, net_deadline(a));
        ck_assert_uint_eq(count(a, NET_INCOMPLETE) + count(a, NET_FAILED), 0);
        for (uint32_t i = 0; i < 100; i++)
            ask_us(a, 0x0A001000u + i);
        ck_assert_uint_eq(count(a, NET_STALE), 16);
    }
    net_port_free(a);
}
END_TEST

/* WIRE-07 an answer or a failure takes back a request that wasn't sent yet. */
START_TEST(wire_07_request_taken_back)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    uint8_t mac[6];
    uint8_t b[NET_TX_MAX];
    net_resolve(a, &dst, 0, mac);
    gratuitous(a, "10.0.0.2", mac_b, 0); /* unasked news */
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_resolve(a, &dst, 0, mac); /* STALE: a probe */
    ck_assert_uint_ne(net_tx(a, b, sizeof(b), 0), 0);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_expire(a, NET_RETRY_NS); /* a second one, unsent; its answer was late */
    gratuitous(a, "10.0.0.2", mac_c, 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_STALE);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);

    dst = addr("10.0.0.3"); /* the port was full all the time */
    net_resolve(a, &dst, 0, mac);
    while (net_neigh_state(a, &dst) != NET_FAILED)
        net_expire(a, net_deadline(a));
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);

    dst = addr("2001:db8::2"); /* the answer to a request of before */
    net_resolve(a, &dst, 0, mac);
    advertise(a, 0x40, mac_b, 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert_uint_eq(net_tx(a, b, sizeof(b), 0), 0);
    net_port_free(a);
}
END_TEST

/* SEC-03 a full table: askers go first, then the least recently used; watched ones never. */
START_TEST(sec_03_full_table)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 8);
    uint8_t mac[6];
    struct wire_addr n[10];
    ask_us(a, 0x0A000303u);
    for (uint32_t i = 0; i < 10; i++)
        n[i] = wire_addr_v4(0x0A000201u + i);
    for (uint32_t i = 0; i < 8; i++) /* the eighth takes the asker's place */
        ck_assert_int_eq(net_resolve(a, &n[i], 0, mac), -EINPROGRESS);
    ck_assert_uint_eq(count(a, NET_STALE), 0);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_EVICTED), 1);
    net_resolve(a, &n[0], 0, mac); /* used again: not the oldest any more */
    ck_assert_int_eq(net_resolve(a, &n[8], 0, mac), -EINPROGRESS);
    ck_assert_int_eq(net_neigh_state(a, &n[0]), NET_INCOMPLETE);
    ck_assert_int_eq(net_neigh_state(a, &n[1]), NET_NONE);
    /* Watch all: no room for anybody else. */
    static const unsigned kept[8] = {0, 2, 3, 4, 5, 6, 7, 8};
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(net_watch(a, &n[kept[i]], 0), -EINPROGRESS);
    ck_assert_int_eq(net_resolve(a, &n[9], 0, mac), -ENOBUFS);
    ck_assert_int_eq(net_watch(a, &n[9], 0), -ENOBUFS);
    ask_us(a, 0x0A000304u); /* is answered, can't be kept */
    net_unwatch(a, &n[4]);
    ck_assert_int_eq(net_resolve(a, &n[9], 0, mac), -EINPROGRESS);
    ck_assert_int_eq(net_neigh_state(a, &n[4]), NET_NONE);
    ck_assert_uint_eq(carry(a, NULL, 0), 8); /* each of those in the table is asked for once */
    net_port_free(a);
}
END_TEST

/* GID-04 the address has gone: neighbours of its prefix go too, watched ones fail and come back. */
START_TEST(gid_04_address_removed)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr ours = addr("10.0.0.1");
    struct wire_addr watched = addr("10.0.0.2");
    struct wire_addr other = addr("10.0.0.3");
    struct wire_addr v6 = addr("2001:db8::2");
    struct net_change c;
    uint8_t mac[6];
    net_watch(a, &watched, 0);
    net_resolve(a, &other, 0, mac);
    net_resolve(a, &v6, 0, mac);
    carry(a, b, 0);
    while (net_next_change(a, &c))
        ;
    ck_assert_int_eq(net_addr_del(a, &ours), 0);
    ck_assert_int_eq(net_neigh_state(a, &other), NET_NONE);
    ck_assert_int_eq(net_neigh_state(a, &watched), NET_FAILED);
    ck_assert_int_eq(net_neigh_state(a, &v6), NET_REACHABLE);
    ck_assert(net_next_change(a, &c));
    ck_assert(!c.reachable);
    ck_assert_int_eq(net_resolve(a, &watched, 0, mac), -ENETUNREACH);
    uint64_t now = NET_FAILED_NS;
    net_expire(a, now);
    ck_assert_uint_eq(carry(a, b, now), 0);
    ck_assert_uint_eq(net_deadline(a), 2 * NET_FAILED_NS);
    ck_assert_int_eq(net_addr_add(a, &ours, 24, now), 0);
    now = 2 * NET_FAILED_NS + 1;
    net_expire(a, now);
    carry(a, b, now);
    ck_assert_int_eq(net_neigh_state(a, &watched), NET_REACHABLE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

UNIT_MAIN("net neigh", wire_07_resolve, wire_07_request_frames, wire_07_unreachable,
          wire_07_failed_forgotten, wire_07_first_answer, wire_07_damaged_answer,
          wire_07_answer_by_another, wire_07_watched_in_doubt, wire_07_refresh_on_use,
          wire_07_watched, wire_07_new_mac, wire_07_advertisement_flags, wire_31_no_neighbour,
          wire_07_gateway, sec_03_flood_of_askers, sec_03_asker_becomes_asked,
          wire_07_request_taken_back, wire_07_probe_tries, sec_03_full_table,
          gid_04_address_removed)
