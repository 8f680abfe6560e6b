/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mr_stale: deregistration is final. The old R_Key is refused, also if the memory is still there or
 * registered again. Memory that is unmapped, mapped again at the same address and registered again
 * has the new data. With ibv_reg_mr_iova, addresses count from the given one. */
#include "vt.h"
static struct vt_end a, b;
static void refused(const char *what, uint64_t addr, uint32_t rkey)
{
    struct vt_end c, d;
    struct vt_cfg g = VT_RC;
    g.pd = b.pd;
    vt_end(&d, 1, &g);
    g.pd = NULL;
    vt_end(&c, 0, &g);
    vt_join(&c, &d);
    OK0(vt_post(&c, IBV_WR_RDMA_WRITE, 1, c.buf, 8, IBV_SEND_SIGNALED, addr, rkey, 0));
    vt_want(c.scq, what, 1, IBV_WC_REM_ACCESS_ERR, -1);
    OK0(ibv_destroy_qp(c.qp));
    OK0(ibv_destroy_qp(d.qp));
}
static void wr(const char *what, int op, uint64_t addr, uint32_t rkey, unsigned seed)
{
    if (op == IBV_WR_RDMA_WRITE)
        vt_fill(a.buf, 5000, seed);
    OK0(vt_post(&a, op, seed, a.buf, 5000, IBV_SEND_SIGNALED, addr, rkey, 0));
    vt_want(a.scq, what, seed, IBV_WC_SUCCESS, -1);
    if (op == IBV_WR_RDMA_READ)
        SAME(a.buf, 5000, seed, what);
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "mr_stale");
    vt_pair(&a, &b, &VT_RC);
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t old = 0;
    for (int i = 0; i < 5; i++) {
        struct ibv_mr *m = ibv_reg_mr(b.pd, p, 8192, VT_ACCESS);
        WANT(m, "ibv_reg_mr failed");
        WANT(m->rkey != old, "R_Key %x given again at once for the next region, expected another",
             old);
        wr("WRITE", IBV_WR_RDMA_WRITE, (uintptr_t)p, m->rkey, i);
        SAME(p, 5000, i, "WRITE");
        old = m->rkey;
        OK0(ibv_dereg_mr(m));
        if (i == 1)
            refused("deregistered key", (uintptr_t)p, old);
        if (i == 2) {
            munmap(p, 8192);
            WANT(mmap(p, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                      0) == p,
                 "mmap");
        }
        if (i == 3) {
            int fd = memfd_create("vt", 0);
            WANT(!ftruncate(fd, 8192), "memfd");
            munmap(p, 8192);
            WANT(mmap(p, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == p, "mmap");
        }
    }
    refused("deregistered key, memory replaced", (uintptr_t)p, old);
    /* two regions over one memory: dropping one leaves the other */
    struct ibv_mr *x = ibv_reg_mr(b.pd, p, 8192, VT_ACCESS),
                  *y = ibv_reg_mr(b.pd, p, 8192, VT_ACCESS);
    WANT(x && y && x->rkey != y->rkey, "two regions over one memory");
    old = x->rkey;
    OK0(ibv_dereg_mr(x));
    wr("second region", IBV_WR_RDMA_WRITE, (uintptr_t)p, y->rkey, 40);
    refused("first region", (uintptr_t)p, old);
    OK0(ibv_dereg_mr(y));
    /* iova: remote address 0 means the start of the region (NCCL, UCX) */
    uint64_t iova[] = {0, 0x1000, 0xffff0000};
    for (int i = 0; i < 3; i++) {
        volatile int acc = VT_ACCESS;
        char *q = p;
        struct ibv_mr *m = ibv_reg_mr_iova(b.pd, q, 8192, iova[i], acc);
        WANT(m, "ibv_reg_mr_iova(%llx) failed, errno %d (%s)", (unsigned long long)iova[i], errno,
             strerror(errno));
        wr("WRITE by iova", IBV_WR_RDMA_WRITE, iova[i] + 8, m->rkey, 60 + i);
        SAME(p + 8, 5000, 60 + i, "WRITE by iova");
        struct ibv_mr *k = b.mr;
        b.mr = m;
        OK0(vt_recv(&a, 5, a.buf, 5000));
        OK0(vt_post(&b, IBV_WR_SEND, 5, (void *)(uintptr_t)(iova[i] + 8), 5000, IBV_SEND_SIGNALED,
                    0, 0, 0));
        b.mr = k;
        /* vt_post passes an address of 0 as "no SGE": iova + 8 is never 0 */
        vt_want(b.scq, "SEND by iova", 5, IBV_WC_SUCCESS, IBV_WC_SEND);
        vt_want(a.rcq, "SEND by iova", 5, IBV_WC_SUCCESS, IBV_WC_RECV);
        SAME(a.buf, 5000, 60 + i, "SEND by iova");
        OK0(ibv_dereg_mr(m));
    }
    vt_pass(NULL);
}
