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
    {"CM-09 equal before doubling", 15, 15, 17},
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
    ck_assert_mem_eq(buf, expected, sizeof(buf));
    ck_assert_int_eq(cm_ip_hdr_unpack(&back, buf), 0);
    ck_assert_mem_eq(&back.src, &h.src, 16);
    ck_assert_mem_eq(&back.dst, &h.dst, 16);
    ck_assert_uint_eq(back.sport, 0x1234);
    h.ip_version = 6;
    memset(h.src.b, 0x61, 16);
    memset(h.dst.b, 0x62, 16);
    cm_ip_hdr_pack(buf, &h);
    memset(&back, 0xFF, sizeof(back));
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
    ck_assert_int_eq(cm_msg_unpack(&back, mad, 256), 0);
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
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bad[CM_MAD_LEN];
        memcpy(bad, mad, sizeof(bad));
        bad[rows[i].octet] = rows[i].value;
        ck_assert_msg(cm_msg_unpack(&back, bad, sizeof(bad)) == rows[i].rc, "%s", rows[i].rule);
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
    ck_assert_mem_eq(mad, expected, sizeof(expected));
}
END_TEST

START_TEST(cm_33_private_data_is_zero_filled)
{
    /* CM-33 */
    struct cm_msg msg = {.attr = CM_RTU, .priv_len = 3}, back;
    uint8_t mad[CM_MAD_LEN];
    memset(msg.priv, 0xEE, sizeof(msg.priv));
    memset(mad, 0xDD, sizeof(mad));
    ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
    ck_assert_int_eq(cm_msg_unpack(&back, mad, sizeof(mad)), 0);
    ck_assert_uint_eq(back.priv_len, 224);
    ck_assert_uint_eq(back.priv[2], 0xEE);
    for (unsigned i = 3; i < 224; i++)
        ck_assert_uint_eq(back.priv[i], 0);
}
END_TEST

/* Positions of the fields in doc/conformance.md, section 21.2: octet and bit after the MAD header,
 * width. */
#define AT(attr, octet, bit, width, member)                                                        \
    {                                                                                              \
        attr, #attr " " #member, octet, bit, width, offsetof(struct cm_msg, member)                \
    }
static const struct {
    uint16_t attr;
    const char *what;
    unsigned octet, bit, width;
    size_t member;
} layout[] = {
    AT(CM_REQ, 0, 0, 32, local_id),
    AT(CM_REQ, 8, 0, 64, service_id),
    AT(CM_REQ, 16, 0, 64, ca_guid),
    AT(CM_REQ, 28, 0, 32, qkey),
    AT(CM_REQ, 32, 0, 24, qpn),
    AT(CM_REQ, 35, 0, 8, resp_res),
    AT(CM_REQ, 36, 0, 24, eecn),
    AT(CM_REQ, 39, 0, 8, init_depth),
    AT(CM_REQ, 43, 0, 5, remote_timeout),
    AT(CM_REQ, 43, 5, 2, transport),
    AT(CM_REQ, 43, 7, 1, flow_control),
    AT(CM_REQ, 44, 0, 24, psn),
    AT(CM_REQ, 47, 0, 5, local_timeout),
    AT(CM_REQ, 47, 5, 3, retry_count),
    AT(CM_REQ, 48, 0, 16, pkey),
    AT(CM_REQ, 50, 0, 4, mtu),
    AT(CM_REQ, 50, 5, 3, rnr_retry),
    AT(CM_REQ, 51, 0, 4, max_retries),
    AT(CM_REQ, 51, 4, 1, srq),
    AT(CM_REQ, 51, 5, 3, ext_transport),
    AT(CM_REQ, 52, 0, 16, local_lid),
    AT(CM_REQ, 54, 0, 16, remote_lid),
    AT(CM_REQ, 56, 0, 128, local_gid),
    AT(CM_REQ, 72, 0, 128, remote_gid),
    AT(CM_REQ, 88, 0, 20, flow_label),
    AT(CM_REQ, 91, 2, 6, packet_rate),
    AT(CM_REQ, 92, 0, 8, tclass),
    AT(CM_REQ, 93, 0, 8, hop_limit),
    AT(CM_REQ, 94, 0, 4, sl),
    AT(CM_REQ, 94, 4, 1, subnet_local),
    AT(CM_REQ, 95, 0, 5, ack_timeout),
    AT(CM_REQ, 96, 0, 16, alt_local_lid),
    AT(CM_REQ, 98, 0, 16, alt_remote_lid),
    AT(CM_REQ, 100, 0, 128, alt_local_gid),
    AT(CM_REQ, 116, 0, 128, alt_remote_gid),
    AT(CM_REQ, 139, 0, 5, alt_ack_timeout),
    AT(CM_MRA, 0, 0, 32, local_id),
    AT(CM_MRA, 4, 0, 32, remote_id),
    AT(CM_MRA, 8, 0, 2, msg_id),
    AT(CM_MRA, 9, 0, 5, service_timeout),
    AT(CM_REJ, 0, 0, 32, local_id),
    AT(CM_REJ, 4, 0, 32, remote_id),
    AT(CM_REJ, 8, 0, 2, msg_id),
    AT(CM_REJ, 9, 0, 7, ari_len),
    AT(CM_REJ, 10, 0, 16, reason),
    AT(CM_REP, 0, 0, 32, local_id),
    AT(CM_REP, 4, 0, 32, remote_id),
    AT(CM_REP, 8, 0, 32, qkey),
    AT(CM_REP, 12, 0, 24, qpn),
    AT(CM_REP, 16, 0, 24, eecn),
    AT(CM_REP, 20, 0, 24, psn),
    AT(CM_REP, 24, 0, 8, resp_res),
    AT(CM_REP, 25, 0, 8, init_depth),
    AT(CM_REP, 26, 0, 5, target_ack_delay),
    AT(CM_REP, 26, 5, 2, failover),
    AT(CM_REP, 26, 7, 1, flow_control),
    AT(CM_REP, 27, 0, 3, rnr_retry),
    AT(CM_REP, 27, 3, 1, srq),
    AT(CM_REP, 28, 0, 64, ca_guid),
    AT(CM_RTU, 0, 0, 32, local_id),
    AT(CM_RTU, 4, 0, 32, remote_id),
    AT(CM_DREQ, 0, 0, 32, local_id),
    AT(CM_DREQ, 4, 0, 32, remote_id),
    AT(CM_DREQ, 8, 0, 24, remote_qpn),
    AT(CM_DREP, 0, 0, 32, local_id),
    AT(CM_DREP, 4, 0, 32, remote_id),
    AT(CM_SIDR_REQ, 0, 0, 32, local_id),
    AT(CM_SIDR_REQ, 4, 0, 16, pkey),
    AT(CM_SIDR_REQ, 8, 0, 64, service_id),
    AT(CM_SIDR_REP, 0, 0, 32, local_id),
    AT(CM_SIDR_REP, 4, 0, 8, status),
    AT(CM_SIDR_REP, 5, 0, 8, ari_len),
    AT(CM_SIDR_REP, 8, 0, 24, qpn),
    AT(CM_SIDR_REP, 12, 0, 64, service_id),
    AT(CM_SIDR_REP, 20, 0, 32, qkey),
    AT(CM_LAP, 0, 0, 32, local_id),
    AT(CM_LAP, 4, 0, 32, remote_id),
    AT(CM_LAP, 12, 0, 24, remote_qpn),
    AT(CM_LAP, 15, 0, 5, remote_timeout),
    AT(CM_LAP, 20, 0, 16, alt_local_lid),
    AT(CM_LAP, 22, 0, 16, alt_remote_lid),
    AT(CM_LAP, 24, 0, 128, alt_local_gid),
    AT(CM_LAP, 40, 0, 128, alt_remote_gid),
    AT(CM_APR, 0, 0, 32, local_id),
    AT(CM_APR, 4, 0, 32, remote_id),
    AT(CM_APR, 8, 0, 8, ari_len),
    AT(CM_APR, 9, 0, 8, reason),
};

/* A message with all ones in one field has ones there, and nowhere else. */
START_TEST(cm_01_where_fields_are)
{
    uint8_t mad[CM_MAD_LEN], expected[CM_MAD_LEN];
    for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++) {
        size_t size = layout[i].width > 32 ? layout[i].width / 8 : 4;
        struct cm_msg msg = {.attr = layout[i].attr}, back;
        ck_assert_int_eq(cm_msg_pack(expected, &msg), 0);
        for (unsigned k = 0; k < layout[i].width; k++) {
            unsigned bit = (24 + layout[i].octet) * 8 + layout[i].bit + k;
            expected[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        }
        memset((uint8_t *)&msg + layout[i].member, 0xFF, size);
        ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
        ck_assert_msg(memcmp(mad, expected, sizeof(mad)) == 0, "%s", layout[i].what);
        ck_assert_uint_eq(cm_msg_bits(layout[i].attr, layout[i].member), layout[i].width);
        ck_assert_int_eq(cm_msg_unpack(&back, mad, sizeof(mad)), 0);
        if (layout[i].width < 32) {
            uint32_t most = (1u << layout[i].width) - 1;
            memcpy((uint8_t *)&msg + layout[i].member, &most, 4);
        }
        msg.priv_len = back.priv_len;
        ck_assert_msg(memcmp(&msg, &back, sizeof(msg)) == 0, "%s read", layout[i].what);
    }
    ck_assert_uint_eq(cm_msg_bits(CM_RTU, offsetof(struct cm_msg, tid)), 64);
    ck_assert_uint_eq(cm_msg_bits(CM_RTU, offsetof(struct cm_msg, attr_mod)), 32);
    ck_assert_uint_eq(cm_msg_bits(CM_RTU, offsetof(struct cm_msg, qpn)), 0);
    ck_assert_uint_eq(cm_msg_bits(0x99, offsetof(struct cm_msg, qpn)), 0);
}
END_TEST

/* CM-33: private data, and additional information where there is some (at 0: none). */
static const struct {
    uint16_t attr;
    unsigned priv, priv_len, ari;
} rooms[] = {
    {CM_REQ, 140, 92, 0}, {CM_MRA, 10, 222, 0},      {CM_REJ, 84, 148, 12},
    {CM_REP, 36, 196, 0}, {CM_RTU, 8, 224, 0},       {CM_DREQ, 12, 220, 0},
    {CM_DREP, 8, 224, 0}, {CM_SIDR_REQ, 16, 216, 0}, {CM_SIDR_REP, 96, 136, 24},
    {CM_LAP, 64, 168, 0}, {CM_APR, 84, 148, 12},
};

START_TEST(cm_33_where_private_data_is)
{
    struct cm_msg msg = {.attr = rooms[_i].attr, .priv_len = (uint16_t)rooms[_i].priv_len}, back;
    uint8_t mad[CM_MAD_LEN];
    ck_assert_uint_eq(cm_private_len(rooms[_i].attr), rooms[_i].priv_len);
    memset(msg.priv, 0x5A, rooms[_i].priv_len);
    if (rooms[_i].ari)
        memset(msg.ari, 0xA5, CM_ARI_LEN);
    ck_assert_int_eq(cm_msg_pack(mad, &msg), 0);
    for (unsigned i = 0; i < CM_MAD_LEN - 24; i++) {
        unsigned ari = i - rooms[_i].ari;
        ck_assert_uint_eq(mad[24 + i], i - rooms[_i].priv < rooms[_i].priv_len ? 0x5A
                                       : rooms[_i].ari && ari < CM_ARI_LEN     ? 0xA5
                                                                               : 0);
    }
    ck_assert_int_eq(cm_msg_unpack(&back, mad, sizeof(mad)), 0);
    ck_assert_mem_eq(&msg, &back, sizeof(msg));
    msg.priv_len++;
    ck_assert_int_eq(cm_msg_pack(mad, &msg), -EINVAL);
}
END_TEST

/* Every field of every layout survives, and no field touches another one. */
START_TEST(cm_fields_do_not_overlap)
{
    static const uint16_t attrs[] = {CM_REQ,  CM_MRA,      CM_REJ,      CM_REP, CM_RTU, CM_DREQ,
                                     CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_LAP, CM_APR};
    uint8_t ones[CM_MAD_LEN], again[CM_MAD_LEN];
    struct cm_msg msg, back;
    memset(ones, 0xFF, sizeof(ones));
    ones[0] = 1;
    ones[1] = CM_CLASS;
    ones[2] = CM_CLASS_VERSION;
    ones[3] = CM_METHOD_SEND;
    ones[16] = 0;
    ones[17] = (uint8_t)attrs[_i];
    ck_assert_int_eq(cm_msg_unpack(&msg, ones, sizeof(ones)), 0);
    ck_assert_int_eq(cm_msg_pack(again, &msg), 0);
    ck_assert_int_eq(cm_msg_unpack(&back, again, sizeof(again)), 0);
    ck_assert_mem_eq(&msg, &back, sizeof(msg));
}
END_TEST

/* CM packets of rxe: unpacked and packed again they are the same octets. */
START_TEST(cm_16_rxe_messages_round_trip)
{
    static const char *const files[] = {"cm-perftest.pcap", "cm-reject.pcap", "cm-rping.pcap",
                                        "cm-rping-ipv6.pcap", "cm-ucmatose.pcap"};
    char path[4096], err[PCAP_ERRBUF_SIZE];
    snprintf(path, sizeof(path), "%s/%s", getenv("URNIC_PCAPS"), files[_i]);
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
    ck_assert_int_gt(cm_msg_dump(line, sizeof(line), &msg), 0);
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
                        (int)(sizeof(ack_timeouts) / sizeof(ack_timeouts[0])));
    tcase_add_test(t, cm_01_service_ids);
    tcase_add_test(t, cm_02_ip_header);
    tcase_add_test(t, gsi_02_wrong_mads_are_refused);
    tcase_add_test(t, gsi_03_common_header);
    tcase_add_test(t, cm_33_private_data_is_zero_filled);
    tcase_add_test(t, cm_01_where_fields_are);
    tcase_add_loop_test(t, cm_33_where_private_data_is, 0, sizeof(rooms) / sizeof(rooms[0]));
    tcase_add_loop_test(t, cm_fields_do_not_overlap, 0, 11);
    tcase_add_loop_test(t, cm_16_rxe_messages_round_trip, 0, 5);
    tcase_add_test(t, cm_dump_is_one_line_without_private_data);
    suite_add_tcase(s, t);
    return unit_run(s);
}
