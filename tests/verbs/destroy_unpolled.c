/* SPDX-License-Identifier: BSD-3-Clause
 *
 * destroy_unpolled: a QP destroyed with CQEs unpolled and work outstanding, its CQ shared with a
 * living QP: the CQ still works, completions of the dead QP (if any) carry its qp_num, completions
 * of the living one come once, in order; 200 times. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "destroy_unpolled");
    struct vt_end a, b, c, d;
    struct vt_cfg g = VT_RC;
    struct ibv_wc wc[64];
    int stale = 0;
    g.onecq = 1;
    g.cqe = 512;
    vt_pair(&a, &b, &g);
    for (int round = 0; round < 60; round++) {
        g = VT_RC;
        g.len = 0;
        g.pd = a.pd;
        g.scq = g.rcq = a.scq;
        vt_end(&c, 0, &g);
        c.mr = a.mr;
        g.pd = b.pd;
        g.scq = g.rcq = b.scq;
        vt_end(&d, 1, &g);
        d.mr = b.mr;
        vt_join(&c, &d);
        for (int i = 0; i < 6; i++)
            OK0(vt_recv(&d, 0xd0 + i, b.buf, 64));
        for (int i = 0; i < 2; i++)
            OK0(vt_recv(&b, 0xb0 + i, b.buf + 128, 64));
        for (int i = 0; i < 4; i++) {
            OK0(vt_post(&c, IBV_WR_SEND, 0xc0 + i, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
            if (i & 1)
                OK0(vt_post(&a, IBV_WR_SEND, 0xa0 + i / 2, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0));
        }
        if (round % 3)
            vt_sleep(round % 3 * 5);
        uint32_t cn = c.qp->qp_num, dn = d.qp->qp_num;
        int first = round & 1;
        OK0(ibv_destroy_qp(first ? d.qp : c.qp));
        OK0(ibv_destroy_qp(first ? c.qp : d.qp));
        for (int side = 0; side < 2; side++) {
            struct vt_end *e = side ? &b : &a;
            unsigned id = side ? 0xb0 : 0xa0;
            int got = 0;
            uint64_t end = vt_ms() + 4000;
            while (got < 2 && vt_ms() < end) {
                int n = ibv_poll_cq(e->scq, 8, wc);
                WANT(n >= 0, "ibv_poll_cq gave %d after destroying a QP", n);
                for (int i = 0; i < n; i++) {
                    if (wc[i].qp_num == cn || wc[i].qp_num == dn) {
                        stale++;
                        continue;
                    }
                    WANT(wc[i].qp_num == e->qp->qp_num,
                         "completion of QP %x, expected %x or the destroyed %x %x", wc[i].qp_num,
                         e->qp->qp_num, cn, dn);
                    WANT(wc[i].wr_id == id + got && !wc[i].status,
                         "living QP: wr_id %llx %s, expected %x success",
                         (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status),
                         id + got);
                    got++;
                }
            }
            WANT(got == 2, "round %d: %d completions of the living QP, expected 2", round, got);
        }
    }
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
    OK0(ibv_destroy_cq(a.scq));
    OK0(ibv_destroy_cq(b.scq));
    vt_pass("%d completions of destroyed QPs were still delivered", stale);
}
