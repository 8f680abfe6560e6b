/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: verbs are thread safe: four threads post to one QP and read its completions from one CQ
 * with two more, while another registers memory and makes QPs: every wr_id once, no message lost or
 * doubled. */
#include "vt.h"
#include <stdatomic.h>
#define PER 400
static struct vt_end a, b;
static _Atomic int stop;
static unsigned char seen_s[4 * PER], seen_r[4 * PER];
static _Atomic int ns, nr;
static _Atomic int credits = 48;
static void *poster(void *x)
{
    long k = (long)x;
    for (int i = 0; i < PER; i++) {
        while (atomic_fetch_sub(&credits, 1) <= 0) {
            atomic_fetch_add(&credits, 1);
            sched_yield();
        }
        uint32_t id = k * PER + i;
        int r =
            vt_post(&a, IBV_WR_SEND_WITH_IMM, id, a.buf, 16, IBV_SEND_SIGNALED, 0, 0, htonl(id));
        WANT(!r, "ibv_post_send from thread %ld gave %d (%s)", k, r, strerror(r));
    }
    return NULL;
}
static void *poller(void *x)
{
    struct vt_end *e = x == NULL ? &a : &b;
    struct ibv_wc wc[4];
    while (!stop) {
        int n = ibv_poll_cq(e == &a ? a.scq : b.rcq, 3, wc);
        WANT(n >= 0, "ibv_poll_cq gave %d", n);
        for (int i = 0; i < n; i++) {
            WANT(!wc[i].status, "completion %s", ibv_wc_status_str(wc[i].status));
            uint32_t id = e == &a ? wc[i].wr_id : ntohl(wc[i].imm_data);
            WANT(id < 4 * PER, "id %u out of range", id);
            unsigned char *s = e == &a ? seen_s : seen_r;
            WANT(!__atomic_exchange_n(&s[id], 1, __ATOMIC_SEQ_CST), "%s %u completed twice",
                 e == &a ? "send" : "receive", id);
            if (e == &a) {
                atomic_fetch_add(&ns, 1);
                atomic_fetch_add(&credits, 1);
            } else {
                OK0(vt_recv(&b, 1, b.buf, 64));
                atomic_fetch_add(&nr, 1);
            }
        }
        if (!n)
            sched_yield();
    }
    return NULL;
}
static void *maker(void *x)
{
    static char mem[65536];
    for (int i = 0; i < 100 && !stop; i++) {
        struct ibv_mr *m = ibv_reg_mr(a.pd, mem, 1000 + i, IBV_ACCESS_LOCAL_WRITE);
        WANT(m, "ibv_reg_mr meanwhile failed");
        struct ibv_cq *q = ibv_create_cq(a.ctx, 8, NULL, NULL, 0);
        WANT(q, "ibv_create_cq meanwhile failed");
        struct ibv_qp_init_attr ia = {
            .send_cq = q, .recv_cq = q, .qp_type = IBV_QPT_RC, .cap = {2, 2, 1, 1, 0}};
        struct ibv_qp *p = ibv_create_qp(a.pd, &ia);
        WANT(p, "ibv_create_qp meanwhile failed");
        OK0(ibv_destroy_qp(p));
        OK0(ibv_destroy_cq(q));
        OK0(ibv_dereg_mr(m));
    }
    return x;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "threads");
    struct vt_cfg c = VT_RC;
    c.swr = 64;
    c.rwr = 128;
    c.cqe = 512;
    vt_pair(&a, &b, &c);
    pthread_t t[9];
    for (int i = 0; i < 100; i++)
        OK0(vt_recv(&b, 1, b.buf, 64));
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, poster, (void *)i);
    pthread_create(&t[4], NULL, poller, NULL);
    pthread_create(&t[5], NULL, poller, NULL);
    pthread_create(&t[6], NULL, poller, (void *)1);
    pthread_create(&t[7], NULL, poller, (void *)1);
    pthread_create(&t[8], NULL, maker, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 1000 && (ns < 4 * PER || nr < 4 * PER); i++)
        vt_sleep(10);
    stop = 1;
    for (int i = 4; i < 9; i++)
        pthread_join(t[i], NULL);
    WANT(ns == 4 * PER && nr == 4 * PER, "%d send and %d receive completions, expected %d each", ns,
         nr, 4 * PER);
    vt_pass(NULL);
}
