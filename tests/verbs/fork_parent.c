/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fork_parent: a process with a connected QP forks (system(), popen() in real programs): the child
 * writes its memory, exits by exit() with all destructors or execs; the parent's device goes on:
 * data written after the fork is what is sent, receives posted before it land in the parent's
 * memory, events still come; ten times. ibv_fork_init first, as Ceph, MPI and UCX do. */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_args(argc, argv, "fork_parent", vt_adev, vt_agid, vt_aip);
    OK0(ibv_fork_init());
    vt_open_devices(vt_adev, vt_agid, vt_aip);
    struct vt_end a, b;
    vt_pair(&a, &b, &VT_RC);
    char *heap = malloc(100000);
    int fs = ibv_is_fork_initialized();
    for (int round = 0; round < 10; round++) {
        OK0(vt_recv(&b, round, b.buf, 8192));
        OK0(ibv_req_notify_cq(b.rcq, 0));
        vt_fill(a.buf, 8192, 200);
        fflush(NULL);
        pid_t k = fork();
        WANT(k >= 0, "fork");
        if (!k) {
            alarm(10);
            memset(heap, round, 100000);
            /* registered memory is not touched: ibv_fork_init may have taken it from children
             * (MADV_DONTFORK) */
            if (round % 3 == 0)
                exit(0); /* destructors of the library run in the child */
            if (round % 3 == 1)
                execl("/bin/true", "true", NULL);
            _exit(0);
        }
        if (round & 1) {
            int st;
            waitpid(k, &st, 0);
            WANT(WIFEXITED(st) && !WEXITSTATUS(st), "child ended with status %x, expected exit 0",
                 st);
        }
        vt_fill(a.buf, 8192,
                round); /* after the fork: copy on write must not separate the device's view */
        OK0(vt_post(&a, IBV_WR_SEND, round, a.buf, 8192, IBV_SEND_SIGNALED, 0, 0, 0));
        vt_want(a.scq, "send after fork", round, IBV_WC_SUCCESS, IBV_WC_SEND);
        struct ibv_cq *cq;
        void *ctx;
        WANT(vt_readable(b.ch->fd, 3000) && !ibv_get_cq_event(b.ch, &cq, &ctx) && cq == b.rcq,
             "round %d: no event after the fork", round);
        ibv_ack_cq_events(cq, 1);
        vt_want(b.rcq, "receive posted before fork", round, IBV_WC_SUCCESS, IBV_WC_RECV);
        SAME(b.buf, 8192, round, "data sent after fork");
        vt_fill(a.buf, 4096, round + 1);
        OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 77, a.buf, 4096, IBV_SEND_SIGNALED,
                    (uintptr_t)b.buf + 16384, b.mr->rkey, 0));
        vt_want(a.scq, "WRITE after fork", 77, IBV_WC_SUCCESS, -1);
        SAME(b.buf + 16384, 4096, round + 1, "WRITE after fork");
        if (!(round & 1)) {
            int st;
            waitpid(k, &st, 0);
            WANT(WIFEXITED(st) && !WEXITSTATUS(st), "child ended with status %x, expected exit 0",
                 st);
        }
    }
    struct ibv_mr *m = ibv_reg_mr(a.pd, heap, 100000, IBV_ACCESS_LOCAL_WRITE);
    WANT(m, "ibv_reg_mr after forks failed, errno %d", errno);
    OK0(ibv_dereg_mr(m));
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
    vt_pass("ibv_is_fork_initialized %d", fs);
}
