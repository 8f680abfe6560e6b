/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's rdma_ucm ABI: addresses, connection parameters, paths, queue pair attributes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ucma_abi.h"
#include "unit.h"

static union ucma_addr ip4(const char *text, uint16_t port)
{
    union ucma_addr a = {.in = {.sin_family = AF_INET, .sin_port = htons(port)}};
    ck_assert_int_eq(inet_pton(AF_INET, text, &a.in.sin_addr), 1);
    return a;
}

static union ucma_addr ip6(const char *text, uint16_t port)
{
    union ucma_addr a = {.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    ck_assert_int_eq(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
    return a;
}

/* An address is taken when all of it is there, and only of families that RoCE has. */
START_TEST(addresses_taken)
{
    const union ucma_addr a = ip4("10.0.0.1", 7471), b = ip6("fd00::1", 7472);
    const struct sockaddr_un {
        sa_family_t family;
        char path[108];
    } un = {.family = AF_UNIX};
    static const struct {
        int family, size, err;
    } rows[] = {
        {AF_INET, sizeof(struct sockaddr_in), 0},
        {AF_INET, sizeof(struct sockaddr_in) - 1, -EINVAL},
        {AF_INET, sizeof(struct sockaddr_in6), 0},
        {AF_INET6, sizeof(struct sockaddr_in6), 0},
        {AF_INET6, sizeof(struct sockaddr_in6) - 1, -EINVAL},
        {AF_INET6, sizeof(struct sockaddr_in), -EINVAL},
        {AF_INET, 1, -EINVAL},
        {AF_INET, 0, -EINVAL},
    };
    union ucma_addr to;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sockaddr_storage from = {0};
        memcpy(&from, rows[i].family == AF_INET ? &a : &b, sizeof(a));
        ck_assert_int_eq(ucma_addr_take(&to, &from, (size_t)rows[i].size), rows[i].err);
    }
    ck_assert_int_eq(ucma_addr_take(&to, &un, sizeof(un)), -EINVAL);
    ck_assert_int_eq(ucma_addr_take(&to, &a, sizeof(a)), 0);
    ck_assert_mem_eq(&to, &a, sizeof(a.in));
    ck_assert_uint_eq(ucma_addr_port(&to), 7471);
    ck_assert_int_eq(ucma_addr_take(&to, &b, sizeof(b)), 0);
    ck_assert_mem_eq(&to, &b, sizeof(b.in6));
}
END_TEST

/* An answer's field is filled with zeros after the address, and never written past its end. */
START_TEST(addresses_put)
{
    const union ucma_addr a = ip4("10.0.0.1", 7471), b = ip6("fd00::1", 7472), none = {0};
    uint8_t field[40];
    memset(field, 0xEE, sizeof(field));
    ck_assert_uint_eq(ucma_addr_put(&a, field, 28), sizeof(a.in));
    ck_assert_mem_eq(field, &a.in, sizeof(a.in));
    for (unsigned i = sizeof(a.in); i < 28; i++)
        ck_assert_uint_eq(field[i], 0);
    ck_assert_uint_eq(field[28], 0xEE);
    ck_assert_uint_eq(ucma_addr_put(&b, field, 28), sizeof(b.in6));
    ck_assert_mem_eq(field, &b.in6, sizeof(b.in6));
    ck_assert_uint_eq(ucma_addr_put(&b, field, 16), 16);
    ck_assert_uint_eq(ucma_addr_put(&none, field, 28), 0);
    ck_assert_uint_eq(field[0], 0);
}
END_TEST

/* Sixteen octets and back; IPv4 is mapped. */
START_TEST(addresses_and_gids)
{
    static const uint8_t mapped[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 10, [15] = 9};
    union ucma_addr a = ip4("10.0.0.9", 4791), back;
    uint8_t gid[16];
    ucma_addr_gid(&a, gid);
    ck_assert_mem_eq(gid, mapped, 16);
    ucma_addr_from_gid(&back, gid, 4791);
    ck_assert_mem_eq(&back, &a, sizeof(a.in));
    a = ip6("fe80::1234", 1);
    ucma_addr_gid(&a, gid);
    ucma_addr_from_gid(&back, gid, 1);
    ck_assert_mem_eq(&back, &a, sizeof(a.in6));
    ucma_addr_set_port(&back, 65535);
    ck_assert_uint_eq(ucma_addr_port(&back), 65535);
    memset(&a, 0, sizeof(a));
    ucma_addr_gid(&a, gid);
    ck_assert_uint_eq(gid[15], 0);
    ck_assert_uint_eq(ucma_addr_port(&a), 0);
}
END_TEST

START_TEST(kinds_of_addresses)
{
    static const struct {
        const char *text;
        bool zero, loopback, multicast;
    } rows[] = {
        {"0.0.0.0", true, false, false},    {"127.0.0.1", false, true, false},
        {"127.9.8.7", false, true, false},  {"128.0.0.1", false, false, false},
        {"223.1.1.1", false, false, false}, {"224.0.0.1", false, false, true},
        {"239.1.2.3", false, false, true},  {"240.0.0.1", false, false, false},
        {"::", true, false, false},         {"::1", false, true, false},
        {"ff02::1", false, false, true},    {"fe80::1", false, false, false},
    };
    const union ucma_addr none = {0};
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *t = rows[i].text;
        union ucma_addr a = strchr(t, ':') != NULL ? ip6(t, 1) : ip4(t, 1);
        ck_assert_msg(ucma_addr_is_zero(&a) == rows[i].zero, "%s: zero", t);
        ck_assert_msg(ucma_addr_is_loopback(&a) == rows[i].loopback, "%s: loopback", t);
        ck_assert_msg(ucma_addr_is_multicast(&a) == rows[i].multicast, "%s: multicast", t);
    }
    ck_assert(ucma_addr_is_zero(&none));
    ck_assert(!ucma_addr_is_loopback(&none) && !ucma_addr_is_multicast(&none));
    for (int i = 0; i < 2; i++) {
        union ucma_addr a;
        ucma_addr_loopback(&a, i == 0 ? AF_INET : AF_INET6, 77);
        ck_assert(ucma_addr_is_loopback(&a));
        ck_assert_uint_eq(ucma_addr_port(&a), 77);
    }
}
END_TEST

START_TEST(common_bits)
{
    uint8_t a[16] = {0x80}, b[16] = {0x80};
    ck_assert_uint_eq(ucma_common_bits(a, b), 128);
    b[15] = 1;
    ck_assert_uint_eq(ucma_common_bits(a, b), 127);
    b[0] = 0x81;
    ck_assert_uint_eq(ucma_common_bits(a, b), 7);
    b[0] = 0;
    ck_assert_uint_eq(ucma_common_bits(a, b), 0);
}
END_TEST

/* Retry counts are fields of three bits, as the kernel takes them. */
START_TEST(connection_parameters)
{
    struct rdma_ucm_conn_param in = {.qp_num = 0x123,
                                     .qkey = 0x456,
                                     .private_data_len = 5,
                                     .responder_resources = 3,
                                     .initiator_depth = 4,
                                     .retry_count = 15,
                                     .rnr_retry_count = 8};
    struct urnic_conn_param out;
    memcpy(in.private_data, "hello", 5);
    ucma_conn_param(&out, &in, 0x20);
    ck_assert_uint_eq(out.qp_num, 0x123);
    ck_assert_uint_eq(out.qkey, 0x456);
    ck_assert_ptr_eq(out.private_data, in.private_data);
    ck_assert_uint_eq(out.private_data_len, 5);
    ck_assert_uint_eq(out.responder_resources, 3);
    ck_assert_uint_eq(out.initiator_depth, 4);
    ck_assert_uint_eq(out.retry_count, 7);
    ck_assert_uint_eq(out.rnr_retry_count, 0);
    ck_assert(out.retry_counts_set);
    ck_assert_uint_eq(out.tclass, 0x20);
}
END_TEST

/* An event's private data of any length fits into the answer. */
START_TEST(event_parameters)
{
    static const unsigned lengths[] = {0, 1, 196, 255, 256, 70000};
    struct urnic_cm_event in = {.qp_num = 7,
                                .qkey = 8,
                                .responder_resources = 9,
                                .initiator_depth = 10,
                                .retry_count = 6,
                                .rnr_retry_count = 5,
                                .ah = {.dgid = {0xFD}, .sgid_index = 3, .hop_limit = 64}};
    for (unsigned i = 0; i < sizeof(in.private_data); i++)
        in.private_data[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct rdma_ucm_event_resp conn = {0}, ud = {0};
        unsigned want = lengths[i] < 255 ? lengths[i] : 255;
        in.private_data_len = lengths[i];
        ucma_event_param(&conn, &in, false);
        ck_assert_uint_eq(conn.param.conn.private_data_len, want);
        ck_assert_mem_eq(conn.param.conn.private_data, in.private_data, want);
        ck_assert_uint_eq(conn.param.conn.qp_num, 7);
        ck_assert_uint_eq(conn.param.conn.responder_resources, 9);
        ck_assert_uint_eq(conn.param.conn.initiator_depth, 10);
        ck_assert_uint_eq(conn.param.conn.retry_count, 6);
        ck_assert_uint_eq(conn.param.conn.rnr_retry_count, 5);
        ucma_event_param(&ud, &in, true);
        ck_assert_uint_eq(ud.param.ud.private_data_len, want);
        ck_assert_mem_eq(ud.param.ud.private_data, in.private_data, want);
        ck_assert_uint_eq(ud.param.ud.qkey, 8);
        ck_assert_uint_eq(ud.param.ud.ah_attr.grh.dgid[0], 0xFD);
        ck_assert_uint_eq(ud.param.ud.ah_attr.grh.sgid_index, 3);
        ck_assert_uint_eq(ud.param.ud.ah_attr.is_global, 1);
        ck_assert_uint_eq(ud.param.ud.ah_attr.port_num, 1);
    }
}
END_TEST

START_TEST(groups)
{
    const union ucma_addr group = ip4("224.0.0.9", 0);
    struct rdma_ucm_event_resp resp = {0};
    uint8_t gid[16];
    ucma_addr_gid(&group, gid);
    ucma_group_param(&resp, &group, 2);
    ck_assert_uint_eq(resp.param.ud.qp_num, 0xFFFFFF);
    ck_assert_uint_eq(resp.param.ud.qkey, 0x01234567);
    ck_assert_mem_eq(resp.param.ud.ah_attr.grh.dgid, gid, 16);
    ck_assert_uint_eq(resp.param.ud.ah_attr.grh.sgid_index, 2);
}
END_TEST

START_TEST(queue_pair_attributes)
{
    const struct urnic_qp_attr in = {.qp_state = URNIC_QPS_RTR,
                                     .ah_attr = {.dgid = {0xFE}, .sl = 3, .flow_label = 0xABCDE},
                                     .rq_psn = 0x111,
                                     .dest_qp_num = 0x222,
                                     .path_mtu = URNIC_MTU_1024,
                                     .max_dest_rd_atomic = 4,
                                     .min_rnr_timer = 12,
                                     .port_num = 1};
    struct ib_uverbs_qp_attr out;
    memset(&out, 0xEE, sizeof(out));
    ucma_qp_attr(&out, &in, URNIC_QP_STATE | URNIC_QP_AV);
    ck_assert_uint_eq(out.qp_attr_mask, URNIC_QP_STATE | URNIC_QP_AV);
    ck_assert_uint_eq(out.qp_state, URNIC_QPS_RTR);
    ck_assert_uint_eq(out.rq_psn, 0x111);
    ck_assert_uint_eq(out.dest_qp_num, 0x222);
    ck_assert_uint_eq(out.path_mtu, URNIC_MTU_1024);
    ck_assert_uint_eq(out.max_dest_rd_atomic, 4);
    ck_assert_uint_eq(out.min_rnr_timer, 12);
    ck_assert_uint_eq(out.ah_attr.grh.dgid[0], 0xFE);
    ck_assert_uint_eq(out.ah_attr.grh.flow_label, 0xABCDE);
    ck_assert_uint_eq(out.ah_attr.sl, 3);
    ck_assert_uint_eq(out.alt_ah_attr.is_global, 0);
    ucma_qp_attr(&out, &in, URNIC_QP_STATE); /* no address without its bit */
    ck_assert_uint_eq(out.ah_attr.is_global, 0);
}
END_TEST

/* Both formats say the same; of a path that isn't resolved only the ends are known. */
START_TEST(paths)
{
    struct ucma_path path = {.sgid = {1}, .dgid = {2}, .mtu = 3, .tclass = 0x40, .resolved = true};
    struct ib_user_path_rec rec;
    uint8_t sa[64];
    ucma_path_rec(&rec, &path);
    ucma_path_sa((uint32_t *)(void *)sa, &path);
    ck_assert_uint_eq(rec.dgid[0], 2);
    ck_assert_uint_eq(rec.sgid[0], 1);
    ck_assert_uint_eq(rec.mtu, 3);
    ck_assert_uint_eq(rec.traffic_class, 0x40);
    ck_assert_uint_eq(rec.numb_path, 1);
    ck_assert_uint_eq(ntohs(rec.pkey), 0xFFFF);
    ck_assert_uint_eq(sa[8], 2);
    ck_assert_uint_eq(sa[24], 1);
    ck_assert_uint_eq(sa[47], rec.hop_limit);
    ck_assert_uint_eq(sa[48], 0x40);
    ck_assert_uint_eq(sa[54] & 0x3F, 3);
    ck_assert_uint_eq(sa[55] & 0x3F, rec.rate);
    ck_assert_uint_eq(sa[56] & 0x3F, rec.packet_life_time);
    path.resolved = false;
    ucma_path_rec(&rec, &path);
    ck_assert_uint_eq(rec.dgid[0], 2);
    ck_assert_uint_eq(rec.mtu, 0);
    ck_assert_uint_eq(rec.numb_path, 0);
}
END_TEST

UNIT_MAIN("ucma_abi", addresses_taken, addresses_put, addresses_and_gids, kinds_of_addresses,
          common_bits, connection_parameters, event_parameters, groups, queue_pair_attributes,
          paths)
