/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packets and their connections: from CM messages, from source ports, from the PSNs that answers
 * carry; and a table that is full.
 */
#include <string.h>

#include "cm_msg.h"
#include "fault.h"
#include "frames.h"
#include "unit.h"

#define RC(op) WIRE_OPCODE(WIRE_RC, WIRE_##op)

static uint8_t frame[1024];

static struct fault *parse(const char *text, uint64_t seed)
{
    struct fault_error err;
    struct fault *f = fault_parse(text, strlen(text), seed, &err);
    ck_assert_msg(f, "%s: %u:%u: %s", text, err.line, err.column, err.text);
    return f;
}

/* Hosts are numbers; source ports are 0xC000 + port. */
static unsigned pass(struct fault *f, uint32_t from, uint32_t to, uint8_t opcode, uint32_t dqpn,
                     uint32_t psn, unsigned port)
{
    struct fault_out out;
    struct wire_pkt p = frame_pkt(FRAME_V4, opcode, 0);
    p.sip = wire_addr_v4(0x0A000000u + from);
    p.dip = wire_addr_v4(0x0A000000u + to);
    p.sport = (uint16_t)(0xC000 + port);
    p.dqpn = dqpn;
    p.psn = psn & WIRE_PSN_MASK;
    p.dma_len = 0;
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    return fault_apply(f, from < to ? FAULT_AB : FAULT_BA, frame, len, 0, &out);
}

static void cm(struct fault *f, uint32_t from, uint32_t to, const struct cm_msg *m)
{
    struct fault_out out;
    uint8_t mad[CM_MAD_LEN];
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), CM_MAD_LEN);
    p.sip = wire_addr_v4(0x0A000000u + from);
    p.dip = wire_addr_v4(0x0A000000u + to);
    p.dqpn = p.sqpn = WIRE_QPN_GSI;
    ck_assert_int_eq(cm_msg_pack(mad, m), 0);
    size_t len = frame_make(frame, sizeof(frame), &p);
    memcpy(frame + p.payload_off, mad, sizeof(mad));
    wire_icrc_seal(frame, len, p.ip_off, p.bth_off);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, (uint32_t)len, 0, &out), 0);
}

static uint64_t conns(const struct fault *f)
{
    struct fault_stats s;
    fault_stats(f, &s);
    return s.conns;
}

/* A connects to B; each names the PSN that it wants to be sent first. */
static void connect(struct fault *f, uint32_t id, uint32_t qa, uint32_t psn_a, uint32_t qb,
                    uint32_t psn_b)
{
    struct cm_msg req = {
        .attr = CM_REQ, .tid = id, .local_id = id, .qpn = qa, .psn = psn_a, .mtu = 3};
    struct cm_msg rep = {
        .attr = CM_REP, .tid = id, .local_id = id + 1000, .remote_id = id, .qpn = qb, .psn = psn_b};
    cm(f, 1, 2, &req);
    cm(f, 1, 2, &req); /* repeated */
    cm(f, 2, 1, &rep);
    cm(f, 2, 1, &rep);
    cm(f, 1, 2, &req); /* the REP was lost after us */
    cm(f, 2, 1, &rep);
}

/* CM-08: the first PSN is the one in the CM message, even if its packet never passed here. */
START_TEST(cm_08_the_first_psn_is_announced)
{
    struct fault *f = parse("drop psn +4\ndrop ack psn +2 a->b", 1);
    connect(f, 7, 0x11, 500, 0x22, 100);
    ck_assert_uint_eq(conns(f), 1);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 103, 9), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 104, 9), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x11, 504, 9), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x11, 104, 9), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(ACKNOWLEDGE), 0x22, 502, 9), FAULT_DROP);
    ck_assert_uint_eq(conns(f), 1);
    fault_free(f);
}
END_TEST

/* Both queue pairs had another connection before: this is a new one, with its own first PSN. */
START_TEST(a_queue_pair_begins_another_life)
{
    struct fault *f = parse("drop conn 2 psn +1 first-tx", 1);
    connect(f, 7, 0x11, 500, 0x22, 100);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 100, 9), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 101, 9), 0);
    connect(f, 8, 0x11, 900, 0x22, 50);
    ck_assert_uint_eq(conns(f), 2);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 50, 9), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 51, 9), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 51, 9), 0);
    fault_free(f);
}
END_TEST

/* Only one end's queue pair is used again: the old connection is still over. */
START_TEST(a_new_connection_ends_the_old_ones)
{
    for (unsigned end = 0; end < 2; end++) {
        struct fault *f = parse("drop conn 1", 1);
        connect(f, 7, 0x11, 500, 0x22, 100);
        ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 100, 9), FAULT_DROP);
        ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x11, 500, 9), FAULT_DROP);
        connect(f, 8, end ? 0x11 : 0x12, 500, end ? 0x23 : 0x22, 100);
        ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 101, 9), 0);
        ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x11, 501, 9), 0);
        fault_free(f);
    }
}
END_TEST

/* The path MTU is CM's: a READ's last PSN is known before its first response. */
START_TEST(cm_tells_the_mtu)
{
    struct fault *f = parse("drop read-request retx", 1);
    struct fault_out out;
    connect(f, 7, 0x11, 500, 0x22, 100);
    for (uint32_t psn = 100; psn < 104; psn++) {
        struct wire_pkt p = frame_pkt(FRAME_V4, RC(READ_REQUEST), 0);
        p.sip = wire_addr_v4(0x0A000001u);
        p.dip = wire_addr_v4(0x0A000002u);
        p.dqpn = 0x22;
        p.psn = psn;
        p.dma_len = 3000; /* three packets of 1024 */
        uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out),
                          psn == 101 || psn == 102 ? FAULT_DROP : 0);
    }
    fault_free(f);
}
END_TEST

/* A CNP belongs to a connection that is known, and makes none. */
START_TEST(a_cnp_is_no_connection)
{
    struct fault *f = parse("drop conn 1 cnp", 1);
    ck_assert_uint_eq(pass(f, 2, 1, WIRE_OPCODE_CNP, 0x11, 0, 9), 0);
    ck_assert_uint_eq(conns(f), 0);
    ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x11, 0, 9), 0);
    ck_assert_uint_eq(pass(f, 2, 1, WIRE_OPCODE_CNP, 0x11, 0, 9), FAULT_DROP);
    fault_free(f);
}
END_TEST

/* A damaged packet makes no connection, with any queue pair number in it. */
START_TEST(damage_makes_no_connection)
{
    struct fault *f = parse("drop conn 1", 1);
    struct fault_out out;
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 20);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    frame[p.bth_off + 6] ^= 0x10;
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), 0);
    ck_assert_uint_eq(conns(f), 0);
    frame[p.bth_off + 6] ^= 0x10;
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), FAULT_DROP);
    fault_free(f);
}
END_TEST

/* ... and doesn't advance a connection's PSNs. */
START_TEST(damage_moves_no_psn)
{
    struct fault *f = parse("drop retx", 1);
    struct fault_out out;
    for (uint32_t psn = 0; psn < 4; psn++) {
        struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 20);
        p.psn = psn;
        uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
        if (psn == 2)
            frame[p.bth_off + 9] ^= 0x40;
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), 0);
    }
    fault_free(f);
}
END_TEST

/* WIRE-20: both directions of a connection use one source port. */
START_TEST(wire_20_halves_with_one_port_belong_together)
{
    struct fault *f = parse("drop conn 2", 1);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 0, 1), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x23, 0, 2), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x12, 0, 2), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x11, 0, 1), 0);
    ck_assert_uint_eq(conns(f), 2);
    fault_free(f);
}
END_TEST

/* All packets have the same port: the answers' PSNs tell. */
START_TEST(answers_tell_which_halves_belong_together)
{
    struct fault *f = parse("drop conn 2 response", 1);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x22, 1000, 0), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x23, 2000, 0), 0);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x12, 2000, 0), FAULT_DROP);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x11, 1000, 0), 0);
    ck_assert_uint_eq(conns(f), 2);
    /* Requests the other way came first and had to count as one of their own, until now. */
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x24, 3000, 0), 0);
    ck_assert_uint_eq(pass(f, 2, 1, RC(SEND_ONLY), 0x13, 7, 5), 0);
    ck_assert_uint_eq(conns(f), 4);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x13, 3000, 5), 0);
    struct fault *g = parse("drop conn 3", 1);
    ck_assert_uint_eq(pass(g, 1, 2, RC(SEND_ONLY), 0x22, 1, 0), 0);
    ck_assert_uint_eq(pass(g, 1, 2, RC(SEND_ONLY), 0x23, 2, 0), 0);
    ck_assert_uint_eq(pass(g, 1, 2, RC(SEND_ONLY), 0x24, 3000, 0), FAULT_DROP);
    ck_assert_uint_eq(pass(g, 2, 1, RC(SEND_ONLY), 0x13, 7, 5), 0);
    ck_assert_uint_eq(pass(g, 2, 1, RC(ACKNOWLEDGE), 0x13, 3000, 5), FAULT_DROP);
    ck_assert_uint_eq(pass(g, 2, 1, RC(SEND_ONLY), 0x13, 8, 5), FAULT_DROP);
    fault_free(f);
    fault_free(g);
}
END_TEST

/* The first packets were lost before they came by here; the NAK names one of them. */
START_TEST(a_nak_may_miss_what_was_never_seen)
{
    struct fault *f = parse("drop conn 2 ack", 1);
    struct fault_out out;
    pass(f, 1, 2, RC(SEND_ONLY), 0x22, 1000, 0);
    pass(f, 1, 2, RC(SEND_ONLY), 0x23, 2000, 0);
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(ACKNOWLEDGE), 0);
    p.sip = wire_addr_v4(0x0A000002u);
    p.dip = wire_addr_v4(0x0A000001u);
    p.dqpn = 0x12;
    p.psn = 1997;
    p.syndrome = WIRE_SYN_NAK_SEQ;
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    ck_assert_uint_eq(fault_apply(f, FAULT_BA, frame, len, 0, &out), 0);
    ck_assert_uint_eq(conns(f), 2);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x12, 2000, 5), FAULT_DROP);
    fault_free(f);
}
END_TEST

/* Two that could be meant: neither is taken. */
START_TEST(a_doubtful_answer_joins_nobody)
{
    struct fault *f = parse("drop conn 1..2 response", 1);
    pass(f, 1, 2, RC(SEND_ONLY), 0x22, 5, 0);
    pass(f, 1, 2, RC(SEND_ONLY), 0x23, 5, 0);
    ck_assert_uint_eq(pass(f, 2, 1, RC(ACKNOWLEDGE), 0x11, 5, 0), 0);
    fault_free(f);
}
END_TEST

/* A host that talks to itself: the same addresses both ways. */
START_TEST(both_ends_in_one_host)
{
    struct fault *f = parse("drop conn 1 ack", 1);
    ck_assert_uint_eq(pass(f, 1, 1, RC(SEND_ONLY), 0x22, 5, 0), 0);
    ck_assert_uint_eq(pass(f, 1, 1, RC(ACKNOWLEDGE), 0x11, 5, 0), FAULT_DROP);
    ck_assert_uint_eq(conns(f), 1);
    fault_free(f);
    /* A queue pair that is connected to itself: requests and answers are one direction. */
    f = parse("drop conn 1", 1);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(pass(f, 3, 3, RC(SEND_ONLY), 0x44, i, 0), FAULT_DROP);
        ck_assert_uint_eq(pass(f, 3, 3, RC(ACKNOWLEDGE), 0x44, i, 0), FAULT_DROP);
        ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 0x44, i, 0), 0);
    }
    ck_assert_uint_eq(conns(f), 2);
    fault_free(f);
}
END_TEST

/* Connections are distinguished if a rule needs it; without such a rule none is counted. */
START_TEST(what_nobody_needs_is_not_known)
{
    static const struct {
        const char *rule;
        bool knows;
    } rows[] = {{"drop data nth 2", false}, {"set psn +1 nth 9", false}, {"drop psn 5..9", false},
                {"drop conn 2", true},      {"drop psn +5", true},       {"drop retx", true},
                {"inject cnp nth 9", true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault *f = parse(rows[i].rule, 1);
        struct fault_stats s;
        pass(f, 1, 2, RC(SEND_ONLY), 100, 0, 0);
        fault_stats(f, &s);
        ck_assert_msg(s.knows == rows[i].knows, "%s", rows[i].rule);
        ck_assert_uint_eq(s.roce, 1);
        ck_assert_uint_eq(s.conns, rows[i].knows);
        fault_free(f);
    }
}
END_TEST

/* A full table makes room: the connection that was idle for longest goes. */
START_TEST(the_idlest_connection_makes_room)
{
    struct fault *f = parse("drop conn 1", 1);
    struct fault_stats s;
    for (uint32_t i = 0; i < FAULT_CONNS; i++)
        ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 100 + i, 0, i), i ? 0 : FAULT_DROP);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 100, 1, 0), FAULT_DROP);
    for (uint32_t i = 0; i < FAULT_CONNS - 1; i++)
        ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 50000 + i, 0, i), 0);
    ck_assert_uint_eq(pass(f, 1, 2, RC(SEND_ONLY), 100, 2, 0), FAULT_DROP); /* it's still there */
    fault_stats(f, &s);
    ck_assert(s.knows);
    ck_assert_uint_eq(s.evicted, FAULT_CONNS - 1);
    ck_assert_uint_eq(s.conns, 2 * FAULT_CONNS - 1);
    fault_free(f);
}
END_TEST

/* All randomness: the same seed gives the same result, another seed a different one, and fault_seed
 * restarts. */
START_TEST(the_same_seed_gives_the_same_faults)
{
    static const char rules[] = "drop data prob 10%\n"
                                "delay 1us..100us and corrupt random 2 prob 1/5\n"
                                "reorder 2 prob 0.1\n";
    struct fault *f[3] = {parse(rules, 1), parse(rules, 1), parse(rules, 2)};
    uint64_t digest[4] = {0};
    for (unsigned k = 0; k < 4; k++) {
        struct fault *x = f[k % 3];
        if (k == 3)
            fault_seed(x, 1);
        for (uint32_t i = 0; i < 3000; i++) {
            struct fault_out out;
            struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 100);
            p.psn = i;
            uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
            uint64_t h = fault_apply(x, FAULT_AB, frame, len, i, &out) + out.delay;
            for (uint32_t b = 0; b < len; b++)
                h = (h ^ frame[b]) * 0x100000001B3u;
            digest[k] = (digest[k] ^ h) * 0x9E3779B97F4A7C15u;
        }
    }
    ck_assert_uint_eq(digest[0], digest[1]);
    ck_assert_uint_ne(digest[0], digest[2]);
    ck_assert_uint_eq(digest[0], digest[3]);

    struct fault_rule_stats s;
    fault_rule_stats(f[1], 0, &s);
    ck_assert(s.matched == 3000 && s.done > 230 && s.done < 370);
    for (unsigned k = 0; k < 3; k++)
        fault_free(f[k]);
}
END_TEST

/* A rule's dice are its own: another rule's actions change nothing. */
START_TEST(rules_have_dice_of_their_own)
{
    struct fault *one = parse("drop prob 10%\nmark prob 50%", 1), *two = parse("drop prob 10%", 1);
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(pass(one, 1, 2, RC(SEND_ONLY), 5, i, 0) & FAULT_DROP,
                          pass(two, 1, 2, RC(SEND_ONLY), 5, i, 0) & FAULT_DROP);
    fault_free(one);
    fault_free(two);
    /* ... and not the same as another rule's. */
    struct fault *f = parse("duplicate prob 50%\nreorder 1 prob 50%", 1);
    unsigned differ = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        unsigned bits = pass(f, 1, 2, RC(SEND_ONLY), 5, i, 0);
        differ += !(bits & FAULT_COPY) != !(bits & FAULT_HOLD);
    }
    ck_assert(differ > 400 && differ < 600);
    fault_free(f);
}
END_TEST

UNIT_MAIN("fault conn", cm_08_the_first_psn_is_announced, a_queue_pair_begins_another_life,
          a_new_connection_ends_the_old_ones, cm_tells_the_mtu, damage_makes_no_connection,
          damage_moves_no_psn, a_cnp_is_no_connection, wire_20_halves_with_one_port_belong_together,
          answers_tell_which_halves_belong_together, a_nak_may_miss_what_was_never_seen,
          a_doubtful_answer_joins_nobody, both_ends_in_one_host, the_idlest_connection_makes_room,
          the_same_seed_gives_the_same_faults, rules_have_dice_of_their_own,
          what_nobody_needs_is_not_known)
