/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For the tests of the neighbour table: two ports that talk to each other over a wire made of a
 * function call, and forged answers.
 */
#ifndef URNIC_TESTS_NEIGH_RIG_H
#define URNIC_TESTS_NEIGH_RIG_H

#include <string.h>

#include "net_rig.h"

#define MS NET_NS_PER_MS

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xA};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xB};
static const uint8_t mac_c[6] = {2, 0, 0, 0, 0, 0xC};

static inline void drain(struct net_port *p)
{
    uint8_t b[NET_TX_MAX];
    while (net_deadline(p) != UINT64_MAX) {
        net_expire(p, net_deadline(p));
        while (net_tx(p, b, sizeof(b), 0))
            ;
    }
}

static inline struct net_port *port_new(const uint8_t *mac, const char *v4, const char *v6,
                                        uint32_t size)
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

/* Carry the frames of `from` to `to`, and the answers back; returns the number of frames that
 * `from` sent. */
static inline unsigned carry(struct net_port *from, struct net_port *to, uint64_t now)
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
static inline uint64_t expire_next(struct net_port *p, const struct wire_addr *peer)
{
    enum net_state before = net_neigh_state(p, peer);
    uint64_t now;
    do {
        now = net_deadline(p);
        ck_assert_uint_ne(now, UINT64_MAX);
        net_expire(p, now);
    } while (net_neigh_state(p, peer) == before);
    return now;
}

/* A gratuitous ARP reply. */
static inline void gratuitous(struct net_port *p, const char *peer, const uint8_t *mac,
                              uint64_t now)
{
    uint8_t f[60] = {0};
    uint8_t r[NET_TX_MAX];
    memcpy(f, all_mac, 6);
    memcpy(f + 6, mac, 6);
    memcpy(f + 12, (const uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 2}, 10);
    memcpy(f + 22, mac, 6);
    memcpy(f + 28, addr(peer).b + 12, 4);
    memcpy(f + 38, addr(peer).b + 12, 4);
    ck_assert_uint_eq(net_rx(p, f, sizeof(f), now, r, sizeof(r)), 0);
}

/* An ARP answer to us, in a frame from `src`: 10.0.0.2 has `mac`. */
static inline void answer_by(struct net_port *p, const uint8_t *src, const uint8_t *mac,
                             uint64_t now)
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

static inline void answer(struct net_port *p, const uint8_t *mac, uint64_t now)
{
    answer_by(p, mac, mac, now);
}

/* An advertisement for 2001:db8::2. */
static inline void advertise(struct net_port *p, uint8_t flags, const uint8_t *mac, uint64_t now)
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

#endif
