/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Translations of our libibverbs: work requests, address vectors, headers of datagrams, rates.
 */
#include <string.h>

#include "ah.h"
#include "post.h"
#include "qp_ex.h"
#include "unit.h"

/* Every opcode keeps its data and its other fields. */
START_TEST(requests)
{
    struct ibv_sge sge[2] = {{.addr = 1, .length = 2, .lkey = 3}, {.addr = 4, .length = 5}};
    struct ibv_send_wr wr = {.wr_id = 77, .sg_list = sge, .num_sge = 2, .send_flags = 0xF};
    struct urnic_send_wr out;
    wr.imm_data = 0x01020304;
    wr.wr.rdma.remote_addr = 0x1122334455667788;
    wr.wr.rdma.rkey = 9;
    static const enum ibv_wr_opcode rdma[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                              IBV_WR_RDMA_READ};
    for (unsigned i = 0; i < 3; i++) {
        wr.opcode = rdma[i];
        ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_RC), 0);
        ck_assert_int_eq((int)out.opcode, (int)rdma[i]);
        ck_assert_uint_eq(out.wr_id, 77);
        ck_assert_uint_eq(out.send_flags, 0xF);
        ck_assert_int_eq(out.num_sge, 2);
        ck_assert_uint_eq(out.sg_list[0].lkey, 3);
        ck_assert_uint_eq(out.sg_list[1].length, 5);
        ck_assert_uint_eq(out.imm_data, 0x01020304);
        ck_assert_uint_eq(out.rdma.remote_addr, 0x1122334455667788);
        ck_assert_uint_eq(out.rdma.rkey, 9);
        ck_assert_ptr_null(out.next);
    }
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.remote_addr = 8;
    wr.wr.atomic.compare_add = 10;
    wr.wr.atomic.swap = 11;
    wr.wr.atomic.rkey = 12;
    ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_RC), 0);
    ck_assert_uint_eq(out.atomic.remote_addr, 8);
    ck_assert_uint_eq(out.atomic.compare_add, 10);
    ck_assert_uint_eq(out.atomic.swap, 11);
    ck_assert_uint_eq(out.atomic.rkey, 12);
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = 13;
    ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_RC), 0);
    ck_assert_uint_eq(out.imm_data, 13);
    wr.opcode = IBV_WR_LOCAL_INV;
    ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_RC), 0);
    ck_assert_int_eq(out.num_sge, 0);
}
END_TEST

/* liburnic's opcode 10 is not the one of verbs, and a FLUSH has no fields in struct ibv_send_wr. */
START_TEST(foreign_opcodes)
{
    struct urnic_send_wr out;
    for (int op = IBV_WR_SEND_WITH_INV + 1; op < 20; op++) {
        struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)op};
        int rc = op == IBV_WR_ATOMIC_WRITE ? 0 : -EINVAL;
        ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_RC), rc);
        ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_UD), -EINVAL);
    }
}
END_TEST

START_TEST(datagrams)
{
    struct urnic_send_wr out;
    struct uv_ah ah = {.urnic = (struct urnic_ah *)&out};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    wr.wr.ud.ah = &ah.ah;
    wr.wr.ud.remote_qpn = 5;
    wr.wr.ud.remote_qkey = 6;
    ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_UD), 0);
    ck_assert_ptr_eq(out.ud.ah, ah.urnic);
    ck_assert_uint_eq(out.ud.remote_qpn, 5);
    ck_assert_uint_eq(out.ud.remote_qkey, 6);
    wr.wr.ud.ah = NULL;
    ck_assert_int_eq(uv_send_from(&out, &wr, IBV_QPT_UD), 0);
    ck_assert_ptr_null(out.ud.ah); /* which posting refuses */
}
END_TEST

START_TEST(binds)
{
    struct urnic_send_wr out;
    struct ibv_mw mw = {.rkey = 0x100};
    struct ibv_mr mr = {.lkey = 7};
    struct ibv_mw_bind_info info = {.mr = &mr,
                                    .addr = 0x1000,
                                    .length = 64,
                                    .mw_access_flags =
                                        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE};
    ck_assert_int_eq(uv_bind_from(&out, &mw, 0x101, &info), 0);
    ck_assert_uint_eq(out.bind_mw.mw_rkey, 0x100);
    ck_assert_uint_eq(out.bind_mw.new_rkey, 0x101);
    ck_assert_uint_eq(out.bind_mw.mr_lkey, 7);
    ck_assert_uint_eq(out.bind_mw.addr, 0x1000);
    ck_assert_uint_eq(out.bind_mw.length, 64);
    ck_assert_uint_eq(out.bind_mw.access, IBV_ACCESS_REMOTE_READ);
    ck_assert_int_eq(uv_bind_from(&out, NULL, 0x101, &info), -EINVAL);
    info.mr = NULL;
    ck_assert_int_eq(uv_bind_from(&out, &mw, 0x101, &info), -EINVAL);
    info.length = 0; /* takes it away */
    ck_assert_int_eq(uv_bind_from(&out, &mw, 0x101, &info), 0);
    /* Of a window of type 2 the program chooses the lowest octet alone. */
    mw.type = IBV_MW_TYPE_2;
    ck_assert_int_eq(uv_bind_from(&out, &mw, 0xABCDEF42, &info), 0);
    ck_assert_uint_eq(out.bind_mw.new_rkey, 0x142);
}
END_TEST

START_TEST(address_vectors)
{
    struct urnic_ah_attr u;
    struct ibv_ah_attr back;
    struct ibv_ah_attr a = {
        .grh = {.flow_label = 0x12345, .sgid_index = 3, .hop_limit = 9, .traffic_class = 0x68},
        .sl = 5,
        .is_global = 1,
        .port_num = 1,
    };
    memset(a.grh.dgid.raw, 0x5A, sizeof(a.grh.dgid.raw));
    ck_assert_int_eq(uv_ah_attr(&u, &a), 0);
    uv_ah_attr_back(&back, &u);
    ck_assert_mem_eq(&back, &a, sizeof(a));
    a.grh.flow_label = UINT32_MAX; /* a label has 20 bits */
    ck_assert_int_eq(uv_ah_attr(&u, &a), 0);
    ck_assert_uint_eq(u.flow_label, 0xFFFFF);
    a.is_global = 0; /* RoCE has no other addresses */
    ck_assert_int_eq(uv_ah_attr(&u, &a), -EINVAL);
    a.is_global = 1;
    a.port_num = 2;
    ck_assert_int_eq(uv_ah_attr(&u, &a), -EINVAL);
}
END_TEST

START_TEST(headers_of_datagrams)
{
    uint8_t h[40] = {0};
    struct uv_grh g;
    static const uint8_t v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1};
    h[20] = 0x45;
    h[21] = 0x6B; /* its ECN bits don't come back */
    memcpy(h + 32, (const uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}, 8);
    uv_grh_addresses((struct ibv_grh *)(void *)h, &g);
    ck_assert_mem_eq(g.src, v4, 16);
    ck_assert_uint_eq(g.dst[15], 2);
    ck_assert_uint_eq(g.tclass, 0x68);
    memset(h, 0, sizeof(h));
    memcpy(h, (const uint8_t[]){0x66, 0x81, 0x23, 0x45}, 4);
    h[8] = 0xFD;
    h[24] = 0xFE;
    uv_grh_addresses((struct ibv_grh *)(void *)h, &g);
    ck_assert_uint_eq(g.src[0], 0xFD);
    ck_assert_uint_eq(g.dst[0], 0xFE);
    ck_assert_uint_eq(g.tclass, 0x68);
    ck_assert_uint_eq(g.flow_label, 0x12345);
}
END_TEST

/* Operations that a type of queue pair lacks are refused before a program calls a missing function.
 */
START_TEST(operations)
{
    ck_assert_int_eq(uv_ops_check(IBV_QPT_RC, 0x1FFF & ~IBV_QP_EX_WITH_TSO), 0);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_RC, IBV_QP_EX_WITH_TSO), -EOPNOTSUPP);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_RC, 1u << 13), -EOPNOTSUPP);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE), -EOPNOTSUPP);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_UC, 1u << 11), -EOPNOTSUPP);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), -EOPNOTSUPP);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_IMM), 0);
    ck_assert_int_eq(uv_ops_check(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), -EOPNOTSUPP);
}
END_TEST

START_TEST(rates)
{
    for (int r = IBV_RATE_2_5_GBPS; r <= IBV_RATE_1200_GBPS; r++) {
        ck_assert_int_eq((int)mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)r)), r);
        ck_assert_int_gt(ibv_rate_to_mult((enum ibv_rate)r), 0);
    }
    ck_assert_int_eq(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
    ck_assert_int_eq((int)mult_to_ibv_rate(40), (int)IBV_RATE_100_GBPS);
    ck_assert_int_eq(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
    ck_assert_int_eq((int)mult_to_ibv_rate(3), (int)IBV_RATE_MAX);
}
END_TEST

UNIT_MAIN("verbs", requests, foreign_opcodes, datagrams, binds, address_vectors,
          headers_of_datagrams, operations, rates)
