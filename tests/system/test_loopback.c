/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device's frames to itself: both ends of a connection, and the members of a group, on one
 * device.
 */
#include <arpa/inet.h>
#include <string.h>

#include "daemon_rig.h"
#include "unit.h"

#define SIZE (1u << 20)

static struct rig rig;
static struct end a, b; /* both on urn0 */

/* A device that is alone on its link, as the first one of a user is. */
static void up_alone(void)
{
    const char *args[] = {"--port", "mem:lone", "--addr", "10.0.0.1/24", NULL};
    rig_start(&rig, args);
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn0", SIZE);
}

static void up(void)
{
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn0", SIZE);
}

static void down(void)
{
    /* Nothing of it went over the link: urn1 has heard of the neighbour at most. */
    ck_assert_uint_eq(rig_counter(&rig, "urn1", "rx_packets"), 0);
    rig_close_pair(&rig, &a, &b);
}

/* ICRC-11: every operation between two queue pairs of one device, of more data than the ring holds
 * at once. The iCRC is computed and checked as on a wire. */
START_TEST(to_the_own_address)
{
    static const uint32_t sizes[] = {0, 1, 1025, SIZE / 2};
    struct urnic_wc wc;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t len = sizes[i];
        for (uint32_t k = 0; k < len; k++)
            a.mem[k] = (uint8_t)(k * 31 + i + 1);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, len, b.mr->iova, b.mr->rkey, 1), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 1);
        ck_assert(memcmp(a.mem, b.mem, len) == 0);
        memset(a.mem, 0, len);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_READ, 0, len, b.mr->iova, b.mr->rkey, 2), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 2);
        ck_assert(memcmp(a.mem, b.mem, len) == 0);
        ck_assert_int_eq(end_post_recv(&b, SIZE / 2, SIZE / 2, 3), 0);
        ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, len, 0, 0, 4), 0);
        end_expect(&a, URNIC_WC_SUCCESS, 4);
        end_wait(&b, &wc, 10000);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
        ck_assert_uint_eq(wc.byte_len, len);
        ck_assert(memcmp(a.mem, b.mem + SIZE / 2, len) == 0);
    }
    down();
}
END_TEST

/* Connections, with a WRITE on each, from one port of the connection manager to another one of the
 * same. */
static void connect_to_self(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4800)};
    struct urnic_qp_init_attr init = {
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener, *active, *passive;
    inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &cb), 0);
    ck_assert_int_eq(urnic_create_id(cb, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&to), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &active), 0);
        ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&to, 5000), 0);
        await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
        init.send_cq = init.recv_cq = a.cq;
        ck_assert_int_eq(urnic_create_id_qp(active, a.pd, &init, &a.qp), 0);
        ck_assert_int_eq(urnic_connect(active, NULL), 0);
        passive = await_cm(cb, URNIC_CM_CONNECT_REQUEST).id;
        init.send_cq = init.recv_cq = b.cq;
        ck_assert_int_eq(urnic_create_id_qp(passive, b.pd, &init, &b.qp), 0);
        ck_assert_int_eq(urnic_accept(passive, NULL), 0);
        await_cm(ca, URNIC_CM_ESTABLISHED);
        await_cm(cb, URNIC_CM_ESTABLISHED);
        ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, SIZE, b.mr->iova, b.mr->rkey, i), 0);
        end_expect(&a, URNIC_WC_SUCCESS, i);
        ck_assert_int_eq(urnic_disconnect(active), 0);
        await_cm(cb, URNIC_CM_DISCONNECTED);
        await_cm(ca, URNIC_CM_DISCONNECTED);
        ck_assert_int_eq(urnic_destroy_ep(active), 0);
        ck_assert_int_eq(urnic_destroy_ep(passive), 0);
        a.qp = b.qp = NULL;
    }
    ck_assert_int_eq(urnic_destroy_id(listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(cb), 0);
}

/* CM-17 CM-25 */
START_TEST(connections)
{
    up();
    connect_to_self();
    down();
}
END_TEST

/* The link of a device that is alone on it is up, so that it reaches itself. */
START_TEST(alone)
{
    up_alone();
    connect_to_self();
    rig_close_pair(&rig, &a, &b);
}
END_TEST

/* UD-10: of a datagram to a group each member on the sender's device gets a copy, the sender too;
 * and so does the other end of the link. */
START_TEST(groups)
{
    struct urnic_ah_attr to = {.sgid_index = 3, .hop_limit = 1};
    struct urnic_send_wr wr = {.wr_id = 1,
                               .opcode = URNIC_WR_SEND,
                               .send_flags = URNIC_SEND_SIGNALED,
                               .ud = {.remote_qpn = 0xFFFFFF, .remote_qkey = 0x11}};
    struct urnic_wc wc;
    struct end far;
    up();
    end_open(&far, &rig, "urn1", SIZE);
    to.dgid[10] = to.dgid[11] = 0xFF;
    inet_pton(AF_INET, "239.1.2.3", to.dgid + 12);
    struct end *const members[] = {&a, &b, &far};
    for (unsigned i = 0; i < 3; i++) {
        end_datagrams(members[i]);
        ck_assert_int_eq(urnic_attach_mcast(members[i]->qp, to.dgid), 0);
        ck_assert_int_eq(end_post_recv(members[i], 0, 1024, 10 + i), 0);
    }
    ck_assert_int_eq(urnic_create_ah(a.pd, &to, &wr.ud.ah), 0);
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    unsigned seen = 0;
    for (unsigned i = 0; i < 2; i++) {
        end_wait(&a, &wc, 10000);
        ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
        seen |= wc.wr_id == 1 ? 1 : 2;
    }
    ck_assert_uint_eq(seen, 3); /* the sent frame, and its echo */
    end_expect(&b, URNIC_WC_SUCCESS, 11);
    end_expect(&far, URNIC_WC_SUCCESS, 12);

    /* A datagram to a group without members here reaches no queue pair here. */
    uint64_t before = rig_counter(&rig, "urn0", "rx_packets");
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(urnic_detach_mcast(members[i]->qp, to.dgid), 0);
    ck_assert_int_eq(end_post_recv(&far, 0, 1024, 13), 0);
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 1);
    end_expect(&far, URNIC_WC_SUCCESS, 13);
    ck_assert_uint_eq(rig_counter(&rig, "urn0", "rx_packets"), before);
    ck_assert_int_eq(urnic_destroy_ah(wr.ud.ah), 0);
    ck_assert_int_eq(urnic_detach_mcast(far.qp, to.dgid), 0);
    end_close(&far);
    rig_close_pair(&rig, &a, &b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("loopback");
    TCase *t = tcase_create("loopback");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, to_the_own_address);
    tcase_add_test(t, connections);
    tcase_add_test(t, alone);
    tcase_add_test(t, groups);
    suite_add_tcase(s, t);
    return unit_run(s);
}
