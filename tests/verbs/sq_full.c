/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sq_full: a full send queue says ENOMEM, bad_wr is the first request not taken and those before it
 * run; unsignaled requests free their places when a later signaled one has been polled; the receive
 * queue and SRQ likewise. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "sq_full");
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_wc wc;
    struct ibv_send_wr *bad;
    struct ibv_recv_wr *badr;
    c.swr = 8;
    c.rwr = 16;
    c.rnr_timer = 12;
    vt_pair(&a, &b, &c);
    unsigned cap = a.cap.max_send_wr;
    WANT(cap >= 8 && cap <= 4096, "max_send_wr %u for 8 asked", cap);
    struct ibv_sge s = {(uintptr_t)a.buf, 8, a.mr->lkey};
    static struct ibv_send_wr w[5000];
    static struct ibv_recv_wr rw[5000];
    unsigned n = cap + 200 < 5000 ? cap + 200 : 5000;
    for (unsigned i = 0; i < n; i++)
        w[i] = (struct ibv_send_wr){.wr_id = i,
                                    .sg_list = &s,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = 0,
                                    .next = i + 1 < n ? &w[i + 1] : NULL};
    bad = NULL; /* b has no receives: nothing completes */
    int r = ibv_post_send(a.qp, w, &bad);
    WANT(r == ENOMEM, "%u requests into a queue of %u gave %d (%s), expected ENOMEM", n, cap, r,
         strerror(r));
    WANT(bad >= w && bad < w + n, "bad_wr %p outside the list", (void *)bad);
    unsigned taken = bad - w;
    WANT(taken >= 8, "only %u requests taken, expected at least the 8 asked for", taken);
    r = vt_post(&a, IBV_WR_SEND, 9999, a.buf, 8, IBV_SEND_SIGNALED, 0, 0, 0);
    WANT(r == ENOMEM, "one more gave %d, expected ENOMEM", r);
    unsigned rcap = b.cap.max_recv_wr;
    for (unsigned i = 0; i < taken; i++)
        if (i < rcap)
            OK0(vt_recv(&b, i, b.buf, 64));
    unsigned got = 0;
    for (uint64_t end = vt_ms() + 5000; got < (taken < rcap ? taken : rcap) && vt_ms() < end;)
        got += vt_poll(b.rcq, &wc, 1, 100);
    vt_none(b.rcq, "messages past those taken", 150);
    WANT(got >= (taken < rcap ? taken : rcap) && vt_state(a.qp) == IBV_QPS_RTS,
         "%u messages arrived, state %d", got, vt_state(a.qp));
    vt_none(a.scq, "unsignaled sends", 20);
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
    /* steady state: one of 8 is signaled, the queue has exactly the requested size, 500 requests */
    vt_pair(&a, &b, &c);
    for (int i = 0; i < 500; i++) {
        OK0(vt_recv(&b, i, b.buf, 64));
        OK0(vt_post(&a, IBV_WR_SEND, i, a.buf, 8, i % 8 == 7 ? IBV_SEND_SIGNALED : 0, 0, 0, 0));
        if (i % 8 == 7)
            vt_want(a.scq, "signaled in every 8", i, IBV_WC_SUCCESS, IBV_WC_SEND);
        vt_want(b.rcq, "receive", i, IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    /* receive queue */
    for (int i = 0; i < 5000; i++)
        rw[i] = (struct ibv_recv_wr){.wr_id = 1000 + i, .next = i < 4999 ? &rw[i + 1] : NULL};
    badr = NULL;
    r = ibv_post_recv(b.qp, rw, &badr);
    WANT(r == ENOMEM && badr >= rw + 16 && badr < rw + 5000,
         "5000 receives into a queue of 16: %d, %ld taken, expected ENOMEM and >= 16", r,
         badr ? (long)(badr - rw) : -1L);
    for (int i = 0; i < 8; i++)
        OK0(vt_post(&a, IBV_WR_SEND, 50 + i, NULL, 0, i == 7 ? IBV_SEND_SIGNALED : 0, 0, 0, 0));
    vt_want(a.scq, "sends into the full receive queue", 57, IBV_WC_SUCCESS, IBV_WC_SEND);
    for (int i = 0; i < 8; i++)
        vt_want(b.rcq, "receive of the list", 1000 + i, IBV_WC_SUCCESS, IBV_WC_RECV);
    vt_pass("max_send_wr %u for 8 asked, %u taken", cap, taken);
}
