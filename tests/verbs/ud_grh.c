/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ud_grh: a UD receive has 40 bytes in front (byte_len counts them, IBV_WC_GRH set); with RoCE v2
 * over IPv4 bytes 20 to 39 are the IPv4 header with the sender's address; ibv_init_ah_from_wc and
 * ibv_create_ah_from_wc give a handle that reaches it. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "ud_grh");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_wc wc;
    struct ibv_send_wr *bad;
    c.type = IBV_QPT_UD;
    c.inl = 32;
    vt_end(&a, 0, &c);
    vt_end(&b, 1, &c);
    vt_up(&a, 0, NULL);
    vt_up(&b, 0, NULL);
    struct ibv_ah_attr aa = {
        .is_global = 1,
        .port_num = vt.port,
        .grh = {.dgid = vt.gid[1], .sgid_index = vt.gidx[0], .hop_limit = 64, .traffic_class = 0}};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &aa);
    WANT(ah, "ibv_create_ah failed, errno %d", errno);
    int max = 128 << vt.mtu;
    int lens[] = {0, 1, 30, 1000, max};
    for (int i = 0; i < 5; i++) {
        memset(b.buf, 0xcc, 40 + max + 8);
        OK0(vt_recv(&b, i, b.buf, 40 + max));
        vt_fill(a.buf, lens[i], i);
        struct ibv_sge s = {(uintptr_t)a.buf, lens[i], a.mr->lkey};
        struct ibv_send_wr w = {.wr_id = i,
                                .sg_list = &s,
                                .num_sge = 1,
                                .opcode = i == 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                                .imm_data = htonl(0x55667788),
                                .send_flags = IBV_SEND_SIGNALED | (i == 2 ? IBV_SEND_INLINE : 0)};
        w.wr.ud.ah = ah;
        w.wr.ud.remote_qpn = b.qp->qp_num;
        w.wr.ud.remote_qkey = 0x11223344;
        OK0(ibv_post_send(a.qp, &w, &bad));
        vt_want(a.scq, "UD send", i, IBV_WC_SUCCESS, IBV_WC_SEND);
        wc = vt_want(b.rcq, "UD receive", i, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(wc.byte_len == 40u + lens[i], "byte_len %u, expected %d", wc.byte_len, 40 + lens[i]);
        WANT(wc.wc_flags & IBV_WC_GRH, "wc_flags %x, expected IBV_WC_GRH", wc.wc_flags);
        WANT(wc.src_qp == a.qp->qp_num && wc.qp_num == b.qp->qp_num,
             "src_qp %x qp_num %x, expected %x %x", wc.src_qp, wc.qp_num, a.qp->qp_num,
             b.qp->qp_num);
        if (i == 1)
            WANT((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htonl(0x55667788),
                 "imm missing");
        else
            WANT(!(wc.wc_flags & IBV_WC_WITH_IMM), "WITH_IMM on a plain message");
        SAME(b.buf + 40, lens[i], i, "UD data");
        WANT((unsigned char)b.buf[40 + lens[i]] == 0xcc || lens[i] == max,
             "byte after the message changed");
        unsigned char *ip = (unsigned char *)b.buf + 20;
        WANT(ip[0] == 0x45 && ip[9] == 17,
             "bytes 20.. of the GRH area: %02x .. protocol %u, expected an IPv4 header (45, 17)",
             ip[0], ip[9]);
        WANT(!memcmp(ip + 12, vt.gid[0].raw + 12, 4) && !memcmp(ip + 16, vt.gid[1].raw + 12, 4),
             "IPv4 header %u.%u.%u.%u to %u.%u.%u.%u, expected %s to %s", ip[12], ip[13], ip[14],
             ip[15], ip[16], ip[17], ip[18], ip[19], vt.ip[0], vt.ip[1]);
    }
    struct ibv_ah_attr ra;
    memset(&ra, 0, sizeof(ra));
    OK0(ibv_init_ah_from_wc(b.ctx, vt.port, &wc, (struct ibv_grh *)b.buf, &ra));
    WANT(
        ra.is_global == 1 && !memcmp(&ra.grh.dgid, &vt.gid[0], 16),
        "ibv_init_ah_from_wc: is_global %d or the wrong GID, expected the sender's IPv4-mapped GID",
        ra.is_global);
    WANT(ra.grh.sgid_index == vt.gidx[1], "ibv_init_ah_from_wc: sgid_index %u, expected %d",
         ra.grh.sgid_index, vt.gidx[1]);
    struct ibv_ah *back = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.buf, vt.port);
    WANT(back, "ibv_create_ah_from_wc failed, errno %d (%s)", errno, strerror(errno));
    OK0(vt_recv(&a, 9, a.buf, 200));
    struct ibv_sge s = {(uintptr_t)b.buf + 40, 20, b.mr->lkey};
    struct ibv_send_wr w = {.wr_id = 8,
                            .sg_list = &s,
                            .num_sge = 1,
                            .opcode = IBV_WR_SEND,
                            .send_flags = IBV_SEND_SIGNALED};
    w.wr.ud.ah = back;
    w.wr.ud.remote_qpn = wc.src_qp;
    w.wr.ud.remote_qkey = 0x11223344;
    OK0(ibv_post_send(b.qp, &w, &bad));
    vt_want(b.scq, "reply", 8, IBV_WC_SUCCESS, IBV_WC_SEND);
    wc = vt_want(a.rcq, "reply", 9, IBV_WC_SUCCESS, IBV_WC_RECV);
    WANT(wc.byte_len == 60, "reply byte_len %u, expected 60", wc.byte_len);
    OK0(ibv_destroy_ah(back));
    OK0(ibv_destroy_ah(ah));
    vt_pass(NULL);
}
