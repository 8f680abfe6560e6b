/* SPDX-License-Identifier: BSD-3-Clause
 *
 * passive_target: two processes; the target registers memory, connects and then sleeps in read(2)
 * without any verbs call: WRITE, READ, atomics and SENDs into posted receives are still served, and
 * without delay; when the target has ended, requests end in RETRY_EXC_ERR. */
#include "vt.h"
static int to_child[2], to_parent[2];
static void put(int fd, const void *p, size_t n)
{
    WANT(write(fd, p, n) == (ssize_t)n, "pipe");
}
static void get(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t r = read(fd, (char *)p + at, n - at);
        WANT(r > 0, "the other process is gone");
        at += r;
    }
}
static struct vt_info info(struct vt_end *e)
{
    return (struct vt_info){e->qp->qp_num, e->mr->rkey, (uintptr_t)e->buf, vt.gid[e->side]};
}
int main(int argc, char **argv)
{
    vt_args(argc, argv, "passive_target", vt_adev, vt_agid, vt_aip);
    WANT(!pipe(to_child) && !pipe(to_parent), "pipe");
    pid_t k = fork();
    int side = k ? 0 : 1;
    struct vt_end e;
    struct vt_info mine, peer;
    struct vt_cfg c = VT_RC;
    c.len = 1 << 20;
    c.retry = 3;
    if (!k) {
        vt_name = "passive_target(target)";
        alarm(VT_SECONDS);
    }
    vt_open_devices(vt_adev, vt_agid, vt_aip);
    vt_end(&e, side, &c);
    mine = info(&e);
    put(k ? to_child[1] : to_parent[1], &mine, sizeof(mine));
    get(k ? to_parent[0] : to_child[0], &peer, sizeof(peer));
    vt_up(&e, peer.qpn, &peer.gid);
    char v = 'r';
    if (!k) {
        vt_fill(e.buf, 65536, 1);
        *(uint64_t *)(e.buf + 800000) = 0;
        for (int i = 0; i < 32; i++)
            OK0(vt_recv(&e, i, e.buf + 900000 + 64 * i, 64));
        put(to_parent[1], &v, 1);
        get(to_child[0], &v, 1); /* asleep until the parent is through */
        SAME(e.buf + 131072, 100000, 9, "memory written while the target slept");
        WANT(*(uint64_t *)(e.buf + 800000) == 50, "counter %llu, expected 50",
             (unsigned long long)*(uint64_t *)(e.buf + 800000));
        struct ibv_wc wc[40];
        int n = vt_poll(e.rcq, wc, 32, 2000);
        WANT(n == 32, "%d receives completed while the target slept, expected 32", n);
        for (int i = 0; i < 32; i++)
            WANT(wc[i].wr_id == (unsigned)i && !wc[i].status && e.buf[900000 + 64 * i] == i,
                 "receive %d: wr_id %llu status %d", i, (unsigned long long)wc[i].wr_id,
                 wc[i].status);
        put(to_parent[1], &v, 1);
        exit(0);
    }
    get(to_parent[0], &v, 1);
    vt_sleep(300); /* the target is asleep by now */
    uint64_t t = vt_ms();
    OK0(vt_post(&e, IBV_WR_RDMA_READ, 1, e.buf, 65536, IBV_SEND_SIGNALED, peer.addr, peer.rkey, 0));
    vt_want(e.scq, "READ from a sleeping process", 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
    SAME(e.buf, 65536, 1, "READ");
    t = vt_ms() - t;
    WANT(t < 1000, "READ of 64 KiB from a sleeping process took %llu ms, expected well below 1000",
         (unsigned long long)t);
    vt_fill(e.buf + 131072, 100000, 9);
    OK0(vt_post(&e, IBV_WR_RDMA_WRITE, 2, e.buf + 131072, 100000, IBV_SEND_SIGNALED,
                peer.addr + 131072, peer.rkey, 0));
    vt_want(e.scq, "WRITE", 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    for (int i = 0; i < 50; i++) {
        OK0(vt_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, i, e.buf, peer.addr + 800000, peer.rkey, 1,
                      0));
        vt_want(e.scq, "FETCH_AND_ADD", i, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD);
        WANT(*(uint64_t *)e.buf == (unsigned)i, "counter was %llu, expected %d",
             (unsigned long long)*(uint64_t *)e.buf, i);
    }
    for (int i = 0; i < 32; i++) {
        e.buf[0] = (char)i;
        OK0(vt_post(&e, IBV_WR_SEND, 100 + i, e.buf, 64, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(e.scq, "SEND", 100 + i, IBV_WC_SUCCESS, IBV_WC_SEND);
    }
    put(to_child[1], &v, 1);
    get(to_parent[0], &v, 1);
    int st;
    waitpid(k, &st, 0);
    WANT(WIFEXITED(st) && !WEXITSTATUS(st), "target ended with status %x", st);
    /* the target is gone now: its memory no longer answers */
    OK0(vt_post(&e, IBV_WR_RDMA_READ, 3, e.buf, 8, IBV_SEND_SIGNALED, peer.addr, peer.rkey, 0));
    vt_want(e.scq, "READ from a process that has ended", 3, IBV_WC_RETRY_EXC_ERR, -1);
    vt_pass("first READ %llu ms", (unsigned long long)t);
}
