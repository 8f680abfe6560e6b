/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users that take all that they can get, by as many connections as needed: others still get their
 * requests (SEC-22). With RIG_WORKERS=4 the connections are on all workers of the device in turn:
 * the limits are the device's, not each worker's.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "hostile_rig.h"
#include "ipc.h"
#include "unit.h"

#define CONTEXTS 8u
#define HOG      65500u
#define OTHER    65501u
#define FILES    1344u /* descriptors of the daemon, of which 320 are not for clients */

/* Any user may connect. False: there is only this user, which may do everything. */
static bool for_all_users(void)
{
    const struct rlimit few = {.rlim_cur = FILES, .rlim_max = FILES};
    if (geteuid() != 0)
        return false;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0); /* the daemon's, too */
    setup();
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    return true;
}

/* One more in this context; 0 or -errno. */
typedef int (*take_fn)(struct urnic_context *ctx);

static int take_pd(struct urnic_context *ctx)
{
    struct urnic_pd *pd;
    return urnic_alloc_pd(ctx, &pd);
}

/* Queue pairs that share a domain and a completion queue. */
static int take_qp(struct urnic_context *ctx)
{
    static const struct urnic_context *of;
    static struct urnic_pd *pd;
    static struct urnic_cq *cq;
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
                                      .qp_type = URNIC_QPT_RC};
    struct urnic_qp *qp;
    if (of != ctx) {
        if (urnic_alloc_pd(ctx, &pd) < 0 || urnic_create_cq(ctx, 4, NULL, NULL, &cq) < 0)
            return -1;
        of = ctx;
    }
    init.send_cq = init.recv_cq = cq;
    return urnic_create_qp(pd, &init, &qp);
}

/* Regions of the same memory. */
static int take_mr(struct urnic_context *ctx)
{
    static const struct urnic_context *of;
    static struct urnic_pd *pd;
    static void *mem;
    struct urnic_mr *mr;
    if (of != ctx) {
        if (urnic_alloc_pd(ctx, &pd) < 0 || urnic_alloc(ctx, 4096, &mem) < 0)
            return -1;
        of = ctx;
    }
    return urnic_reg_mr(pd, mem, 4096, URNIC_ACCESS_LOCAL_WRITE, &mr);
}

/* The ids of one context at a time, without an end: they go with the context. */
static int take_id_of(struct urnic_context *ctx, struct urnic_cm_id **id)
{
    static struct urnic_cm_channel *ch;
    static const struct urnic_context *of;
    int rc = of == ctx ? 0 : urnic_create_cm_channel(ctx, &ch);
    of = ctx;
    return rc < 0 ? rc : urnic_create_id(ch, URNIC_PS_TCP, NULL, id);
}

static int take_bound(struct urnic_context *ctx)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    struct urnic_cm_id *id;
    int rc = take_id_of(ctx, &id);
    return rc < 0 ? rc : urnic_bind_addr(id, (const struct sockaddr *)(const void *)&any);
}

static int take_listener(struct urnic_context *ctx)
{
    struct urnic_cm_id *id;
    int rc = take_id_of(ctx, &id);
    return rc < 0 ? rc : urnic_listen(id, 0); /* at a port of its own */
}

/* Groups of a queue pair's, each another one. */
static int take_group(struct urnic_context *ctx)
{
    static uint8_t gid[16] = {0xFF, 0x0E};
    static const struct urnic_context *of;
    static struct urnic_qp *qp;
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
                                      .qp_type = URNIC_QPT_UD};
    struct urnic_pd *pd;
    if (of != ctx) {
        if (urnic_alloc_pd(ctx, &pd) < 0 || urnic_create_cq(ctx, 4, NULL, NULL, &init.send_cq) < 0)
            return -1;
        init.recv_cq = init.send_cq;
        if (urnic_create_qp(pd, &init, &qp) < 0)
            return -1;
        of = ctx;
    }
    gid[15]++;
    return urnic_attach_mcast(qp, gid);
}

/* A queue pair that sends to a new neighbour of its own. Neighbours are link-local, so that there
 * are as many as needed. */
static int take_neighbour(struct urnic_context *ctx)
{
    static const struct urnic_context *of;
    static struct urnic_pd *pd;
    static struct urnic_cq *cq;
    static uint16_t next, sgid;
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_send_sge = 1},
                                      .qp_type = URNIC_QPT_RC};
    struct urnic_qp *qp;
    struct urnic_gid gid = {0};
    if (of != ctx) {
        for (sgid = 0; gid.raw[0] != 0xFE; sgid++)
            if (urnic_query_gid(ctx, sgid, &gid) < 0)
                return -1;
        sgid--;
        if (urnic_alloc_pd(ctx, &pd) < 0 || urnic_create_cq(ctx, 4, NULL, NULL, &cq) < 0)
            return -1;
        of = ctx;
    }
    init.send_cq = init.recv_cq = cq;
    int rc = urnic_create_qp(pd, &init, &qp);
    if (rc < 0)
        return -1;
    next++;
    struct urnic_qp_attr attr = {
        .qp_state = URNIC_QPS_INIT,
        .port_num = 1,
        .path_mtu = URNIC_MTU_1024,
        .dest_qp_num = 17,
        .ah_attr = {.dgid = {0xFE, 0x80, [8] = 0xAA, [14] = (uint8_t)(next >> 8), (uint8_t)next},
                    .sgid_index = sgid,
                    .dmac = {2, 0, 0, 0, (uint8_t)(next >> 8), (uint8_t)next}}};
    if (urnic_modify_qp(qp, &attr,
                        URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT |
                            URNIC_QP_ACCESS_FLAGS) < 0)
        return -1;
    attr.qp_state = URNIC_QPS_RTR;
    return urnic_modify_qp(qp, &attr,
                           URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU | URNIC_QP_DEST_QPN |
                               URNIC_QP_RQ_PSN | URNIC_QP_MAX_DEST_RD_ATOMIC |
                               URNIC_QP_MIN_RNR_TIMER);
}

static int take_channel(struct urnic_context *ctx)
{
    struct urnic_channel *ch;
    return urnic_create_channel(ctx, &ch);
}

static int take_slab(struct urnic_context *ctx)
{
    void *mem;
    return urnic_alloc(ctx, 1u << 30, &mem);
}

/* A completion queue as large as one may be. */
static int take_queues(struct urnic_context *ctx)
{
    struct urnic_cq *cq;
    return urnic_create_cq(ctx, 1u << 20, NULL, NULL, &cq);
}

/* A process of this user takes all objects that its contexts can get, reports their number, and
 * keeps them. */
static void hog(take_fn take, int told)
{
    struct urnic_context *ctx[CONTEXTS];
    unsigned n[2] = {0};
    int rc = 0;
    if (setgid(HOG) < 0 || setuid(HOG) < 0)
        _exit(2);
    for (unsigned i = 0; i < CONTEXTS; i++) {
        rc = urnic_open_at(rig.socket, "urn0", rig_next_worker(), &ctx[i]);
        if (rc < 0)
            break;
        while ((rc = take(ctx[i])) == 0)
            n[0]++;
        n[1] = (unsigned)-rc;
        if (rc != -EDQUOT)
            break;
    }
    if (write(told, n, sizeof(n)) != sizeof(n))
        _exit(3);
    for (;;)
        pause();
}

/* Another user: the objects for a transfer, and the transfer. */
static void lives(void)
{
    if (setgid(OTHER) < 0 || setuid(OTHER) < 0)
        _exit(2);
    hostile_pair();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(end_post(&x, URNIC_WR_RDMA_WRITE, 0, CHUNK, y.mr->iova, y.mr->rkey, i), 0);
        end_expect(&x, URNIC_WC_SUCCESS, i);
    }
    struct urnic_listener *l;
    ck_assert_int_eq(urnic_listen_addr(x.ctx, NULL, 0, 0, &l), 0);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    end_close(&x);
    end_open(&x, &rig, "urn0", SIZE);
    end_datagrams(&x);
    const uint8_t group[16] = {0xFF, 0x0E, [15] = 0xFF};
    ck_assert_int_eq(urnic_attach_mcast(x.qp, group), 0);
    ck_assert_int_eq(urnic_detach_mcast(x.qp, group), 0);
    end_close(&x);
    end_close(&y);
}

/* The number that the hog got in each of some rounds; meanwhile others work, and afterwards all
 * objects are returned. */
static unsigned hogged_again(take_fn take, unsigned rounds)
{
    int told[2], status;
    unsigned n[2];
    ck_assert_int_eq(pipe(told), 0);
    for (unsigned round = 0; round < rounds; round++) {
        pid_t pid = fork_apart();
        if (pid == 0)
            hog(take, told[1]);
        ck_assert_int_eq(read(told[0], n, sizeof(n)), sizeof(n));
        ck_assert_uint_eq(n[1], EDQUOT);
        ck_assert_uint_gt(counter("urn0", "client_over_quota"), 0);
        pid_t other = hostile(lives);
        ck_assert_int_eq(waitpid(other, &status, 0), other);
        ck_assert_int_eq(status, 0);
        transfer(10);
        finish(pid);
        settle("urn0", "contexts", 1);
    }
    teardown();
    return n[0];
}

static unsigned hogged(take_fn take)
{
    return hogged_again(take, 2);
}

START_TEST(all_domains)
{
    if (for_all_users()) /* user `a` has one already */
        ck_assert_uint_eq(hogged(take_pd), 65536 / 8 * 7 - 1);
}
END_TEST

/* Several processes of one user at the same time. */
START_TEST(all_domains_at_once)
{
    unsigned n[2], sum = 0;
    pid_t pid[4];
    int told[2];
    if (!for_all_users())
        return;
    ck_assert_int_eq(pipe(told), 0);
    for (unsigned i = 0; i < 4; i++) {
        pid[i] = fork_apart();
        if (pid[i] == 0)
            hog(take_pd, told[1]);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(read(told[0], n, sizeof(n)), sizeof(n));
        ck_assert_uint_eq(n[1], EDQUOT);
        sum += n[0];
    }
    ck_assert_uint_eq(sum, 65536 / 8 * 7 - 1); /* `a` has one already */
    transfer(10);
    for (unsigned i = 0; i < 4; i++)
        finish(pid[i]);
    settle("urn0", "contexts", 1);
    teardown();
}
END_TEST

START_TEST(all_queue_pairs)
{
    if (for_all_users()) /* `a` has one */
        ck_assert_uint_eq(hogged(take_qp), 65536 / 8 * 7 - 1);
}
END_TEST

START_TEST(all_regions)
{
    if (for_all_users()) /* `a` has one; a round takes seconds */
        ck_assert_uint_eq(hogged_again(take_mr, 1), 262144 / 8 * 7 - 1);
}
END_TEST

START_TEST(all_connections)
{
    if (for_all_users())
        ck_assert_uint_eq(hogged(take_bound), 65536 / 8 * 7);
}
END_TEST

/* Ports, too: there are 16,384 to choose from, and each request looks through all listeners. */
START_TEST(all_listeners)
{
    if (for_all_users())
        ck_assert_uint_eq(hogged(take_listener), 2048 / 8 * 7);
}
END_TEST

START_TEST(all_groups)
{
    if (for_all_users())
        ck_assert_uint_eq(hogged(take_group), 64 / 8 * 7);
}
END_TEST

START_TEST(all_neighbours)
{
    if (for_all_users()) /* `a` sends to one */
        ck_assert_uint_eq(hogged(take_neighbour), 4096 / 8 * 7 - 1);
}
END_TEST

START_TEST(all_descriptors)
{
    if (for_all_users()) {
        unsigned n = hogged(take_channel);
        ck_assert_uint_le(n, (FILES - 320) / 8 * 7);
        ck_assert_uint_ge(n, (FILES - 320) / 8 * 7 - 100); /* contexts, `a` and `b` have some */
    }
}
END_TEST

/* This many regions of this size are within the share of the machine's memory. */
static void within_memory(uint64_t n, uint64_t octets)
{
    struct sysinfo mem;
    ck_assert_int_eq(sysinfo(&mem), 0);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(n * octets, ((uint64_t)mem.totalram + mem.totalswap) * mem.mem_unit / 8 * 7);
}

START_TEST(all_memory)
{
    if (for_all_users())
        within_memory(hogged(take_slab), 1ull << 30);
}
END_TEST

START_TEST(all_queue_memory)
{
    if (for_all_users())
        within_memory(hogged(take_queues), 2 * (sizeof(struct ipc_cqe) << 20)); /* ours, too */
}
END_TEST

/* ---- keys of datagrams ---- */

#define GUESSERS 16u   /* queue pairs that send wrong keys */
#define GUESSES  1500u /* ... guesses each, then one after the other */
#define HEARD    300u  /* datagrams of the other user, none of which may be lost */

static int qpn_pipe[2], go_pipe[2];

/* A datagram of 64 octets to urn1's queue pair; true: the send queue has taken it, and sent it. */
static bool datagram(struct end *e, struct urnic_qp *qp, uint32_t qpn, uint32_t qkey)
{
    struct urnic_ah ah = {.ctx = e->ctx, .av = {.sgid_index = 3, .hop_limit = 64}};
    struct urnic_sge sge = {(uintptr_t)e->mem, 64, e->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_SEND,
        .send_flags = URNIC_SEND_SIGNALED,
        .ud = {.ah = &ah, .remote_qpn = qpn, .remote_qkey = qkey},
    };
    const uint8_t to[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 2};
    struct urnic_wc wc;
    memcpy(ah.av.dgid, to, sizeof(to));
    if (urnic_post_send(qp, &wr, NULL) < 0)
        return false;
    end_wait(e, &wc, 10000);
    return wc.status == URNIC_WC_SUCCESS;
}

/* Guesses until it is killed. */
static void guesses(void)
{
    struct urnic_qp *qp[GUESSERS];
    uint32_t qpn, qkey = 0x1000;
    if (setgid(HOG) < 0 || setuid(HOG) < 0)
        _exit(2);
    end_open(&x, &rig, "urn0", SIZE);
    for (unsigned i = 0; i < GUESSERS; i++) {
        end_datagrams(&x);
        qp[i] = x.qp;
    }
    ck_assert_int_eq(read(qpn_pipe[0], &qpn, sizeof(qpn)), sizeof(qpn));
    for (unsigned i = 0; i < GUESSERS; i++)
        for (unsigned k = 0; k < GUESSES; k++)
            ck_assert(datagram(&x, qp[i], qpn, qkey++));
    ck_assert_int_eq(write(go_pipe[1], "!", 1), 1);
    for (unsigned i = 0;; i++) {
        datagram(&x, qp[i % GUESSERS], qpn, qkey++);
        usleep(200);
    }
}

/* Another user's datagrams, with the right key, from the same device to the same queue pair. */
static void is_heard(void)
{
    struct urnic_wc wc;
    char go;
    if (setgid(OTHER) < 0 || setuid(OTHER) < 0)
        _exit(2);
    end_open(&x, &rig, "urn0", SIZE);
    end_open(&y, &rig, "urn1", SIZE);
    end_datagrams(&x);
    end_datagrams(&y);
    const uint32_t qpn = urnic_qp_num(y.qp);
    ck_assert_int_eq(write(qpn_pipe[1], &qpn, sizeof(qpn)), sizeof(qpn));
    ck_assert_int_eq(read(go_pipe[0], &go, 1), 1);
    for (unsigned i = 0; i < HEARD; i++) {
        ck_assert_int_eq(end_post_recv(&y, 0, 1024, i), 0);
        ck_assert(datagram(&x, x.qp, qpn, 0x11));
        end_wait(&y, &wc, 2000); /* it isn't lost */
        ck_assert_uint_eq(wc.status, URNIC_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(wc.src_qp, urnic_qp_num(x.qp));
    }
    end_close(&x);
    end_close(&y);
}

/* SEC-09: one user's wrong Q_Keys, from as many queue pairs as it likes, cost another user, whose
 * datagrams come from the same address, nothing. */
START_TEST(wrong_keys_cost_others_nothing)
{
    int status;
    if (!for_all_users())
        return;
    ck_assert_int_eq(pipe(qpn_pipe), 0);
    ck_assert_int_eq(pipe(go_pipe), 0);
    pid_t other = hostile(is_heard), guesser = hostile(guesses);
    ck_assert_int_eq(waitpid(other, &status, 0), other);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_gt(counter("urn1", "rx_bad_qkey"), 1000);
    ck_assert_int_eq(waitpid(guesser, &status, WNOHANG), 0); /* it has guessed to the end */
    finish(guesser);
    transfer(10);
    teardown();
}
END_TEST

/* ---- descriptors under way ---- */

#define OWNER  65502u /* of the daemon, which is not root's here */
#define UNREAD 200u

static void await_taken(int sock)
{
    int octets;
    while (ioctl(sock, SIOCOUTQ, &octets) == 0 && octets > 0)
        usleep(1000);
}

/* Asks for descriptors and receives none of them, on as many connections as it gets. */
static unsigned leaves_unread(int *sock, bool fall_out)
{
    unsigned i;
    struct ipc_slab_alloc m = {.hdr.type = IPC_SLAB_ALLOC, .size = 4096};
    struct urnic_context *ctx[CONTEXTS];

    if (setgid(HOG) < 0 || setuid(HOG) < 0)
        _exit(2);
    for (i = 0; i < CONTEXTS; i++) {
        if (urnic_open_at(rig.socket, "urn0", -1, &ctx[i]) < 0)
            break;
        sock[i] = ctx[i]->conn.sock;
        for (unsigned n = 0; n < UNREAD; n++)
            ipc_send(sock[i], &m, sizeof(m), NULL, 0, 0);
        await_taken(sock[i]);
        if (fall_out) /* this is no message: the daemon drops it */
            ipc_send(sock[i], "?", 1, NULL, 0, 0);
    }
    return i;
}

static unsigned receive_all(int sock, unsigned *refused)
{
    struct ipc_hdr hdr;
    unsigned n = 0;
    for (unsigned i = 0; i < UNREAD; i++) {
        int fds[IPC_FD_MAX];
        unsigned nfds = IPC_FD_MAX;
        ssize_t len = ipc_recv(sock, &hdr, sizeof(hdr), fds, &nfds, 0);
        if (len == 0)
            break;
        /* a message that doesn't fit is cut off, with its descriptors: the header shows it */
        n += len == -EMSGSIZE;
        *refused += len > 0 && hdr.status == -EDQUOT;
    }
    return n;
}

/* Reports when it has done so; receives on command, and then gets some again. */
static void unread_hog(int told, int go, bool fall_out)
{
    struct ipc_slab_alloc m = {.hdr.type = IPC_SLAB_ALLOC, .size = 4096};
    unsigned sum[2] = {0}, again = 0;
    int sock[CONTEXTS];
    char c = 0;
    unsigned n = leaves_unread(sock, fall_out);
    if (write(told, &c, 1) != 1 || read(go, &c, 1) != 1)
        _exit(4);
    for (unsigned i = 0; i < n; i++)
        sum[0] += receive_all(sock[i], &sum[1]);
    for (unsigned i = 0; !fall_out && i < n; i++) {
        struct ipc_slab reply;
        struct ipc_handle first = {.hdr.type = IPC_SLAB_FREE, .handle = 1};
        unsigned nfds = 0;
        /* An unregistered object keeps a descriptor in the daemon, too. */
        ipc_send(sock[i], &first, sizeof(first), NULL, 0, 0);
        ipc_recv(sock[i], &reply, sizeof(reply), NULL, &nfds, 0);
        ipc_send(sock[i], &m, sizeof(m), NULL, 0, 0);
        again +=
            ipc_recv(sock[i], &reply, sizeof(reply), NULL, &nfds, 0) > 0 && reply.hdr.status == 0;
    }
    if (write(told, sum, sizeof(sum)) != sizeof(sum) ||
        write(told, &again, sizeof(again)) != sizeof(again))
        _exit(5);
    for (;;)
        pause();
}

static void unread_descriptors(bool fall_out)
{
    int told[2], go[2], status;
    unsigned sum[2], again;
    char c = 0;
    rig.uid = OWNER;
    if (!for_all_users())
        return;
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t pid = fork_apart();
    if (pid == 0)
        unread_hog(told[1], go[0], fall_out);
    ck_assert_int_eq(read(told[0], &c, 1), 1);
    pid_t other = hostile(lives);
    ck_assert_int_eq(waitpid(other, &status, 0), other);
    ck_assert_int_eq(status, 0);
    transfer(10);
    ck_assert_int_eq(write(go[1], &c, 1), 1);
    ck_assert_int_eq(read(told[0], sum, sizeof(sum)), sizeof(sum));
    ck_assert_int_eq(read(told[0], &again, sizeof(again)), sizeof(again));
    ck_assert_uint_le(sum[0], (FILES - 320) / 8 * 7);
    ck_assert_uint_gt(sum[0], CONTEXTS * 100 / 2);
    ck_assert_uint_gt(sum[1], 0);
    ck_assert(fall_out || again > 0);
    finish(pid);
    settle("urn0", "contexts", 1);
    teardown();
}

/* SEC-22: descriptors sent to a user's client and not received count for the user. */
START_TEST(all_unread_descriptors)
{
    unread_descriptors(false);
}
END_TEST

/* They do when his connections have ended, as long as he holds the sockets. */
START_TEST(all_unread_descriptors_of_the_dead)
{
    unread_descriptors(true);
}
END_TEST

UNIT_MAIN("users", all_unread_descriptors, all_unread_descriptors_of_the_dead, all_domains,
          all_domains_at_once, all_queue_pairs, all_regions, all_connections, all_listeners,
          all_groups, all_neighbours, all_descriptors, all_memory, all_queue_memory,
          wrong_keys_cost_others_nothing)
