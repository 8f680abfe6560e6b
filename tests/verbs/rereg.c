/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rereg: a region that gets other rights or another domain keeps its keys, and the peer's next
 * request meets the new rights (MR-07); one at another address is the new memory.
 */
#include "vt.h"

static struct vt_end a, b;

static void write_to(uint32_t rkey, void *to, int status, const char *what)
{
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, 64, IBV_SEND_SIGNALED, (uintptr_t)to, rkey, 0));
    vt_want(a.scq, what, 1, status, IBV_WC_RDMA_WRITE);
}

int main(int argc, char **argv)
{
    struct vt_cfg c = VT_RC;
    char *p = malloc(10000), *q = malloc(10000);
    vt_start(argc, argv, "rereg");
    vt_pair(&a, &b, &c);
    struct ibv_mr *m = ibv_reg_mr(b.pd, p, 10000, IBV_ACCESS_LOCAL_WRITE);
    WANT(m, "ibv_reg_mr: errno %d", errno);
    uint32_t lkey = m->lkey, rkey = m->rkey;

    OK0(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, VT_ACCESS));
    WANT(m->lkey == lkey && m->rkey == rkey,
         "other rights: lkey 0x%x, rkey 0x%x, before 0x%x, 0x%x", m->lkey, m->rkey, lkey, rkey);
    vt_fill(a.buf, 64, 5);
    write_to(rkey, p, IBV_WC_SUCCESS, "with the right to write");
    SAME(p, 64, 5, "the peer's write");

    struct ibv_pd *pd = ibv_alloc_pd(b.ctx);
    OK0(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, pd, NULL, 0,
                     VT_ACCESS));
    WANT(m->lkey == lkey && m->pd == pd, "another domain: lkey 0x%x, before 0x%x", m->lkey, lkey);
    OK0(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0));
    OK0(ibv_dealloc_pd(pd));
    write_to(rkey, p + 100, IBV_WC_SUCCESS, "back in the domain");

    OK0(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, q, 9000, 0));
    WANT(m->addr == q && m->length == 9000, "another address");
    write_to(m->rkey, q + 8000, IBV_WC_SUCCESS, "at another address");
    SAME(q + 8000, 64, 5, "the peer's write at another address");

    static const struct {
        int flags, access;
    } wrong[] = {
        {0, VT_ACCESS},
        {8, VT_ACCESS},
        {IBV_REREG_MR_CHANGE_PD, VT_ACCESS},
        {IBV_REREG_MR_CHANGE_TRANSLATION, VT_ACCESS},
        {IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_REMOTE_WRITE},
    };
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        WANT(ibv_rereg_mr(m, wrong[i].flags, NULL, NULL, 0, wrong[i].access) != 0,
             "wrong input %u was taken", i);
    write_to(m->rkey, q, IBV_WC_SUCCESS, "after wrong input");

    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *r = ibv_reg_mr(b.pd, page, 4096, IBV_ACCESS_REMOTE_READ);
    WANT(r, "read-only memory to be read: errno %d", errno);
    WANT(ibv_rereg_mr(r, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, VT_ACCESS) != 0,
         "read-only memory got the right to be written");
    OK0(ibv_dereg_mr(r));

    OK0(ibv_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
    write_to(m->rkey, q, IBV_WC_REM_ACCESS_ERR, "without the right to write");
    OK0(ibv_dereg_mr(m));
    vt_pass("keys stay");
}
