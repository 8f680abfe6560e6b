/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mr_access: registration rules: REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE is refused, a
 * read-only mapping registers without LOCAL_WRITE (and serves sends and remote reads) but not with
 * it, an unmapped range is refused, optional flags are ignored. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_start(argc, argv, "mr_access");
    struct vt_end a, b;
    volatile int rt = IBV_ACCESS_REMOTE_WRITE; /* not constant: the ibv_reg_mr_iova2 path */
    vt_pair(&a, &b, &VT_RC);
    errno = 0;
    WANT(!ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
         "REMOTE_WRITE without LOCAL_WRITE: errno %d, expected NULL with EINVAL", errno);
    errno = 0;
    WANT(!ibv_reg_mr(b.pd, b.buf, 4096, rt) && errno == EINVAL,
         "the same with a variable access: errno %d, expected NULL with EINVAL", errno);
    errno = 0;
    WANT(!ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_REMOTE_ATOMIC) && errno == EINVAL,
         "REMOTE_ATOMIC without LOCAL_WRITE: errno %d, expected NULL with EINVAL", errno);
    char *ro = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    vt_fill(ro, 8192, 8);
    mprotect(ro, 8192, PROT_READ);
    errno = 0;
    struct ibv_mr *w = ibv_reg_mr(b.pd, ro, 8192, IBV_ACCESS_LOCAL_WRITE);
    WANT(!w && (errno == EFAULT || errno == EINVAL || errno == EACCES),
         "read-only mapping with LOCAL_WRITE: %p errno %d, expected NULL with EFAULT", (void *)w,
         errno);
    errno = 0;
    struct ibv_mr *m = ibv_reg_mr(b.pd, ro, 8192, IBV_ACCESS_REMOTE_READ);
    WANT(m, "read-only mapping with REMOTE_READ only refused, errno %d (%s), expected a region",
         errno, strerror(errno));
    OK0(vt_post(&a, IBV_WR_RDMA_READ, 1, a.buf, 8192, IBV_SEND_SIGNALED, (uintptr_t)ro, m->rkey,
                0));
    vt_want(a.scq, "READ from a read-only mapping", 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
    SAME(a.buf, 8192, 8, "READ from a read-only mapping");
    struct ibv_mr *keep = b.mr;
    b.mr = m;
    OK0(vt_recv(&a, 2, a.buf + 16384, 8192));
    OK0(vt_post(&b, IBV_WR_SEND, 2, ro, 8192, IBV_SEND_SIGNALED, 0, 0, 0));
    b.mr = keep;
    vt_want(b.scq, "SEND from a read-only mapping", 2, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(a.rcq, "its receive", 2, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(a.buf + 16384, 8192, 8, "SEND from a read-only mapping");
    /* unmapped, half mapped, NULL */
    char *hole = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole + 8192, 8192);
    errno = 0;
    WANT(!ibv_reg_mr(b.pd, hole + 8192, 4096, IBV_ACCESS_LOCAL_WRITE) && errno,
         "unmapped range registered, expected NULL with EFAULT (errno %d)", errno);
    errno = 0;
    WANT(!ibv_reg_mr(b.pd, hole + 4096, 8192, IBV_ACCESS_LOCAL_WRITE) && errno,
         "half mapped range registered, expected NULL with EFAULT");
    /* optional access flags (bits 20 to 29, relaxed ordering is one) may not make it fail */
    volatile int opt = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
    struct ibv_mr *om = ibv_reg_mr(b.pd, b.buf, 4096, opt);
    WANT(om, "IBV_ACCESS_RELAXED_ORDERING (variable) refused, errno %d, expected it to be ignored",
         errno);
    om = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    WANT(om, "IBV_ACCESS_RELAXED_ORDERING refused, errno %d, expected it to be ignored", errno);
    WANT(om->lkey != b.mr->lkey && om->addr == b.buf && om->length == 4096 && om->pd == b.pd &&
             om->context == b.ctx,
         "fields of ibv_mr differ from what was given");
    OK0(ibv_dereg_mr(om));
    vt_pass(NULL);
}
