/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Promises of the public headers about connections, to programs that are faster than events, or
 * whose addresses change.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon_rig.h"
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

static void id_qp(struct end *e, struct urnic_cm_id *id)
{
    struct urnic_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = URNIC_QPT_RC,
    };
    ck_assert_int_eq(urnic_create_id_qp(id, e->pd, &init, &e->qp), 0);
    ck_assert_int_eq(end_post_recv(e, 0, 64, 7), 0);
}

/* `a` connects to where `b` listens. */
struct meeting {
    struct urnic_cm_channel *ca, *cb;
    struct urnic_cm_id *listener, *active, *passive;
};

/* As far as `a` has a queue pair and its route. */
static void meet(struct meeting *m, struct sockaddr *at)
{
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &m->ca), 0);
    ck_assert_int_eq(urnic_create_cm_channel(b.ctx, &m->cb), 0);
    ck_assert_int_eq(urnic_create_id(m->cb, URNIC_PS_TCP, NULL, &m->listener), 0);
    ck_assert_int_eq(urnic_bind_addr(m->listener, at), 0);
    ck_assert_int_eq(urnic_listen(m->listener, 0), 0);
    ck_assert_int_eq(urnic_create_id(m->ca, URNIC_PS_TCP, NULL, &m->active), 0);
    ck_assert_int_eq(urnic_resolve(m->active, NULL, at, 5000), 0);
    await_cm(m->ca, URNIC_CM_ROUTE_RESOLVED);
    id_qp(&a, m->active);
}

/* ... as `b` has heard of it, and has one as well. */
static void meet_halfway(struct meeting *m)
{
    ck_assert_int_eq(urnic_connect(m->active, NULL), 0);
    m->passive = await_cm(m->cb, URNIC_CM_CONNECT_REQUEST).id;
    id_qp(&b, m->passive);
}

static void part(struct meeting *m)
{
    ck_assert_int_eq(urnic_destroy_ep(m->active), 0);
    ck_assert_int_eq(urnic_destroy_ep(m->passive), 0);
    a.qp = b.qp = NULL;
    ck_assert_int_eq(urnic_destroy_id(m->listener), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(m->ca), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(m->cb), 0);
}

/* CM-25: a polling client may have the peer's first message before ESTABLISHED is read, and may
 * answer it: the queue pair is in RTS already. */
START_TEST(answers_before_the_event)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct meeting m;
    up();
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    meet(&m, (struct sockaddr *)&to);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 1), -EINVAL); /* not connected */
    meet_halfway(&m);
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 8, 0, 0, 2), -EINVAL); /* nor accepted */
    ck_assert_int_eq(urnic_accept(m.passive, NULL), 0);
    await_cm(m.cb, URNIC_CM_ESTABLISHED);
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 8, 0, 0, 3), 0);
    end_expect(&b, URNIC_WC_SUCCESS, 3);
    end_expect(&a, URNIC_WC_SUCCESS, 7);
    ck_assert_int_eq(end_post(&a, URNIC_WR_SEND, 0, 8, 0, 0, 4), 0);
    end_expect(&a, URNIC_WC_SUCCESS, 4);
    end_expect(&b, URNIC_WC_SUCCESS, 7);
    await_cm(m.ca, URNIC_CM_ESTABLISHED);
    part(&m);
    down();
}
END_TEST

static void change_address(enum ipc_type type, const char *ip)
{
    struct ipc_addr_admin m = {.hdr.type = (uint16_t)type, .device = "urn1", .prefix_len = 64};
    struct ipc_hdr reply;
    inet_pton(AF_INET6, ip, m.ip);
    ck_assert_int_eq(rig_request(&rig, &m, sizeof(m), -1, &reply, sizeof(reply)), 0);
}

/* CM-25 GID-04: where the address has gone that a request came to, it isn't accepted from another
 * one, which its peer has never heard of. */
START_TEST(accepts_from_its_address)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    struct meeting m;
    up();
    change_address(IPC_ADDR_ADD, "fd00::22");
    inet_pton(AF_INET6, "fd00::22", &to.sin6_addr);
    meet(&m, (struct sockaddr *)&to);
    meet_halfway(&m);
    change_address(IPC_ADDR_DEL, "fd00::22");
    ck_assert_int_eq(urnic_accept(m.passive, NULL), -EADDRNOTAVAIL);
    part(&m);
    down();
}
END_TEST

/* CM-25 CM-30: a connection that can't be made says why. */
START_TEST(says_who_is_missing)
{
    const struct {
        const char *ip;
        int timeout_ms, error;
    } peers[] = {{"10.0.0.77", 1000, -ETIMEDOUT},
                 {"10.0.0.77", 0, -EHOSTUNREACH},
                 {"192.0.2.1", 0, -ENETUNREACH},
                 {"10.0.0.2", 0, -ECONNREFUSED},
                 {"10.0.0", 0, -EINVAL}};
    struct urnic_conn_attr attr = {.qp = {.qp_type = URNIC_QPT_RC}};
    struct urnic_conn *conn;
    up();
    attr.pd = a.pd;
    attr.qp.send_cq = attr.qp.recv_cq = a.cq;
    for (unsigned i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
        attr.timeout_ms = peers[i].timeout_ms;
        ck_assert_int_eq(urnic_connect_addr(a.ctx, peers[i].ip, PORT, &attr, NULL, NULL, &conn),
                         peers[i].error);
    }
    down();
}
END_TEST

/* CM-25: waiting for a neighbour that doesn't answer ends after the caller's time, not when the
 * neighbour is asked again. */
START_TEST(gives_up_in_time)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_channel *ca;
    struct urnic_cm_id *id;
    uint64_t best = UINT64_MAX;
    up();
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    for (unsigned i = 0; i < 3 && best > 1300; i++) { /* the machine may be busy */
        to.sin_addr.s_addr = htonl(0x0A00004Du + i);
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
        uint64_t begin = rig_now_ms();
        ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 1000), 0);
        ck_assert_int_eq(await_cm(ca, URNIC_CM_ADDR_ERROR).status, -ETIMEDOUT);
        uint64_t took = rig_now_ms() - begin;
        ck_assert_uint_ge(took, 1000);
        if (took < best)
            best = took;
        ck_assert_int_eq(urnic_destroy_id(id), 0);
    }
    ck_assert_uint_le(best, 1300);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    down();
}
END_TEST

/* CM-25: resolving that is refused leaves the id as it was, and one from IPv4 to IPv6 is. */
START_TEST(resolves_again)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    const struct sockaddr *src = (struct sockaddr *)&from, *dst = (struct sockaddr *)&to;
    struct urnic_cm_channel *ca;
    struct urnic_cm_id *id;
    up();
    inet_pton(AF_INET6, "fd00::2", &six.sin6_addr);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    to.sin_port = htons(PORT);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_bind_addr(id, src), 0);
    inet_pton(AF_INET, "10.0.0.1", &from.sin_addr);
    ck_assert_int_eq(urnic_resolve(id, src, (struct sockaddr *)&six, 1000), -EINVAL);
    inet_pton(AF_INET, "192.0.2.7", &from.sin_addr);
    ck_assert_int_eq(urnic_resolve(id, src, dst, 1000), -EADDRNOTAVAIL);
    ck_assert_int_eq(urnic_resolve(id, NULL, dst, 1000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    down();
}
END_TEST

/* CM-25: connecting to a group or a broadcast address fails at once. */
START_TEST(groups_are_no_peers)
{
    static const char *const everybody[] = {"10.0.0.255", "255.255.255.255"};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    const struct sockaddr *dst = (struct sockaddr *)&to, *dst6 = (struct sockaddr *)&six;
    struct urnic_cm_channel *ca;
    struct urnic_cm_id *id, *datagrams;
    up();
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_UDP, NULL, &datagrams), 0);
    inet_pton(AF_INET, "239.1.2.3", &to.sin_addr);
    inet_pton(AF_INET6, "ff0e::7", &six.sin6_addr);
    ck_assert_int_eq(urnic_resolve(id, NULL, dst, 1000), -EINVAL);
    ck_assert_int_eq(urnic_resolve_addr(id, NULL, dst6, 1000), -EINVAL);
    ck_assert_int_eq(urnic_resolve(datagrams, NULL, dst, 1000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    for (unsigned i = 0; i < 2; i++) {
        inet_pton(AF_INET, everybody[i], &to.sin_addr);
        ck_assert_int_eq(urnic_resolve(id, NULL, dst, 1000), 0);
        ck_assert_int_eq(await_cm(ca, URNIC_CM_ADDR_ERROR).status, -ENETUNREACH);
    }
    ck_assert_int_eq(urnic_destroy_id(datagrams), 0);
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    down();
}
END_TEST

/* WIRE-28: a client that names no source address sends from the address that reaches the next hop.
 * If no address does, it gets the event ADDR_ERROR. */
START_TEST(chooses_its_source)
{
    const char *const args[] = {"--device",
                                "name=urn0,port=mem:L,addr=10.0.0.1/24;192.0.2.5/24,gw=192.0.2.254",
                                "--device", "name=urn1,port=mem:L,addr=192.0.2.254/24", NULL};
    static const struct {
        const char *to;
        uint8_t from[4];
    } rows[] = {{"198.51.100.7", {192, 0, 2, 5}},
                {"192.0.2.254", {192, 0, 2, 5}},
                {"10.0.0.1", {10, 0, 0, 1}}};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    struct urnic_cm_channel *ca;
    struct urnic_cm_id *id;
    uint8_t local[16];
    rig_start(&rig, args);
    end_open(&a, &rig, "urn0", SIZE);
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ca), 0);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inet_pton(AF_INET, rows[i].to, &to.sin_addr);
        ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
        ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 5000), 0);
        await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
        ck_assert_int_eq(urnic_id_addr(id, local, NULL, NULL, NULL), 0);
        ck_assert_msg(memcmp(local + 12, rows[i].from, 4) == 0, "to %s", rows[i].to);
        ck_assert_int_eq(urnic_destroy_id(id), 0);
    }
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    ck_assert_int_eq(urnic_create_id(ca, URNIC_PS_TCP, NULL, &id), 0);
    ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&six, 5000), 0);
    ck_assert_int_eq(await_cm(ca, URNIC_CM_ADDR_ERROR).status, -ENETUNREACH);
    inet_pton(AF_INET, "10.0.0.77", &to.sin_addr); /* no host */
    ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 50), 0);
    await_cm(ca, URNIC_CM_ADDR_ERROR);
    inet_pton(AF_INET, "192.0.2.254", &to.sin_addr);
    ck_assert_int_eq(urnic_resolve(id, NULL, (struct sockaddr *)&to, 5000), 0);
    await_cm(ca, URNIC_CM_ROUTE_RESOLVED);
    ck_assert_int_eq(urnic_id_addr(id, local, NULL, NULL, NULL), 0);
    ck_assert_msg(memcmp(local + 12, rows[1].from, 4) == 0, "after a peer that wasn't there");
    ck_assert_int_eq(urnic_destroy_id(id), 0);
    ck_assert_int_eq(urnic_destroy_cm_channel(ca), 0);
    end_close(&a);
    rig_stop(&rig);
}
END_TEST

static void check_class(const struct end *e, uint8_t tclass, uint8_t sl)
{
    struct urnic_qp_attr attr;
    ck_assert_int_eq(urnic_query_qp(e->qp, &attr), 0);
    ck_assert_uint_eq(attr.ah_attr.tclass, tclass);
    ck_assert_uint_eq(attr.ah_attr.sl, sl);
}

/* WIRE-13 CM-05: both ends have the traffic class and the SL that the active side wants. */
START_TEST(sends_in_its_class)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_conn_param param = {.tclass = 26 << 2, .sl = 16};
    struct meeting m;
    up();
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    meet(&m, (struct sockaddr *)&to);
    ck_assert_int_eq(urnic_connect(m.active, &param), -EINVAL);
    param.sl = 11;
    ck_assert_int_eq(urnic_connect(m.active, &param), 0);
    m.passive = await_cm(m.cb, URNIC_CM_CONNECT_REQUEST).id;
    id_qp(&b, m.passive);
    ck_assert_int_eq(urnic_accept(m.passive, NULL), 0);
    await_cm(m.cb, URNIC_CM_ESTABLISHED);
    await_cm(m.ca, URNIC_CM_ESTABLISHED);
    check_class(&a, 26 << 2, 11);
    check_class(&b, 26 << 2, 11);
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 8, 0, 0, 3), 0);
    end_expect(&b, URNIC_WC_SUCCESS, 3);
    part(&m);
    down();
}
END_TEST

/* WIRE-13: without a requested traffic class both ends have that of the active side's device. */
START_TEST(sends_in_its_devices_class)
{
    const struct urnic_conn_param param = {.tclass = 8 << 2};
    struct urnic_port_attr port;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct meeting m;
    rig_open_pair(&rig, ",dscp=26", &a, &b, SIZE);
    ck_assert_int_eq(urnic_query_port(a.ctx, &port), 0);
    ck_assert_uint_eq(port.dscp, 26);
    ck_assert_int_eq(urnic_query_port(b.ctx, &port), 0);
    ck_assert_uint_eq(port.dscp, 0);
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t want = i == 0 ? 26 << 2 : 8 << 2;
        meet(&m, (struct sockaddr *)&to);
        ck_assert_int_eq(urnic_connect(m.active, i == 0 ? NULL : &param), 0);
        m.passive = await_cm(m.cb, URNIC_CM_CONNECT_REQUEST).id;
        id_qp(&b, m.passive);
        ck_assert_int_eq(urnic_accept(m.passive, NULL), 0);
        await_cm(m.cb, URNIC_CM_ESTABLISHED);
        await_cm(m.ca, URNIC_CM_ESTABLISHED);
        check_class(&a, want, 0);
        check_class(&b, want, 0);
        part(&m);
    }
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    end_connect(&a, &b);
    check_class(&a, 26 << 2, 0);
    check_class(&b, 0, 0);
    down();
}
END_TEST

static void check_retries(const struct end *e, unsigned retry_cnt, unsigned rnr_retry)
{
    struct urnic_qp_attr attr;
    ck_assert_int_eq(urnic_query_qp(e->qp, &attr), 0);
    ck_assert_uint_eq(attr.retry_cnt, retry_cnt);
    ck_assert_uint_eq(attr.rnr_retry, rnr_retry);
}

/* CM-10: each end sets the other's RNR retry count; the active side sets the retry count of both.
 */
START_TEST(tries_as_the_peer_says)
{
    const struct urnic_conn_param ours = {
        .retry_counts_set = true, .retry_count = 5, .rnr_retry_count = 1};
    const struct urnic_conn_param theirs = {
        .retry_counts_set = true, .retry_count = 2, .rnr_retry_count = 3};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct meeting m;
    up();
    inet_pton(AF_INET, "10.0.0.2", &to.sin_addr);
    meet(&m, (struct sockaddr *)&to);
    ck_assert_int_eq(urnic_connect(m.active, &ours), 0);
    m.passive = await_cm(m.cb, URNIC_CM_CONNECT_REQUEST).id;
    id_qp(&b, m.passive);
    ck_assert_int_eq(urnic_accept(m.passive, &theirs), 0);
    await_cm(m.cb, URNIC_CM_ESTABLISHED);
    await_cm(m.ca, URNIC_CM_ESTABLISHED);
    check_retries(&a, 5, 3);
    check_retries(&b, 5, 1);
    part(&m);
    down();
}
END_TEST

UNIT_MAIN("promises of connections", answers_before_the_event, accepts_from_its_address,
          says_who_is_missing, gives_up_in_time, resolves_again, groups_are_no_peers,
          chooses_its_source, sends_in_its_class, sends_in_its_devices_class,
          tries_as_the_peer_says)
