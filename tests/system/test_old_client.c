/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Old client, new daemon: a client of protocol 1.0, frozen in old_client.c, connects two devices
 * step by step as liburnic did then, and moves data both ways.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon_rig.h"
#include "ipc.h"
#include "old_client.h"
#include "unit.h"

#define PORT 4791u

static const uint8_t ip_a[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 1};
static const uint8_t ip_b[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 2};

static uint32_t new_id(struct old_end *e, uint64_t ref)
{
    struct old_msg m = {0};
    old_put32(&m, 16, e->cm_channel);
    old_put32(&m, 20, 0x0106);
    old_put64(&m, 24, ref);
    old_call(e, OLD_CM_ID_CREATE, &m, 32, 24);
    return old_get32(&m, 16);
}

static void to_init(struct old_end *e)
{
    struct old_msg m = {0};
    old_put32(&m, 16, e->qp);
    old_put32(&m, 20, 1u | 8u | 16u | 32u); /* state, access, P_Key index, port */
    old_put32(&m, 24, 1);
    old_put32(&m, 24 + 24, 1 | 2 | 4 | 8);
    m.b[24 + 74] = 1;
    old_call(e, OLD_QP_MODIFY, &m, 112, 16);
}

/* RTR, then RTS, with the connection manager's values. */
static void to_rts(struct old_end *e, uint32_t id)
{
    for (uint32_t state = 2; state <= 3; state++) {
        struct old_msg m = {0};
        old_put32(&m, 16, id);
        old_put32(&m, 20, state);
        old_call(e, OLD_CM_QP_ATTR, &m, 24, 112);
        ck_assert_uint_eq(old_get32(&m, 24), state);
        old_put32(&m, 16, e->qp);
        old_call(e, OLD_QP_MODIFY, &m, 112, 16);
    }
}

static void to_err(struct old_end *e)
{
    struct old_msg m = {0};
    old_put32(&m, 16, e->qp);
    old_put32(&m, 20, 1);
    old_put32(&m, 24, 6);
    old_call(e, OLD_QP_MODIFY, &m, 112, 16);
}

/* CONNECT and ACCEPT have 300 octets. */
static void conn(struct old_end *e, enum old_type type, uint32_t id, const char *text)
{
    struct old_msg m = {0};
    old_put32(&m, 16, id);
    old_put32(&m, 24, e->qpn);
    m.b[36] = m.b[37] = 4;
    m.b[39] = m.b[40] = 7;
    m.b[42] = (uint8_t)strlen(text);
    memcpy(m.b + 44, text, strlen(text));
    old_call(e, type, &m, 300, 16);
}

static uint32_t listen_on(struct old_end *e)
{
    struct old_msg m = {0};
    uint32_t id = new_id(e, 100);
    uint16_t port = PORT;
    old_put32(&m, 16, id);
    memcpy(m.b + 24, ip_b, 16);
    memcpy(m.b + 40, &port, 2);
    old_call(e, OLD_CM_BIND, &m, 72, 72);
    ck_assert_int_eq(memcmp(m.b + 24, ip_b, 16), 0);
    ck_assert_int_eq(memcmp(m.b + 40, &port, 2), 0);
    m = (struct old_msg){0};
    old_put32(&m, 16, id);
    old_call(e, OLD_CM_LISTEN, &m, 24, 16);
    return id;
}

static uint32_t resolve(struct old_end *e)
{
    struct old_msg m = {0};
    uint32_t id = new_id(e, 200);
    uint16_t port = PORT;
    old_put32(&m, 16, id);
    old_put32(&m, 20, 5000);
    memcpy(m.b + 48, ip_b, 16);
    memcpy(m.b + 64, &port, 2);
    old_call(e, OLD_CM_RESOLVE_ADDR, &m, 72, 16);
    ck_assert_uint_eq(old_event(e, OLD_EV_ADDR_RESOLVED, &m), id);
    ck_assert_uint_eq(old_get64(&m, 8), 200);
    ck_assert_int_eq(memcmp(m.b + 24, ip_a, 16), 0);
    m = (struct old_msg){0};
    old_put32(&m, 16, id);
    old_put32(&m, 20, 5000);
    old_call(e, OLD_CM_RESOLVE_ROUTE, &m, 24, 16);
    ck_assert_uint_eq(old_event(e, OLD_EV_ROUTE_RESOLVED, &m), id);
    return id;
}

static void migrate(struct old_end *e, uint32_t id)
{
    struct old_msg m = {0};
    old_put32(&m, 16, id);
    old_put32(&m, 20, e->cm_channel);
    old_put64(&m, 24, 300);
    old_call(e, OLD_CM_MIGRATE, &m, 32, 24);
}

START_TEST(one_connection)
{
    struct rig rig = {0};
    struct old_end a, b;
    struct old_msg m;
    rig_start_pair(&rig, "");
    old_open(&a, rig.socket, "urn0");
    old_open(&b, rig.socket, "urn1");
    uint32_t listener = listen_on(&b);
    uint32_t active = resolve(&a);
    to_init(&a);
    conn(&a, OLD_CM_CONNECT, active, "ping");

    uint32_t passive = old_event(&b, OLD_EV_CONNECT_REQUEST, &m);
    ck_assert_uint_eq(old_get64(&m, 8), 100); /* the listener's reference */
    ck_assert_uint_eq(old_get32(&m, 72), a.qpn);
    ck_assert_int_eq(memcmp(m.b + 132, "ping", 4), 0);
    migrate(&b, passive);
    to_init(&b);
    to_rts(&b, passive);
    conn(&b, OLD_CM_ACCEPT, passive, "pong");

    ck_assert_uint_eq(old_event(&a, OLD_EV_CONNECT_RESPONSE, &m), active);
    ck_assert_uint_eq(old_get32(&m, 72), b.qpn);
    ck_assert_uint_eq(m.b[90], 196); /* a REP's private data: padded with zeros */
    ck_assert_int_eq(memcmp(m.b + 132, "pong", 5), 0);
    to_rts(&a, active);
    old_handle(&a, OLD_CM_ESTABLISH, active);
    ck_assert_uint_eq(old_event(&b, OLD_EV_ESTABLISHED, &m), passive);
    ck_assert_uint_eq(old_get64(&m, 8), 300);

    for (uint32_t i = 0; i < 40; i++) { /* round both rings */
        uint64_t there = i * 0x0101010101010101u, back = ~there;
        old_write(&a, (uintptr_t)b.data, b.rkey, &there, 8);
        ck_assert_int_eq(memcmp(b.data, &there, 8), 0);
        old_write(&b, (uintptr_t)a.data + 8, a.rkey, &back, 8);
        ck_assert_int_eq(memcmp(a.data + 8, &back, 8), 0);
    }

    to_err(&a);
    old_handle(&a, OLD_CM_DISCONNECT, active);
    ck_assert_uint_eq(old_event(&b, OLD_EV_DISCONNECTED, &m), passive);
    to_err(&b);
    ck_assert_uint_eq(old_event(&a, OLD_EV_DISCONNECTED, &m), active);
    old_handle(&a, OLD_CM_ID_DESTROY, active);
    old_handle(&b, OLD_CM_ID_DESTROY, passive);
    old_handle(&b, OLD_CM_ID_DESTROY, listener);
    old_close(&a);
    old_close(&b);
    rig_stop(&rig);
}
END_TEST

/* The answer to a program of this minor version that wants a channel. */
static int channel_of(const struct rig *rig, uint16_t minor)
{
    static _Alignas(16) uint8_t buf[IPC_MSG_MAX];
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct ipc_hello hello;
    const struct ipc_ctx_open open = {.hdr.type = IPC_CTX_OPEN, .device = "urn0", .worker = -1};
    const struct ipc_engine_open engine = {.hdr.type = IPC_ENGINE_OPEN};
    const struct {
        const void *msg;
        size_t len;
    } say[] = {{&hello, sizeof(hello)}, {&open, sizeof(open)}, {&engine, sizeof(engine)}};
    struct ipc_hdr hdr = {0};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(sa.sun_path, rig->socket, strlen(rig->socket) + 1);
    ck_assert_int_eq(connect(sock, (const struct sockaddr *)&sa, sizeof(sa)), 0);
    ipc_hello_fill(&hello, 0);
    hello.minor = minor;
    for (size_t i = 0; i < sizeof(say) / sizeof(say[0]); i++) {
        ck_assert_int_eq(hdr.status, 0);
        ck_assert_int_eq(ipc_send(sock, say[i].msg, say[i].len, NULL, 0, 0), 0);
        ck_assert_int_ge(recv(sock, buf, sizeof(buf), 0), (ssize_t)sizeof(hdr));
        memcpy(&hdr, buf, sizeof(hdr));
    }
    close(sock);
    return hdr.status;
}

/* SEC-35: the frames of a library that names no peers would all be dropped, so the daemon refuses
 * it. */
START_TEST(no_channel_for_older_ones)
{
    struct rig rig = {0};
    rig_start_pair(&rig, "");
    ck_assert_int_eq(channel_of(&rig, IPC_ENGINE_MINOR - 1), -ENOTSUP);
    ck_assert_int_eq(channel_of(&rig, IPC_ENGINE_MINOR), 0);
    ck_assert_int_eq(channel_of(&rig, IPC_MINOR + 1), 0);
    rig_stop(&rig);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("old client");
    TCase *t = tcase_create("protocol 1.0");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, one_connection);
    tcase_add_test(t, no_channel_for_older_ones);
    suite_add_tcase(s, t);
    return unit_run(s);
}
