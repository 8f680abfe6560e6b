/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that want more than their share: of descriptors, of memory.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_rig.h"
#include "unit.h"

/* ---- descriptors and memory ---- */

/* The number of the daemon's descriptors, and the highest of them. */
static unsigned daemon_fds(int *highest)
{
    const struct dirent *e;
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)rig.pid);
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (*highest = 0; (e = readdir(d)); n++) {
        if (atoi(e->d_name) > *highest)
            *highest = atoi(e->d_name);
    }
    closedir(d);
    return n;
}

/* Wait until the daemon has at most this many descriptors. */
static void settle_fds(unsigned most)
{
    uint64_t until = rig_now_ms() + 5000;
    int highest;

    for (unsigned n; (n = daemon_fds(&highest)) > most;) {
        ck_assert_msg(rig_now_ms() < until, "%u descriptors, expected %u", n, most);
        usleep(2000);
    }
}

/* SEC-22: descriptors of a refused message are closed, for every fault: too short, a hello of
 * another kind, a request without hello, a request that takes none. */
START_TEST(unwanted_descriptors)
{
    static const size_t lens[] = {3, sizeof(struct ipc_hdr), sizeof(struct ipc_hello),
                                  sizeof(struct ipc_mr_reg)};
    int fds[IPC_FD_MAX], highest;
    unsigned before = daemon_fds(&highest);
    for (unsigned i = 0; i < IPC_FD_MAX; i++)
        fds[i] = memfd_create("unwanted", MFD_CLOEXEC);
    for (unsigned i = 0; i < 80; i++) {
        int s = raw_connect();
        struct ipc_hello hello;
        uint8_t msg[512] = {0};
        ipc_hello_fill(&hello, ~0ull);
        if (i % 2) {
            ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), fds, IPC_FD_MAX, 0), 0);
        }
        ipc_send(s, msg, lens[i % 4], fds, IPC_FD_MAX, 0);
        while (recv(s, msg, sizeof(msg), i % 2 ? MSG_DONTWAIT : 0) > 0)
            ;
        close(s);
    }
    for (unsigned i = 0; i < IPC_FD_MAX; i++)
        close(fds[i]);
    settle_fds(before);
    transfer(10);
}
END_TEST

/* Newcomers use up all descriptors that the daemon may have. */
struct crowd {
    struct rlimit old;
    unsigned n;
    int sock[400];
};

static void crowd_in(struct crowd *c)
{
    struct rlimit low;
    ssize_t got = 1;
    int highest;
    c->n = 0;
    ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, NULL, &c->old), 0);
    daemon_fds(&highest);
    low = (struct rlimit){.rlim_cur = (rlim_t)highest + 1, .rlim_max = c->old.rlim_max};
    ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &low, NULL), 0);
    while (got != 0) { /* free numbers between others are used first */
        struct ipc_hello hello;
        ck_assert_uint_lt(c->n, sizeof(c->sock) / sizeof(c->sock[0]));
        int s = c->sock[c->n++] = raw_connect();
        ipc_hello_fill(&hello, ~0ull);
        ipc_send(s, &hello, sizeof(hello), NULL, 0, 0);
        struct pollfd p = {.fd = s, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 5000) == 1, "the daemon lets it wait");
        struct ipc_hdr said;
        got = recv(s, &said, sizeof(said), 0);
        ck_assert_int_eq(got, sizeof(said));
        if (said.status < 0)
            got = 0;
    }
}

static void crowd_out(struct crowd *c)
{
    while (c->n > 0)
        close(c->sock[--c->n]);
    ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &c->old, NULL), 0);
}

/* SEC-22: a daemon without free descriptors refuses new clients at once, and accepts again when
 * there are some. */
START_TEST(no_descriptors_left)
{
    struct crowd c;
    crowd_in(&c);
    transfer(10);
    crowd_out(&c);
    settle("urn0", "contexts", 1);
    transfer(10);
}
END_TEST

/* Connections that this user gets, until it is turned away. */
static void fill_up(uid_t uid, int told)
{
    struct urnic_context *ctx;
    unsigned n = 0;
    int rc;
    if (setgid(uid) < 0 || setuid(uid) < 0)
        _exit(2);
    while ((rc = urnic_open_at(rig.socket, "urn0", -1, &ctx)) == 0)
        n++;
    if (rc != -EDQUOT || write(told, &n, sizeof(n)) != sizeof(n))
        _exit(3);
    for (;;)
        pause();
}

/* SEC-22: a user that takes all possible connections leaves half of them, and the next one half of
 * the rest: there is room for all other users, and for root in any case. */
START_TEST(users_leave_room)
{
    struct rlimit many = {.rlim_cur = 8192, .rlim_max = 8192};
    unsigned n, left = 1024 - 2; /* `a` and `b`, of the daemon's own user */
    pid_t pid[3];
    int told[2];
    if (geteuid() != 0)
        return; /* there is only this user */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &many), 0);
    ck_assert_int_eq(prlimit(rig.pid, RLIMIT_NOFILE, &many, NULL), 0);
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    for (unsigned i = 0; i < 3; i++) {
        pid[i] = fork_apart();
        if (pid[i] == 0)
            fill_up(65500 + i, told[1]);
        ck_assert_int_eq(read(told[0], &n, sizeof(n)), sizeof(n));
        ck_assert_uint_eq(n, left / 2);
        left -= n;
    }
    end_open(&x, &rig, "urn0", SIZE);
    end_close(&x);
    transfer(10);
    for (unsigned i = 0; i < 3; i++)
        finish(pid[i]);
    settle("urn0", "contexts", 1);
}
END_TEST

/* SEC-22: a client that sends a descriptor meanwhile gets an error for it, and stays. */
START_TEST(no_room_for_descriptors)
{
    int fd = memfd_create("region", MFD_CLOEXEC);
    struct urnic_mr *mr;
    struct crowd c;
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    crowd_in(&c);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, SIZE, 0, END_ACCESS, &mr), -EMFILE);
    transfer(10);
    crowd_out(&c);
    settle("urn0", "contexts", 1);
    ck_assert_int_eq(urnic_reg_mr_fd(a.pd, fd, 0, SIZE, 0, END_ACCESS, &mr), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    close(fd);
}
END_TEST

static struct rlimit no_more_descriptors(void)
{
    struct rlimit old, low;
    int lowest = dup(0);
    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    return old;
}

/* A client without room for the daemon's answer gets the same error, and continues. */
START_TEST(no_descriptors_of_its_own)
{
    struct urnic_channel *ch;
    struct rlimit old = no_more_descriptors();
    int rc = urnic_create_channel(a.ctx, &ch);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(rc, -EMFILE);
    transfer(10);
    ck_assert_int_eq(urnic_create_channel(a.ctx, &ch), 0);
    ck_assert_int_eq(urnic_destroy_channel(ch), 0);
}
END_TEST

static void makes_all(struct urnic_context *ctx, struct urnic_pd *pd, int want)
{
    struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC};
    struct urnic_cm_channel *cm;
    struct urnic_channel *ch;
    struct urnic_srq *srq;
    struct urnic_qp *qp;
    struct urnic_cq *cq;
    void *mem;
    ck_assert_int_eq(urnic_create_channel(ctx, &ch), want);
    ck_assert_int_eq(urnic_create_cm_channel(ctx, &cm), want);
    ck_assert_int_eq(urnic_alloc(ctx, 4096, &mem), want);
    ck_assert_int_eq(urnic_create_srq(pd, &attr, NULL, &srq), want);
    ck_assert_int_eq(urnic_create_cq(ctx, 4, NULL, NULL, &cq), want);
    if (want < 0)
        return;
    init.send_cq = init.recv_cq = cq;
    ck_assert_int_eq(urnic_create_qp(pd, &init, &qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(qp), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    ck_assert_int_eq(urnic_free(ctx, mem), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cm), 0);
    ck_assert_int_eq(urnic_destroy_channel(ch), 0);
}

/* That holds for its first queue, too, whose slab later queues share. The daemon keeps no resources
 * of a failed request; otherwise it would run out after some hundred requests. */
START_TEST(no_descriptors_for_its_first_queue)
{
    uint64_t cqs = counter("urn0", "cqs");
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    int highest;
    ck_assert_int_eq(urnic_open_at(rig.socket, "urn0", -1, &ctx), 0);
    ck_assert_int_eq(urnic_alloc_pd(ctx, &pd), 0);
    unsigned before = daemon_fds(&highest);
    struct rlimit old = no_more_descriptors();
    for (unsigned i = 0; i < 300; i++)
        makes_all(ctx, pd, -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    settle_fds(before + 1); /* the slab of the queues */
    settle("urn0", "cqs", cqs);
    makes_all(ctx, pd, 0);
    makes_all(ctx, pd, 0);
    ck_assert_int_eq(urnic_dealloc_pd(pd), 0);
    ck_assert_int_eq(urnic_close(ctx), 0);
    transfer(10);
}
END_TEST

/* The status of the answer to a request of this client. */
static int asks(struct end *e, void *msg, size_t len, const int *fd)
{
    uint8_t reply[256];
    int fds[IPC_FD_MAX];
    unsigned nfds = IPC_FD_MAX;
    ssize_t n =
        client_conn_raw(&e->ctx->conn, msg, len, fd, fd ? 1 : 0, reply, sizeof(reply), fds, &nfds);
    for (unsigned i = 0; n >= 0 && i < nfds; i++)
        close(fds[i]);
    return n < 0 ? (int)n : 0;
}

static int asks_for_slab(struct end *e, uint64_t size, uint32_t flags)
{
    struct ipc_slab_alloc m = {.hdr.type = IPC_SLAB_ALLOC, .size = size, .flags = flags};
    return asks(e, &m, sizeof(m), NULL);
}

/* SEC-22: slabs add up to the quota at most, however their sizes are rounded. */
START_TEST(slabs_within_quota)
{
    const uint64_t quota = 64ull << 30;
    end_open(&x, &rig, "urn0", SIZE);
    ck_assert_int_eq(asks_for_slab(&x, quota - (2ull << 20), 0), 0);
    ck_assert_int_eq(asks_for_slab(&x, 1, IPC_SLAB_HUGE), -EDQUOT);
    ck_assert_int_eq(asks_for_slab(&x, quota, 0), -EDQUOT);
    ck_assert_int_eq(asks_for_slab(&x, 1ull << 40, 0), -EDQUOT);
    ck_assert_int_eq(asks_for_slab(&x, UINT64_MAX, 0), -EDQUOT);
    ck_assert_int_eq(asks_for_slab(&x, 4096, 0), 0);
    end_close(&x);
    transfer(10);
}
END_TEST

/* SEC-22: mappings are counted, too, until they are unmapped. */
START_TEST(slabs_by_number)
{
    enum { MOST = 8192 };
    unsigned n = 0;
    struct urnic_mr *mr;
    void *mem;
    int fd = memfd_create("small", MFD_CLOEXEC), rc = 0;
    end_open(&x, &rig, "urn0", SIZE);
    for (unsigned i = 0; i < MOST + 10; i++) {
        ck_assert_int_eq(urnic_alloc(x.ctx, 4096, &mem), 0);
        ck_assert_int_eq(urnic_free(x.ctx, mem), 0);
    }
    while (n <= MOST && (rc = asks_for_slab(&x, 4096, 0)) == 0)
        n++;
    ck_assert(rc == -ENOMEM || rc == -EDQUOT);
    ck_assert(rc == -ENOMEM || n == MOST - 1); /* one it had */
    /* Regions of its own objects are mapped as well. */
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(urnic_reg_mr_fd(x.pd, fd, 0, 4096, 0, 0, &mr), rc);
    close(fd);
    end_close(&x);
    transfer(10);
}
END_TEST

/* SEC-03 MR-04: requests that liburnic doesn't make. */
START_TEST(impossible_requests)
{
    end_open(&x, &rig, "urn0", SIZE);
    const struct client_slab *slab = x.ctx->slabs;
    while (!slab->data)
        slab = slab->next;
    const struct {
        uint64_t off, len;
        uint32_t obj;
        int rc;
    } regions[] = {
        {1, SIZE, slab->number, -EFAULT},       {SIZE, 1, slab->number, -EFAULT},
        {SIZE + 1, 0, slab->number, -EFAULT},   {0, SIZE + 1, slab->number, -EFAULT},
        {UINT64_MAX, 2, slab->number, -EFAULT}, {2, UINT64_MAX, slab->number, -EFAULT},
        {0, SIZE, slab->number + 1, -EINVAL},
    };
    for (unsigned i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        struct ipc_mr_reg m = {.hdr.type = IPC_MR_REG,
                               .pd = x.pd->handle,
                               .kind = IPC_MR_SLAB,
                               .obj = regions[i].obj,
                               .off = regions[i].off,
                               .len = regions[i].len};
        int rc = asks(&x, &m, sizeof(m), NULL);
        ck_assert_msg(rc == regions[i].rc, "region %u: %d", i, rc);
    }
    for (uint32_t kind = 0; kind < 8; kind++) {
        struct ipc_mr_reg m = {
            .hdr.type = IPC_MR_REG, .pd = x.pd->handle, .kind = kind, .len = 4096};
        if (kind != IPC_MR_SLAB && kind != IPC_MR_FD)
            ck_assert_int_eq(asks(&x, &m, sizeof(m), NULL), -ENOTSUP);
    }
    struct ipc_mr_reg without = {
        .hdr.type = IPC_MR_REG, .pd = x.pd->handle, .kind = IPC_MR_FD, .len = 4096};
    ck_assert_int_eq(asks(&x, &without, sizeof(without), NULL), -EBADF);
    struct {
        struct ipc_handle m;
        uint64_t more;
    } longer = {.m.hdr.type = IPC_PD_FREE};
    ck_assert_int_eq(asks(&x, &longer, sizeof(longer), NULL), -EINVAL); /* no such domain */
    longer.more = 1; /* a newer client's request, unknown to this daemon */
    ck_assert_int_eq(asks(&x, &longer, sizeof(longer), NULL), -E2BIG);
    end_close(&x);
    transfer(10);
}
END_TEST

/* QP-01 QP-16 SRQ-01: more than the device has, and missing objects. */
START_TEST(impossible_queues)
{
    const struct urnic_srq_attr good = {.max_wr = 4, .max_sge = 1};
    struct urnic_srq *srq, nowhere;
    struct urnic_qp *qp;
    end_open(&x, &rig, "urn0", SIZE);
    for (unsigned i = 0; i < 4; i++) {
        struct urnic_srq_attr attr = good;
        attr.max_wr = i == 1 ? 32769 : i == 2 ? 0 : 4;
        attr.max_sge = i == 3 ? 17 : 1;
        ck_assert_int_eq(urnic_create_srq(x.pd, &attr, NULL, &srq), i ? -EINVAL : 0);
    }
    nowhere = *srq;
    nowhere.handle += 1000;
    for (unsigned i = 0; i < 6; i++) {
        struct urnic_qp_init_attr init = {
            .send_cq = x.cq,
            .recv_cq = x.cq,
            .srq = i == 5 ? &nowhere : NULL,
            .cap = {.max_send_wr = i == 1 ? 16385 : 1,
                    .max_recv_wr = i == 2 ? 16385 : 1,
                    .max_send_sge = i == 3 ? 17 : 1,
                    .max_recv_sge = 1,
                    .max_inline_data = i == 4 ? 257 : 0},
            .qp_type = URNIC_QPT_RC,
        };
        ck_assert_int_eq(urnic_create_qp(x.pd, &init, &qp), i ? -EINVAL : 0);
        if (i == 0) {
            const struct urnic_qp_attr to = {.qp_state = URNIC_QPS_ERR + 1};
            ck_assert_int_eq(urnic_modify_qp(qp, &to, URNIC_QP_STATE), -EINVAL);
            ck_assert_int_eq(urnic_destroy_qp(qp), 0);
        }
    }
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    end_close(&x);
    transfer(10);
}
END_TEST

/* SHM-08: a client that doesn't read its answers is dropped; no other client waits for it. */
START_TEST(reads_no_answers)
{
    struct ipc_by_device m = {.hdr.type = IPC_STATS, .device = "urn0"};
    struct ipc_hello hello;
    uint64_t until = rig_now_ms() + 20000;
    int s = raw_connect();
    ipc_hello_fill(&hello, ~0ull);
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    while (send(s, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 || errno == EAGAIN)
        ck_assert_msg(rig_now_ms() < until, "it is still served");
    ck_assert(errno == EPIPE || errno == ECONNRESET);
    close(s);
    transfer(10);
}
END_TEST

/* SEC-22: objects of a client's own are mapped into the daemon, which has only so much room. The
 * system may have less (ENOMEM): under ThreadSanitizer little of the address space is left. */
START_TEST(mappings_within_quota)
{
    int fd = memfd_create("huge", MFD_CLOEXEC), rc = 0;
    struct urnic_mr *mr[8];
    unsigned n = 0;
    if (ftruncate(fd, 1ll << 40) < 0)
        return; /* not on this machine */
    end_open(&x, &rig, "urn0", SIZE);
    while (n < 8 && (rc = urnic_reg_mr_fd(x.pd, fd, 0, 1ull << 40, 0, 0, &mr[n])) == 0)
        n++;
    ck_assert(rc == -ENOMEM ? n <= 4 : rc == -EDQUOT && n == 4);
    if (rc == -EDQUOT) { /* a returned share can be taken again */
        ck_assert_int_eq(urnic_dereg_mr(mr[--n]), 0);
        ck_assert_int_eq(urnic_reg_mr_fd(x.pd, fd, 0, 1ull << 40, 0, 0, &mr[n++]), 0);
    }
    while (n > 0)
        urnic_dereg_mr(mr[--n]);
    close(fd);
    end_close(&x);
    transfer(10);
}
END_TEST

/* SEC-22, SHM-08: requests that wait for an absent neighbour are bounded. */
START_TEST(deferred_within_quota)
{
    static const uint8_t nobody[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 99};
    struct ipc_av_resolve m = {.hdr.type = IPC_AV_RESOLVE, .av = {.sgid_index = 2}};
    struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .device = "urn0", .worker = -1};
    unsigned refused = 0, unanswered = 0, answers = 0;
    struct ipc_hello hello;
    struct ipc_hdr hdr;
    int s = raw_connect();
    memcpy(m.av.dgid, nobody, sizeof(nobody));
    ipc_hello_fill(&hello, ~0ull);
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
    ck_assert_int_eq(ipc_send(s, &open, sizeof(open), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
    ck_assert_int_eq(hdr.status, 0);
    /* So many may wait; whatever comes on top is answered at once. */
    while (refused < 100) {
        ck_assert_int_eq(ipc_send(s, &m, sizeof(m), NULL, 0, 0), 0);
        if (++unanswered < 260)
            continue;
        struct pollfd p = {.fd = s, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 20000) == 1, "%u requests wait", unanswered);
        ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
        unanswered--;
        refused += hdr.status == -EDQUOT;
        ck_assert_msg(++answers < 5000, "%u of them refused", refused);
    }
    transfer(10);

    /* The client goes, and then the neighbour's answer comes: no other client gets it. */
    struct ipc_addr_admin come = {.hdr.type = IPC_ADDR_ADD, .device = "urn1", .prefix_len = 24};
    close(s);
    settle("urn0", "contexts", 1);
    s = raw_connect();
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
    memcpy(come.ip, nobody, sizeof(nobody));
    ck_assert_int_eq(rig_request(&rig, &come, sizeof(come), -1, &hdr, sizeof(hdr)), 0);
    struct ipc_hdr version = {.type = IPC_VERSION};
    for (unsigned i = 0; i < 20; i++) { /* while the news goes round */
        ck_assert_int_eq(ipc_send(s, &version, sizeof(version), NULL, 0, 0), 0);
        ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
        ck_assert_int_eq(hdr.type, IPC_VERSION);
        usleep(10000);
    }
    close(s);
    transfer(10);
}
END_TEST

/* SHM-08: while a client fills a shared receive queue as fast as it is emptied, the request that
 * sets its limit takes a ring of receives at most. One that is in error (SRQ-07) takes them all. */
static struct urnic_srq *bottomless;
static atomic_bool pumping;

static void *pump(void *arg)
{
    const struct ipc_ring *r = &bottomless->rq.ring;
    (void)arg;
    while (atomic_load(&pumping))
        atomic_store(&r->q->prod, atomic_load(&r->q->cons) + r->entries);
    return NULL;
}

static void spoil(struct urnic_srq *srq)
{
    const struct ipc_ring *r = &srq->rq.ring;
    struct urnic_async_event ev;
    for (unsigned i = 0; i < r->entries; i++)
        ((struct ipc_rqe *)(void *)(r->base + (size_t)i * r->stride))->nsge = IPC_SGE_MAX + 1;
    atomic_store(&r->q->prod, 1);
    client_ring(srq->ctx, srq->rq.doorbell);
    ck_assert_int_eq(end_post(&y, URNIC_WR_SEND, 0, 8, 0, 0, 1), 0);
    do {
        ck_assert_int_eq(urnic_get_async_event(srq->ctx, &ev), 0);
        urnic_ack_async_event(&ev);
    } while (ev.type != URNIC_EVENT_SRQ_ERR);
}

START_TEST(bottomless_receives)
{
    struct urnic_srq_attr attr = {.max_wr = 4096, .max_sge = 1};
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
                                      .qp_type = URNIC_QPT_RC};
    pthread_t t;
    end_open(&x, &rig, "urn0", SIZE);
    end_open(&y, &rig, "urn1", SIZE);
    ck_assert_int_eq(urnic_create_srq(x.pd, &attr, NULL, &bottomless), 0);
    init.send_cq = init.recv_cq = x.cq;
    init.srq = bottomless;
    ck_assert_int_eq(urnic_create_qp(x.pd, &init, &x.qp), 0);
    end_qp(&y, URNIC_QPT_RC);
    end_connect(&x, &y);
    spoil(bottomless);

    const struct ipc_ring *r = &bottomless->rq.ring; /* its doorbell isn't rung any more */
    atomic_store(&pumping, true);
    ck_assert_int_eq(pthread_create(&t, NULL, pump, NULL), 0);
    for (uint64_t until = rig_now_ms() + 500; rig_now_ms() < until;) {
        uint32_t before = atomic_load(&r->q->cons);
        ck_assert_int_eq(urnic_modify_srq_limit(bottomless, 1), 0);
        uint32_t taken = atomic_load(&r->q->cons) - before;
        ck_assert_msg(taken <= r->entries, "%u receives of a queue for %u", taken, r->entries);
    }
    atomic_store(&pumping, false);
    pthread_join(t, NULL);
    ck_assert_int_eq(urnic_destroy_qp(x.qp), 0);
    x.qp = NULL;
    ck_assert_int_eq(urnic_destroy_srq(bottomless), 0);
    end_close(&x);
    end_close(&y);
    transfer(10);
}
END_TEST

/* When this returns no thread of the daemon runs. The signal alone doesn't tell: on a busy machine
 * it takes a while until the thread that has to see it does. */
static void halt(void)
{
    int status = 0;
    ck_assert_int_eq(kill(rig.pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(rig.pid, &status, WUNTRACED), rig.pid);
    ck_assert(WIFSTOPPED(status));
}

/* EVT-01: a stopped daemon reads no kicks, until their socket is full; clients don't take it for
 * dead. */
START_TEST(kicks_unheard)
{
    uint64_t until = rig_now_ms() + 20000;
    useconds_t nap = 1000; /* in which it has to fall asleep */
    bool asleep = false;
    while (!asleep) {
        ck_assert_uint_lt(rig_now_ms(), until);
        usleep(nap);
        nap = nap < 100000 ? 2 * nap : nap;
        halt();
        asleep = atomic_load(&a.ctx->worker->sleeping);
        if (!asleep)
            kill(rig.pid, SIGCONT);
    }
    for (unsigned i = 0; i < 5000; i++)
        client_ring(a.ctx, a.qp->sq_doorbell);
    ssize_t n = send(a.ctx->kick_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    int why = errno;
    bool dead = client_dead(a.ctx);
    kill(rig.pid, SIGCONT);
    ck_assert_msg(n < 0 && why == EAGAIN, "there is still room for kicks");
    ck_assert(!dead);
    transfer(10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile_share");
    TCase *t = tcase_create("hostile");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, unwanted_descriptors);
    tcase_add_test(t, no_descriptors_left);
    tcase_add_test(t, users_leave_room);
    tcase_add_test(t, no_room_for_descriptors);
    tcase_add_test(t, no_descriptors_of_its_own);
    tcase_add_test(t, no_descriptors_for_its_first_queue);
    tcase_add_test(t, slabs_within_quota);
    tcase_add_test(t, slabs_by_number);
    tcase_add_test(t, mappings_within_quota);
    tcase_add_test(t, impossible_requests);
    tcase_add_test(t, impossible_queues);
    tcase_add_test(t, reads_no_answers);
    tcase_add_test(t, deferred_within_quota);
    tcase_add_test(t, bottomless_receives);
    suite_add_tcase(s, t);
    t = tcase_create("kicks");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, kicks_unheard);
    suite_add_tcase(s, t);
    return unit_run(s);
}
