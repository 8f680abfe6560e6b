/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers that the neighbour table believes: the first or a later one, forged and damaged ones, and
 * announcements.
 */
#include <errno.h>
#include <string.h>

#include "neigh_rig.h"

/* WIRE-07 the peer has another MAC: reported at once if no queue pair sends to it. */
START_TEST(wire_07_new_mac)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    uint8_t mac[6];
    net_resolve(a, &dst, 0, mac);
    carry(a, b, 0);
    ck_assert(net_next_change(a, &c));
    gratuitous(a, "10.0.0.2", mac_c, 5);
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    ck_assert_mem_eq(c.mac, mac_c, 6);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_CHANGED), 1);
    ck_assert_int_eq(net_resolve(a, &dst, 5, mac), 0);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert_mem_eq(mac, mac_c, 6);
    gratuitous(a, "10.0.0.2", mac_c, 6); /* a repetition is no news */
    ck_assert(!net_next_change(a, &c));
    gratuitous(a, "10.0.0.77", mac_c, 6); /* nor an unknown host */
    struct wire_addr other = addr("10.0.0.77");
    ck_assert_int_eq(net_neigh_state(a, &other), NET_NONE);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

static bool at(struct net_port *p, const char *peer, const uint8_t *want, uint64_t now)
{
    struct wire_addr dst = addr(peer);
    uint8_t mac[6];
    ck_assert_int_eq(net_resolve(p, &dst, now, mac), 0);
    return memcmp(mac, want, 6) == 0;
}

static bool is_at(struct net_port *p, const uint8_t *want, uint64_t now)
{
    return at(p, "10.0.0.2", want, now);
}

/* Say that the live neighbour is at mac_c, by ARP or ND. */
static void claim(struct net_port *p, bool v6, uint64_t now)
{
    if (v6)
        advertise(p, 0x20, mac_c, now);
    else
        gratuitous(p, "10.0.0.2", mac_c, now);
}

/* WIRE-35 queue pairs send to a neighbour, and one frame names another MAC for it. We ask at the
 * known MAC; while that answers, nothing changes. A flood of such frames makes one question a
 * second. When the known MAC is silent the new one counts, and is asked in turn. */
START_TEST(wire_35_live_neighbour_is_asked_first)
{
    bool v6 = _i == 1;
    const char *peer = v6 ? "2001:db8::2" : "10.0.0.2";
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr(peer);
    struct net_change c;
    uint8_t f[NET_TX_MAX];
    unsigned questions = 0;
    uint64_t now = 0;
    net_watch(a, &dst, now);
    carry(a, b, now);
    ck_assert(net_next_change(a, &c));
    for (now = 5 * MS; now < 5000 * MS; now += 5 * MS) {
        claim(a, v6, now);
        net_expire(a, now);
        questions += carry(a, b, now);
        ck_assert(at(a, peer, mac_b, now));
    }
    ck_assert(!net_next_change(a, &c));
    ck_assert_uint_ge(questions, 3);
    ck_assert_uint_le(questions, 5);
    ck_assert_uint_ge(net_counter(a, NET_NEIGH_CLAIMED), 900);
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_CHANGED), 0);

    /* It has moved: its old place is silent. */
    now += NET_LOCK_NS;
    net_expire(a, now);
    carry(a, b, now);
    now += NET_LOCK_NS;
    claim(a, v6, now);
    for (unsigned i = 0; i < NET_PROBES; i++) {
        ck_assert(at(a, peer, mac_b, now));
        ck_assert_uint_ne(net_tx(a, f, sizeof(f), now), 0);
        ck_assert_mem_eq(f, mac_b, 6);
        now += NET_CLAIM_NS;
        net_expire(a, now);
    }
    ck_assert(net_next_change(a, &c));
    ck_assert(c.reachable);
    ck_assert_mem_eq(c.mac, mac_c, 6);
    ck_assert(at(a, peer, mac_c, now));
    ck_assert_uint_eq(net_counter(a, NET_NEIGH_CHANGED), 1);
    ck_assert_uint_ne(net_tx(a, f, sizeof(f), now), 0);
    ck_assert_mem_eq(f, mac_c, 6);
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-35 nor does an answer to our own regular question count that comes from elsewhere. */
START_TEST(wire_35_forged_answer_to_a_probe)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct net_port *b = port_new(mac_b, "10.0.0.2", "2001:db8::2", 16);
    struct wire_addr dst = addr("10.0.0.2");
    net_watch(a, &dst, 0);
    carry(a, b, 0);
    uint64_t now = expire_next(a, &dst);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    answer(a, mac_c, now);
    ck_assert(is_at(a, mac_b, now));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_PROBE);
    ck_assert_uint_eq(carry(a, b, now), 1);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert(is_at(a, mac_b, now));
    net_port_free(a);
    net_port_free(b);
}
END_TEST

/* WIRE-07 SEC-03 of two ARP answers the first one counts for a second, whether it is the forged one
 * or not; later ones are checked. An announcement counts at once. */
START_TEST(wire_07_first_answer)
{
    struct net_port *a = port_new(mac_a, "10.0.0.1", "2001:db8::1", 16);
    struct wire_addr dst = addr("10.0.0.2");
    struct net_change c;
    uint8_t mac[6];
    ck_assert_int_eq(net_resolve(a, &dst, 0, mac), -EINPROGRESS);
    answer(a, mac_b, 10 * MS);
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert(net_next_change(a, &c));
    answer(a, mac_c, 11 * MS);
    answer(a, mac_c, 10 * MS + NET_LOCK_NS - 1);
    ck_assert(is_at(a, mac_b, NET_LOCK_NS));
    ck_assert_int_eq(net_neigh_state(a, &dst), NET_REACHABLE);
    ck_assert(!net_next_change(a, &c));
    answer(a, mac_b, 500 * MS); /* a repetition doesn't make it longer */
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
            answer_by(a, mac_b, mac_c, now); /* the known MAC wins */
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
            /* No entry has a wrong MAC; questions to all, and to the right host, arrive. */
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

/* WIRE-07 effects of an advertisement's flags (RFC 4861 section 7.2.5). */
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

/* WIRE-07 when another host claims a watched neighbour's address, the neighbour is asked whether it
 * still exists, again and again. */
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

int main(void)
{
    Suite *s = suite_create("net neigh, answers");
    TCase *t = tcase_create("answers");

    tcase_add_test(t, wire_07_new_mac);
    tcase_add_loop_test(t, wire_35_live_neighbour_is_asked_first, 0, 2);
    tcase_add_test(t, wire_35_forged_answer_to_a_probe);
    tcase_add_test(t, wire_07_first_answer);
    tcase_add_test(t, wire_07_damaged_answer);
    tcase_add_test(t, wire_07_answer_by_another);
    tcase_add_test(t, wire_07_advertisement_flags);
    tcase_add_test(t, wire_07_watched_in_doubt);
    suite_add_tcase(s, t);
    return unit_run(s);
}
