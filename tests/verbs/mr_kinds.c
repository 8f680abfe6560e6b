/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mr_kinds: every memory a program may own is registered and used as source and target of WRITE,
 * READ, SEND: malloc (unaligned), stack, static, brk heap, shared anonymous, memfd (seen through a
 * second mapping), file, huge page, another thread's stack, the end of a mapping. */
#include "vt.h"
#include <sys/syscall.h>
static struct vt_end a, b;
static int count;
static char statics[20000];
static void use(const char *what, char *p, size_t n)
{
    struct ibv_mr *m = ibv_reg_mr(b.pd, p, n, VT_ACCESS), *keep = b.mr;
    WANT(m, "%s: ibv_reg_mr(%zu) failed, errno %d (%s)", what, n, errno, strerror(errno));
    unsigned s = ++count * 3;
    vt_fill(a.buf, n, s);
    memset(p, 0, n);
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, n, IBV_SEND_SIGNALED, (uintptr_t)p, m->rkey, 0));
    vt_want(a.scq, what, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    SAME(p, n, s, what);
    vt_fill(p, n, s + 1);
    memset(a.buf, 0, n);
    OK0(vt_post(&a, IBV_WR_RDMA_READ, 2, a.buf, n, IBV_SEND_SIGNALED, (uintptr_t)p, m->rkey, 0));
    vt_want(a.scq, what, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
    SAME(a.buf, n, s + 1, what);
    b.mr = m;
    OK0(vt_recv(&a, 3, a.buf, n));
    vt_fill(p, n, s + 2);
    OK0(vt_post(&b, IBV_WR_SEND, 3, p, n, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(b.scq, what, 3, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(a.rcq, what, 3, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(a.buf, n, s + 2, what);
    OK0(vt_recv(&b, 4, p, n));
    vt_fill(a.buf, n, s + 5);
    OK0(vt_post(&a, IBV_WR_SEND, 4, a.buf, n, IBV_SEND_SIGNALED, 0, 0, 0));
    vt_want(a.scq, what, 4, IBV_WC_SUCCESS, IBV_WC_SEND);
    vt_want(b.rcq, what, 4, IBV_WC_SUCCESS, IBV_WC_RECV);
    SAME(p, n, s + 5, what);
    b.mr = keep;
    OK0(ibv_dereg_mr(m));
}
static void *thread(void *x)
{
    char stack[9001];
    use("another thread's stack", stack, sizeof(stack));
    return x;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "mr_kinds");
    struct vt_cfg c = VT_RC;
    c.len = 4 << 20;
    vt_pair(&a, &b, &c);
    char stack[5003], *h = malloc(30011);
    pthread_t t;
    bool huge = false;
    use("malloc, unaligned", h + 3, 30001);
    use("one byte", h + 5, 1);
    use("stack", stack, sizeof(stack));
    use("static", statics, sizeof(statics));
    char *big = malloc(3 << 20);
    use("large malloc", big + 1, (3 << 20) - 1);
    char *k = sbrk(10000);
    if (k != (void *)-1)
        use("brk heap", k, 10000);
    use("shared anonymous",
        mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 20000);
    int fd = memfd_create("vt", 0);
    WANT(fd >= 0 && !ftruncate(fd, 65536), "memfd");
    char *m1 = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
         *m2 = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    use("memfd", m1 + 100, 40000);
    WANT(!memcmp(m1, m2, 65536), "second mapping of the memfd differs from the first");
    char byte;
    WANT(pread(fd, &byte, 1, 101) == 1 && byte == m1[101],
         "read(2) of the memfd differs from the mapping");
    char name[] = "/tmp/vt-XXXXXX";
    fd = mkstemp(name);
    unlink(name);
    WANT(fd >= 0 && !ftruncate(fd, 20000), "file");
    use("file, shared", mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 20000);
    use("file, private", mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), 20000);
    char *e = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(e + 4096, 4096, PROT_NONE);
    use("last bytes before a forbidden page", e + 4096 - 77, 77);
    char *hp = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (hp != MAP_FAILED) {
        huge = true;
        use("huge page", hp + 5, 100000);
        hp = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB,
                  -1, 0);
        WANT(hp != MAP_FAILED, "a shared huge page: errno %d", errno);
        use("shared huge page", hp + 4097, 1 << 20);
        fd = memfd_create("vt", MFD_HUGETLB);
        WANT(fd >= 0 && !ftruncate(fd, 4 << 20), "memfd of huge pages: errno %d", errno);
        hp = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        WANT(hp != MAP_FAILED, "mapping of a memfd of huge pages: errno %d", errno);
        use("memfd of huge pages", hp + (1 << 20), 2 << 20);
    }
    char *thp = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(thp, 4 << 20, MADV_HUGEPAGE);
    use("transparent huge page", thp + 4095, 2 << 20);
    char *two = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)mmap(two + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS, -1,
               0);
    use("three mappings side by side", two + 100, 12000);
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    vt_pass("%d kinds%s", count, huge ? "" : ", no huge pages here");
}
