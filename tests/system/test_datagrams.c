/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams through the daemon: to queue pairs with another key, to hosts outside, to groups.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "client.h"
#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 20)

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
}

static void down(void)
{
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
}

/* ---- from one to one ---- */

static void send_datagram_keyed(const char *ip, uint64_t wr_id, uint32_t qkey)
{
    /* As libraries do that leave the MAC to the daemon: all zeros. */
    struct urnic_ah ah = {.ctx = a.ctx, .av = {.sgid_index = 3, .hop_limit = 64}};
    struct urnic_sge sge = {(uintptr_t)a.mem, 64, a.mr->lkey};
    struct urnic_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = URNIC_WR_SEND,
        .send_flags = URNIC_SEND_SIGNALED,
        .ud = {.ah = &ah, .remote_qpn = urnic_qp_num(b.qp), .remote_qkey = qkey},
    };
    const struct urnic_send_wr *bad;

    memset(ah.av.dgid + 10, 0xFF, 2);
    inet_pton(AF_INET, ip, ah.av.dgid + 12);
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, &bad), 0);
}

static void send_datagram(const char *ip, uint64_t wr_id)
{
    send_datagram_keyed(ip, wr_id, 0x11);
}

/* KEY-06: a datagram with another Q_Key is lost, and an attribute of the port counts it. */
START_TEST(datagrams_with_another_key)
{
    struct urnic_port_attr port;
    struct urnic_wc wc;
    up();
    end_datagrams(&a);
    end_datagrams(&b);
    ck_assert_int_eq(end_post_recv(&b, 0, 1024, 100), 0);
    send_datagram_keyed("10.0.0.2", 1, 0x12);
    send_datagram_keyed("10.0.0.2", 2, 0x13);
    send_datagram("10.0.0.2", 3);
    end_wait(&b, &wc, 10000);
    ck_assert_uint_eq(wc.wr_id, 100);
    ck_assert_uint_eq(wc.status, URNIC_WC_SUCCESS);
    ck_assert_uint_eq(wc.qp_num, urnic_qp_num(b.qp));
    ck_assert_uint_eq(wc.src_qp, urnic_qp_num(a.qp));
    ck_assert_int_eq(urnic_query_port(b.ctx, &port), 0);
    ck_assert_uint_eq(port.qkey_viol_cntr, 2);
    ck_assert_uint_eq(port.bad_pkey_cntr, 0);
    ck_assert_int_eq(urnic_query_port(a.ctx, &port), 0);
    ck_assert_uint_eq(port.qkey_viol_cntr, 0);
    for (uint64_t i = 1; i <= 3; i++)
        end_expect(&a, URNIC_WC_SUCCESS, i);
    down();
}
END_TEST

/* WIRE-07 UD-13: a datagram for a neighbour with an unknown MAC waits until it is known, and later
 * ones wait after it; one for a host that isn't there is lost like any other. */
START_TEST(datagrams_to_strangers)
{
    up();
    end_datagrams(&a);
    end_datagrams(&b);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(end_post_recv(&b, 4096 * i, 1024, 100 + i), 0);
    send_datagram("10.0.0.2", 1);
    send_datagram("10.0.0.2", 2);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    end_expect(&a, URNIC_WC_SUCCESS, 2);
    end_expect(&b, URNIC_WC_SUCCESS, 100);
    end_expect(&b, URNIC_WC_SUCCESS, 101);
    send_datagram("10.0.0.77", 3);
    send_datagram("10.0.0.2", 4);
    end_expect(&a, URNIC_WC_SUCCESS, 3);
    end_expect(&a, URNIC_WC_SUCCESS, 4);
    end_expect(&b, URNIC_WC_SUCCESS, 102);
    send_datagram("10.0.0.78", 5); /* destroyed while it waits */
    down();
}
END_TEST

/* A receive that the worker has seen: two requests take it through a whole round. Datagrams that
 * come earlier are lost. */
static void post_recv_seen(uint64_t wr_id)
{
    struct urnic_qp_attr attr;
    ck_assert_int_eq(end_post_recv(&b, 0, 1024, wr_id), 0);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(urnic_query_qp(b.qp, &attr), 0);
}

/* ---- groups ---- */

/* An id that joins groups, with the queue pair of its end. */
struct member {
    struct urnic_cm_channel *channel;
    struct urnic_cm_id *id;
};

static void member_open(struct member *m, struct end *e)
{
    struct urnic_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_UD,
    };
    ck_assert_int_eq(urnic_create_cm_channel(e->ctx, &m->channel), 0);
    ck_assert_int_eq(urnic_create_id(m->channel, URNIC_PS_UDP, NULL, &m->id), 0);
    ck_assert_int_eq(urnic_create_id_qp(m->id, e->pd, &init, &e->qp), 0);
}

static void member_close(struct member *m, struct end *e)
{
    ck_assert_int_eq(urnic_destroy_ep(m->id), 0);
    e->qp = NULL;
    ck_assert_int_eq(urnic_destroy_cm_channel(m->channel), 0);
}

static struct sockaddr_storage group_named(const char *name)
{
    struct sockaddr_storage group = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&group;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&group;
    bool is_v6 = strchr(name, ':');
    group.ss_family = is_v6 ? AF_INET6 : AF_INET;
    ck_assert_int_eq(
        inet_pton(group.ss_family, name, is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr),
        1);
    return group;
}

/* a joins the group, and learns how to send to it. */
static void join_to_send(struct member *m, const struct sockaddr *group, struct urnic_send_wr *wr)
{
    struct urnic_cm_event ev;
    ck_assert_int_eq(urnic_join_multicast(m->id, group), 0);
    ck_assert_int_eq(urnic_get_cm_event(m->channel, &ev), 0);
    ck_assert_int_eq(ev.event, URNIC_CM_MULTICAST_JOIN);
    ck_assert_uint_eq(ev.qp_num, 0xFFFFFF);
    ck_assert_int_eq(urnic_create_ah(a.pd, &ev.ah, &wr->ud.ah), 0);
    wr->ud.remote_qpn = ev.qp_num;
    wr->ud.remote_qkey = ev.qkey;
}

static void send_to_group(const struct urnic_send_wr *wr)
{
    const struct urnic_send_wr *bad;
    ck_assert_int_eq(urnic_post_send(a.qp, wr, &bad), 0);
    end_expect(&a, URNIC_WC_SUCCESS, wr->wr_id);
}

/* `drops`: of datagrams to groups that b's device has no member of, once this one has gone by. */
static void join_and_leave(struct member *ma, struct member *mb, const struct sockaddr *group,
                           uint64_t drops)
{
    struct urnic_sge sge = {(uintptr_t)a.mem, 64, a.mr->lkey};
    struct urnic_send_wr wr = {.wr_id = 1,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = URNIC_WR_SEND,
                               .send_flags = URNIC_SEND_SIGNALED};
    struct urnic_wc wc;
    ck_assert_int_eq(urnic_join_multicast(mb->id, group), 0);
    ck_assert_int_eq(urnic_join_multicast(mb->id, group), -EADDRINUSE);
    await_cm(mb->channel, URNIC_CM_MULTICAST_JOIN);
    join_to_send(ma, group, &wr);
    post_recv_seen(10);
    send_to_group(&wr);
    end_expect(&b, URNIC_WC_SUCCESS, 10);
    /* Left: the datagram that follows finds the other group's member only. */
    ck_assert_int_eq(urnic_leave_multicast(mb->id, group), 0);
    ck_assert_int_eq(urnic_leave_multicast(mb->id, group), -EINVAL);
    post_recv_seen(11);
    send_to_group(&wr);
    for (uint64_t until = rig_now_ms() + 5000;
         rig_counter(&rig, "urn1", "rx_mcast_no_group") != drops;)
        ck_assert_msg(rig_now_ms() < until, "nobody has dropped it");
    ck_assert_int_eq(urnic_join_multicast(mb->id, group), 0);
    await_cm(mb->channel, URNIC_CM_MULTICAST_JOIN);
    sge.length = 100;
    send_to_group(&wr);
    end_wait(&b, &wc, 10000);
    ck_assert_uint_eq(wc.wr_id, 11);
    ck_assert_uint_eq(wc.byte_len, 40 + 100); /* the one of 64 octets went by */
    ck_assert_int_eq(urnic_destroy_ah(wr.ud.ah), 0);
}

/* UD-11 CM-35: a queue pair joins groups by its id, receives their datagrams, and receives none
 * after it has left. */
START_TEST(groups)
{
    static const char *const names[] = {"239.1.2.3", "ff15::7"};
    struct member ma, mb;
    up();
    member_open(&ma, &a);
    member_open(&mb, &b);
    for (unsigned i = 0; i < 2; i++) {
        struct sockaddr_storage group = group_named(names[i]);
        join_and_leave(&ma, &mb, (struct sockaddr *)&group, i + 1);
    }
    member_close(&ma, &a);
    member_close(&mb, &b);
    down();
}
END_TEST

UNIT_MAIN("datagrams", datagrams_with_another_key, datagrams_to_strangers, groups)
