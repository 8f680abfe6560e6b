/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Effects of rules on a frame, octet by octet, and frames made by rules.
 */
#include <string.h>

#include "fault.h"
#include "frames.h"
#include "unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RC(op)   WIRE_OPCODE(WIRE_RC, WIRE_##op)

static struct fault *parse(const char *text)
{
    struct fault_error err;
    struct fault *f = fault_parse(text, strlen(text), 1, &err);
    ck_assert_msg(f, "%s: %u:%u: %s", text, err.line, err.column, err.text);
    return f;
}

struct shot { /* one frame, one rule */
    uint8_t before[2048], frame[2048];
    uint32_t len;
    struct wire_pkt p;
    unsigned bits;
    struct fault_out out;
    uint64_t failed;
};

static void shoot(struct shot *s, const char *rule, unsigned kind, uint8_t opcode, uint32_t payload)
{
    struct fault_rule_stats stats;
    struct fault *f = parse(rule);
    s->p = frame_pkt(kind, opcode, payload);
    s->len = (uint32_t)frame_make(s->frame, sizeof(s->frame), &s->p);
    ck_assert_uint_gt(s->len, 0);
    memcpy(s->before, s->frame, s->len);
    s->bits = fault_apply(f, FAULT_AB, s->frame, s->len, 0, &s->out);
    fault_rule_stats(f, 0, &stats);
    s->failed = stats.failed;
    fault_free(f);
}

/* Octets that differ, and where the first of them is. */
static unsigned changed(const struct shot *s, uint32_t *first)
{
    unsigned n = 0;
    for (uint32_t i = s->out.len; i-- > 0;) {
        if (s->frame[i] != s->before[i]) {
            *first = i;
            n++;
        }
    }
    return n;
}

START_TEST(nothing_said_nothing_done)
{
    struct shot s;
    shoot(&s, "set psn 5 ack", FRAME_V4, RC(SEND_ONLY), 100);
    ck_assert_uint_eq(s.bits, 0);
    ck_assert_uint_eq(s.out.len, s.len);
    ck_assert_mem_eq(s.frame, s.before, s.len);
}
END_TEST

START_TEST(delay_within_its_range)
{
    struct fault *f = parse("delay 10us..20us");
    struct fault_out out;
    uint8_t frame[64] = {0};
    uint64_t low = UINT64_MAX, high = 0;
    for (unsigned i = 0; i < 2000; i++) {
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), i, &out), FAULT_HOLD);
        low = out.delay < low ? out.delay : low;
        high = out.delay > high ? out.delay : high;
    }
    ck_assert(low >= 10000 && low < 10100 && high <= 20000 && high > 19900);
    fault_free(f);
    f = parse("delay 6.75us and delay 1.25us");
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 0, &out), FAULT_HOLD);
    ck_assert_uint_eq(out.delay, 8000);
    ck_assert_uint_eq(out.gap, 0);
    fault_free(f);
}
END_TEST

START_TEST(copies_and_gaps)
{
    struct shot s;
    shoot(&s, "duplicate", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, FAULT_COPY);
    ck_assert_uint_eq(s.out.copies, 1);
    shoot(&s, "duplicate 5\nduplicate 60", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.out.copies, FAULT_COPIES_MAX);
    ck_assert_uint_eq(s.out.flow, 0);
    shoot(&s, "reorder 3 within 20us", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, FAULT_HOLD);
    ck_assert_uint_eq(s.out.gap, 3);
    ck_assert_uint_eq(s.out.within, 20000);
    ck_assert_uint_ne(s.out.flow, 0);
}
END_TEST

/* Frames of one flow count for each other, also ones that aren't held; frames of other flows don't.
 */
START_TEST(a_flow_is_addresses_and_queue_pair)
{
    struct fault *f = parse("reorder 1 nth 99");
    struct fault_out one, same, other, reply;
    uint8_t frame[512];
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 10);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &one), 0);
    p.psn++;
    frame_make(frame, sizeof(frame), &p);
    fault_apply(f, FAULT_AB, frame, len, 0, &same);
    p.dqpn++;
    frame_make(frame, sizeof(frame), &p);
    fault_apply(f, FAULT_AB, frame, len, 0, &other);
    p.dqpn--;
    struct wire_addr a = p.sip;
    p.sip = p.dip;
    p.dip = a;
    frame_make(frame, sizeof(frame), &p);
    fault_apply(f, FAULT_AB, frame, len, 0, &reply);
    ck_assert_uint_eq(one.flow, same.flow);
    ck_assert_uint_ne(one.flow, other.flow);
    ck_assert_uint_ne(one.flow, reply.flow);
    fault_free(f);
}
END_TEST

START_TEST(drop_ends_it)
{
    struct shot s;
    shoot(&s, "duplicate and drop and mark\nset psn 5", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, FAULT_DROP);
    ck_assert_uint_eq(s.frame[54], s.before[54]); /* the second rule wasn't asked */
    shoot(&s, "inject pause and drop", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, FAULT_DROP | FAULT_INJECT);
}
END_TEST

START_TEST(corruption_is_where_it_shall_be)
{
    struct wire_pkt p;
    struct shot s;
    uint32_t at = 0;
    shoot(&s, "corrupt byte 20 xor 0x0F", FRAME_V4, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(changed(&s, &at), 1);
    ck_assert_uint_eq(at, 20);
    ck_assert_uint_eq(s.frame[20], s.before[20] ^ 0x0F);
    ck_assert_uint_eq(s.bits, FAULT_CHANGED | FAULT_DAMAGED);

    shoot(&s, "corrupt payload 3", FRAME_V4, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(changed(&s, &at), 1);
    ck_assert_uint_eq(at, s.p.payload_off + 3u);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_BAD_ICRC);

    /* Damage that no checksum tells. */
    shoot(&s, "corrupt payload 3 repair", FRAME_V4, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(s.bits, FAULT_CHANGED);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_OK);
    ck_assert_uint_eq(s.frame[p.payload_off + 3], 4 ^ 0xFF);

    shoot(&s, "corrupt icrc", FRAME_V6, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(changed(&s, &at), 1);
    ck_assert_uint_eq(at, s.p.icrc_off);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_BAD_ICRC);

    shoot(&s, "corrupt random", FRAME_V4, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(changed(&s, &at), 1);

    shoot(&s, "corrupt payload 64", FRAME_V4, RC(SEND_ONLY), 64); /* it has no such octet */
    ck_assert_uint_eq(s.bits, 0);
    ck_assert_uint_eq(s.failed, 1);
    shoot(&s, "corrupt byte 1000", FRAME_V4, RC(SEND_ONLY), 64);
    ck_assert_uint_eq(s.failed, 1);
}
END_TEST

/* CC-01 only ECN-capable packets are marked; the header checksum stays right, and so does the iCRC,
 * which leaves the field out. */
START_TEST(cc_01_mark)
{
    static const struct {
        unsigned kind;
        uint8_t tclass;
        bool marked;
    } rows[] = {{FRAME_V4, 0x6A, true},
                {FRAME_V4, 0x69, true},
                {FRAME_V4, 0x68, false},
                {FRAME_V6, 0x6A, true},
                {FRAME_V6, 0x68, false},
                {FRAME_V4 | FRAME_TAGGED, 0x02, true},
                {FRAME_V6 | FRAME_TAGGED, 1, true}};
    struct fault *f = parse("mark");
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t frame[256];
        struct fault_out out;
        struct wire_pkt p = frame_pkt(rows[i].kind, RC(SEND_ONLY), 20), q;
        p.tclass = rows[i].tclass;
        uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out),
                          rows[i].marked ? FAULT_CHANGED : 0);
        ck_assert_int_eq(wire_parse(frame, len, 0, &q), WIRE_OK);
        ck_assert_uint_eq(q.tclass, rows[i].tclass | (rows[i].marked ? 3 : 0));
    }
    /* A checksum that was wrong stays wrong: nothing else is mended on the way. */
    uint8_t frame[256];
    struct fault_out out;
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 20);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    frame[24] ^= 1;
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), FAULT_CHANGED);
    ck_assert_int_eq(wire_parse(frame, len, 0, &p), WIRE_BAD_IP_CSUM);
    fault_free(f);
}
END_TEST

START_TEST(trim_cuts)
{
    struct wire_pkt p;
    struct shot s;
    shoot(&s, "trim 100", FRAME_V4, RC(SEND_ONLY), 500);
    ck_assert_uint_eq(s.bits, FAULT_CHANGED | FAULT_DAMAGED);
    ck_assert_uint_eq(s.out.len, 100);
    ck_assert_int_eq(wire_parse(s.frame, s.out.len, 0, &p), WIRE_TRUNCATED);
    shoot(&s, "trim 1K", FRAME_V4, RC(SEND_ONLY), 500);
    ck_assert_uint_eq(s.bits, 0);
    ck_assert_uint_eq(s.out.len, s.len);
    /* Missing octets aren't changed. */
    shoot(&s, "trim 50 and corrupt payload 400 and set psn 5", FRAME_V4, RC(SEND_ONLY), 500);
    ck_assert_uint_eq(s.out.len, 50);
    ck_assert_uint_eq(s.failed, 2);
    ck_assert_mem_eq(s.frame, s.before, s.len);
    shoot(&s, "trim 100 and set psn 5", FRAME_V4, RC(SEND_ONLY), 500);
    ck_assert_uint_eq(s.failed, 0);
    ck_assert_mem_eq(s.frame + 100, s.before + 100, s.len - 100);
}
END_TEST

/* Each field, with another value: the rest of the packet stays, and it is a good one. */
static const struct {
    const char *rule;
    uint8_t opcode;
    size_t offset, size; /* in struct wire_pkt */
    uint64_t value;
} fields[] = {
#define F(rule, op, field, value)                                                                  \
    {                                                                                              \
        rule, op, offsetof(struct wire_pkt, field), sizeof(((struct wire_pkt *)0)->field), value   \
    }
    F("set dscp 10", RC(SEND_ONLY), tclass, 10 << 2 | 2),
    F("set ecn 1", RC(SEND_ONLY), tclass, 0x69),
    F("set ttl 1", RC(SEND_ONLY), ttl, 1),
    F("set ttl -1", RC(SEND_ONLY), ttl, 63),
    F("set sport 1000", RC(SEND_ONLY), sport, 1000),
    F("set opcode 0x0A", RC(SEND_ONLY), opcode, 0x0A),
    F("set se 1", RC(SEND_ONLY), se, 1),
    F("set migreq 0", RC(SEND_ONLY), migreq, 0),
    F("set pkey 0x1234", RC(SEND_ONLY), pkey, 0x1234),
    F("set fecn 1", RC(SEND_ONLY), fecn, 1),
    F("set becn 1", RC(SEND_ONLY), becn, 1),
    F("set dqpn 0x123456", RC(SEND_ONLY), dqpn, 0x123456),
    F("set ackreq 1", RC(SEND_ONLY), ackreq, 1),
    F("set psn 0xABCDEF", RC(SEND_ONLY), psn, 0xABCDEF),
    F("set psn +3", RC(SEND_ONLY), psn, 1),
    F("set psn -0xFFFFFE", RC(SEND_ONLY), psn, 0),
    F("set va 0x0102030405060708", RC(WRITE_ONLY), va, 0x0102030405060708),
    F("set va -1", RC(READ_REQUEST), va, 0x00007F1122334454),
    F("set rkey 7", RC(WRITE_ONLY), rkey, 7),
    F("set dmalen 0x1000", RC(WRITE_ONLY), dma_len, 0x1000),
    F("set syndrome 0x63", RC(ACKNOWLEDGE), syndrome, 0x63),
    F("set msn 5", RC(ACKNOWLEDGE), msn, 5),
    F("set imm 0x05000005", RC(SEND_ONLY_IMM), imm, 0x05000005), /* the same in any byte order */
    F("set qkey 9", WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), qkey, 9),
    F("set sqpn 9", WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), sqpn, 9),
    F("set swap 5", RC(FETCH_ADD), swap_add, 5),
    F("set compare 5", RC(CMP_SWAP), compare, 5),
#undef F
};

static uint64_t field_of(const struct wire_pkt *p, size_t offset, size_t size)
{
    const char *at = (const char *)p + offset;
    uint64_t v = 0;
    memcpy(&v, at, size);
    return v;
}

START_TEST(each_field_can_be_set)
{
    struct wire_pkt p, before;
    struct shot s;
    for (unsigned kind = 0; kind < 4; kind++) {
        uint32_t payload = wire_opcodes[fields[_i].opcode].flags & WIRE_F_PAYLOAD ? 36 : 0;
        shoot(&s, fields[_i].rule, kind, fields[_i].opcode, payload);
        if (!strncmp(fields[_i].rule, "set opcode", 10)) { /* other headers follow: only the iCRC */
            ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_OK);
            ck_assert_uint_eq(p.opcode, fields[_i].value);
            continue;
        }
        ck_assert_int_eq(wire_parse(s.before, s.len, 0, &before), WIRE_OK);
        ck_assert_msg(wire_parse(s.frame, s.len, 0, &p) == WIRE_OK, "%s", fields[_i].rule);
        ck_assert_uint_eq(s.bits, FAULT_CHANGED);
        ck_assert_msg(field_of(&p, fields[_i].offset, fields[_i].size) == fields[_i].value,
                      "%s: 0x%llx", fields[_i].rule,
                      (unsigned long long)field_of(&p, fields[_i].offset, fields[_i].size));
        memcpy((char *)&p + fields[_i].offset, (char *)&before + fields[_i].offset,
               fields[_i].size);
        ck_assert_mem_eq(&p, &before, sizeof(p));
    }
}
END_TEST

/* WIRE-24: a UDP checksum that was there would be wrong: without it the packet is good. */
START_TEST(wire_24_set_clears_a_udp_checksum)
{
    struct fault *f = parse("set psn 5");
    struct fault_out out;
    uint8_t frame[256];
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 20);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    wire_put16(frame + p.udp_off + 6, 0x1234);
    ck_assert_int_eq(wire_parse(frame, len, WIRE_P_UDP_CSUM, &p), WIRE_BAD_UDP_CSUM);
    fault_apply(f, FAULT_AB, frame, len, 0, &out);
    ck_assert_int_eq(wire_parse(frame, len, WIRE_P_UDP_CSUM, &p), WIRE_OK);
    fault_free(f);
}
END_TEST

START_TEST(without_repair_the_receiver_sees_it)
{
    struct wire_pkt p;
    struct shot s;
    shoot(&s, "set psn 5 norepair", FRAME_V4, RC(SEND_ONLY), 20);
    ck_assert_uint_eq(s.bits, FAULT_CHANGED | FAULT_DAMAGED);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_BAD_ICRC);
    shoot(&s, "set ttl 5 norepair", FRAME_V4, RC(SEND_ONLY), 20);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_BAD_IP_CSUM);
    shoot(&s, "set tver 5", FRAME_V4, RC(SEND_ONLY), 20);
    ck_assert_int_eq(wire_parse(s.frame, s.len, 0, &p), WIRE_BAD_TVER);
    shoot(&s, "set rkey 5", FRAME_V4, RC(SEND_ONLY), 20); /* it has none */
    ck_assert_uint_eq(s.bits, 0);
    ck_assert_uint_eq(s.failed, 1);
    ck_assert_mem_eq(s.frame, s.before, s.len);
}
END_TEST

/* Only the first octets of a frame are there, as in a simulation without payload. */
START_TEST(a_cut_frame_is_changed_where_it_is)
{
    struct fault *f = parse("corrupt payload 900 size 1K..");
    struct fault_out out;
    uint8_t frame[2048], before[2048];
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 1024);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    memset(frame + p.payload_off, 0xEE, sizeof(frame) - p.payload_off);
    memcpy(before, frame, sizeof(frame));
    ck_assert_uint_eq(fault_apply_cut(f, FAULT_AB, frame, p.payload_off, len, 0, &out),
                      FAULT_CHANGED | FAULT_DAMAGED);
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(frame, before, sizeof(frame));
    fault_free(f);

    f = parse("set psn 5");
    ck_assert_uint_eq(fault_apply_cut(f, FAULT_AB, frame, p.payload_off, len, 0, &out),
                      FAULT_CHANGED);
    ck_assert_uint_eq(wire_get32(frame + p.bth_off + 8) & WIRE_PSN_MASK, 5);
    ck_assert_mem_eq(frame + p.payload_off, before + p.payload_off, sizeof(frame) - p.payload_off);
    fault_free(f);
}
END_TEST

/* ---- injected frames ---- */

/* Both directions are seen, then the rule's third packet calls one forth. */
static struct fault_out inject(const char *rule, unsigned kind, unsigned *bits)
{
    struct fault *f = parse(rule);
    struct fault_out out;
    uint8_t frame[512];
    struct wire_pkt p = frame_pkt(kind, RC(SEND_ONLY), 16), q;
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), 0);
    q = frame_pkt(kind, RC(ACKNOWLEDGE), 0);
    q.sip = p.dip;
    q.dip = p.sip;
    q.dqpn = 0x777;
    len = (uint32_t)frame_make(frame, sizeof(frame), &q);
    ck_assert_uint_eq(fault_apply(f, FAULT_BA, frame, len, 0, &out), 0);
    p.psn = 5;
    len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    *bits = fault_apply(f, FAULT_AB, frame, len, 0, &out);
    fault_free(f);
    return out;
}

/* OPC-05 CC-06 the CNP goes to the sender, or forth to the receiver. */
START_TEST(opc_05_inject_cnp)
{
    unsigned bits;
    struct wire_pkt p;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct fault_out out = inject("inject cnp psn 5", kind, &bits);
        struct wire_pkt like = frame_pkt(kind, RC(SEND_ONLY), 0);
        ck_assert_uint_eq(bits, FAULT_INJECT);
        ck_assert_uint_eq(out.ninject, 1);
        const struct fault_inject *in = &out.inject[0];
        ck_assert_int_eq(in->dir, FAULT_BA);
        ck_assert_int_eq(wire_parse(in->data, in->len, WIRE_P_UDP_CSUM, &p), WIRE_OK);
        ck_assert_uint_eq(p.opcode, WIRE_OPCODE_CNP);
        ck_assert(p.becn && !p.fecn && !p.se && !p.ackreq && p.psn == 0);
        ck_assert_uint_eq(p.dqpn, 0x777);
        ck_assert_uint_eq(p.tclass >> 2, 48);
        ck_assert_uint_eq(p.vlan ? p.tci >> 13 : 6, 6);
        ck_assert_mem_eq(&p.sip, &like.dip, sizeof(p.sip));
        ck_assert_mem_eq(p.smac, like.dmac, 6);
        ck_assert_mem_eq(p.dmac, like.smac, 6);
        for (unsigned i = 0; i < 16; i++)
            ck_assert_uint_eq(in->data[p.bth_off + WIRE_BTH_LEN + i], 0);
    }
    struct fault_out out = inject("inject cnp forth psn 5", 0, &bits);
    ck_assert_int_eq(out.inject[0].dir, FAULT_AB);
    ck_assert_int_eq(wire_parse(out.inject[0].data, out.inject[0].len, 0, &p), WIRE_OK);
    ck_assert_uint_eq(p.dqpn, 0xABC);
}
END_TEST

START_TEST(inject_nak)
{
    static const struct {
        const char *rule;
        uint8_t syndrome;
    } rows[] = {{"inject nak psn-seq psn 5", 0x60}, {"inject nak invalid psn 5", 0x61},
                {"inject nak access psn 5", 0x62},  {"inject nak op-error psn 5", 0x63},
                {"inject nak rnr psn 5", 0x21},     {"inject nak rnr 14 psn 5", 0x2E}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned bits;
        struct wire_pkt p;
        struct fault_out out = inject(rows[i].rule, 0, &bits);
        ck_assert_uint_eq(bits, FAULT_INJECT);
        ck_assert_int_eq(out.inject[0].dir, FAULT_BA);
        ck_assert_int_eq(wire_parse(out.inject[0].data, out.inject[0].len, 0, &p), WIRE_OK);
        ck_assert_uint_eq(p.opcode, RC(ACKNOWLEDGE));
        ck_assert_uint_eq(p.syndrome, rows[i].syndrome);
        ck_assert_uint_eq(p.psn, 5);
        ck_assert_uint_eq(p.dqpn, 0x777);
        ck_assert_uint_eq(p.msn, 0x876543); /* MSN of the last acknowledgement that went by */
        ck_assert_uint_eq(p.tclass & 3, 0);
    }
}
END_TEST

START_TEST(inject_pause)
{
    struct shot s;
    shoot(&s, "inject pause 5 0x1234", FRAME_V4, RC(SEND_ONLY), 0);
    const struct fault_inject *in = &s.out.inject[0];
    ck_assert_uint_eq(s.bits, FAULT_INJECT);
    ck_assert_int_eq(in->dir, FAULT_BA);
    ck_assert_uint_eq(in->len, 60);
    static const uint8_t want[36] = {0x01, 0x80, 0xC2, 0, 0, 0x01, 0x02, 0,    0x5E, 0, 0x53,
                                     0x02, 0x88, 0x08, 1, 1, 0,    0x20, 0,    0,    0, 0,
                                     0,    0,    0,    0, 0, 0,    0x12, 0x34, 0,    0};
    ck_assert_mem_eq(in->data, want, sizeof(want));
    shoot(&s, "inject pause forth", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_int_eq(s.out.inject[0].dir, FAULT_AB);
    ck_assert_uint_eq(s.out.inject[0].data[17], 1 << 3);
    ck_assert_uint_eq(wire_get16(s.out.inject[0].data + 24), 65535);
    ck_assert_uint_eq(s.out.inject[0].data[11], 1);
    /* A group address is never a sender. */
    struct fault *f = parse("inject pause");
    struct fault_out out;
    uint8_t frame[64];
    memset(frame, 0xFF, sizeof(frame));
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 0, &out), FAULT_INJECT);
    ck_assert_uint_eq(out.inject[0].data[6], 0xFE);
    fault_free(f);
}
END_TEST

/* No acknowledgement has gone by: the MSN is the number of messages that have. */
START_TEST(ack_11_a_nak_counts_messages)
{
    struct fault *f = parse("inject nak psn-seq psn +5");
    struct fault_out out;
    uint8_t frame[512];
    struct wire_pkt p = frame_pkt(FRAME_V4, RC(SEND_ONLY), 16);
    p.sip = wire_addr_v4(0xC0000202u);
    p.dip = wire_addr_v4(0xC0000201u);
    uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
    ck_assert_uint_eq(fault_apply(f, FAULT_BA, frame, len, 0, &out), 0);
    static const uint8_t ops[] = {RC(WRITE_FIRST), RC(WRITE_LAST),   RC(SEND_ONLY),
                                  RC(SEND_ONLY),   RC(READ_REQUEST), RC(SEND_ONLY)};
    for (uint32_t i = 0; i < COUNT(ops); i++) {
        p = frame_pkt(FRAME_V4, ops[i], ops[i] == RC(READ_REQUEST) ? 0 : 256);
        p.psn = i;
        len = (uint32_t)frame_make(frame, sizeof(frame), &p);
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, len, 0, &out), i == 5 ? FAULT_INJECT : 0);
    }
    ck_assert_int_eq(wire_parse(out.inject[0].data, out.inject[0].len, 0, &p), WIRE_OK);
    ck_assert_uint_eq(p.msn, 4);
    fault_free(f);
}
END_TEST

/* A frame that isn't RoCE has no iCRC, no ECN that we know of, and no sender to answer. */
START_TEST(other_frames_have_only_octets)
{
    static const char *const rules[] = {"corrupt icrc",    "corrupt payload 0", "mark",
                                        "set psn 5",       "set ttl 5",         "inject cnp",
                                        "inject nak rnr 1"};
    uint8_t frame[64], before[64];
    struct fault_out out;
    memset(before, 0x5A, sizeof(before));
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct fault *f = parse(rules[i]);
        memcpy(frame, before, sizeof(frame));
        ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 0, &out), 0);
        ck_assert_mem_eq(frame, before, sizeof(frame));
        fault_free(f);
    }
    struct fault *f = parse("corrupt byte 63 xor 1 and trim 60");
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 0, &out),
                      FAULT_CHANGED | FAULT_DAMAGED);
    ck_assert(frame[63] == (0x5A ^ 1) && out.len == 60);
    fault_free(f);
    /* Nor is there an address in less than an Ethernet header. */
    f = parse("inject pause");
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, 13, 0, &out), 0);
    fault_free(f);
}
END_TEST

/* The sender's queue pair hasn't been seen yet; only a limited number is waited for at a time. */
START_TEST(what_cannot_be_injected_is_counted)
{
    struct shot s;
    shoot(&s, "inject cnp", FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, 0);
    ck_assert_uint_eq(s.failed, 1);
    shoot(&s, "inject nak psn-seq", FRAME_V4, RC(ACKNOWLEDGE), 0);
    ck_assert_uint_eq(s.failed, 1);
    shoot(&s,
          "inject pause and inject pause and inject pause and inject pause\n"
          "inject pause and inject pause and inject pause and inject pause\n"
          "inject pause",
          FRAME_V4, RC(SEND_ONLY), 0);
    ck_assert_uint_eq(s.out.ninject, FAULT_INJECTS);
    /* A datagram names its sender. */
    shoot(&s, "inject cnp", FRAME_V4, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), 0);
    ck_assert_uint_eq(s.bits, FAULT_INJECT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault act");
    TCase *c = tcase_create("actions");
    tcase_add_test(c, nothing_said_nothing_done);
    tcase_add_test(c, delay_within_its_range);
    tcase_add_test(c, copies_and_gaps);
    tcase_add_test(c, a_flow_is_addresses_and_queue_pair);
    tcase_add_test(c, drop_ends_it);
    tcase_add_test(c, corruption_is_where_it_shall_be);
    tcase_add_test(c, cc_01_mark);
    tcase_add_test(c, trim_cuts);
    tcase_add_loop_test(c, each_field_can_be_set, 0, (int)COUNT(fields));
    tcase_add_test(c, wire_24_set_clears_a_udp_checksum);
    tcase_add_test(c, without_repair_the_receiver_sees_it);
    tcase_add_test(c, a_cut_frame_is_changed_where_it_is);
    tcase_add_test(c, opc_05_inject_cnp);
    tcase_add_test(c, inject_nak);
    tcase_add_test(c, ack_11_a_nak_counts_messages);
    tcase_add_test(c, inject_pause);
    tcase_add_test(c, other_frames_have_only_octets);
    tcase_add_test(c, what_cannot_be_injected_is_counted);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
