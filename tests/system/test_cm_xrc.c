/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection manager connects XRC queue pairs, and says whether receives come from a shared
 * receive queue.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 20)
#define PORT 4801

static struct rig rig;
static struct end a, b;
static struct urnic_cm_channel *ca, *cb;
static struct urnic_cm_id *listener, *active, *passive;
static struct urnic_pd *domain; /* of XRC, at the passive side */
static struct urnic_srq *srq;

static void up(enum urnic_port_space ps)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in to = at;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, ps, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, ps, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
}

static void down(void)
{
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    rig_close_pair(&rig, &a, &b);
}

static struct urnic_qp *sender(void)
{
    struct urnic_qp_init_attr init = {
        .send_cq = a.cq,
        .cap = {.max_send_wr = 8, .max_send_sge = 1},
        .qp_type = URNIC_QPT_XRC_SEND,
    };
    struct urnic_qp *qp;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), 0);
    return qp;
}

static struct urnic_qp *receiver(void)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_XRC_RECV};
    struct urnic_srq_attr queue = {.max_wr = 8, .max_sge = 1};
    struct urnic_qp *qp;
    ck_assert_int_eq(urnic_alloc_pd(b.ctx, &domain), 0);
    ck_assert_int_eq(urnic_create_xrc_srq(b.pd, domain, b.cq, &queue, NULL, &srq), 0);
    ck_assert_int_eq(urnic_create_qp(domain, &init, &qp), 0);
    return qp;
}

static void send_one(void)
{
    struct urnic_sge to = {b.mr->iova, 4096, b.mr->lkey};
    const struct urnic_recv_wr *bad_recv;
    const struct urnic_send_wr *bad_send;
    struct urnic_recv_wr recv = {.wr_id = 2, .sg_list = &to, .num_sge = 1};
    struct urnic_sge from = {a.mr->iova, 4096, a.mr->lkey};
    struct urnic_send_wr send = {.wr_id = 3,
                                 .sg_list = &from,
                                 .num_sge = 1,
                                 .opcode = URNIC_WR_SEND,
                                 .send_flags = URNIC_SEND_SIGNALED,
                                 .xrc.srqn = urnic_srq_num(srq)};
    memset(a.mem, 0x5A, 4096);
    ck_assert_int_eq(urnic_post_srq_recv(srq, &recv, &bad_recv), 0);
    ck_assert_int_eq(urnic_post_send(a.qp, &send, &bad_send), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 3);
    end_expect(&b, URNIC_WC_SUCCESS, 2);
    ck_assert_mem_eq(a.mem, b.mem, 4096);
}

/* CM-38: the daemon moves both queue pairs. */
START_TEST(connects_xrc)
{
    up(_i == 0 ? URNIC_PS_IB : URNIC_PS_TCP);
    a.qp = sender();
    b.qp = receiver();
    ck_assert_int_eq(urnic_id_set_qp(active, a.qp), 0);
    ck_assert_int_eq(urnic_connect(active, NULL), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    ck_assert(!urnic_id_peer_srq(passive));
    ck_assert_int_eq(urnic_id_set_qp(passive, b.qp), 0);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    ck_assert(urnic_id_peer_srq(active));
    await_cm(cb, URNIC_CM_ESTABLISHED);
    send_one();

    ck_assert_int_eq(urnic_disconnect(active), 0);
    await_cm(cb, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    ck_assert_int_eq(urnic_dealloc_pd(domain), 0);
    a.qp = b.qp = NULL;
    down();
}
END_TEST

/* CM-29: a request for XRC is answered by no other type, and a queue pair that only receives sends
 * no request. */
START_TEST(xrc_meets_xrc)
{
    struct urnic_conn_param p = {0};
    up(URNIC_PS_IB);
    a.qp = sender();
    b.qp = receiver();
    p.qp_num = urnic_qp_num(a.qp);
    ck_assert_int_eq(urnic_connect(active, &p), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    struct urnic_qp *target = b.qp;
    end_qp(&b, URNIC_QPT_RC);
    p.qp_num = urnic_qp_num(b.qp);
    ck_assert_int_eq(urnic_accept(passive, &p), -EPROTOTYPE);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);

    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_IB, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(cb, URNIC_CM_ROUTE_RESOLVED);
    p.qp_num = urnic_qp_num(target);
    ck_assert_int_eq(urnic_connect(active, &p), -EPROTOTYPE);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_qp(target), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    ck_assert_int_eq(urnic_dealloc_pd(domain), 0);
    down();
}
END_TEST

/* CM-13: of queue pairs that applications move themselves, both sides hear of shared receive
 * queues, and of none. */
START_TEST(says_whether_receives_are_shared)
{
    const bool mine = _i & 1, theirs = _i & 2;
    struct urnic_conn_param p = {0};
    up(URNIC_PS_TCP);
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    if (mine)
        urnic_id_set_srq(active, true);
    p.qp_num = urnic_qp_num(a.qp);
    ck_assert_int_eq(urnic_connect(active, &p), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    ck_assert_int_eq(urnic_id_peer_srq(passive), mine);
    urnic_id_set_srq(passive, theirs);
    p.qp_num = urnic_qp_num(b.qp);
    ck_assert_int_eq(urnic_accept(passive, &p), 0);
    await_cm(ca, URNIC_CM_CONNECT_RESPONSE);
    ck_assert_int_eq(urnic_id_peer_srq(active), theirs);
    ck_assert_int_eq(urnic_establish(active), 0);
    await_cm(cb, URNIC_CM_ESTABLISHED);
    ck_assert_int_eq(urnic_id_peer_srq(passive), mine);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cm_xrc");
    TCase *t = tcase_create("cm_xrc");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, connects_xrc, 0, 2);
    tcase_add_test(t, xrc_meets_xrc);
    tcase_add_loop_test(t, says_whether_receives_are_shared, 0, 4);
    suite_add_tcase(s, t);
    return unit_run(s);
}
