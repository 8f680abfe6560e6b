/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire_parse_flow gives the same result as wire_parse, after any frame.
 */
#include "frames.h"
#include "unit.h"

/* No assertion unless it fails: for each field of each packet they would take most of the time. */
static void same_octets(const char *field, const void *a, const void *b, size_t n)
{
    if (memcmp(a, b, n) != 0)
        ck_abort_msg("%s differs", field);
}

/* Every field, not the padding between them. */
static void same_pkt(const struct wire_pkt *a, const struct wire_pkt *b)
{
#define SAME(field) same_octets(#field, &a->field, &b->field, sizeof(a->field))
    SAME(dmac);
    SAME(smac);
    SAME(ethertype);
    SAME(vlan);
    SAME(tci);
    SAME(ip_version);
    SAME(tclass);
    SAME(ttl);
    SAME(ip_id);
    SAME(ip_flags);
    SAME(flow_label);
    SAME(sip);
    SAME(dip);
    SAME(sport);
    SAME(dport);
    SAME(udp_csum);
    SAME(opcode);
    SAME(se);
    SAME(migreq);
    SAME(ackreq);
    SAME(fecn);
    SAME(becn);
    SAME(pad);
    SAME(tver);
    SAME(pkey);
    SAME(dqpn);
    SAME(psn);
    SAME(va);
    SAME(rkey);
    SAME(dma_len);
    SAME(swap_add);
    SAME(compare);
    SAME(orig);
    SAME(syndrome);
    SAME(msn);
    SAME(imm);
    SAME(qkey);
    SAME(sqpn);
    SAME(xrc_srqn);
    SAME(feth);
    SAME(selective);
    SAME(sel_recv);
    SAME(sel_index);
    SAME(sel_psn);
    SAME(ip_off);
    SAME(udp_off);
    SAME(bth_off);
    SAME(payload_off);
    SAME(payload_len);
    SAME(icrc_off);
#undef SAME
}

/* A flow, and the parsed packet of its last frame. */
struct seen {
    struct wire_flow flow;
    struct wire_pkt pkt;
};

/* Parses both ways; returns whether the flow was recognized. */
static bool both(struct seen *s, const uint8_t *f, size_t len, unsigned flags)
{
    struct wire_pkt p;
    enum wire_verdict v = wire_parse(f, len, flags, &p);
    enum wire_verdict w = wire_parse_flow(f, len, flags, &s->flow, &s->pkt);
    ck_assert_msg(v == w, "%s, in its flow %s", wire_verdict_name(v), wire_verdict_name(w));
    same_pkt(&p, &s->pkt);
    return s->flow.same;
}

/* A flow that has seen one frame of this kind. */
static struct seen seen_one(unsigned kind, unsigned flags)
{
    uint8_t f[256];
    struct seen flow = {.flow.ip_version = 0};
    struct wire_pkt p = frame_pkt(kind, WIRE_OPCODE(WIRE_RC, WIRE_WRITE_FIRST), 64);
    ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), flags));
    return flow;
}

/* WIRE-12: lengths, ports, identifications and all of the BTH may change. */
START_TEST(wire_12_what_may_differ)
{
    for (unsigned kind = FRAME_V4; kind <= FRAME_V6; kind++) {
        struct seen flow = seen_one(kind, 0);
        for (unsigned n = 0; n < 2000; n++) {
            uint8_t f[4400];
            uint8_t op = (uint8_t)(n * 7);
            const struct wire_opcode_info *info = &wire_opcodes[op];
            if (!info->name || op == WIRE_OPCODE_CNP)
                continue;
            uint32_t len = n & 1 ? n % 70 : n * 2;
            struct wire_pkt p = frame_pkt(kind, op, info->flags & WIRE_F_PAYLOAD ? len : 0);
            p.ip_id = (uint16_t)(n * 12345);
            p.sport = (uint16_t)(n * 4321);
            p.se = n & 2;
            p.migreq = n & 4;
            p.pkey = (uint16_t)(n * 54321);
            p.fecn = n & 8;
            p.dqpn = (n + 2) * 8191;
            p.psn = n;
            ck_assert(both(&flow, f, frame_make(f, sizeof(f), &p), 0));
        }
    }
}
END_TEST

/* VAL-01 ICRC-01: each octet of the second frame changed in each of its bits, with the iCRC as it
 * was and with it mended, and the IPv4 checksum mended or not. */
START_TEST(val_01_every_bit)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        uint8_t f[256], g[256];
        struct wire_pkt p = frame_pkt(kind, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 21);
        size_t len = frame_make(f, sizeof(f), &p);
        for (size_t bit = 0; bit < len * 8; bit++) {
            for (unsigned mend = 0; mend < 4; mend++) {
                memcpy(g, f, len);
                g[bit / 8] ^= (uint8_t)(1u << bit % 8);
                if (mend & 1 && p.ip_version == 4)
                    frame_fix_csum(g + p.ip_off);
                if (mend & 2)
                    frame_fix_icrc(g, len, &p);
                struct seen flow = seen_one(kind, 0);
                both(&flow, g, len, 0);
                both(&flow, f, len, 0); /* and its memory of that frame */
                both(&flow, g, len, 0); /* after one with the same BTH */
                both(&flow, f, len, 0);
            }
        }
    }
}
END_TEST

/* VAL-01: in packets of one message only PSN and acknowledge request change, and each packet is
 * parsed with its own values. A change of another field makes a new flow. */
START_TEST(val_01_next_of_a_message)
{
    for (unsigned kind = FRAME_V4; kind <= FRAME_V6; kind++) {
        struct seen flow = seen_one(kind, 0);
        for (unsigned n = 0; n < 400; n++) {
            uint8_t f[512];
            uint8_t op = WIRE_OPCODE(WIRE_RC, n % 10 == 9 ? WIRE_WRITE_FIRST : WIRE_WRITE_MIDDLE);
            struct wire_pkt p = frame_pkt(kind, op, n % 50 == 45 ? 28 : 64);
            p.psn = 0xFFFF80 + n;
            p.psn &= WIRE_PSN_MASK;
            p.ackreq = n % 3 == 0;
            p.ip_id = (uint16_t)(n * 54321);
            p.sport = (uint16_t)(0xC000 + n % 7);
            bool changes = n % 10 == 9 || n % 10 == 0 || n % 50 == 45 || n % 50 == 46;
            size_t len = frame_make(f, sizeof(f), &p);
            f[len - 1] ^= n % 20 == 3; /* a bad iCRC in between */
            ck_assert(both(&flow, f, len, 0));
            ck_assert_int_eq(flow.flow.next, !changes);
        }
    }
}
END_TEST

/* A frame with this opcode, cut short at each octet; `after` the whole one, or not. */
static void cut(uint8_t opcode, uint32_t payload_len, bool after)
{
    for (unsigned kind = FRAME_V4; kind <= FRAME_V6; kind++) {
        uint8_t f[256];
        struct wire_pkt p = frame_pkt(kind, opcode, payload_len);
        size_t len = frame_make(f, sizeof(f), &p);
        for (size_t n = 0; n <= len; n++) {
            struct seen flow = seen_one(kind, 0);
            uint8_t *piece = malloc(n ? n : 1);
            memcpy(piece, f, n);
            if (after)
                ck_assert(both(&flow, f, len, 0));
            ck_assert_int_eq(both(&flow, piece, n, 0), n == len);
            ck_assert_int_eq(flow.flow.next, after && n == len);
            free(piece);
        }
    }
}

/* VAL-07: frames cut short. */
START_TEST(val_07_cut)
{
    cut(WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE), 0, false);
}
END_TEST

/* VAL-07: cut short after an equal whole one. */
START_TEST(val_07_next_cut)
{
    cut(WIRE_OPCODE(WIRE_RC, WIRE_WRITE_MIDDLE), 64, true);
}
END_TEST

/* VAL-07 WIRE-12: lengths that agree with each other, and are too small or too large. */
START_TEST(val_07_lengths)
{
    for (unsigned kind = FRAME_V4; kind <= FRAME_V6; kind++) {
        uint8_t f[256];
        struct wire_pkt p = frame_pkt(kind, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 40);
        size_t len = frame_make(f, sizeof(f), &p);
        for (uint16_t n = 0; n < 256; n++) {
            uint8_t *ip = f + p.ip_off;
            wire_put16(ip + (kind == FRAME_V4 ? 2 : 4), kind == FRAME_V4 ? n + WIRE_IPV4_LEN : n);
            wire_put16(f + p.udp_off + 4, n);
            if (kind == FRAME_V4)
                frame_fix_csum(ip);
            struct seen flow = seen_one(kind, WIRE_P_NO_ICRC);
            both(&flow, f, len, WIRE_P_NO_ICRC);
        }
    }
}
END_TEST

/* WIRE-06: a frame is of another flow if its destination or its path differs, if it is tagged, if
 * it has a UDP checksum, or if it is parsed with other flags. */
START_TEST(wire_06_another_flow)
{
    uint8_t f[256];
    struct seen flow = seen_one(FRAME_V4, 0);
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 8);
    p.dip = wire_addr_v4(0xC0000203u);
    ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), 0));
    ck_assert(both(&flow, f, frame_make(f, sizeof(f), &p), 0)); /* the last one counts */
    p.tclass ^= 3;
    ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), 0));
    ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), WIRE_P_LOOPBACK));
    p.udp_csum = 0x1234;
    for (unsigned i = 0; i < 2; i++)
        ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), 0));
    for (unsigned kind = FRAME_TAGGED; kind <= (FRAME_TAGGED | FRAME_V6); kind++) {
        flow = seen_one(kind, 0);
        p = frame_pkt(kind, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 8);
        ck_assert(!both(&flow, f, frame_make(f, sizeof(f), &p), 0));
    }
}
END_TEST

/* VAL-01: ip_version 0 alone makes a flow new: its other contents, for example of an earlier burst,
 * have no effect. */
START_TEST(val_01_a_new_flow)
{
    for (unsigned kind = FRAME_V4; kind <= FRAME_V6; kind++) {
        uint8_t f[256];
        struct seen flow = {.flow.ip_version = 0};
        struct wire_pkt p = frame_pkt(kind, WIRE_OPCODE(WIRE_RC, WIRE_SEND_MIDDLE), 8);
        size_t len = frame_make(f, sizeof(f), &p);
        ck_assert(!both(&flow, f, len, 0));
        ck_assert(both(&flow, f, len, 0));
        ck_assert(flow.flow.next);
        flow.flow.ip_version = 0;
        flow.pkt.dqpn ^= 1;
        ck_assert(!both(&flow, f, len, 0));
        ck_assert(!flow.flow.next);
    }
}
END_TEST

/* WIRE-12: a checksum that the port has found right counts, and isn't believed of later frames. */
START_TEST(wire_12_checksum_by_the_port)
{
    uint8_t f[256];
    struct seen flow = {.flow.ip_version = 0};
    struct wire_pkt p = frame_pkt(FRAME_V4, WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY), 8);
    size_t len = frame_make(f, sizeof(f), &p);
    f[p.ip_off + 10] ^= 1;
    ck_assert(!both(&flow, f, len, WIRE_P_IP_CSUM_OK));
    ck_assert(both(&flow, f, len, WIRE_P_IP_CSUM_OK));
    ck_assert(!both(&flow, f, len, 0));
}
END_TEST

UNIT_MAIN("wire flow", wire_12_what_may_differ, val_01_every_bit, val_01_next_of_a_message,
          val_07_cut, val_07_next_cut, val_07_lengths, wire_06_another_flow, val_01_a_new_flow,
          wire_12_checksum_by_the_port)
