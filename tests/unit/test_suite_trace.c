/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trace of `urnic wire`'s test suite: records, connections, flows.
 */
#include <string.h>

#include "cm_msg.h"
#include "suite_trace.h"
#include "unit.h"

#define QPN_A 0x11u
#define QPN_B 0x22u

static struct suite_trace t;
static uint8_t frame[2048];
static const struct suite_pkt *last;

static struct wire_pkt packet(enum fault_dir dir, uint8_t opcode, uint32_t dqpn, uint32_t psn)
{
    struct wire_pkt p = {.ip_version = 4,
                         .ttl = 64,
                         .sport = 50000,
                         .opcode = opcode,
                         .pkey = WIRE_PKEY_DEFAULT,
                         .dqpn = dqpn,
                         .psn = psn,
                         .migreq = true};
    const uint8_t a[] = {10, 0, 0, 1}, b[] = {10, 0, 0, 2};
    memcpy(p.sip.b + 12, dir == FAULT_AB ? a : b, 4);
    memcpy(p.dip.b + 12, dir == FAULT_AB ? b : a, 4);
    p.sip.b[10] = p.sip.b[11] = p.dip.b[10] = p.dip.b[11] = 0xFF;
    return p;
}

/* Build, read and keep it, as the suite does. `xor` damages the payload's first octet before. */
static void add(enum fault_dir dir, struct wire_pkt p, const uint8_t *payload, uint32_t len,
                uint8_t xor)
{
    bool bad;
    p.payload_len = len;
    size_t at = wire_build(frame, sizeof(frame), &p), total = wire_frame_len(&p);
    ck_assert_uint_gt(at, 0);
    if (len)
        memcpy(frame + at, payload, len);
    wire_icrc_seal(frame, total, p.ip_off, p.bth_off);
    frame[at] ^= xor;
    ck_assert(suite_trace_read(frame, (uint32_t)total, &p, &bad));
    ck_assert_int_eq(bad, xor != 0);
    const struct suite_pkt head = {.at = 1000 + t.n, .dir = (uint8_t)dir};
    last = suite_trace_add(&t, &head, frame, &p);
}

static void request(enum fault_dir dir, uint32_t dqpn, uint32_t psn)
{
    static const uint8_t data[256] = {1, 2, 3};
    add(dir, packet(dir, WIRE_OPCODE(WIRE_RC, WIRE_WRITE_MIDDLE), dqpn, psn), data, 256, 0);
}

static void ack(enum fault_dir dir, uint32_t dqpn, uint32_t psn)
{
    struct wire_pkt p = packet(dir, WIRE_OPCODE(WIRE_RC, WIRE_ACKNOWLEDGE), dqpn, psn);
    p.syndrome = WIRE_SYN_ACK;
    add(dir, p, NULL, 0, 0);
}

static void cm(enum fault_dir dir, const struct cm_msg *m)
{
    uint8_t mad[CM_MAD_LEN];
    struct wire_pkt p = packet(dir, WIRE_OPCODE(WIRE_UD, WIRE_SEND_ONLY), WIRE_QPN_GSI, 0);
    p.qkey = WIRE_QKEY_GSI;
    p.sqpn = WIRE_QPN_GSI;
    ck_assert_int_eq(cm_msg_pack(mad, m), 0);
    add(dir, p, mad, sizeof(mad), 0);
}

static void connect(void)
{
    const struct cm_msg req = {.attr = CM_REQ,
                               .local_id = 7,
                               .qpn = QPN_A,
                               .psn = 500,
                               .ack_timeout = 15,
                               .retry_count = 3,
                               .mtu = 3},
                        rep = {.attr = CM_REP,
                               .local_id = 9,
                               .remote_id = 7,
                               .qpn = QPN_B,
                               .psn = 0xFFFFFF};
    cm(FAULT_AB, &req);
    cm(FAULT_AB, &req); /* repeated */
    cm(FAULT_BA, &rep);
}

START_TEST(a_record_has_what_the_packet_has)
{
    struct wire_pkt p = packet(FAULT_BA, WIRE_OPCODE(WIRE_RC, WIRE_WRITE_ONLY), 5, 0xABCDEF);
    p.ackreq = true;
    p.tclass = 0x1B;
    p.va = 0x1234567890;
    p.rkey = 77;
    p.dma_len = 8;
    add(FAULT_BA, p, (const uint8_t *)"12345678", 8, 0);
    ck_assert_uint_eq(last->psn, 0xABCDEF);
    ck_assert_uint_eq(last->dqpn, 5);
    ck_assert_uint_eq(last->tclass, 0x1B);
    ck_assert_uint_eq(last->va, 0x1234567890);
    ck_assert_uint_eq(last->rkey, 77);
    ck_assert_uint_eq(last->dma_len, 8);
    ck_assert_uint_eq(last->len, 8);
    ck_assert(last->ackreq);
    uint32_t hash = last->hash;
    add(FAULT_BA, p, (const uint8_t *)"12345679", 8, 0);
    ck_assert_uint_ne(last->hash, hash);
    add(FAULT_BA, p, (const uint8_t *)"12345678", 8, 0x40);
    frame[12] = 0x08;
    frame[13] = 0x06; /* ARP */
    bool bad;
    ck_assert(!suite_trace_read(frame, 60, &p, &bad));
}
END_TEST

START_TEST(cm_messages_name_the_ends_the_timeout_and_the_retries)
{
    struct suite_flow f;
    connect();
    request(FAULT_AB, QPN_B, 0xFFFFFF);
    request(FAULT_AB, QPN_B, 0);
    request(FAULT_BA, QPN_A, 501); /* 500 was lost before us */
    ck_assert_uint_eq(t.nconn, 1);
    ck_assert(suite_flow_find(&t, FAULT_AB, WIRE_F_WRITE, &f));
    ck_assert_uint_eq(f.to, QPN_B);
    ck_assert_uint_eq(f.back, QPN_A);
    ck_assert_uint_eq(f.base, 0xFFFFFF);
    ck_assert_int_eq(f.highest, 1);
    ck_assert_uint_eq(f.conn->timeout, 15);
    ck_assert_uint_eq(f.conn->retry, 3);
    ck_assert(suite_flow_find(&t, FAULT_BA, WIRE_F_WRITE, &f));
    ck_assert_uint_eq(f.back, QPN_B);
    ck_assert_uint_eq(f.base, 500);
    ck_assert_int_eq(f.highest, 1);
}
END_TEST

START_TEST(without_cm_the_answers_tell_where_they_belong)
{
    struct suite_flow f;
    for (uint32_t i = 0; i < 4; i++)
        request(FAULT_AB, QPN_B, 100 + i);
    request(FAULT_AB, 0x99, 5000); /* another, smaller flow */
    ack(FAULT_BA, 0x98, 5000);
    ack(FAULT_BA, QPN_A, 101);
    ack(FAULT_BA, QPN_A, 103);
    ck_assert(suite_flow_find(&t, FAULT_AB, WIRE_F_WRITE, &f));
    ck_assert_uint_eq(f.to, QPN_B);
    ck_assert_uint_eq(f.back, QPN_A);
    ck_assert_uint_eq(f.base, 100);
    ck_assert_uint_eq(f.packets, 4);
    ck_assert_ptr_null(f.conn);
    unsigned requests = 0, responses = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        requests += suite_request(&f, &t.pkt[i]);
        responses += suite_response(&f, &t.pkt[i]);
    }
    ck_assert_uint_eq(requests, 4);
    ck_assert_uint_eq(responses, 2);
    ck_assert(!suite_flow_find(&t, FAULT_BA, WIRE_F_WRITE, &f));
    ck_assert(!suite_flow_find(&t, FAULT_AB, WIRE_F_READ, &f));
}
END_TEST

START_TEST(what_does_not_fit_is_counted)
{
    t.n = SUITE_PACKETS - 1;
    request(FAULT_AB, QPN_B, 1);
    ck_assert_ptr_nonnull(last);
    request(FAULT_AB, QPN_B, 2);
    ck_assert_ptr_null(last);
    ck_assert_uint_eq(t.missed, 1);
    suite_trace_clear(&t);
    ck_assert_uint_eq(t.n, 0);
    ck_assert_uint_eq(t.missed, 0);
    ck_assert_ptr_nonnull(t.pkt);
}
END_TEST

static void set_up(void)
{
    ck_assert_int_eq(suite_trace_init(&t), 0);
}

static void tear_down(void)
{
    suite_trace_free(&t);
}

int main(void)
{
    Suite *suite = suite_create("suite trace");
    TCase *tcase = tcase_create("suite trace");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_record_has_what_the_packet_has);
    tcase_add_test(tcase, cm_messages_name_the_ends_the_timeout_and_the_retries);
    tcase_add_test(tcase, without_cm_the_answers_tell_where_they_belong);
    tcase_add_test(tcase, what_does_not_fit_is_counted);
    suite_add_tcase(suite, tcase);
    return unit_run(suite);
}
