/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules against packets: a rule text, passing packets, and the outcome for each.
 */
#include <string.h>

#include "fault.h"
#include "frames.h"
#include "unit.h"

#define HOST_A 0x0A000001u
#define HOST_B 0x0A000002u
#define QP_A   0x111u /* queue pairs of the first connection */
#define QP_B   0x222u

#define RC(op)  WIRE_OPCODE(WIRE_RC, WIRE_##op)
#define PACKETS 24u
#define MTU     256u
#define PASS    "-"
#define NONE    0xFFFFFFFFu
#define NAK_SEQ WIRE_SYN_NAK_SEQ
#define RNR     (WIRE_SYN_RNR | 5)

/* A packet and its expected outcome: letters D drop, C changed, ! damaged, 2 copied, H held, I
 * injected; "-" nothing. */
struct packet {
    char to; /* 'b': from a to b, 'a': back */
    uint8_t opcode;
    uint32_t psn;
    const char *want;
    unsigned pair; /* connection: its queue pairs are QP_A + 16 * pair, QP_B + 16 * pair */
    uint8_t syndrome;
    uint32_t payload, dma_len;
    uint64_t at; /* ns */
};

static struct wire_pkt packet_of(const struct packet *k)
{
    bool ab = k->to == 'b';
    struct wire_pkt p = frame_pkt(FRAME_V4, k->opcode, 0);
    p.sip = wire_addr_v4(ab ? HOST_A : HOST_B);
    p.dip = wire_addr_v4(ab ? HOST_B : HOST_A);
    p.dqpn = (ab ? QP_B : QP_A) + 16 * k->pair;
    p.psn = k->psn & WIRE_PSN_MASK;
    p.sport = (uint16_t)(0xC000 + k->pair);
    p.payload_len = k->payload;
    p.dma_len = k->dma_len;
    p.syndrome = k->syndrome ? k->syndrome : WIRE_SYN_ACK;
    return p;
}

static const char *letters(unsigned bits, char buf[8])
{
    static const char name[] = "DC!2HI";
    unsigned n = 0;
    for (unsigned i = 0; i < 6; i++)
        if (bits >> i & 1)
            buf[n++] = name[i];
    if (!n)
        buf[n++] = '-';
    buf[n] = 0;
    return buf;
}

static struct fault *parse(const char *text)
{
    struct fault_error err;
    struct fault *f = fault_parse(text, strlen(text), 1, &err);
    ck_assert_msg(f, "%s: %u:%u: %s", text, err.line, err.column, err.text);
    return f;
}

struct row {
    const char *rules;
    struct packet packet[PACKETS];
};

static void run(const struct row *row)
{
    static uint8_t frame[8192];
    struct fault *f = parse(row->rules);
    struct fault_out out;
    char buf[8];
    for (unsigned i = 0; i < PACKETS && row->packet[i].to; i++) {
        const struct packet *k = &row->packet[i];
        struct wire_pkt p = packet_of(k);
        size_t len = frame_make(frame, sizeof(frame), &p);
        ck_assert_uint_gt(len, 0);
        unsigned bits =
            fault_apply(f, k->to == 'b' ? FAULT_AB : FAULT_BA, frame, (uint32_t)len, k->at, &out);
        ck_assert_msg(!strcmp(letters(bits, buf), k->want), "%s: packet %u: %s, not %s", row->rules,
                      i, buf, k->want);
    }
    fault_free(f);
}

static const struct row selectors[] = {
    {"drop", {{'b', RC(SEND_ONLY), 1, "D"}, {'a', RC(ACKNOWLEDGE), 1, "D"}}},
    {"drop a->b", {{'b', RC(SEND_ONLY), 1, "D"}, {'a', RC(ACKNOWLEDGE), 1, "-"}}},
    {"drop B->A", {{'b', RC(SEND_ONLY), 1, "-"}, {'a', RC(ACKNOWLEDGE), 1, "D"}}},
    {"drop ack",
     {{'b', RC(SEND_ONLY), 1, "-"},
      {'a', RC(ACKNOWLEDGE), 1, "D"},
      {'a', RC(ACKNOWLEDGE), 2, "-", .syndrome = NAK_SEQ},
      {'a', RC(ACKNOWLEDGE), 2, "-", .syndrome = RNR}}},
    {"drop nak",
     {{'a', RC(ACKNOWLEDGE), 1, "-"},
      {'a', RC(ACKNOWLEDGE), 2, "D", .syndrome = NAK_SEQ},
      {'a', RC(ACKNOWLEDGE), 2, "-", .syndrome = RNR}}},
    {"drop nak|rnr",
     {{'a', RC(ACKNOWLEDGE), 1, "-"},
      {'a', RC(ACKNOWLEDGE), 2, "D", .syndrome = NAK_SEQ},
      {'a', RC(ACKNOWLEDGE), 2, "D", .syndrome = RNR}}},
    {"drop data",
     {{'b', RC(SEND_ONLY), 1, "D"},
      {'b', RC(WRITE_FIRST), 2, "D", .payload = MTU},
      {'b', RC(READ_REQUEST), 3, "-"},
      {'a', RC(READ_RESP_ONLY), 3, "D"},
      {'b', RC(FETCH_ADD), 4, "-"},
      {'a', RC(ATOMIC_ACK), 4, "-"},
      {'a', RC(ACKNOWLEDGE), 1, "-"},
      {'a', WIRE_OPCODE_CNP, 0, "-"}}},
    {"drop send", {{'b', RC(SEND_LAST_IMM), 1, "D"}, {'b', RC(WRITE_ONLY), 2, "-"}}},
    {"drop write", {{'b', RC(SEND_LAST_IMM), 1, "-"}, {'b', RC(WRITE_ONLY_IMM), 2, "D"}}},
    {"drop read-request",
     {{'b', RC(READ_REQUEST), 1, "D"},
      {'a', RC(READ_RESP_ONLY), 1, "-"},
      {'b', RC(SEND_ONLY), 2, "-"}}},
    {"drop read-response", {{'b', RC(READ_REQUEST), 1, "-"}, {'a', RC(READ_RESP_ONLY), 1, "D"}}},
    {"drop atomic", {{'b', RC(CMP_SWAP), 1, "D"}, {'a', RC(ATOMIC_ACK), 1, "-"}}},
    {"drop atomic-ack", {{'b', RC(CMP_SWAP), 1, "-"}, {'a', RC(ATOMIC_ACK), 1, "D"}}},
    {"drop cnp", {{'a', WIRE_OPCODE_CNP, 0, "D"}, {'a', RC(ACKNOWLEDGE), 0, "-"}}},
    {"drop request", {{'b', RC(READ_REQUEST), 1, "D"}, {'a', RC(READ_RESP_ONLY), 1, "-"}}},
    {"drop response",
     {{'b', RC(READ_REQUEST), 1, "-"},
      {'a', RC(READ_RESP_ONLY), 1, "D"},
      {'a', RC(ACKNOWLEDGE), 1, "D"},
      {'a', WIRE_OPCODE_CNP, 1, "-"}}},
    {"drop RC_WRITE_FIRST|rc_send_only",
     {{'b', RC(WRITE_FIRST), 1, "D", .payload = MTU},
      {'b', RC(WRITE_LAST), 2, "-", .payload = 1},
      {'b', RC(SEND_ONLY), 3, "D"}}},
    {"drop op 0x11", {{'b', RC(SEND_ONLY), 1, "-"}, {'a', RC(ACKNOWLEDGE), 1, "D"}}},
    {"drop pos first|last",
     {{'b', RC(WRITE_FIRST), 1, "D", .payload = MTU},
      {'b', RC(WRITE_MIDDLE), 2, "-", .payload = MTU},
      {'b', RC(WRITE_LAST), 3, "D", .payload = 1},
      {'b', RC(WRITE_ONLY), 4, "-", .payload = 1}}},
    {"drop pos only", {{'b', RC(WRITE_ONLY), 4, "D"}, {'b', RC(WRITE_LAST), 5, "-", .payload = 1}}},
    {"drop src 10.0.0.1", {{'b', RC(SEND_ONLY), 1, "D"}, {'a', RC(ACKNOWLEDGE), 1, "-"}}},
    {"drop dst 10.0.0.1", {{'b', RC(SEND_ONLY), 1, "-"}, {'a', RC(ACKNOWLEDGE), 1, "D"}}},
    {"drop src 10.0.0.0/31", {{'b', RC(SEND_ONLY), 1, "D"}, {'a', RC(ACKNOWLEDGE), 1, "-"}}},
    {"drop src 10.0.0.0/8", {{'b', RC(SEND_ONLY), 1, "D"}, {'a', RC(ACKNOWLEDGE), 1, "D"}}},
    {"drop src 11.0.0.0/8", {{'b', RC(SEND_ONLY), 1, "-"}, {'a', RC(ACKNOWLEDGE), 1, "-"}}},
    {"drop qpn 0x222", {{'b', RC(SEND_ONLY), 1, "D"}, {'b', RC(SEND_ONLY), 1, "-", .pair = 1}}},
    {"drop payload 256",
     {{'b', RC(WRITE_FIRST), 1, "D", .payload = 256},
      {'b', RC(WRITE_LAST), 2, "-", .payload = 255}}},
    {"drop payload 1..",
     {{'b', RC(WRITE_LAST), 1, "D", .payload = 1}, {'b', RC(SEND_ONLY), 2, "-"}}},
    {"drop size ..100",
     {{'b', RC(SEND_ONLY), 1, "D", .payload = 40}, {'b', RC(SEND_ONLY), 2, "-", .payload = 64}}},
    {"drop size 1K..2K",
     {{'b', RC(SEND_ONLY), 1, "D", .payload = 1024}, {'b', RC(SEND_ONLY), 2, "-", .payload = 512}}},
    {"drop after 1us until 2us",
     {{'b', RC(SEND_ONLY), 1, "-", .at = 5000}, /* time counts from the first frame */
      {'b', RC(SEND_ONLY), 2, "-", .at = 5999},
      {'b', RC(SEND_ONLY), 3, "D", .at = 6000},
      {'b', RC(SEND_ONLY), 4, "D", .at = 6999},
      {'b', RC(SEND_ONLY), 5, "-", .at = 7000}}},
    {"drop send nth 2",
     {{'b', RC(SEND_ONLY), 1, "-"},
      {'b', RC(WRITE_ONLY), 2, "-"},
      {'b', RC(SEND_ONLY), 3, "D"},
      {'b', RC(SEND_ONLY), 4, "-"}}},
    {"drop nth 2..3",
     {{'b', RC(SEND_ONLY), 1, "-"},
      {'b', RC(SEND_ONLY), 2, "D"},
      {'b', RC(SEND_ONLY), 3, "D"},
      {'b', RC(SEND_ONLY), 4, "-"}}},
    {"drop every 2",
     {{'b', RC(SEND_ONLY), 1, "-"},
      {'b', RC(SEND_ONLY), 2, "D"},
      {'b', RC(SEND_ONLY), 3, "-"},
      {'b', RC(SEND_ONLY), 4, "D"}}},
    {"drop first", {{'b', RC(SEND_ONLY), 1, "D"}, {'b', RC(SEND_ONLY), 2, "-"}}},
    {"drop first 2",
     {{'b', RC(SEND_ONLY), 1, "D"}, {'b', RC(SEND_ONLY), 2, "D"}, {'b', RC(SEND_ONLY), 3, "-"}}},
    {"drop every 2 count 1",
     {{'b', RC(SEND_ONLY), 1, "-"},
      {'b', RC(SEND_ONLY), 2, "D"},
      {'b', RC(SEND_ONLY), 3, "-"},
      {'b', RC(SEND_ONLY), 4, "-"}}},
    {"drop prob 0", {{'b', RC(SEND_ONLY), 1, "-"}, {'b', RC(SEND_ONLY), 2, "-"}}},
    {"drop prob 100%", {{'b', RC(SEND_ONLY), 1, "D"}, {'b', RC(SEND_ONLY), 2, "D"}}},
};

START_TEST(each_selector_picks_its_frames)
{
    run(&selectors[_i]);
}
END_TEST

/* PSNs: absolute ones, ones relative to a connection's first, and retransmissions. */
static const struct row psns[] = {
    {"drop psn 7",
     {{'b', RC(SEND_ONLY), 6, "-"},
      {'b', RC(SEND_ONLY), 7, "D"},
      {'a', RC(ACKNOWLEDGE), 7, "-"}, /* without a class it means requests */
      {'b', RC(SEND_ONLY), 8, "-"}}},
    {"drop ack psn 7", {{'b', RC(SEND_ONLY), 7, "-"}, {'a', RC(ACKNOWLEDGE), 7, "D"}}},
    {"drop psn 0xFFFFFF..0",
     {{'b', RC(SEND_ONLY), 0xFFFFFE, "-"},
      {'b', RC(SEND_ONLY), 0xFFFFFF, "D"},
      {'b', RC(SEND_ONLY), 0, "D"},
      {'b', RC(SEND_ONLY), 1, "-"}}},
    {"drop psn +4",
     {{'b', RC(SEND_ONLY), 0xFFFFFE, "-"},
      {'b', RC(SEND_ONLY), 0xFFFFFF, "-"},
      {'b', RC(SEND_ONLY), 0, "-"},
      {'b', RC(SEND_ONLY), 1, "-"},
      {'b', RC(SEND_ONLY), 2, "D"},
      {'b', RC(SEND_ONLY), 3, "-"},
      {'b', RC(SEND_ONLY), 2, "D"},
      {'b', RC(SEND_ONLY), 2, "D"}}},
    {"drop psn +1..2",
     {{'b', RC(SEND_ONLY), 9, "-"},
      {'b', RC(SEND_ONLY), 10, "D"},
      {'b', RC(SEND_ONLY), 11, "D"},
      {'b', RC(SEND_ONLY), 12, "-"}}},
    {"drop psn +2..",
     {{'b', RC(SEND_ONLY), 9, "-"},
      {'b', RC(SEND_ONLY), 10, "-"},
      {'b', RC(SEND_ONLY), 11, "D"},
      {'b', RC(SEND_ONLY), 12, "D"}}},
    {"drop conn 2 psn +4 first-tx",
     {{'b', RC(SEND_ONLY), 100, "-"},
      {'b', RC(SEND_ONLY), 104, "-"},
      {'b', RC(SEND_ONLY), 50, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 51, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 52, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 53, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 54, "D", .pair = 1},
      {'b', RC(SEND_ONLY), 55, "-", .pair = 1},
      {'a', RC(ACKNOWLEDGE), 54, "-", .pair = 1, .syndrome = NAK_SEQ},
      {'b', RC(SEND_ONLY), 54, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 55, "-", .pair = 1},
      {'a', RC(ACKNOWLEDGE), 55, "-", .pair = 1},
      {'b', RC(SEND_ONLY), 54, "-", .pair = 2}}},
    {"drop retx",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'b', RC(SEND_ONLY), 6, "-"},
      {'b', RC(SEND_ONLY), 5, "D"},
      {'b', RC(SEND_ONLY), 6, "D"},
      {'b', RC(SEND_ONLY), 7, "-"},
      {'a', RC(ACKNOWLEDGE), 7, "-"},
      {'a', RC(ACKNOWLEDGE), 7, "-"}}}, /* requests, as with psn */
    /* Half of all PSNs lie ahead of one. */
    {"drop retx", {{'b', RC(SEND_ONLY), 0, "-"}, {'b', RC(SEND_ONLY), 0x800000, "-"}}},
    {"drop retx", {{'b', RC(SEND_ONLY), 0, "-"}, {'b', RC(SEND_ONLY), 0x800001, "D"}}},
    {"drop cnp|send psn 0..7", /* a CNP has no PSN to speak of */
     {{'b', RC(SEND_ONLY), 5, "D"}, {'a', WIRE_OPCODE_CNP, 0, "-"}}},
    {"drop retx psn +1 count 1",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'b', RC(SEND_ONLY), 6, "-"},
      {'b', RC(SEND_ONLY), 6, "D"},
      {'b', RC(SEND_ONLY), 6, "-"}}},
    /* A READ takes as many PSNs as its response has packets; the MTU is known from the first. */
    {"drop first-tx read-request|send",
     {{'b', RC(READ_REQUEST), 10, "D", .dma_len = 3 * MTU},
      {'a', RC(READ_RESP_FIRST), 10, "-", .payload = MTU},
      {'b', RC(READ_REQUEST), 11, "-", .dma_len = 2 * MTU}, /* the rest of it once more */
      {'b', RC(SEND_ONLY), 12, "-"},
      {'b', RC(SEND_ONLY), 13, "D"}}},
    {"drop read-response psn +2",
     {{'b', RC(READ_REQUEST), 10, "-", .dma_len = 3 * MTU},
      {'a', RC(READ_RESP_FIRST), 10, "-", .payload = MTU},
      {'a', RC(READ_RESP_MIDDLE), 11, "-", .payload = MTU},
      {'a', RC(READ_RESP_LAST), 12, "D", .payload = MTU}}},
    {"drop read-response retx",
     {{'b', RC(READ_REQUEST), 10, "-", .dma_len = 2 * MTU},
      {'a', RC(READ_RESP_FIRST), 10, "-", .payload = MTU},
      {'a', RC(READ_RESP_LAST), 11, "-", .payload = MTU},
      {'b', RC(READ_REQUEST), 11, "-", .dma_len = MTU},
      {'a', RC(READ_RESP_ONLY), 11, "D", .payload = MTU}}},
    {"drop ack retx",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'a', RC(ACKNOWLEDGE), 5, "-"},
      {'a', RC(ACKNOWLEDGE), 5, "D"},
      {'a', RC(ACKNOWLEDGE), 6, "-"}}},
    /* Answers belong to their requests' connection, in the other direction, too. */
    {"drop conn 1 response",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'b', RC(SEND_ONLY), 900, "-", .pair = 1},
      {'a', RC(ACKNOWLEDGE), 900, "-", .pair = 1},
      {'a', RC(ACKNOWLEDGE), 5, "D"}}},
    {"drop conn 2",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'a', RC(SEND_ONLY), 77, "-"},
      {'a', RC(SEND_ONLY), 77, "D", .pair = 1},
      {'b', RC(SEND_ONLY), 4, "D", .pair = 1}}},
    {"drop conn 2..3",
     {{'b', RC(SEND_ONLY), 5, "-"},
      {'b', RC(SEND_ONLY), 5, "D", .pair = 1},
      {'b', RC(SEND_ONLY), 5, "D", .pair = 2},
      {'b', RC(SEND_ONLY), 5, "-", .pair = 3}}},
};

START_TEST(psns_count_from_the_first_of_their_connection)
{
    run(&psns[_i]);
}
END_TEST

/* Each class against a frame of each kind. */
START_TEST(classes_divide_what_goes_by)
{
    enum { ARP, PAUSE, RUNT, BROKEN, DATAGRAM, CM, SEND, KINDS };
    static const struct {
        const char *rule;
        unsigned kinds; /* bits: kinds that it drops */
    } classes[] = {
        {"drop any", 0x7F},
        {"drop", 0x7F},
        {"drop other", 1 << ARP | 1 << PAUSE | 1 << RUNT | 1 << BROKEN},
        {"drop pause", 1 << PAUSE},
        {"drop roce", 1 << DATAGRAM | 1 << CM | 1 << SEND},
        {"drop ud", 1 << DATAGRAM | 1 << CM},
        {"drop cm", 1 << CM},
        {"drop send", 1 << DATAGRAM | 1 << SEND},
        {"drop data|pause", 1 << DATAGRAM | 1 << SEND | 1 << PAUSE},
        {"drop any src 0.0.0.0/0", 1 << DATAGRAM | 1 << CM | 1 << SEND},
        {"drop size ..20", 1 << RUNT},
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        struct fault *f = parse(classes[i].rule);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            static uint8_t frame[512];
            struct fault_out out;
            uint8_t op = kind == SEND || kind == BROKEN ? RC(SEND_ONLY)
                                                        : WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY);
            struct wire_pkt p = frame_pkt(FRAME_V4, op, 40);
            p.dqpn = kind == CM ? WIRE_QPN_GSI : 0xABC;
            uint32_t len = (uint32_t)frame_make(frame, sizeof(frame), &p);
            if (kind == ARP || kind == PAUSE)
                wire_put16(frame + 12, kind == ARP ? 0x0806 : 0x8808);
            if (kind == BROKEN)
                frame[p.bth_off + 1] |= 1; /* another transport version */
            unsigned bits = fault_apply(f, FAULT_AB, frame, kind == RUNT ? 10 : len, 0, &out);
            ck_assert_msg((bits == FAULT_DROP) == (classes[i].kinds >> kind & 1), "%s: kind %u",
                          classes[i].rule, kind);
        }
        fault_free(f);
    }
}
END_TEST

/* Time starts with the first frame, or on a call. */
START_TEST(time_has_an_origin)
{
    struct fault *f = parse("drop until 1us");
    struct fault_out out;
    uint8_t frame[64] = {0};
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 5000, &out), FAULT_DROP);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 6000, &out), 0);
    fault_start(f, 6500);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 7000, &out), FAULT_DROP);
    fault_start(f, 6000);
    ck_assert_uint_eq(fault_apply(f, FAULT_AB, frame, sizeof(frame), 7000, &out), 0);
    fault_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, each_selector_picks_its_frames, 0,
                        (int)(sizeof(selectors) / sizeof(selectors[0])));
    tcase_add_loop_test(c, psns_count_from_the_first_of_their_connection, 0,
                        (int)(sizeof(psns) / sizeof(psns[0])));
    tcase_add_test(c, classes_divide_what_goes_by);
    tcase_add_test(c, time_has_an_origin);
    suite_add_tcase(suite, c);
    return unit_run(suite);
}
