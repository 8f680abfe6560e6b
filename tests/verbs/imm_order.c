/* SPDX-License-Identifier: BSD-3-Clause
 *
 * imm_order: immediate data travels as four bytes (network order, never swapped), only with
 * WITH_IMM is the flag set, WRITE_WITH_IMM reports the length written, consumes receives in order,
 * and its data is there at the completion. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "imm_order");
    struct vt_end a, b;
    struct ibv_wc wc;
    struct vt_cfg c = VT_RC;
    c.len = 5 << 20;
    vt_pair(&a, &b, &c);
    static const unsigned char v[5][4] = {
        {1, 2, 3, 4}, {0xff, 0, 0, 0}, {0, 0, 0, 0x80}, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}};
    for (int i = 0; i < 40; i++)
        OK0(vt_recv(&b, i, b.buf + 64 * i, 64));
    int rid = 0;
    for (int i = 0; i < 5; i++) {
        uint32_t imm;
        memcpy(&imm, v[i], 4);
        OK0(vt_post(&a, IBV_WR_SEND_WITH_IMM, 1, a.buf, 5, IBV_SEND_SIGNALED, 0, 0, imm));
        vt_want(a.scq, "SEND_WITH_IMM", 1, IBV_WC_SUCCESS, IBV_WC_SEND);
        wc = vt_want(b.rcq, "SEND_WITH_IMM", rid++, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT((wc.wc_flags & IBV_WC_WITH_IMM) && !memcmp(&wc.imm_data, v[i], 4) && wc.byte_len == 5,
             "flags %x imm %08x len %u, expected WITH_IMM %08x 5", wc.wc_flags, ntohl(wc.imm_data),
             wc.byte_len, ntohl(imm));
        OK0(vt_post(&a, IBV_WR_SEND, 2, a.buf, 6, IBV_SEND_SIGNALED, 0, 0, imm));
        vt_want(a.scq, "SEND", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
        wc = vt_want(b.rcq, "SEND", rid++, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(!(wc.wc_flags & IBV_WC_WITH_IMM) && wc.byte_len == 6,
             "plain SEND: flags %x len %u, expected no WITH_IMM, 6", wc.wc_flags, wc.byte_len);
        unsigned len = i == 4 ? 3 << 20 : 1000 + i;
        size_t off = 1 << 20;
        vt_fill(a.buf + off, len, i);
        memset(b.buf + off, 0xcc, len + 1);
        OK0(vt_post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, a.buf + off, len, 0, (uintptr_t)b.buf + off,
                    b.mr->rkey, imm));
        OK0(vt_post(&a, IBV_WR_SEND, 4, NULL, 0, IBV_SEND_SIGNALED, 0, 0, 0));
        wc = vt_want(b.rcq, "WRITE_WITH_IMM", rid++, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
        SAME(b.buf + off, len, i, "data of WRITE_WITH_IMM at its completion");
        WANT((wc.wc_flags & IBV_WC_WITH_IMM) && !memcmp(&wc.imm_data, v[i], 4),
             "WRITE_WITH_IMM: flags %x imm %08x, expected WITH_IMM %08x", wc.wc_flags,
             ntohl(wc.imm_data), ntohl(imm));
        WANT(wc.byte_len == len, "WRITE_WITH_IMM: byte_len %u, expected %u", wc.byte_len, len);
        WANT(wc.qp_num == b.qp->qp_num, "qp_num %x, expected %x", wc.qp_num, b.qp->qp_num);
        vt_want(b.rcq, "empty SEND after it", rid++, IBV_WC_SUCCESS, IBV_WC_RECV);
        vt_want(a.scq, "empty SEND after it", 4, IBV_WC_SUCCESS, IBV_WC_SEND);
        if (len < 3 << 20)
            WANT((unsigned char)b.buf[off + len] == 0xcc, "byte after the write changed");
    }
    /* the receive's own buffer is not touched by WRITE_WITH_IMM */
    memset(b.buf + 64 * rid, 0x44, 64);
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 5, a.buf, 64, IBV_SEND_SIGNALED,
                (uintptr_t)b.buf + 32768, b.mr->rkey, 0));
    vt_want(a.scq, "WRITE_WITH_IMM", 5, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    vt_want(b.rcq, "WRITE_WITH_IMM", rid, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
    for (int i = 0; i < 64; i++)
        WANT(b.buf[64 * rid + i] == 0x44, "WRITE_WITH_IMM wrote into the receive buffer");
    vt_pass(NULL);
}
