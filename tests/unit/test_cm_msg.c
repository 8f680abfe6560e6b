/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CM message layouts against the vectors and against every CM packet that rxe was seen to send.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_msg.h"
#include "unit.h"

static const struct {
    const char *rule;
    unsigned lifetime, delay, timeout;
} ack_timeouts[] = {
    {"CM-09 lifetime just above the delay", 16, 15, 17},
    {"CM-09 lifetime well above the delay", 18, 15, 19},
    {"CM-09 equal after doubling", 14, 15, 16},
    {"CM-09 delay just above", 13, 15, 16},
    {"CM-09 delay well above", 10, 15, 15},
    {"CM-09 never more than 31", 31, 15, 31},
};

START_TEST(cm_09_local_ack_timeout)
{
    ck_assert_msg(cm_ack_timeout(ack_timeouts[_i].lifetime, ack_timeouts[_i].delay) ==
                      ack_timeouts[_i].timeout,
                  "%s: got %u", ack_timeouts[_i].rule,
                  cm_ack_timeout(ack_timeouts[_i].lifetime, ack_timeouts[_i].delay));
}
END_TEST

START_TEST(cm_01_service_ids)
{
    /* CM-01 */
    ck_assert_uint_eq(cm_service_id(CM_PS_TCP, 5001), 0x0000000001061389u);
    ck_assert_uint_eq(cm_service_id(CM_PS_UDP, 5001), 0x0000000001111389u);
    ck_assert_uint_eq(cm_service_id(CM_PS_TCP, 20049), 0x0000000001064E51u);
}
END_TEST

START_TEST(cm_02_ip_header)
{
    /* CM-02: IPv4 addresses stand in the last 4 octets of each field. */
    struct cm_ip_hdr h = {.ip_version = 4,
                          .sport = 0x1234,
                          .src = wire_addr_v4(0x0A000001),
                          .dst = wire_addr_v4(0x0A000002)},
                     back;
    uint8_t buf[CM_IP_HDR_LEN];
    static const uint8_t expected[CM_IP_HDR_LEN] = {0, 0x40, 0x12, 0x34, 0,  0, 0, 0, 0,  0, 0, 0,
                                                    0, 0,    0,    0,    10, 0, 0, 1, 0,  0, 0, 0,
                                                    0, 0,    0,    0,    0,  0, 0, 0, 10, 0, 0, 2};
    cm_ip_hdr_pack(buf, &h);
    ck_assert_mem_eq(buf, expected, sizeof buf);
    ck_assert_int_eq(cm_ip_hdr_unpack(&back, buf), 0);
    ck_assert_mem_eq(&back.src, &h.src, 16);
    ck_assert_mem_eq(&back.dst, &h.dst, 16);
    ck_assert_uint_eq(back.sport, 0x1234);
    h.ip_version = 6;
    memset(h.src.b, 0x61, 16);
    memset(h.dst.b, 0x62, 16);
    cm_ip_hdr_pack(buf, &h);
    memset(&back, 0xFF, sizeof back);
    ck_assert_int_eq(cm_ip_hdr_unpack(&back, buf), 0);
    ck_assert_uint_eq(back.ip_version, 6);
    ck_assert_mem_eq(&back.src, &h.src, 16);
    ck_assert_mem_eq(&back.dst, &h.dst, 16);
    buf[1] = 0x50;
    ck_assert_int_eq(cm_ip_hdr_unpack(&back, buf), -EPROTO);
    buf[1] = 0x40;
    buf[0] = 0x10;
    ck_assert_int_eq(cm_ip_hdr_unpack(&back, buf), -EPROTO);
}
END_TEST

START_TEST(gsi_02_wrong_mads_are_refused)
{
    struct cm_msg msg = {.attr = CM_RTU, .local_id = 1, .remote_id = 2}, back;
    uint8_t mad[CM_MAD_LEN];
    ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
    ck_assert_int_eq(cm_msg_unpack(&back, mad, 255), -EMSGSIZE); /* GSI-02 */
    ck_assert_int_eq(cm_msg_unpack(&back, mad, 257), -EMSGSIZE);
    static const struct {
        const char *rule;
        unsigned octet;
        uint8_t value;
        int rc;
    } rows[] = {
        {"GSI-04 base version", 0, 2, -EPROTONOSUPPORT},
        {"GSI-05 other class", 1, 3, -EPROTONOSUPPORT},
        {"GSI-05 other method", 3, 1, -EPROTONOSUPPORT},
        {"GSI-04 class version", 2, 1, -EPROTO},
        {"CM-16 unknown attribute", 17, 0x77, -ENOMSG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t bad[CM_MAD_LEN];
        memcpy(bad, mad, sizeof bad);
        bad[rows[i].octet] = rows[i].value;
        ck_assert_msg(cm_msg_unpack(&back, bad, sizeof bad) == rows[i].rc, "%s", rows[i].rule);
    }
    msg.priv_len = 225;
    ck_assert_int_eq(cm_msg_pack(mad, &msg), -EINVAL);
    msg.attr = 0x99;
    ck_assert_int_eq(cm_msg_pack(mad, &msg), -EINVAL);
}
END_TEST

START_TEST(gsi_03_common_header)
{
    /* GSI-03 */
    struct cm_msg msg = {.attr = CM_DREP, .tid = 0x0102030405060708, .attr_mod = 0x0A0B0C0D};
    static const uint8_t expected[24] = {1, 0x07, 2, 3, 0, 0,    0, 0, 1,    2,    3,    4,
                                         5, 6,    7, 8, 0, 0x16, 0, 0, 0x0A, 0x0B, 0x0C, 0x0D};
    uint8_t mad[CM_MAD_LEN];
    ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
    ck_assert_mem_eq(mad, expected, sizeof expected);
}
END_TEST

START_TEST(cm_33_private_data_is_zero_filled)
{
    /* CM-33 */
    struct cm_msg msg = {.attr = CM_RTU, .priv_len = 3}, back;
    uint8_t mad[CM_MAD_LEN];
    memset(msg.priv, 0xEE, sizeof msg.priv);
    memset(mad, 0xDD, sizeof mad);
    ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
    ck_assert_int_eq(cm_msg_unpack(&back, mad, sizeof mad), 0);
    ck_assert_uint_eq(back.priv_len, 224);
    ck_assert_uint_eq(back.priv[2], 0xEE);
    for (unsigned i = 3; i < 224; i++)
        ck_assert_uint_eq(back.priv[i], 0);
}
END_TEST

/* Every field of every layout survives, and no field touches another one. */
START_TEST(cm_fields_do_not_overlap)
{
    static const uint16_t attrs[] = {CM_REQ,  CM_MRA,      CM_REJ,      CM_REP, CM_RTU, CM_DREQ,
                                     CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_LAP, CM_APR};
    uint8_t ones[CM_MAD_LEN], again[CM_MAD_LEN];
    struct cm_msg msg, back;
    memset(ones, 0xFF, sizeof ones);
    ones[0] = 1;
    ones[1] = CM_CLASS;
    ones[2] = CM_CLASS_VERSION;
    ones[3] = CM_METHOD_SEND;
    ones[16] = 0;
    ones[17] = (uint8_t)attrs[_i];
    ck_assert_int_eq(cm_msg_unpack(&msg, ones, sizeof ones), 0);
    ck_assert_int_eq(cm_msg_pack(again, &msg), 0);
    ck_assert_int_eq(cm_msg_unpack(&back, again, sizeof again), 0);
    ck_assert_mem_eq(&msg, &back, sizeof msg);
}
END_TEST

/* CM packets of rxe: unpacked and packed again they are the same octets. */
START_TEST(cm_16_rxe_messages_round_trip)
{
    static const char *const files[] = {"cm-perftest.pcap", "cm-reject.pcap", "cm-rping.pcap",
                                        "cm-rping-ipv6.pcap", "cm-ucmatose.pcap"};
    char path[4096], err[PCAP_ERRBUF_SIZE];
    snprintf(path, sizeof path, "%s/%s", getenv("URNIC_PCAPS"), files[_i]);
    pcap_t *p = pcap_open_offline(path, err);
    ck_assert_msg(p != NULL, "%s", err);
    struct pcap_pkthdr *hdr;
    const u_char *data;
    unsigned seen = 0;
    while (pcap_next_ex(p, &hdr, &data) == 1) {
        struct wire_pkt pkt;
        if (wire_parse(data, hdr->caplen, 0, &pkt) != WIRE_OK || pkt.dqpn != WIRE_QPN_GSI)
            continue;
        struct cm_msg msg;
        uint8_t mad[CM_MAD_LEN];
        ck_assert_int_eq(cm_msg_unpack(&msg, data + pkt.payload_off, pkt.payload_len), 0);
        ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
        ck_assert_mem_eq(mad, data + pkt.payload_off, CM_MAD_LEN);
        if (msg.attr == CM_REQ) {
            struct cm_ip_hdr ip;
            ck_assert_int_eq(cm_ip_hdr_unpack(&ip, msg.priv), 0);
            ck_assert_mem_eq(&ip.src, &pkt.sip, 16);
            ck_assert_mem_eq(&msg.local_gid, &pkt.sip, 16);
            ck_assert_uint_eq(msg.service_id >> 16, CM_PS_TCP);
        }
        seen++;
    }
    pcap_close(p);
    ck_assert_uint_ge(seen, 2);
}
END_TEST

START_TEST(cm_dump_is_one_line_without_private_data)
{
    struct cm_msg msg = {.attr = CM_REJ, .reason = 28, .priv_len = 6, .priv = "secret"};
    char line[256];
    ck_assert_int_gt(cm_msg_dump(line, sizeof line, &msg), 0);
    ck_assert_ptr_nonnull(strstr(line, "consumer reject")); /* CM-29 */
    ck_assert_ptr_null(strstr(line, "secret"));             /* SEC-30 */
    ck_assert_ptr_null(strchr(line, '\n'));
    ck_assert_int_eq(cm_msg_dump(line, 8, &msg) > 8, 1);
    ck_assert_uint_lt(strlen(line), 8);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm_msg");
    TCase *t = tcase_create("cm_msg");
    tcase_add_loop_test(t, cm_09_local_ack_timeout, 0,
                        (int)(sizeof ack_timeouts / sizeof ack_timeouts[0]));
    tcase_add_test(t, cm_01_service_ids);
    tcase_add_test(t, cm_02_ip_header);
    tcase_add_test(t, gsi_02_wrong_mads_are_refused);
    tcase_add_test(t, gsi_03_common_header);
    tcase_add_test(t, cm_33_private_data_is_zero_filled);
    tcase_add_loop_test(t, cm_fields_do_not_overlap, 0, 11);
    tcase_add_loop_test(t, cm_16_rxe_messages_round_trip, 0, 5);
    tcase_add_test(t, cm_dump_is_one_line_without_private_data);
    suite_add_tcase(s, t);
    return unit_run(s);
}
