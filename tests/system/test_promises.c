/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Promises of the public headers to programs that confuse objects, omit arguments, or are faster
 * than events.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "huge.h"
#include "ipc.h"
#include "unit.h"

#define SIZE (64u << 10)
#define PORT 4802

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

/* ---- memory ---- */

START_TEST(has_huge_pages)
{
    void *large, *small;
    up();
    ck_assert_int_eq(urnic_alloc(a.ctx, 4u << 20, &large), 0);
    ck_assert_int_eq(urnic_alloc(a.ctx, 4096, &small), 0);
    if (huge_possible())
        ck_assert_uint_ge(huge_octets(large), 2u << 20);
    ck_assert_uint_eq(huge_octets(small), 0);
    ck_assert_int_eq(urnic_free(a.ctx, large), 0);
    ck_assert_int_eq(urnic_free(a.ctx, small), 0);
    down();
}
END_TEST

/* ---- objects of another context ---- */

/* Handles are numbers that restart in each context: two contexts with the same operations in the
 * same order have equal handles, which mustn't be accepted in the other context. */
START_TEST(keeps_contexts_apart)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC};
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *ia, *ib;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    up();
    ck_assert_int_eq(urnic_create_cq(a.ctx, 4, NULL, b.channel, &cq), -EINVAL);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &ia), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &ib), 0);
    ck_assert_int_eq(urnic_listen(ia, 0), 0); /* the daemon knows of them */
    ck_assert_int_eq(urnic_listen(ib, 0), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_id_set_qp(ib, a.qp), -EINVAL);
    ck_assert_ptr_null(urnic_id_qp(ib));
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_id_qp(ib, a.pd, &init, &qp), -EINVAL);
    ck_assert_ptr_null(urnic_id_qp(ib));
    ck_assert_int_eq(urnic_destroy_id(ia), 0);
    ck_assert_int_eq(urnic_destroy_id(ib), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    down();
}
END_TEST

/* The index of the address that a handle sends from means another one in another context, and the
 * places of segments are counted from where their region begins. */
START_TEST(keeps_handles_apart)
{
    struct urnic_ah_attr attr = {.sgid_index = 3, .hop_limit = 1};
    struct urnic_send_wr wr = {.opcode = URNIC_WR_SEND, .ud = {.remote_qpn = 2, .remote_qkey = 1}};
    up();
    end_datagrams(&a);
    attr.dgid[10] = attr.dgid[11] = 0xFF;
    inet_pton(AF_INET, "10.0.0.1", attr.dgid + 12);
    ck_assert_int_eq(urnic_create_ah(b.pd, &attr, &wr.ud.ah), 0);
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), -EINVAL);
    ck_assert_int_eq(urnic_destroy_ah(wr.ud.ah), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    wr = (struct urnic_send_wr){.opcode = URNIC_WR_REG_MR, .reg_mr.mr = b.mr};
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), -EINVAL);
    wr.reg_mr.mr = NULL;
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), -EINVAL);
    down();
}
END_TEST

/* A context that asks ahead: thousands of answers, one after the other, would take seconds. */
#define AHEAD 64u

static int context_of(const char *device)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .worker = -1};
    struct ipc_hello hello;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, rig.socket, strlen(rig.socket) + 1);
    ck_assert_int_eq(connect(s, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    ipc_hello_fill(&hello, ~0ull);
    memcpy(open.device, device, strlen(device));
    ck_assert_int_eq(ipc_send(s, &hello, sizeof(hello), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hello, sizeof(hello), 0), 0);
    ck_assert_int_eq(ipc_send(s, &open, sizeof(open), NULL, 0, 0), 0);
    ck_assert_int_gt(recv(s, &hello, sizeof(hello), 0), 0);
    return s;
}

static int answer(int s)
{
    struct ipc_hdr hdr;
    ck_assert_int_gt(recv(s, &hdr, sizeof(hdr), 0), 0);
    return hdr.status;
}

/* The number of granted requests, and the error of the next one. */
static unsigned granted(int s, const void *msg, size_t len, int *refusal)
{
    unsigned sent = 0, n = 0;
    for (*refusal = 0; *refusal == 0 || n < sent;) {
        while (*refusal == 0 && sent - n < AHEAD) {
            ck_assert_int_eq(ipc_send(s, msg, len, NULL, 0, 0), 0);
            sent++;
        }
        int rc = answer(s);
        if (rc < 0 && *refusal == 0)
            *refusal = rc;
        if (rc < 0)
            sent--;
        else
            n++;
    }
    return n;
}

/* MR-15 SEC-22: a context gets as many objects as the device says, and not one more. */
START_TEST(has_what_it_says)
{
    const struct ipc_hdr pd = {.type = IPC_PD_ALLOC};
    /* The first objects of a context: handle 1 is a domain, 2 a slab, 3 a completion queue. */
    const struct ipc_slab_alloc slab = {.hdr.type = IPC_SLAB_ALLOC, .size = 4096};
    const struct ipc_cq_create cq = {.hdr.type = IPC_CQ_CREATE, .cqe = 1};
    const struct ipc_mr_reg mr = {
        .hdr.type = IPC_MR_REG, .pd = 1, .kind = IPC_MR_SLAB, .obj = 2, .len = 64};
    const struct ipc_mw_alloc mw = {.hdr.type = IPC_MW_ALLOC, .pd = 1, .mw_type = 1};
    const struct ipc_srq_create srq = {
        .hdr.type = IPC_SRQ_CREATE, .pd = 1, .max_wr = 1, .max_sge = 1};
    const struct ipc_qp_create qp = {
        .hdr.type = IPC_QP_CREATE, .pd = 1, .type = URNIC_QPT_RC, .send_cq = 3, .recv_cq = 3};
    struct urnic_device_attr has;

    up();
    ck_assert_int_eq(urnic_query_device(a.ctx, &has), 0);
    const struct {
        const char *what;
        const void *msg;
        size_t len;
        unsigned most;
    } kinds[] = {
        {"domains", &pd, sizeof(pd), has.max_pd - 1}, {"regions", &mr, sizeof(mr), has.max_mr},
        {"windows", &mw, sizeof(mw), has.max_mw},     {"CQs", &cq, sizeof(cq), has.max_cq - 1},
        {"SRQs", &srq, sizeof(srq), has.max_srq},     {"queue pairs", &qp, sizeof(qp), has.max_qp},
    };
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int rc, s = context_of("urn0");
        ck_assert_int_eq(ipc_send(s, &pd, sizeof(pd), NULL, 0, 0), 0);
        ck_assert_int_eq(answer(s), 0);
        ck_assert_int_eq(ipc_send(s, &slab, sizeof(slab), NULL, 0, 0), 0);
        ck_assert_int_eq(answer(s), 0);
        ck_assert_int_eq(ipc_send(s, &cq, sizeof(cq), NULL, 0, 0), 0);
        ck_assert_int_eq(answer(s), 0);
        unsigned n = granted(s, kinds[i].msg, kinds[i].len, &rc);
        ck_assert_msg(n == kinds[i].most && rc == -EDQUOT, "%u %s, then %s", n, kinds[i].what,
                      strerror(-rc));
        close(s);
    }
    down();
}
END_TEST

/* QP-03: the largest queues there can be. */
START_TEST(has_the_queues_it_says)
{
    struct urnic_device_attr has;
    struct urnic_cq *cq;
    up();
    ck_assert_int_eq(urnic_query_device(a.ctx, &has), 0);
    ck_assert_int_eq(urnic_create_cq(a.ctx, (int)has.max_cqe, NULL, NULL, &cq), 0);
    struct urnic_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = has.max_qp_wr,
                .max_recv_wr = has.max_qp_wr,
                .max_send_sge = has.max_send_sge,
                .max_recv_sge = has.max_recv_sge,
                .max_inline_data = has.max_inline},
        .qp_type = URNIC_QPT_RC,
    };
    struct urnic_srq_attr attr = {.max_wr = has.max_srq_wr, .max_sge = has.max_srq_sge};
    struct urnic_srq *srq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &a.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    a.qp = NULL;
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &srq), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    down();
}
END_TEST

/* A queue pair without its domain or a completion queue is refused with -EINVAL. */
START_TEST(misses_objects)
{
    struct urnic_conn_attr attr = {.qp.qp_type = URNIC_QPT_RC};
    struct urnic_cm_channel *ca;
    struct urnic_cm_id *id;
    struct urnic_conn *conn;
    struct urnic_qp *qp;
    up();
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
    for (unsigned i = 0; i < 3; i++) {
        attr.pd = i == 0 ? NULL : a.pd;
        attr.qp.send_cq = i == 1 ? NULL : a.cq;
        attr.qp.recv_cq = i == 2 ? NULL : a.cq;
        ck_assert_int_eq(urnic_create_qp(attr.pd, &attr.qp, &qp), -EINVAL);
        ck_assert_int_eq(urnic_create_id_qp(id, attr.pd, &attr.qp, &qp), -EINVAL);
        ck_assert_int_eq(urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, NULL, NULL, &conn),
                         -EINVAL);
    }
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    down();
}
END_TEST

#define CHANNELS 4096

/* SEC-22: a context can have as many channels as the headers say; with all of them, its other
 * objects still work. */
START_TEST(counts_channels)
{
    static struct urnic_cm_channel *cm[CHANNELS + 1];
    static struct urnic_channel *ch[CHANNELS + 1];
    struct urnic_cq *cq;
    struct rlimit files;
    unsigned n = 1, m = 0; /* the end has one */
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    ck_assert_msg(files.rlim_cur > CHANNELS + 500, "ulimit -Hn is too low for this test");
    up();
    while (n < CHANNELS && urnic_create_channel(a.ctx, &ch[n]) == 0)
        n++;
    ck_assert_uint_eq(n, CHANNELS);
    ck_assert_int_eq(urnic_create_channel(a.ctx, &ch[n]), -EDQUOT);
    ck_assert_int_eq(urnic_create_cq(a.ctx, 1, NULL, ch[n - 1], &cq), 0);
    ck_assert_int_eq(urnic_destroy_cq(cq), 0);
    while (n > 1)
        ck_assert_int_eq(urnic_destroy_channel(ch[--n]), 0);
    while (m < CHANNELS && urnic_create_cm_channel(a.ctx, &cm[m]) == 0)
        m++;
    ck_assert_uint_eq(m, CHANNELS);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &cm[m]), -EDQUOT);
    while (m > 0)
        ck_assert_int_eq(urnic_destroy_cm_channel(cm[--m]), 0);
    down();
}
END_TEST

#define CONNECTIONS 1000

/* Ids share a channel, any number of them: a server with many connections needs one context. */
START_TEST(serves_a_thousand)
{
    static struct urnic_cm_id *active[CONNECTIONS], *passive[CONNECTIONS];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                      .qp_type = URNIC_QPT_RC};
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener;
    struct urnic_qp *qp;
    up();
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    inet_pton(AF_INET, "10.0.0.2", &at.sin_addr);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active[i]), 0);
        ck_assert_int_eq(urnic_resolve(active[i], NULL, (struct sockaddr *)&at, 5000), 0);
        await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
        init.send_cq = init.recv_cq = a.cq;
        ck_assert_int_eq(urnic_create_id_qp(active[i], a.pd, &init, &qp), 0);
        ck_assert_int_eq(urnic_connect(active[i], NULL), 0);
        passive[i] = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
        init.send_cq = init.recv_cq = b.cq;
        ck_assert_int_eq(urnic_create_id_qp(passive[i], b.pd, &init, &qp), 0);
        ck_assert_int_eq(urnic_accept(passive[i], NULL), 0);
        ck_assert_ptr_eq(await_cm(ca, URNIC_CM_ESTABLISHED).id, active[i]);
        ck_assert_ptr_eq(await_cm(cb, URNIC_CM_ESTABLISHED).id, passive[i]);
    }
    for (unsigned i = 0; i < CONNECTIONS; i += CONNECTIONS - 1) { /* the first and the last */
        a.qp = urnic_id_qp(active[i]);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 4096, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
    }
    a.qp = NULL;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        ck_assert_int_eq(urnic_destroy_ep(active[i]), 0);
        ck_assert_int_eq(urnic_destroy_ep(passive[i]), 0);
    }
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    down();
}
END_TEST

/* ---- attributes ---- */

/* As in verbs, attributes that the mask doesn't name are ignored, the state included. */
START_TEST(looks_at_the_mask_only)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
    up();
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    memset(&attr, 0xA5, sizeof(attr));
    attr.qp_access_flags = URNIC_ACCESS_REMOTE_READ;
    ck_assert_int_eq(urnic_modify_qp(a.qp, &attr, URNIC_QP_ACCESS_FLAGS), 0);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_int_eq(attr.qp_state, URNIC_QPS_INIT);
    ck_assert_uint_eq(attr.qp_access_flags, URNIC_ACCESS_REMOTE_READ);
    down();
}
END_TEST

/* An IPv6 destination can't be reached from an IPv4 address: no neighbour is asked for it first. */
START_TEST(refuses_mixed_families)
{
    struct urnic_ah_attr attr = {.sgid_index = 3, .hop_limit = 1};
    struct urnic_ah *ah;
    up();
    inet_pton(AF_INET6, "fd00::77", attr.dgid);
    uint64_t begin = rig_now_ms();
    ck_assert_int_eq(urnic_create_ah(a.pd, &attr, &ah), -EINVAL);
    ck_assert_uint_lt(rig_now_ms() - begin, 2000); /* a neighbour is asked for 3 s */
    down();
}
END_TEST

/* QP-15: a rate limit that can't be had leaves the state as it was. */
START_TEST(moves_all_or_nothing)
{
    const unsigned to_rts = URNIC_QP_STATE | URNIC_QP_SQ_PSN;
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1, .qkey = 1};
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_UD, .cc = "swift"};
    struct urnic_qp *qp;
    up();
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), 0);
    ck_assert_int_eq(
        urnic_modify_qp(qp, &attr,
                        URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX | URNIC_QP_QKEY),
        0);
    attr.qp_state = URNIC_QPS_RTR;
    ck_assert_int_eq(urnic_modify_qp(qp, &attr, URNIC_QP_STATE), 0);
    attr.qp_state = URNIC_QPS_RTS;
    attr.rate_limit = 1000;
    ck_assert_int_eq(urnic_modify_qp(qp, &attr, to_rts | URNIC_QP_RATE_LIMIT), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_query_qp(qp, &attr), 0);
    ck_assert_int_eq(attr.qp_state, URNIC_QPS_RTR);
    attr.qp_state = URNIC_QPS_RTS;
    ck_assert_int_eq(urnic_modify_qp(qp, &attr, to_rts), 0);
    ck_assert_int_eq(urnic_destroy_qp(qp), 0);
    down();
}
END_TEST

/* ---- memory ---- */

/* MR-04: a region of 0 octets has keys, and accepts only requests of 0 octets. */
/* A region from address 0: work requests and peers name `iova`. */
START_TEST(counts_from_zero)
{
    const unsigned access = END_ACCESS | URNIC_ACCESS_ZERO_BASED;
    struct urnic_mr *mr;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_reg_mr(b.pd, b.mem + 4096, 4096, access, &mr), 0);
    ck_assert_uint_eq(mr->iova, 0);
    ck_assert_ptr_eq(mr->addr, b.mem + 4096);
    memset(a.mem, 7, 16);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 16, mr->iova, mr->rkey, 1), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(memcmp(a.mem, b.mem + 4096, 16), 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    ck_assert_int_eq(urnic_reg_mr_iova(b.pd, b.mem, 4096, 1 << 20, access, &mr), 0);
    ck_assert_uint_eq(mr->iova, 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    down();
}
END_TEST

START_TEST(registers_nothing)
{
    struct urnic_mr *mr, *remote;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_reg_mr(b.pd, b.mem, 0, END_ACCESS, &remote), 0);
    ck_assert_uint_eq(remote->length, 0);
    ck_assert_uint_ne(remote->rkey, 0);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 0, remote->iova, remote->rkey, 1), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 1, remote->iova, remote->rkey, 2), 0);
    end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 2);
    ck_assert_int_eq(urnic_dereg_mr(remote), 0);

    /* The same of local memory; at the end of it, too. */
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_int_eq(urnic_reg_mr(a.pd, a.mem + SIZE, 0, END_ACCESS, &mr), 0);
    ck_assert_int_eq(urnic_free(a.ctx, a.mem), -EBUSY);
    struct urnic_sge sge = {.addr = mr->iova, .lkey = mr->lkey};
    const struct urnic_send_wr wr = {.wr_id = 3,
                                     .sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = URNIC_WR_RDMA_WRITE,
                                     .send_flags = URNIC_SEND_SIGNALED,
                                     .rdma = {.remote_addr = b.mr->iova, .rkey = b.mr->rkey}};
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 3);
    sge.length = 1;
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    end_expect(&a, URNIC_WC_LOC_PROT_ERR, 3);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    down();
}
END_TEST

/* A given MAC address isn't resolved: no host has this IP address. */
START_TEST(takes_given_macs)
{
    struct urnic_ah_attr to = {.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    struct urnic_port_attr port;
    struct urnic_ah *ah;
    struct urnic_wc wc;
    up();
    end_datagrams(&a);
    end_datagrams(&b);
    ck_assert_int_eq(urnic_query_port(b.ctx, &port), 0);
    memcpy(to.dmac, port.mac, sizeof(to.dmac));
    to.dgid[15] = 77;
    uint64_t start = rig_now_ms();
    ck_assert_int_eq(urnic_create_ah(a.pd, &to, &ah), 0);
    ck_assert_uint_lt(rig_now_ms() - start, 1000);
    ck_assert_int_eq(urnic_destroy_ah(ah), 0);

    /* One that is wrong is used as it is, too. */
    to.dgid[15] = 2;
    for (int right = 0; right < 2; right++) {
        to.dmac[5] ^= 1;
        ck_assert_int_eq(urnic_create_ah(a.pd, &to, &ah), 0);
        ck_assert_int_eq(end_post_recv(&b, 0, 64, 10), 0);
        const struct urnic_send_wr wr = {
            .wr_id = 1,
            .opcode = URNIC_WR_SEND,
            .send_flags = URNIC_SEND_SIGNALED,
            .ud = {.ah = ah, .remote_qpn = urnic_qp_num(b.qp), .remote_qkey = 0x11}};
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        if (right)
            end_expect(&b, URNIC_WC_SUCCESS, 10);
        else
            usleep(50000);
        ck_assert_int_eq(urnic_poll_cq(b.cq, 1, &wc), 0);
        ck_assert_int_eq(urnic_destroy_ah(ah), 0);
    }
    down();
}
END_TEST

/* ---- turns ---- */

#define TURN_SENDS 64u
#define TURN_RECVS 40u

/* A stream of messages for a receiver that has fewer receives, and posts each again. Sender,
 * receiver and daemon share a core. Returns the number of times that the daemon found no receive.
 */
static uint64_t stream_to_few_places(void)
{
    uint64_t before = rig_counter(&rig, "urn1", "tx_rnr_nak");
    unsigned sent = 0, received = 0;
    struct urnic_wc wc;
    for (unsigned i = 0; i < TURN_RECVS; i++)
        ck_assert_int_eq(end_post_recv(&b, i * 4096, 4096, i), 0);
    for (unsigned i = 0; i < TURN_SENDS; i++)
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 4096, 0, 0, i), 0);
    while (sent < TURN_SENDS || received < TURN_SENDS) {
        bool any = urnic_poll_cq(b.cq, 1, &wc) == 1;
        if (any) {
            ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
            if (++received <= TURN_SENDS - TURN_RECVS)
                ck_assert_int_eq(end_post_recv(&b, wc.wr_id * 4096, 4096, wc.wr_id), 0);
        }
        if (urnic_poll_cq(a.cq, 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
            sent++;
        } else if (!any) {
            sched_yield();
        }
    }
    return rig_counter(&rig, "urn1", "tx_rnr_nak") - before;
}

/* RNR-01: an application on the worker's core that reposts receives at each turn gets a turn before
 * its peer gets an RNR NAK. It may miss one while other threads need the core. */
START_TEST(lets_receivers_in)
{
    const char *args[] = {"--cpu",    "0",
                          "--device", "name=urn0,port=mem:L,addr=10.0.0.1/24",
                          "--device", "name=urn1,port=mem:L,addr=10.0.0.2/24",
                          NULL};
    cpu_set_t first;
    unsigned good = 0;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(first), &first), 0);
    rig_start(&rig, args);
    end_open(&a, &rig, "urn0", TURN_RECVS * 4096);
    end_open(&b, &rig, "urn1", TURN_RECVS * 4096);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    for (unsigned i = 0; i < 200 && good < 3; i++)
        good += stream_to_few_places() == 0;
    ck_assert_uint_eq(good, 3);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* ---- asynchronous events ---- */

#define EVENTS 1000u

/* Cause an event for each of `n` queues: their limits are above their fill level. */
static void raise_limits(struct urnic_srq **srq, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(urnic_modify_srq_limit(srq[i], 4), 0);
}

/* EVT-04: a slow client with a thousand objects gets an event for each, except for objects
 * destroyed before it reads. */
START_TEST(tells_all)
{
    struct urnic_srq *srq[EVENTS];
    struct urnic_async_event ev;
    up();
    for (uintptr_t i = 0; i < EVENTS; i++) {
        struct urnic_srq_attr attr = {.max_wr = 4, .max_sge = 1};
        ck_assert_int_eq(urnic_create_srq(a.pd, &attr, (void *)i, &srq[i]), 0);
    }
    raise_limits(srq, EVENTS);
    struct pollfd p = {.fd = urnic_async_fd(a.ctx), .events = POLLIN};
    for (uintptr_t i = 0; i < EVENTS; i++) {
        ck_assert_msg(poll(&p, 1, 5000) == 1, "after %zu events", (size_t)i);
        ck_assert_int_eq(urnic_get_async_event(a.ctx, &ev), 0);
        ck_assert_int_eq(ev.type, URNIC_EVENT_SRQ_LIMIT_REACHED);
        ck_assert_uint_eq((uintptr_t)urnic_srq_context(ev.srq), i);
        ck_assert(!ev.lost);
        urnic_ack_async_event(&ev);
    }
    raise_limits(srq, EVENTS);
    for (unsigned i = 0; i < EVENTS; i++)
        ck_assert_int_eq(urnic_destroy_srq(srq[i]), 0);
    ck_assert_int_eq(poll(&p, 1, 300), 0);
    down();
}
END_TEST

UNIT_MAIN("promises", has_huge_pages, keeps_contexts_apart, keeps_handles_apart, has_what_it_says,
          has_the_queues_it_says, misses_objects, counts_channels, serves_a_thousand,
          looks_at_the_mask_only, refuses_mixed_families, moves_all_or_nothing, counts_from_zero,
          registers_nothing, takes_given_macs, lets_receivers_in, tells_all)
