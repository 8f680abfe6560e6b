/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbours by the kernel, on a veth pair in a network namespace of the test's own. Needs root;
 * without, the test counts as skipped (77).
 */
#include "kneigh.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "iface.h"
#include "unit.h"
#include "wire_bytes.h"

static struct kneigh *k;
static struct net_port *port;
static uint64_t now = 1;

static struct wire_addr v4(unsigned last)
{
    return wire_addr_v4(0x0A000000u | last);
}

static void set_up(void)
{
    const struct net_config conf = {.mac = {2, 0, 0, 0, 0, 1}, .quiet = true};
    const struct wire_addr own = v4(1);
    char err[CONFIG_ERR] = "";
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    sh("ip link set lo up && ip link add v0 type veth peer name v1 && "
       "ip link set v0 address 02:00:00:00:00:01 up && ip link set v1 up && "
       "ip addr add 10.0.0.1/24 dev v0");
    port = net_port_new(&conf, now);
    ck_assert_ptr_nonnull(port);
    ck_assert_int_eq(net_addr_add(port, &own, 24, now), 0);
    ck_assert_msg(kneigh_open(&k, "v0", err) == 0, "%s", err);
}

static void tear_down(void)
{
    kneigh_close(k);
    net_port_free(port);
}

/* Everything that netlink does comes a little later. */
static void look(void)
{
    struct wire_addr addr;
    usleep(1000);
    while (net_next_request(port, &addr))
        kneigh_ask(k, &addr);
    kneigh_poll(k, port, now);
}

static bool resolves(unsigned last, const uint8_t want[6])
{
    const struct wire_addr dst = v4(last);
    uint8_t mac[6];
    for (unsigned i = 0; i < 5000; i++) {
        int rc = net_resolve(port, &dst, now, mac);
        if (rc == 0)
            return memcmp(mac, want, 6) == 0;
        if (rc != -EINPROGRESS)
            return false;
        look();
    }
    return false;
}

/* WIRE-07: the kernel's neighbours are known without a frame on the wire, also new ones. */
START_TEST(wire_07_the_kernels_table)
{
    static const uint8_t known[6] = {2, 0, 0, 0, 0, 2}, later[6] = {2, 0, 0, 0, 0, 3};
    const struct wire_addr stranger = v4(3);
    uint8_t mac[6], frame[NET_TX_MAX];
    sh("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent");
    ck_assert(resolves(2, known));
    ck_assert_int_eq(net_resolve(port, &stranger, now, mac), -EINPROGRESS);
    for (unsigned i = 0; i < 20; i++)
        look();
    ck_assert_int_eq(net_resolve(port, &stranger, now, mac), -EINPROGRESS);
    sh("ip neigh replace 10.0.0.3 lladdr 02:00:00:00:00:03 dev v0 nud reachable");
    ck_assert(resolves(3, later));
    while (net_tx(port, frame, sizeof(frame), now) > 0)
        ck_assert_uint_ne(wire_get16(frame + 12), 0x0806); /* no ARP of ours */
}
END_TEST

/* We make the kernel resolve a neighbour. Without an answer it reports a failure, before our own
 * time-out. */
START_TEST(wire_07_nobody_there)
{
    const struct wire_addr dst = v4(9);
    uint8_t mac[6];
    int rc = net_resolve(port, &dst, now, mac);
    sh("sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=50");
    for (unsigned i = 0; i < 10000 && rc == -EINPROGRESS; i++) {
        look();
        rc = net_resolve(port, &dst, now, mac);
    }
    ck_assert_int_eq(rc, -EHOSTUNREACH);
}
END_TEST

/* Does the port answer an ARP request for 10.0.0.1? */
static bool answers(void)
{
    static const uint8_t request[60] = {
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2,  0, 0, 0, 0, 2, 0x08, 0x06, /* Ethernet */
        0,    1,    8,    0,    6,    4,    0,  1,                         /* ARP: request */
        2,    0,    0,    0,    0,    2,    10, 0, 0, 2,                   /* from */
        0,    0,    0,    0,    0,    0,    10, 0, 0, 1,                   /* to */
    };
    uint8_t reply[256];
    return net_rx(port, request, sizeof(request), now, reply, sizeof(reply)) > 0;
}

static void becomes(bool want)
{
    for (unsigned i = 0; i < 5000 && answers() != want; i++)
        look();
    ck_assert_int_eq(answers(), want);
}

/* WIRE-07: an address that the kernel has is the kernel's to answer for; one that it hasn't, ours.
 */
START_TEST(wire_07_one_of_us_answers)
{
    becomes(false);
    sh("ip addr del 10.0.0.1/24 dev v0");
    becomes(true);
    sh("ip addr add 10.0.0.1/24 dev v0");
    becomes(false);
}
END_TEST

/* WIRE-36: the same holds after a new name of the interface, and after another interface takes its
 * place. */
START_TEST(wire_36_the_interface_is_followed)
{
    becomes(false);
    sh("ip link set v0 down && ip link set v0 name eth9 up && ip addr del 10.0.0.1/24 dev eth9");
    becomes(true);
    sh("ip addr add 10.0.0.1/24 dev eth9");
    becomes(false);
    sh("ip link del eth9");
    becomes(true);
    sh("ip link add eth9 type veth peer name v1 && ip link set eth9 up && "
       "ip addr add 10.0.0.1/24 dev eth9");
    becomes(false);
}
END_TEST

/* The kernel answers no RoCE packet with "port unreachable": a connected socket would get the
 * error. */
START_TEST(the_kernel_keeps_quiet_about_roce)
{
    sh("bash -c 'exec 3<>/dev/udp/10.0.0.1/4791; echo x >&3; sleep 0.05; echo x >&3'");
    kneigh_close(k);
    k = NULL;
    ck_assert_int_ne(
        system("bash -c 'exec 3<>/dev/udp/10.0.0.1/4791; echo x >&3; sleep 0.05; echo x >&3' "
               "2>/dev/null"),
        0);
}
END_TEST

START_TEST(no_such_interface)
{
    struct kneigh *none;
    char err[CONFIG_ERR] = "";
    ck_assert_int_eq(kneigh_open(&none, "v9", err), -ENODEV);
    ck_assert_ptr_nonnull(strstr(err, "v9"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kneigh");
    TCase *tc = tcase_create("kneigh");

    if (geteuid() != 0)
        return 77;
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, wire_07_the_kernels_table);
    tcase_add_test(tc, wire_07_nobody_there);
    tcase_add_test(tc, wire_07_one_of_us_answers);
    tcase_add_test(tc, wire_36_the_interface_is_followed);
    tcase_add_test(tc, the_kernel_keeps_quiet_about_roce);
    tcase_add_test(tc, no_such_interface);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
