/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port_attr: what UCX, NCCL, perftest and MPI read from ibv_query_port / ibv_query_device(_ex) and
 * act on. */
#include "vt.h"
static int flag_count(unsigned v)
{
    int n = 0;
    for (; v; v &= v - 1)
        n++;
    return n;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "port_attr");
    for (int s = 0; s < 2; s++) {
        struct ibv_port_attr p;
        memset(&p, 0xee, sizeof(p));
        OK0(ibv_query_port(vt.ctx[s], vt.port, &p));
        WANT(p.state == IBV_PORT_ACTIVE, "state %d, expected IBV_PORT_ACTIVE (4)", p.state);
        WANT(p.link_layer == IBV_LINK_LAYER_ETHERNET, "link_layer %d, expected Ethernet (2)",
             p.link_layer);
        WANT(p.max_mtu >= IBV_MTU_256 && p.max_mtu <= IBV_MTU_4096, "max_mtu %d, expected 1 to 5",
             p.max_mtu);
        WANT(p.active_mtu >= IBV_MTU_256 && p.active_mtu <= p.max_mtu,
             "active_mtu %d with max_mtu %d", p.active_mtu, p.max_mtu);
        WANT(p.gid_tbl_len > 0 && p.pkey_tbl_len > 0,
             "gid_tbl_len %d pkey_tbl_len %d, expected > 0", p.gid_tbl_len, p.pkey_tbl_len);
        WANT(p.max_msg_sz >= 1u << 20 && p.max_msg_sz <= 1u << 31,
             "max_msg_sz %u, expected 2^20 to 2^31", p.max_msg_sz);
        WANT(flag_count(p.active_width) == 1, "active_width %u, expected one of 1 2 4 8 16",
             p.active_width);
        WANT(flag_count(p.active_speed) == 1,
             "active_speed %u, expected one flag (1 2 4 8 16 32 64)", p.active_speed);
        WANT(p.phys_state == 5, "phys_state %u, expected LinkUp (5)", p.phys_state);
        WANT(p.port_cap_flags & IBV_PORT_CM_SUP,
             "port_cap_flags %x, expected IBV_PORT_CM_SUP (0x10000)", p.port_cap_flags);
        WANT(p.lid == 0 && p.lmc == 0, "lid %u lmc %u, expected 0 on Ethernet", p.lid, p.lmc);
        __be16 pk = 0;
        OK0(ibv_query_pkey(vt.ctx[s], vt.port, 0, &pk));
        WANT(pk == 0xffff, "P_Key[0] %04x, expected ffff", ntohs(pk));
        WANT(ibv_get_pkey_index(vt.ctx[s], vt.port, htons(0xffff)) == 0,
             "ibv_get_pkey_index(ffff) not 0");
        WANT(ibv_query_port(vt.ctx[s], 0, &p), "port 0 gave 0, expected an error");
        WANT(ibv_query_port(vt.ctx[s], 77, &p), "port 77 gave 0, expected an error");
    }
    struct ibv_device_attr d;
    memset(&d, 0xee, sizeof(d));
    OK0(ibv_query_device(vt.ctx[0], &d));
    struct ibv_device_attr_ex x;
    memset(&x, 0xee, sizeof(x));
    OK0(ibv_query_device_ex(vt.ctx[0], NULL, &x));
    struct ibv_device_attr *y = &x.orig_attr;
    WANT(d.node_guid == y->node_guid && d.max_mr_size == y->max_mr_size && d.max_qp == y->max_qp &&
             d.max_qp_wr == y->max_qp_wr && d.device_cap_flags == y->device_cap_flags &&
             d.max_sge == y->max_sge && d.max_cqe == y->max_cqe && d.max_mr == y->max_mr &&
             d.max_qp_rd_atom == y->max_qp_rd_atom && d.atomic_cap == y->atomic_cap &&
             d.max_srq_wr == y->max_srq_wr && d.phys_port_cnt == y->phys_port_cnt &&
             !strcmp(d.fw_ver, y->fw_ver),
         "ibv_query_device and ibv_query_device_ex differ");
    WANT(d.max_qp >= 1000 && d.max_cq >= 1000 && d.max_mr >= 10000 && d.max_pd >= 16,
         "max_qp %d max_cq %d max_mr %d max_pd %d, expected >= 1000 1000 10000 16", d.max_qp,
         d.max_cq, d.max_mr, d.max_pd);
    WANT(d.max_qp_wr >= 1024 && d.max_cqe >= 4096 && d.max_sge >= 3,
         "max_qp_wr %d max_cqe %d max_sge %d, expected >= 1024 4096 3", d.max_qp_wr, d.max_cqe,
         d.max_sge);
    WANT(d.max_qp_rd_atom >= 1 && d.max_qp_init_rd_atom >= 1,
         "max_qp_rd_atom %d max_qp_init_rd_atom %d, expected >= 1", d.max_qp_rd_atom,
         d.max_qp_init_rd_atom);
    WANT(d.max_mr_size >= 1ull << 32, "max_mr_size %llx, expected >= 4 GiB",
         (unsigned long long)d.max_mr_size);
    WANT(d.page_size_cap & 4096, "page_size_cap %llx lacks 4096",
         (unsigned long long)d.page_size_cap);
    WANT(d.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN, "device_cap_flags %x lack RC_RNR_NAK_GEN",
         d.device_cap_flags);
    WANT(memchr(d.fw_ver, 0, sizeof(d.fw_ver)), "fw_ver is not a string");
    /* the limits must be usable as they are, as perftest and SPDK do */
    struct vt_end e;
    struct vt_cfg c = VT_RC;
    c.noqp = 1;
    c.len = 4096;
    vt_end(&e, 0, &c);
    struct ibv_cq *cq =
        ibv_create_cq(vt.ctx[0], d.max_cqe < 16384 ? d.max_cqe : 16384, NULL, NULL, 0);
    WANT(cq, "ibv_create_cq(min(max_cqe, 16384)) failed, errno %d", errno);
    struct ibv_qp_init_attr ia = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {1024, 1024, d.max_sge < 16 ? d.max_sge : 16, d.max_sge < 16 ? d.max_sge : 16, 0}};
    struct ibv_qp *qp = ibv_create_qp(e.pd, &ia);
    WANT(qp, "ibv_create_qp(1024 WRs, min(max_sge, 16) SGEs) failed, errno %d", errno);
    WANT(ia.cap.max_send_wr >= 1024 && ia.cap.max_recv_wr >= 1024,
         "caps given back %u %u, expected >= 1024", ia.cap.max_send_wr, ia.cap.max_recv_wr);
    ia.cap.max_send_wr = d.max_qp_wr + 1;
    errno = 0;
    WANT(!ibv_create_qp(e.pd, &ia) && errno,
         "max_qp_wr + 1 accepted or errno 0, expected an error");
    vt_pass("mtu %d", 128 << vt.mtu);
}
