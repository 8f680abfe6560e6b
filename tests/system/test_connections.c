/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Behaviour that programs for rdma_cm rely on: accepting, refusing and disconnecting in any order,
 * and the effects on queue pairs and ids.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "client_cm.h"
#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 20)
#define PORT 4801

static struct rig rig;
static struct end a, b;
static struct urnic_cm_channel *ca, *cb;
static struct urnic_cm_id *listener;

static void up_with_listener_on(const char *link)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    rig_open_pair(&rig, link, &a, &b, SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
}

static void up_with_listener(void)
{
    up_with_listener_on("");
}

static void down_with_listener(void)
{
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
    rig_close_pair(&rig, &a, &b);
}

static void id_qp(struct end *e, struct urnic_cm_id *id, enum urnic_qp_type type)
{
    struct urnic_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
    ck_assert_int_eq(urnic_create_id_qp(id, e->pd, &init, &e->qp), 0);
}

/* A request of a queue pair of this type has come. */
static void request(enum urnic_qp_type type, struct urnic_cm_id **active,
                    struct urnic_cm_id **passive)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, active), 0);
    ck_assert_int_eq(urnic_resolve(*active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    id_qp(&a, *active, type);
    ck_assert_int_eq(end_post_recv(&a, 0, 64, 7), 0);
    ck_assert_int_eq(urnic_connect(*active, NULL), 0);
    *passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
}

static void close_both(struct urnic_cm_id *active, struct urnic_cm_id *passive)
{
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    a.qp = b.qp = NULL;
}

/* CM-25: a refused accept can be tried again: refused for its private data or, from a client
 * without our library, for a count of more than three bits. */
START_TEST(accepts_again)
{
    static const char data[197];
    struct urnic_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
    struct ipc_cm_conn raw = {.hdr.type = IPC_CM_ACCEPT, .param.rnr_retry_count = 8};
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, &param), -EINVAL);
    raw.id = passive->handle;
    raw.param.qpn = urnic_qp_num(b.qp);
    ck_assert_int_eq(client_tell(b.ctx, &raw, sizeof(raw)), -EINVAL);
    param.private_data_len--;
    ck_assert_int_eq(urnic_accept(passive, &param), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    await_cm(cb, URNIC_CM_ESTABLISHED);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

/* CM-25: an accept asks to move the id to another channel, and is refused. The id then stays where
 * it was: its events still come on the old channel. The daemon refuses at once, or, if it moves the
 * id's queue pair, when it knows the neighbour's MAC. */
START_TEST(refused_stays)
{
    struct ipc_cm_conn raw = {.hdr.type = IPC_CM_ACCEPT, .param.rnr_retry_count = 8};
    struct urnic_cm_id *active, *passive;
    struct urnic_cm_channel *elsewhere;
    up_with_listener();
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &elsewhere), 0);
    request(URNIC_QPT_RC, &active, &passive);
    if (_i == 0)
        end_qp(&b, URNIC_QPT_RC);
    else
        id_qp(&b, passive, URNIC_QPT_RC);
    raw.id = passive->handle;
    raw.param.qpn = urnic_qp_num(b.qp);
    raw.channel = elsewhere->base.handle;
    raw.ref = passive->obj.ref;
    ck_assert_int_eq(client_tell(b.ctx, &raw, sizeof(raw)), -EINVAL);
    raw.param.rnr_retry_count = 7;
    raw.channel = listener->handle;
    ck_assert_int_eq(client_tell(b.ctx, &raw, sizeof(raw)), -EINVAL); /* not a channel */
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    ck_assert_ptr_eq(await_cm(cb, URNIC_CM_REJECTED).id, passive);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(elsewhere), 0);
    a.qp = b.qp = NULL;
    down_with_listener();
}
END_TEST

static void *connect_one(void *arg)
{
    struct urnic_conn_attr attr = end_conn_attr(&a, 10000);
    return (void *)(intptr_t)urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, NULL, NULL, arg);
}

/* CM-35: a server that looks for peers again and again, and waits a moment only, hangs up on none
 * that came in time, however long the way to it. */
START_TEST(sees_peers_through)
{
    struct urnic_conn_attr attr;
    struct urnic_listener *l;
    struct urnic_conn *there = NULL, *here = NULL;
    pthread_t thread;
    void *rc;
    int err = -ETIMEDOUT;
    rig_open_pair(&rig, ",delay=20ms", &a, &b, SIZE);
    attr = end_conn_attr(&b, 1);
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, PORT, 0, &l), 0);
    ck_assert_int_eq(urnic_accept_conn(l, &attr, NULL, NULL, &here), -ETIMEDOUT);
    ck_assert_int_eq(pthread_create(&thread, NULL, connect_one, &there), 0);
    for (uint64_t began = rig_now_ms(); rig_now_ms() - began < 10000;) {
        err = urnic_accept_conn(l, &attr, NULL, NULL, &here);
        if (err != -ETIMEDOUT)
            break;
    }
    ck_assert_int_eq(err, 0);
    pthread_join(thread, &rc);
    ck_assert_int_eq((intptr_t)rc, 0);
    ck_assert_int_eq(urnic_close_conn(there), 0);
    ck_assert_int_eq(urnic_close_conn(here), 0);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* CM-25: unreliable connections, too. */
START_TEST(connects_uc)
{
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    request(URNIC_QPT_UC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_UC);
    ck_assert_int_eq(end_post_recv(&b, 0, 4096, 8), 0);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    await_cm(cb, URNIC_CM_ESTABLISHED);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 4096, 0, 0, 9), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 9);
    end_expect(&b, URNIC_WC_SUCCESS, 8);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

/* One state further, as the connection has it. */
static void move_own(struct urnic_cm_id *id, struct end *e, enum urnic_qp_state state)
{
    struct urnic_qp_attr attr = {.qp_state = state};
    unsigned mask;
    ck_assert_int_eq(urnic_init_qp_attr(id, &attr, &mask), 0);
    ck_assert_int_eq(attr.qp_state, state);
    ck_assert_int_eq(urnic_modify_qp(e->qp, &attr, mask), 0);
}

static int attr_of(struct urnic_cm_id *id, enum urnic_qp_state state)
{
    struct urnic_qp_attr attr = {.qp_state = state};
    unsigned mask;
    return urnic_init_qp_attr(id, &attr, &mask);
}

static void talk(void)
{
    ck_assert_int_eq(end_post_recv(&a, 0, 4096, 1), 0);
    ck_assert_int_eq(end_post_recv(&b, 0, 4096, 2), 0);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 4096, 0, 0, 3), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 3);
    end_expect(&b, URNIC_WC_SUCCESS, 2);
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 4096, 0, 0, 4), 0);
    end_expect(&b, URNIC_WC_SUCCESS, 4);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
}

/* CM-25: as with rdma_init_qp_attr and rdma_establish, both ends move queue pairs that their ids
 * know by number only; reliable and unreliable ones. */
START_TEST(moves_its_own)
{
    static const enum urnic_qp_type types[] = {URNIC_QPT_RC, URNIC_QPT_UC};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_conn_param p = {.initiator_depth = 3};
    struct urnic_cm_id *active, *passive;
    struct urnic_qp_attr attr;
    up_with_listener();
    end_qp(&a, types[_i]);
    end_qp(&b, types[_i]);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    move_own(active, &a, URNIC_QPS_INIT);
    ck_assert_int_eq(attr_of(active, URNIC_QPS_RTR), -EINVAL);
    ck_assert_int_eq(urnic_establish(active), -EINVAL);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    p.qp_num = urnic_qp_num(a.qp);
    ck_assert_int_eq(urnic_connect(active, &p), 0);
    ck_assert_int_eq(attr_of(active, URNIC_QPS_RTR), -EINVAL);

    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    move_own(passive, &b, URNIC_QPS_INIT);
    move_own(passive, &b, URNIC_QPS_RTR);
    move_own(passive, &b, URNIC_QPS_RTS);
    ck_assert_int_eq(attr_of(passive, URNIC_QPS_SQD), -EINVAL);
    p.qp_num = urnic_qp_num(b.qp);
    ck_assert_int_eq(urnic_accept(passive, &p), 0);

    ck_assert_uint_eq(await_cm(ca, URNIC_CM_CONNECT_RESPONSE).qp_num, urnic_qp_num(b.qp));
    move_own(active, &a, URNIC_QPS_RTR);
    move_own(active, &a, URNIC_QPS_RTS);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_uint_eq(attr.dest_qp_num, urnic_qp_num(b.qp));
    ck_assert_uint_eq(attr.max_rd_atomic, types[_i] == URNIC_QPT_RC ? 3 : 0);
    ck_assert_int_eq(urnic_establish(active), 0);
    ck_assert_uint_eq(await_cm(cb, URNIC_CM_ESTABLISHED).qp_num, urnic_qp_num(a.qp));
    talk();

    ck_assert_int_eq(urnic_disconnect(active), 0);
    await_cm(ca, URNIC_CM_DISCONNECTED);
    await_cm(cb, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(urnic_query_qp(b.qp, &attr), 0);
    ck_assert_int_eq(attr.qp_state, URNIC_QPS_RTS); /* it is the application's */
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    down_with_listener();
}
END_TEST

/* CM-25: the active side may turn down the passive side's answer, and the passive side gets an
 * event. */
START_TEST(refuses_the_answer)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_conn_param p = {0};
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    end_qp(&a, URNIC_QPT_RC);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    p.qp_num = urnic_qp_num(a.qp);
    ck_assert_int_eq(urnic_connect(active, &p), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_CONNECT_RESPONSE);
    ck_assert_int_eq(urnic_reject(active, "no", 2), 0);
    struct urnic_cm_event ev = await_cm(cb, URNIC_CM_REJECTED);
    ck_assert_int_eq(ev.status, 28);
    ck_assert_int_eq(memcmp(ev.private_data, "no", 2), 0);
    ck_assert_int_eq(urnic_establish(active), -EINVAL);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    b.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-29: a request for an unreliable connection isn't given a reliable one, nor the other way
 * round: accepting is refused, moves nothing, and can be tried again with the right queue pair. */
START_TEST(accepts_its_type_only)
{
    static const enum urnic_qp_type types[] = {URNIC_QPT_RC, URNIC_QPT_UC};
    struct urnic_cm_id *active, *passive;
    struct urnic_qp_attr attr;
    up_with_listener();
    for (unsigned i = 0; i < 2; i++) {
        request(types[i], &active, &passive);
        end_qp(&b, types[!i]);
        struct urnic_qp *wrong = b.qp;
        const struct urnic_conn_param param = {.qp_num = urnic_qp_num(wrong)};
        ck_assert_int_eq(urnic_accept(passive, &param), -EPROTOTYPE);
        ck_assert_int_eq(urnic_query_qp(wrong, &attr), 0);
        ck_assert_int_eq(attr.qp_state, URNIC_QPS_RESET);
        ck_assert_int_eq(urnic_destroy_qp(wrong), 0);
        id_qp(&b, passive, types[i]);
        ck_assert_int_eq(urnic_accept(passive, NULL), 0);
        await_cm(ca, URNIC_CM_ESTABLISHED);
        await_cm(cb, URNIC_CM_ESTABLISHED);
        close_both(active, passive);
    }
    down_with_listener();
}
END_TEST

/* A queue pair for datagrams can't be connected, and a datagram service has no other. */
START_TEST(connects_no_datagrams)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_id *active, *passive, *service;
    struct urnic_conn_param param = {0};
    up_with_listener();
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    id_qp(&a, active, URNIC_QPT_UD);
    ck_assert_int_eq(urnic_connect(active, NULL), -EPROTOTYPE);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    a.qp = NULL;

    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_UDP, NULL, &service), 0);
    ck_assert_int_eq(urnic_bind_addr(service, (struct sockaddr *)&to), 0);
    ck_assert_int_eq(urnic_listen(service, 1), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &active), 0);
    ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_int_eq(urnic_connect(active, NULL), 0);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    end_qp(&b, URNIC_QPT_RC);
    param.qp_num = urnic_qp_num(b.qp);
    ck_assert_int_eq(urnic_accept(passive, &param), -EPROTOTYPE);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(service), 0);
    down_with_listener();
}
END_TEST

/* Ask at this port for the queue pair of a datagram service. */
static struct urnic_cm_id *ask(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct urnic_cm_id *id;
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &id), 0);
    ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_int_eq(urnic_connect(id, NULL), 0);
    return id;
}

/* CM-31 CM-35: as rdma_cm's, a datagram service that isn't there or refuses is unreachable, with
 * the status of its answer, and the private data of a refusal. */
START_TEST(refuses_datagrams)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_id *active, *passive, *service;
    up_with_listener();
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_UDP, NULL, &service), 0);
    ck_assert_int_eq(urnic_bind_addr(service, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(service, 1), 0);
    active = ask(PORT + 1);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_UNREACHABLE).status, 1); /* service not supported */
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    active = ask(PORT);
    passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
    ck_assert_int_eq(urnic_reject(passive, "no", 2), 0);
    struct urnic_cm_event ev = await_cm(ca, URNIC_CM_UNREACHABLE);
    ck_assert_int_eq(ev.status, 2); /* rejected */
    ck_assert_mem_eq(ev.private_data, "no", 3);
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    active = ask(PORT); /* destroying the id of a request refuses it */
    ck_assert_int_eq(urnic_destroy_id(await_cm(cb, URNIC_CM_CONNECT_REQUEST).id), 0);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_UNREACHABLE).status, 2);
    ck_assert_int_eq(urnic_destroy_id(active), 0);
    ck_assert_int_eq(urnic_destroy_id(service), 0);
    down_with_listener();
}
END_TEST

/* A queue pair that was destroyed is not its connection's any more, whose events still come; the id
 * can have another one. */
START_TEST(outlives_its_queue_pair)
{
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    ck_assert_ptr_null(urnic_id_qp(passive));
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    await_cm(cb, URNIC_CM_ESTABLISHED);
    ck_assert_int_eq(urnic_destroy_qp(b.qp), 0);
    b.qp = NULL;
    ck_assert_int_eq(urnic_disconnect(active), 0);
    ck_assert_ptr_eq(await_cm(cb, URNIC_CM_DISCONNECTED).id, passive);
    ck_assert_ptr_null(urnic_id_qp(passive));
    ck_assert_int_eq(urnic_destroy_id(passive), 0);
    ck_assert_int_eq(urnic_destroy_id(active), 0); /* its queue pair stays ... */
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* A queue pair is given from one id to another. From then on it goes with the second id only. The
 * first id has no queue pair any more, and may get another one. */
START_TEST(goes_with_one_id)
{
    struct urnic_cm_id *first, *second;
    up_with_listener();
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &first), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &second), 0);
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_id_set_qp(first, a.qp), 0);
    ck_assert_int_eq(urnic_id_set_qp(second, a.qp), 0);
    ck_assert_ptr_null(urnic_id_qp(first));
    ck_assert_ptr_eq(urnic_id_qp(second), a.qp);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    ck_assert_ptr_null(urnic_id_qp(second));
    ck_assert_int_eq(urnic_disconnect(first), -EINVAL);
    id_qp(&a, first, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_id_set_qp(second, a.qp), 0);
    ck_assert_int_eq(urnic_destroy_id(first), 0);
    ck_assert_ptr_eq(urnic_id_qp(second), a.qp);
    ck_assert_int_eq(urnic_destroy_ep(second), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* ... and leaves the groups that the first one joined, which no other id can. */
START_TEST(leaves_groups_with_its_id)
{
    struct sockaddr_in at = {.sin_family = AF_INET}, group = {.sin_family = AF_INET};
    struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_cm_id *first, *second;
    up_with_listener();
    inet_pton(AF_INET, "10.0.0.1", &at.sin_addr);
    inet_pton(AF_INET, "239.0.0.1", &group.sin_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &first), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &second), 0);
    ck_assert_int_eq(urnic_bind_addr(first, (struct sockaddr *)&at), 0);
    id_qp(&a, first, URNIC_QPT_UD);
    ck_assert_int_eq(urnic_join_multicast(first, (struct sockaddr *)&group), 0);
    await_cm(ca, URNIC_CM_MULTICAST_JOIN);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &reset, URNIC_QP_STATE), 0);
    ck_assert_int_eq(urnic_id_set_qp(second, a.qp), 0);
    ck_assert_int_eq(urnic_destroy_id(first), 0);
    ck_assert_int_eq(urnic_destroy_ep(second), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-25: as with rdma_disconnect, ending a request without an answer succeeds at either side, and
 * the request has no further effect. An id that never was a request can't be disconnected. */
START_TEST(hangs_up_unanswered)
{
    struct urnic_cm_id *active, *passive;
    struct urnic_qp_attr attr;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    if (_i == 0) {
        ck_assert_int_eq(urnic_disconnect(passive), 0);
        ck_assert_int_eq(urnic_query_qp(b.qp, &attr), 0);
        ck_assert_int_eq(attr.qp_state, URNIC_QPS_ERR);
        ck_assert_int_eq(urnic_accept(passive, NULL), -EINVAL);
        ck_assert_int_eq(urnic_destroy_ep(passive), 0);
        ck_assert_int_eq(await_cm(ca, URNIC_CM_REJECTED).status, 28);
    } else {
        ck_assert_int_eq(urnic_disconnect(active), 0);
        end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
        ck_assert_int_eq(urnic_accept(passive, NULL), 0);
        ck_assert_int_eq(await_cm(ca, URNIC_CM_CONNECT_ERROR).status, -EINVAL);
        ck_assert_int_eq(await_cm(cb, URNIC_CM_REJECTED).status, 28);
        ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    }
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    a.qp = b.qp = NULL;

    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
    id_qp(&a, active, URNIC_QPT_RC);
    ck_assert_int_eq(end_post_recv(&a, 0, 64, 8), 0);
    ck_assert_int_eq(urnic_disconnect(active), -EINVAL);
    ck_assert_int_eq(urnic_query_qp(a.qp, &attr), 0);
    ck_assert_int_eq(attr.qp_state, URNIC_QPS_INIT); /* a failed call changes nothing */
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 9), -EINVAL);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-25: the passive side is gone before the active side has seen the answer, so that its reply and
 * its disconnect arrive together. That is no fault of the caller's. */
START_TEST(hung_up_with_the_answer)
{
    struct urnic_cm_id *active, *passive;
    up_with_listener_on(",delay=300ms");
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    usleep(100000); /* both are on their way */
    kill(rig.pid, SIGSTOP);
    usleep(500000); /* both have arrived */
    kill(rig.pid, SIGCONT);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_CONNECT_ERROR).status, -ECONNABORTED);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
    await_cm(ca, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    a.qp = b.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-24 CM-25: the same where the answer is lost: that the peer has gone is heard at once, and
 * isn't taken for a time-out. */
START_TEST(hung_up_after_a_lost_answer)
{
    struct urnic_cm_id *active, *passive;
    char rules[] = "/tmp/urnic-test-rules-XXXXXX", link[64];
    int fd = mkstemp(rules);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(dprintf(fd, "drop cm src 10.0.0.2 first 1\n"), 29);
    close(fd);
    snprintf(link, sizeof(link), ",rules=%s", rules);
    up_with_listener_on(link);
    unlink(rules);
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    ck_assert_int_eq(urnic_destroy_ep(passive), 0);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_UNREACHABLE).status, -ECONNABORTED);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
    ck_assert_int_eq(urnic_destroy_ep(active), 0);
    a.qp = b.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-25: of a rejected connection's queue pair the receives come back. */
START_TEST(rejection_flushes)
{
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    ck_assert_int_eq(urnic_reject(passive, "no", 2), 0);
    ck_assert_mem_eq(await_cm(ca, URNIC_CM_REJECTED).private_data, "no", 3);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

/* CM-25: as rdma_listen, an id without an address listens at all of them, at a port that the daemon
 * chooses. */
START_TEST(listens_unbound)
{
    struct urnic_cm_id *id;
    uint16_t port = 0;
    up_with_listener();
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_listen(id, 1), 0);
    ck_assert_int_eq(urnic_id_addr(id, NULL, &port, NULL, NULL), 0);
    ck_assert_uint_ne(port, 0);
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    down_with_listener();
}
END_TEST

/* CM-35: a peer that gives up before there is an answer is named, also among other waiting
 * requests, and each side knows the other's address. */
START_TEST(names_who_gave_up)
{
    struct urnic_cm_id *active[3], *passive[3];
    struct urnic_cm_event ev;
    uint8_t near[2][16], far[2][16];
    uint16_t near_port[2], far_port[2];
    up_with_listener();
    for (unsigned i = 0; i < 3; i++)
        request(URNIC_QPT_RC, &active[i], &passive[i]);
    ck_assert_int_eq(urnic_id_addr(active[0], near[0], &near_port[0], far[0], &far_port[0]), 0);
    ck_assert_int_eq(urnic_id_addr(passive[0], near[1], &near_port[1], far[1], &far_port[1]), 0);
    ck_assert_uint_eq(near_port[1], PORT);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_mem_eq(near[i], far[1 - i], 16);
        ck_assert_uint_eq(near_port[i], far_port[1 - i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        static const unsigned order[3] = {1, 0, 2};
        struct urnic_qp *qp = urnic_id_qp(active[order[i]]);

        ck_assert_int_eq(urnic_destroy_id(active[order[i]]), 0);
        ck_assert_int_eq(urnic_destroy_qp(qp), 0);
        ev = await_cm(cb, URNIC_CM_REJECTED);
        ck_assert_ptr_eq(ev.id, passive[order[i]]);
        ck_assert_int_eq(urnic_destroy_id(ev.id), 0);
    }
    ck_assert_ptr_null(b.ctx->fresh);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-35: a listener is readable when a connection waits. It is not readable because of a peer that
 * has given up, whose news come after the request that is accepted instead. */
START_TEST(waits_for_nobody)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(PORT + 1), .sin_addr.s_addr = htonl(0x0A000002)};
    struct pollfd p = {.events = POLLIN};
    struct urnic_conn_attr attr;
    struct urnic_cm_id *id[2];
    struct urnic_qp *qp[2];
    struct urnic_listener *l;
    struct urnic_conn *conn;
    up_with_listener();
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, PORT + 1, 0, &l), 0);
    p.fd = urnic_listener_fd(l);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id[i]), 0);
        ck_assert_int_eq(urnic_resolve(id[i], NULL, (const struct sockaddr *)&to, 5000), 0);
        await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
        id_qp(&a, id[i], URNIC_QPT_RC);
        qp[i] = a.qp;
        ck_assert_int_eq(urnic_connect(id[i], NULL), 0);
        ck_assert_int_eq(poll(&p, 1, 5000), 1);
        usleep(100000); /* the other one comes later */
    }
    ck_assert_int_eq(urnic_destroy_ep(id[0]), 0);
    usleep(300000);
    attr = end_conn_attr(&b, 1000);
    ck_assert_int_eq(urnic_accept_conn(l, &attr, NULL, NULL, &conn), 0);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    ck_assert_int_eq(urnic_accept_conn(l, &attr, NULL, NULL, &conn), -ETIMEDOUT);
    ck_assert_int_eq(urnic_close_conn(conn), 0);
    ck_assert_int_eq(urnic_close_listener(l), 0);
    ck_assert_int_eq(urnic_destroy_id(id[1]), 0);
    ck_assert_int_eq(urnic_destroy_qp(qp[1]), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

/* CM-35: an id that the daemon knows of for another reason than its address has none to tell. */
START_TEST(tells_no_address)
{
    const struct sockaddr_in elsewhere = {.sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(0x0A000063)};
    struct urnic_cm_id *id;
    uint16_t port = 0;
    up_with_listener();
    end_qp(&a, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_id_addr(id, NULL, &port, NULL, NULL), -EINVAL);
    ck_assert_int_eq(urnic_bind_addr(id, (const struct sockaddr *)&elsewhere), -EADDRNOTAVAIL);
    ck_assert_int_eq(urnic_id_addr(id, NULL, &port, NULL, NULL), -EINVAL);
    ck_assert_int_eq(urnic_id_set_qp(id, a.qp), 0);
    ck_assert_int_eq(urnic_id_addr(id, NULL, &port, NULL, NULL), -EINVAL);
    ck_assert_int_eq(urnic_bind_addr(id, NULL), 0);
    ck_assert_int_eq(urnic_id_addr(id, NULL, &port, NULL, NULL), 0);
    ck_assert_uint_ne(port, 0);
    ck_assert_int_eq(urnic_destroy_ep(id), 0);
    a.qp = NULL;
    down_with_listener();
}
END_TEST

static int said; /* by `prepare` */

static int prepare_in_vain(void *arg, struct urnic_qp *qp)
{
    (void)arg, (void)qp;
    return said;
}

/* CM-35: where `prepare` fails there is no connection, whatever it says, and whether it says it
 * as we do or as libibverbs does; a peer is refused. */
START_TEST(prepares_in_vain)
{
    static const int answers[] = {-ENOBUFS, ENOMEM, -ECONNABORTED, EPROTOTYPE};
    struct urnic_conn_attr attr;
    struct urnic_listener *l;
    struct urnic_conn *here, *there;
    pthread_t thread;
    void *rc;
    rig_open_pair(&rig, "", &a, &b, SIZE);
    ck_assert_int_eq(urnic_listen_addr(b.ctx, NULL, PORT, 0, &l), 0);
    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        said = answers[i];
        attr = end_conn_attr(&a, 5000);
        ck_assert_int_eq(
            urnic_connect_addr(a.ctx, "10.0.0.2", PORT, &attr, prepare_in_vain, NULL, &there),
            -abs(said));
        ck_assert_int_eq(pthread_create(&thread, NULL, connect_one, &there), 0);
        attr = end_conn_attr(&b, 5000);
        ck_assert_int_eq(urnic_accept_conn(l, &attr, prepare_in_vain, NULL, &here), -abs(said));
        pthread_join(thread, &rc);
        ck_assert_int_eq((intptr_t)rc, -ECONNREFUSED);
    }
    ck_assert_int_eq(urnic_close_listener(l), 0);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* QP-05: the connection does not touch a queue pair that its owner has reset meanwhile, no matter
 * when the program gets the event. */
START_TEST(stays_reset)
{
    const struct urnic_qp_attr reset = {.qp_state = URNIC_QPS_RESET};
    struct urnic_cm_id *active, *passive;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    await_cm(ca, URNIC_CM_ESTABLISHED);
    await_cm(cb, URNIC_CM_ESTABLISHED);
    ck_assert_int_eq(urnic_disconnect(active), 0);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &reset, URNIC_QP_STATE), 0);
    await_cm(ca, URNIC_CM_DISCONNECTED);
    ck_assert_int_eq(end_post_recv(&a, 0, 8, 1), -EINVAL);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 2), -EINVAL);
    ck_assert_int_eq(urnic_disconnect(active), 0);
    ck_assert_int_eq(end_post_recv(&a, 0, 8, 3), -EINVAL);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

/* CM-35: accepting a request that its own side has ended fails: its queue pair can't follow. This
 * is reported once, and the peer learns of it. */
START_TEST(hung_up_by_itself)
{
    struct urnic_cm_id *active, *passive;
    struct urnic_cm_event none;
    up_with_listener();
    request(URNIC_QPT_RC, &active, &passive);
    id_qp(&b, passive, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_disconnect(active), 0);
    end_expect(&a, URNIC_WC_WR_FLUSH_ERR, 7);
    ck_assert_int_eq(urnic_accept(passive, NULL), 0);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_CONNECT_ERROR).status, -EINVAL);
    await_cm(cb, URNIC_CM_REJECTED);
    fcntl(urnic_cm_channel_fd(ca), F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(urnic_get_cm_event(ca, &none), -EAGAIN);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

/* The number of events about this id that the daemon has sent. */
static uint32_t events_of(const struct urnic_cm_id *id)
{
    struct ipc_cm_migrate to_itself = {.hdr.type = IPC_CM_MIGRATE,
                                       .id = id->handle,
                                       .channel = id->channel->base.handle,
                                       .ref = id->obj.ref};
    struct ipc_cm_destroyed sent;
    ck_assert_int_eq(client_call(id->ctx, &to_itself, sizeof(to_itself), &sent, sizeof(sent)), 0);
    return sent.events;
}

/* EVT-04 CM-35: unread events of connections are kept, some thousands, then lost and counted. A
 * peer whose request could not be reported is refused at once. */
START_TEST(unread_events)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_id *id;
    struct urnic_conn *conn = NULL;
    uint64_t asked = 0, lost;
    up_with_listener();
    inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(cb, URNIC_CM_ROUTE_RESOLVED);
    while ((lost = rig_counter(&rig, "urn1", "cm_events_lost")) == 0) {
        for (unsigned i = 0; i < 100; i++, asked++)
            ck_assert_int_eq(urnic_resolve_route(id, 1000), 0);
        ck_assert_uint_lt(asked, 100000);
    }
    ck_assert_int_eq((intptr_t)connect_one(&conn), -ECONNREFUSED);
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "cm_events_lost"), lost + 1);

    for (uint64_t i = lost; i < asked; i++)
        await_cm(cb, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_uint_eq(events_of(id), 1 + asked - lost);
    for (unsigned i = 0; i < 2000; i++) /* kept again, now that all are taken */
        ck_assert_int_eq(urnic_resolve_route(id, 1000), 0);
    /* Some hundreds at a time, every 5 ms, though the worker has nothing else to do. */
    uint64_t begin = rig_now_ms();
    for (unsigned i = 0; i < 2000; i++)
        await_cm(cb, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_uint_lt(rig_now_ms() - begin, 400);
    ck_assert_int_eq(urnic_destroy_id(id), 0);

    struct urnic_cm_id *active, *passive; /* there is room again */
    request(URNIC_QPT_RC, &active, &passive);
    ck_assert_uint_eq(events_of(listener), 1); /* it was the listener's */
    ck_assert_uint_eq(events_of(passive), 0);
    id_qp(&b, passive, URNIC_QPT_RC);
    close_both(active, passive);
    down_with_listener();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("connections");
    TCase *t = tcase_create("connections");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, accepts_again);
    tcase_add_loop_test(t, refused_stays, 0, 2);
    tcase_add_test(t, sees_peers_through);
    tcase_add_test(t, connects_uc);
    tcase_add_loop_test(t, moves_its_own, 0, 2);
    tcase_add_test(t, refuses_the_answer);
    tcase_add_test(t, accepts_its_type_only);
    tcase_add_test(t, connects_no_datagrams);
    tcase_add_test(t, refuses_datagrams);
    tcase_add_loop_test(t, hangs_up_unanswered, 0, 2);
    tcase_add_test(t, hung_up_with_the_answer);
    tcase_add_test(t, hung_up_after_a_lost_answer);
    tcase_add_test(t, outlives_its_queue_pair);
    tcase_add_test(t, goes_with_one_id);
    tcase_add_test(t, leaves_groups_with_its_id);
    tcase_add_test(t, rejection_flushes);
    tcase_add_test(t, listens_unbound);
    tcase_add_test(t, tells_no_address);
    tcase_add_test(t, waits_for_nobody);
    tcase_add_test(t, names_who_gave_up);
    tcase_add_test(t, stays_reset);
    tcase_add_test(t, prepares_in_vain);
    tcase_add_test(t, hung_up_by_itself);
    tcase_add_test(t, unread_events);
    suite_add_tcase(s, t);
    return unit_run(s);
}
