/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users that name the peer of another user's connection: a peer that the connection manager has
 * given to one user is that user's, and no user learns another user's peers and PSNs (SEC-33).
 * $MALLORY_ENGINE says where Mallory's engine runs (SEC-35); the others' is the daemon's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "hostile_rig.h"
#include "ipc.h"
#include "unit.h"

#define MALLORY 65500u
#define PORT    7100u

/* Mallory's messages in addition to a QPN, which has 24 bits. */
#define RESET 0x01000000u /* reset the queue pair */
#define MOVE  0x02000000u /* name the QPN at another address, and change the address afterwards */

static struct urnic_cm_channel *ca, *cb;
static struct urnic_cm_id *listener, *active, *passive;

/* Any user may connect. False: there is only this user, which may do everything. */
static bool up(void)
{
    if (geteuid() != 0)
        return false;
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    ck_assert_int_eq(chmod(rig.dir, 0755), 0);
    ck_assert_int_eq(chmod(rig.socket, 0666), 0);
    return true;
}

static void id_qp(struct end *e, struct urnic_cm_id *id)
{
    struct urnic_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    ck_assert_int_eq(urnic_create_id_qp(id, e->pd, &init, &e->qp), 0);
}

/* a has asked for a connection to b, whose queue pair is there, and has not accepted. */
static void ask(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    inet_pton(AF_INET, "10.0.0.2", &at.sin_addr);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (const struct sockaddr *)(const void *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)(void *)&at, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    id_qp(&a, active);
    ck_assert_int_eq(urnic_connect(active, NULL), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    id_qp(&b, passive);
}

static void accept_it(void)
{
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    await_cm(cb, URNIC_CM_ESTABLISHED);
}

static void down(void)
{
    if (active) {
        ck_assert_int_eq(urnic_destroy_ep(active), 0);
        ck_assert_int_eq(urnic_destroy_ep(passive), 0);
        ck_assert_int_eq(urnic_destroy_id(listener), 0);
        ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
        ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
        a.qp = b.qp = NULL;
    }
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
}

/* ---- Mallory: another process, of another user, with commands by a pipe ---- */

struct mallory {
    pid_t pid;
    int tell, hear;
};

static int name_peer_at(struct end *e, uint32_t qpn, uint8_t host)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
    end_qp(e, URNIC_QPT_RC);
    int rc = urnic_modify_qp(
        e->qp, &attr, URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX | URNIC_QP_ACCESS_FLAGS);
    if (rc < 0)
        return rc;
    attr.qp_state = URNIC_QPS_RTR;
    attr.path_mtu = (enum urnic_mtu)3;
    attr.dest_qp_num = qpn;
    attr.ah_attr.sgid_index = 3;
    attr.ah_attr.hop_limit = 64;
    attr.ah_attr.dgid[10] = attr.ah_attr.dgid[11] = 0xFF;
    attr.ah_attr.dgid[12] = 10;
    attr.ah_attr.dgid[15] = host;
    return urnic_modify_qp(e->qp, &attr,
                           URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU | URNIC_QP_DEST_QPN |
                               URNIC_QP_RQ_PSN | URNIC_QP_MAX_DEST_RD_ATOMIC |
                               URNIC_QP_MIN_RNR_TIMER);
}

static int name_peer(struct end *e, uint32_t qpn)
{
    return name_peer_at(e, qpn, 2);
}

/* To 10.0.0.3 first, where no connection is; then to 10.0.0.2, in a state that allows it. */
static int move_to_peer(struct end *e, uint32_t qpn)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_RTS, .timeout = 14, .max_rd_atomic = 1};
    int rc = name_peer_at(e, qpn, 3);
    if (rc == 0)
        rc = urnic_modify_qp(e->qp, &attr,
                             URNIC_QP_STATE | URNIC_QP_TIMEOUT | URNIC_QP_RETRY_CNT |
                                 URNIC_QP_RNR_RETRY | URNIC_QP_SQ_PSN | URNIC_QP_MAX_QP_RD_ATOMIC);
    attr.qp_state = URNIC_QPS_SQD;
    if (rc == 0)
        rc = urnic_modify_qp(e->qp, &attr, URNIC_QP_STATE);
    if (rc < 0)
        return -EPROTO; /* not the subject of this test */
    attr.ah_attr.sgid_index = 3;
    attr.ah_attr.hop_limit = 64;
    attr.ah_attr.dgid[10] = attr.ah_attr.dgid[11] = 0xFF;
    attr.ah_attr.dgid[12] = 10;
    attr.ah_attr.dgid[15] = 2;
    return urnic_modify_qp(e->qp, &attr, URNIC_QP_AV);
}

static int reset(struct urnic_qp *qp)
{
    struct urnic_qp_attr attr = {.qp_state = URNIC_QPS_RESET};
    return urnic_modify_qp(qp, &attr, URNIC_QP_STATE);
}

static int state_of(struct urnic_qp *qp)
{
    struct urnic_qp_attr attr;
    int rc = urnic_query_qp(qp, &attr);
    return rc < 0 ? rc : (int)attr.qp_state;
}

static int obey(struct end *e, uint32_t word)
{
    const uint32_t qpn = word & 0xFFFFFF;
    if (word == 0)
        return state_of(e->qp);
    if (word == RESET)
        return reset(e->qp);
    return word & MOVE ? move_to_peer(e, qpn) : name_peer(e, qpn);
}

/* Each number that comes is a QPN to name as a peer, with MOVE or without; RESET; or 0: the state
 * of the queue pair that named the last one. */
static void serve(int hear, int tell)
{
    struct end e = {0};
    uint32_t qpn;
    const char *engine = getenv("MALLORY_ENGINE");
    if (setgid(MALLORY) < 0 || setuid(MALLORY) < 0 ||
        setenv("URNIC_ENGINE", engine ? engine : "daemon", 1) < 0)
        _exit(2);
    end_open(&e, &rig, "urn0", 65536);
    while (read(hear, &qpn, sizeof(qpn)) == sizeof(qpn)) {
        int rc = obey(&e, qpn);
        if (write(tell, &rc, sizeof(rc)) != sizeof(rc))
            break;
    }
    _exit(0);
}

static struct mallory mallory(void)
{
    struct mallory m;
    int there[2], back[2];
    ck_assert_int_eq(pipe(there), 0);
    ck_assert_int_eq(pipe(back), 0);
    m.pid = fork_apart();
    if (m.pid == 0)
        serve(there[0], back[1]);
    m.tell = there[1];
    m.hear = back[0];
    return m;
}

static int mallory_does(const struct mallory *m, uint32_t qpn)
{
    int rc;
    ck_assert_int_eq(write(m->tell, &qpn, sizeof(qpn)), sizeof(qpn));
    ck_assert_int_eq(read(m->hear, &rc, sizeof(rc)), sizeof(rc));
    return rc;
}

/* Its queue pair gets there: an engine of its own hears of the daemon's decisions a little later.
 */
static void mallory_comes_to(const struct mallory *m, int state)
{
    uint64_t until = rig_now_ms() + 5000;
    int is;
    while ((is = mallory_does(m, 0)) != state && rig_now_ms() < until)
        usleep(1000);
    ck_assert_int_eq(is, state);
}

static struct ipc_qp_info listed(uint32_t qpn)
{
    struct ipc_qp_filter m = {.hdr.type = IPC_QP_LIST, .device = "urn0", .qpn = qpn};
    static _Alignas(8) uint8_t buf[IPC_MSG_MAX];
    const struct ipc_qp_list *list = (const void *)buf;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, buf, sizeof(buf)), 0);
    ck_assert_uint_eq(list->count, 1);
    return list->qp[0];
}

static void goes_on(void)
{
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 4096, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
    }
}

/* SEC-33: without the connection manager both work, and the administrator sees it. */
START_TEST(two_claims)
{
    if (!up())
        return;
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    ck_assert_uint_eq(listed(urnic_qp_num(a.qp)).flags, 0);
    struct mallory m = mallory();
    ck_assert_int_eq(mallory_does(&m, urnic_qp_num(b.qp)), 0);
    ck_assert_uint_eq(counter("urn0", "qp_peer_shared"), 1);
    ck_assert_uint_eq(counter("urn0", "qp_peer_refused"), 0);
    ck_assert_uint_eq(listed(urnic_qp_num(a.qp)).flags, IPC_QP_F_SHARED);
    goes_on();
    ck_assert_int_eq(mallory_does(&m, RESET), 0); /* it names no peer any more */
    ck_assert_uint_eq(listed(urnic_qp_num(a.qp)).flags, 0);
    ck_assert_int_eq(mallory_does(&m, urnic_qp_num(b.qp)), 0);
    ck_assert_uint_eq(listed(urnic_qp_num(a.qp)).flags, IPC_QP_F_SHARED);
    finish(m.pid);
    settle("urn0", "contexts", 1);
    ck_assert_uint_eq(listed(urnic_qp_num(a.qp)).flags, 0);
    down();
}
END_TEST

/* SEC-33: a queue pair negotiated by the connection manager is its user's. */
START_TEST(connection_is_its_users)
{
    if (!up())
        return;
    ask();
    accept_it();
    struct mallory m = mallory();
    ck_assert_int_eq(mallory_does(&m, urnic_qp_num(b.qp)), -EADDRINUSE);
    ck_assert_int_eq(mallory_does(&m, 0), URNIC_QPS_INIT);
    ck_assert_uint_eq(counter("urn0", "qp_peer_refused"), 1);
    ck_assert_uint_eq(counter("urn0", "cm_challenges"), 1); /* the owner's peer is asked */
    goes_on();
    ck_assert_uint_eq(counter("urn1", "cm_stale_confirmed"), 0);   /* it was asked, and is alive */
    ck_assert_int_eq(mallory_does(&m, urnic_qp_num(b.qp) ^ 1), 0); /* another peer is free */
    /* the connection ends, and the number is free */
    uint32_t qpn = urnic_qp_num(b.qp);
    ck_assert_int_eq(urnic_disconnect(active), 0);
    await_cm(cb, URNIC_CM_DISCONNECTED);
    await_cm(ca, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(mallory_does(&m, qpn), 0);
    finish(m.pid);
    down();
}
END_TEST

/* SEC-33: an earlier queue pair made without the connection manager ends when the connection
 * manager gives its peer to another user. */
START_TEST(squatter_goes)
{
    if (!up())
        return;
    ask();
    struct mallory m = mallory();
    ck_assert_int_eq(mallory_does(&m, urnic_qp_num(b.qp)), 0);
    ck_assert_int_eq(mallory_does(&m, 0), URNIC_QPS_RTR);
    accept_it();
    mallory_comes_to(&m, URNIC_QPS_ERR);
    ck_assert_uint_eq(counter("urn0", "qp_peer_displaced"), 1);
    goes_on();
    finish(m.pid);
    down();
}
END_TEST

/* SEC-33: an address that changes later is a peer that is named, too. */
START_TEST(squatter_moves)
{
    struct ipc_addr_admin add = {.hdr.type = IPC_ADDR_ADD, .device = "urn1", .prefix_len = 24};
    static const uint8_t ip[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 3};
    struct ipc_hdr hdr;
    if (!up())
        return;
    memcpy(add.ip, ip, sizeof(ip));
    ck_assert_int_eq(rig_request(&rig, &add, sizeof(add), -1, &hdr, sizeof(hdr)), 0);
    ask();
    accept_it();
    struct mallory m = mallory();
    ck_assert_int_eq(mallory_does(&m, MOVE | urnic_qp_num(b.qp)), -EADDRINUSE);
    ck_assert_uint_eq(counter("urn0", "qp_peer_refused"), 1);
    ck_assert_int_eq(mallory_does(&m, MOVE | (urnic_qp_num(b.qp) ^ 1)), 0); /* another is free */
    goes_on();
    finish(m.pid);
    down();
}
END_TEST

/* Mallory's eyes: status 0 if the daemon shows this user no secret of queue pair `qpn` of urn0. */
static uint32_t seen_qpn, seen_state;
static void looks(void)
{
    struct ipc_qp_filter m = {.hdr.type = IPC_QP_LIST, .device = "urn0"};
    struct end e = {0};
    if (setgid(MALLORY) < 0 || setuid(MALLORY) < 0)
        _exit(2);
    end_open(&e, &rig, "urn0", 65536);
    ck_assert_int_eq(name_peer(&e, 0x1234), 0);
    ck_assert_uint_eq(listed(urnic_qp_num(e.qp)).dest_qpn, 0x1234); /* its own */
    ck_assert_uint_eq(listed(urnic_qp_num(e.qp)).flags, 0);
    m.hdr.type = IPC_QP_HISTORY;
    m.qpn = urnic_qp_num(e.qp);
    static _Alignas(8) uint8_t buf[IPC_MSG_MAX];
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, buf, sizeof(buf)), 0);
    const struct ipc_qp_info q = listed(seen_qpn);
    ck_assert_uint_eq(q.flags, IPC_QP_F_HIDDEN);
    ck_assert_uint_eq(q.state, seen_state);
    ck_assert_uint_eq(q.error[0], 0);
    ck_assert_uint_eq(q.uid, 0);
    ck_assert_uint_gt(q.tx_packets, 0);
    ck_assert_uint_eq(q.dest_qpn | q.epsn | q.msn | q.sq_psn | q.una_psn, 0);
    static const struct ipc_av nowhere;
    ck_assert_mem_eq(&q.av, &nowhere, sizeof(nowhere));
    m.qpn = seen_qpn;
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, buf, sizeof(buf)), -EPERM);
    const struct ipc_capture c = {.hdr.type = IPC_CAPTURE_START, .device = "urn0"};
    ck_assert_int_eq(
        rig_request(&rig, &c, sizeof(c), open("/dev/null", O_WRONLY), buf, sizeof(buf)), -EPERM);
}

/* SEC-33: peer, PSNs and history of another user's queue pair are hidden; root sees all. */
START_TEST(secrets)
{
    int status;
    if (!up())
        return;
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    goes_on();
    seen_qpn = urnic_qp_num(a.qp);
    const struct ipc_qp_info q = listed(seen_qpn);
    ck_assert_uint_eq(q.dest_qpn, urnic_qp_num(b.qp));
    ck_assert_uint_ne(q.sq_psn, 0);
    ck_assert_uint_ne(q.epsn, 0);
    ck_assert_uint_eq(q.flags, 0);
    seen_state = URNIC_QPS_RTS;
    for (unsigned failed = 0; failed < 2; failed++) {
        pid_t pid = hostile(looks);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        if (failed)
            break;
        /* nor why it has failed */
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, 8, b.mr->iova, b.mr->rkey ^ 1, 1), 0);
        end_expect(&a, URNIC_WC_REM_ACCESS_ERR, 1);
        ck_assert_uint_ne(listed(seen_qpn).error[0], 0);
        seen_state = URNIC_QPS_ERR;
    }
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hostile peers");
    TCase *t = tcase_create("peers");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, two_claims);
    tcase_add_test(t, connection_is_its_users);
    tcase_add_test(t, squatter_goes);
    tcase_add_test(t, squatter_moves);
    tcase_add_test(t, secrets);
    suite_add_tcase(s, t);
    return unit_run(s);
}
