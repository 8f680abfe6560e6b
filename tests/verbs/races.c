/* SPDX-License-Identifier: BSD-3-Clause
 *
 * races: all at once on one device, for ThreadSanitizer: several threads post on one QP and poll
 * its CQ, others make and destroy objects and contexts, connect by rdma_cm, wait for completion
 * events, ask for attributes, and look at the emulated tree. */
#include "vt_cm.h"
#include <dirent.h>
#include <ifaddrs.h>
#include <stdatomic.h>

#define POSTERS 3
#define PER     150 /* requests of each */
#define TIMES   12  /* rounds of the others, at least */
/* 4.3 s, as NCCL has it. Threads that spin keep the daemon of another session from its core for up
 * to seconds (doc/traps.md). Only a frame or a wake-up that is really lost takes longer than this:
 * it fails the test by vt_want's 8 s, and no retry hides it. */
#define TIMEOUT 20

static struct vt_end a, b;
static _Atomic int stop, completed, credits = 32;

static void *poster(void *x)
{
    for (int i = 0; i < PER; i++) {
        while (atomic_fetch_sub(&credits, 1) <= 0) {
            atomic_fetch_add(&credits, 1);
            sched_yield();
        }
        int op = i % 3 == 0 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        int inl = op == IBV_WR_RDMA_WRITE && i % 2 ? IBV_SEND_INLINE : 0;
        char *mine = a.buf + 4096 * (intptr_t)x;
        OK0(vt_post(&a, op, (uintptr_t)x, mine, 16, IBV_SEND_SIGNALED | inl, (uintptr_t)b.buf,
                    b.mr->rkey, 0));
    }
    return NULL;
}

static void *poller(void *x)
{
    struct ibv_wc wc[4];
    while (!stop) {
        int n = ibv_poll_cq(a.scq, 4, wc);
        WANT(n >= 0, "ibv_poll_cq gave %d", n);
        for (int i = 0; i < n; i++)
            WANT(!wc[i].status, "completion %s", ibv_wc_status_str(wc[i].status));
        atomic_fetch_add(&completed, n);
        atomic_fetch_add(&credits, n);
        if (!n)
            sched_yield();
    }
    return x;
}

static void *maker(void *x)
{
    char mem[8192];
    for (int i = 0; i < TIMES; i++) {
        struct ibv_pd *pd = ibv_alloc_pd(a.ctx);
        struct ibv_mr *m = ibv_reg_mr(pd, mem, 1000 + i, IBV_ACCESS_LOCAL_WRITE);
        struct ibv_comp_channel *ch = ibv_create_comp_channel(a.ctx);
        struct ibv_cq *q = ibv_create_cq(a.ctx, 8, NULL, ch, 0);
        WANT(pd && m && ch && q, "making objects failed, errno %d", errno);
        struct ibv_qp_init_attr ia = {
            .send_cq = q, .recv_cq = q, .qp_type = IBV_QPT_UD, .cap = {2, 2, 1, 1, 0}};
        struct ibv_qp *p = ibv_create_qp(pd, &ia);
        struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};
        struct ibv_srq *s = ibv_create_srq(pd, &sa);
        struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
        ah.grh.dgid = vt.gid[0];
        ah.grh.sgid_index = (uint8_t)vt.gidx[0];
        struct ibv_ah *h = ibv_create_ah(pd, &ah);
        WANT(p && s && h, "making a QP, an SRQ, a handle failed, errno %d", errno);
        OK0(ibv_destroy_ah(h));
        OK0(ibv_destroy_srq(s));
        OK0(ibv_destroy_qp(p));
        OK0(ibv_destroy_cq(q));
        OK0(ibv_destroy_comp_channel(ch));
        OK0(ibv_dereg_mr(m));
        OK0(ibv_dealloc_pd(pd));
    }
    return x;
}

static void *opener(void *x)
{
    for (int i = 0; i < TIMES; i++) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *c = ibv_open_device(list[0]);
        struct ibv_port_attr port;
        struct ibv_device_attr dev;
        union ibv_gid gid;
        ibv_free_device_list(list);
        WANT(c, "ibv_open_device failed, errno %d", errno);
        OK0(ibv_query_port(a.ctx, 1, &port));
        OK0(ibv_query_gid(a.ctx, 1, i % 4, &gid));
        OK0(ibv_query_device(c, &dev));
        OK0(ibv_close_device(c));
    }
    return x;
}

/* A server and a client, with a channel of events each. */
static void *connecter(void *x)
{
    struct cm l, s, c;
    int port = cm_listen(&l, vt.ip[0], RDMA_PS_TCP);
    for (int i = 0; i < TIMES / 2; i++) {
        cm_connect(&l, &s, &c, vt.ip[0], port);
        cm_talk(&s, &c);
        OK0(rdma_disconnect(c.id));
        cm_ack(l.ch, RDMA_CM_EVENT_DISCONNECTED, "server");
        cm_ack(c.ch, RDMA_CM_EVENT_DISCONNECTED, "client");
        OK0(rdma_disconnect(s.id));
        cm_free(&s, false);
        cm_free(&c, true);
    }
    OK0(rdma_destroy_id(l.id));
    rdma_destroy_event_channel(l.ch);
    return x;
}

/* A thread with its own pair of queue pairs: it waits for the completion event of each WRITE. */
static void *waiter(void *x)
{
    struct vt_cfg cfg = VT_RC;
    struct vt_end from, to;
    cfg.timeout = TIMEOUT;
    vt_pair(&from, &to, &cfg);
    for (int i = 0; i < TIMES * 2; i++) {
        struct ibv_cq *cq;
        void *user;
        OK0(ibv_req_notify_cq(from.scq, 0));
        OK0(vt_post(&from, IBV_WR_RDMA_WRITE, 1, from.buf, 8, IBV_SEND_SIGNALED, (uintptr_t)to.buf,
                    to.mr->rkey, 0));
        OK0(ibv_get_cq_event(from.ch, &cq, &user));
        ibv_ack_cq_events(cq, 1);
        vt_want(from.scq, "a write with an event", 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    }
    return x;
}

static void *looker(void *x)
{
    for (int i = 0; i < TIMES; i++) {
        DIR *dir = opendir("/sys/class/infiniband");
        struct ifaddrs *all;
        if (dir != NULL) {
            while (readdir(dir) != NULL)
                ;
            closedir(dir);
        }
        OK0(getifaddrs(&all));
        freeifaddrs(all);
        int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC), copy = dup(fd);
        close(fd);
        close(copy);
    }
    return x;
}

int main(int argc, char **argv)
{
    static void *(*const others[])(void *) = {maker,  opener, connecter, connecter,
                                              waiter, looker, maker,     looker};
    enum { OTHERS = sizeof(others) / sizeof(others[0]) };
    pthread_t posters[POSTERS], pollers[2], more[OTHERS];
    struct vt_cfg c = VT_RC;
    vt_start(argc, argv, "races");
    alarm(120); /* with ThreadSanitizer, on a busy machine */
    c.swr = 64;
    c.cqe = 256;
    c.timeout = cm_timeout = TIMEOUT;
    vt_pair(&a, &b, &c);
    for (intptr_t i = 0; i < POSTERS; i++)
        pthread_create(&posters[i], NULL, poster, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_create(&pollers[i], NULL, poller, NULL);
    for (int i = 0; i < OTHERS; i++)
        pthread_create(&more[i], NULL, others[i], NULL);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i], NULL);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(more[i], NULL);
    for (int i = 0; i < 3000 && completed < POSTERS * PER; i++)
        vt_sleep(10);
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(pollers[i], NULL);
    WANT(completed == POSTERS * PER, "%d completions, expected %d", completed, POSTERS * PER);
    vt_pass(NULL);
}
