/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sgl: scatter and gather over many SGEs of odd lengths that cross packets on both sides, more room
 * than data in the receive, WRITE gathers, READ scatters, an SGE of length 0 in the middle, several
 * regions in one list. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "sgl");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_wc wc;
    struct ibv_send_wr *bad;
    struct ibv_recv_wr *badr;
    int n = vt.attr.max_sge < 12 ? vt.attr.max_sge : 12;
    c.ssge = c.rsge = n;
    c.len = 1 << 20;
    vt_pair(&a, &b, &c);
    WANT((int)a.cap.max_send_sge >= n && (int)b.cap.max_recv_sge >= n,
         "max_send_sge %u max_recv_sge %u, expected >= %d", a.cap.max_send_sge, b.cap.max_recv_sge,
         n);
    struct ibv_mr *m2 = ibv_reg_mr(a.pd, a.buf + 524288, 262144, IBV_ACCESS_LOCAL_WRITE);
    WANT(m2, "second region over the same memory refused, errno %d", errno);
    struct ibv_sge sa[16], sb[16];
    static unsigned char flat[1 << 20];
    for (int round = 0; round < 12; round++) {
        unsigned total = 0, room = 0;
        unsigned seed = round + 1;
        size_t pa = 524288 + round % 3, pb = 3 + round % 5;
        for (int i = 0; i < n; i++) {
            unsigned len = rand_r(&seed) % (round < 4 ? 17 : round < 8 ? 3000 : 20000);
            if (i == 1)
                len = 0;
            sa[i] = (struct ibv_sge){(uintptr_t)a.buf + pa, len, i & 1 ? m2->lkey : a.mr->lkey};
            vt_fill(a.buf + pa, len, seed & 255);
            memcpy(flat + total, a.buf + pa, len);
            pa += len + 1;
            total += len;
        }
        for (int i = 0; i < n; i++) {
            unsigned len = i == n - 1 ? total + 50 - (room > total ? total : room)
                                      : rand_r(&seed) % (total / n * 2 + 2);
            sb[i] = (struct ibv_sge){(uintptr_t)b.buf + pb, len, b.mr->lkey};
            memset(b.buf + pb, 0xdd, len + 3);
            pb += len + 3;
            room += len;
        }
        struct ibv_recv_wr r = {.wr_id = 1, .sg_list = sb, .num_sge = n};
        struct ibv_send_wr w = {.wr_id = 2,
                                .sg_list = sa,
                                .num_sge = n,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED};
        OK0(ibv_post_recv(b.qp, &r, &badr));
        OK0(ibv_post_send(a.qp, &w, &bad));
        vt_want(a.scq, "SEND from a list", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
        wc = vt_want(b.rcq, "receive into a list", 1, IBV_WC_SUCCESS, IBV_WC_RECV);
        WANT(wc.byte_len == total, "byte_len %u, expected %u", wc.byte_len, total);
        unsigned at = 0;
        for (int i = 0; i < n; i++) {
            unsigned len = sb[i].length < total - at ? sb[i].length : total - at;
            unsigned char *p = (void *)(uintptr_t)sb[i].addr;
            WANT(!memcmp(p, flat + at, len), "round %d: piece %d of the receive differs", round, i);
            for (unsigned k = len; k < sb[i].length + 3; k++)
                WANT(p[k] == 0xdd, "round %d: byte %u after piece %d changed", round, k, i);
            at += len;
        }
        memset(b.buf + 500001, 0, total + 1);
        w.opcode = IBV_WR_RDMA_WRITE;
        w.wr.rdma.remote_addr = (uintptr_t)b.buf + 500001;
        w.wr.rdma.rkey = b.mr->rkey;
        OK0(ibv_post_send(a.qp, &w, &bad));
        vt_want(a.scq, "WRITE from a list", 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
        WANT(!memcmp(b.buf + 500001, flat, total) && b.buf[500001 + total] == 0,
             "round %d: WRITE from a list differs", round);
        for (int i = 0; i < n; i++)
            memset((void *)(uintptr_t)sa[i].addr, 0xbb, sa[i].length);
        w.opcode = IBV_WR_RDMA_READ;
        OK0(ibv_post_send(a.qp, &w, &bad));
        vt_want(a.scq, "READ into a list", 2, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
        at = 0;
        for (int i = 0; i < n; i++) {
            WANT(!memcmp((void *)(uintptr_t)sa[i].addr, flat + at, sa[i].length),
                 "round %d: READ piece %d differs", round, i);
            at += sa[i].length;
        }
    }
    struct ibv_sge many[64];
    for (int i = 0; i < 64; i++)
        many[i] = sa[0];
    if ((int)a.cap.max_send_sge < 64) {
        struct ibv_send_wr w = {.wr_id = 3,
                                .sg_list = many,
                                .num_sge = (int)a.cap.max_send_sge + 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED};
        WANT(ibv_post_send(a.qp, &w, &bad) && bad == &w,
             "max_send_sge + 1 accepted or bad_wr wrong, expected an error");
    }
    vt_pass("%d SGEs", n);
}
