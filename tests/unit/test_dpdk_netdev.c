/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watching a kernel interface, on a veth pair in a network namespace of the test's own. Needs root;
 * without, the test counts as skipped (77).
 */
#include "dpdk_netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iface.h"
#include "unit.h"

static struct netdev nd;

/* The kernel works out carrier and running state a little later than `ip` returns, and may pass
 * through more states on the way than there were commands. */
static void settle(bool up)
{
    for (int i = 0; i < 2000; i++) {
        netdev_poll(&nd);
        if (nd.up == up)
            return;
        usleep(1000);
    }
    ck_abort_msg("the link stays %s", nd.up ? "up" : "down");
}

static void veth(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    sh("ip link add v0 mtu 1400 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
    ck_assert_int_eq(netdev_open(&nd, "v0"), 0);
    settle(true);
    nd.changes = 0;
}

static void no_veth(void)
{
    netdev_close(&nd);
}

START_TEST(what_is_there_is_known)
{
    struct netdev other;

    ck_assert_int_eq(nd.ifindex, (int)if_nametoindex("v0"));
    ck_assert(nd.up);
    ck_assert_uint_eq(nd.mtu, 1400);
    ck_assert_uint_eq(nd.changes, 0);
    ck_assert_int_eq(netdev_open(&other, "nosuch"), -ENODEV);
}
END_TEST

START_TEST(each_change_of_the_link_counts)
{
    sh("ip link set v1 down");
    settle(false);
    ck_assert_uint_ge(nd.changes, 1);
    sh("ip link set v1 up");
    settle(true);
    ck_assert_uint_ge(nd.changes, 2);
    uint64_t before = nd.changes;
    sh("ip link set v0 down && ip link set v0 up");
    settle(true);
    ck_assert_uint_ge(nd.changes, before + 2);
    ck_assert_uint_eq(nd.changes % 2, 0);
    before = nd.changes;
    sh("ip link set v0 mtu 1300"); /* no change of the link */
    netdev_poll(&nd);
    ck_assert_uint_eq(nd.mtu, 1300);
    ck_assert_uint_eq(nd.changes, before);
}
END_TEST

/* So quick that the kernel tells of both by one event, which finds the link as it was. */
START_TEST(a_blink_is_two_changes)
{
    for (uint64_t n = 1; n <= 10; n++) {
        sh("printf 'link set v1 down\\nlink set v1 up\\n' | ip -batch -");
        for (int i = 0; i < 5000 && nd.changes < 2 * n; i++) {
            usleep(1000);
            netdev_poll(&nd);
        }
        settle(true);
        ck_assert_uint_eq(nd.changes, 2 * n);
    }
}
END_TEST

START_TEST(an_interface_goes_and_another_comes)
{
    int old = nd.ifindex;

    sh("ip link del v0");
    netdev_poll(&nd);
    ck_assert_int_eq(nd.ifindex, 0);
    ck_assert(!nd.up && !nd.replaced);
    sh("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
    settle(true);
    ck_assert(nd.replaced);
    ck_assert_int_ne(nd.ifindex, old);
    ck_assert_int_gt(nd.ifindex, 0);
    ck_assert_uint_ge(nd.changes, 2);
}
END_TEST

START_TEST(a_replacement_between_two_looks_is_seen)
{
    sh("ip link del v0 && ip link add v0 type veth peer name v1 && ip link set v0 up &&"
       "ip link set v1 up");
    netdev_poll(&nd);
    ck_assert(nd.replaced);
    settle(true);
    ck_assert_uint_ge(nd.changes, 2);
}
END_TEST

START_TEST(mtu_is_raised_and_never_lowered)
{
    ck_assert_int_eq(netdev_raise_mtu(&nd, 1300), 0);
    ck_assert_uint_eq(nd.mtu, 1400);
    ck_assert_int_eq(netdev_raise_mtu(&nd, 4200), 0);
    ck_assert_uint_eq(nd.mtu, 4200);
    sh("ip link show v0 | grep -q 'mtu 4200'");
    ck_assert_int_eq(netdev_raise_mtu(&nd, 100000), -EINVAL);
    ck_assert_uint_eq(nd.mtu, 4200);
}
END_TEST

START_TEST(all_multicast_for_as_long_as_the_watch_lives)
{
    ck_assert_int_eq(netdev_allmulti(&nd), 0);
    sh("ip -d link show v0 | grep -q 'allmulti 1'");
    netdev_close(&nd);
    sh("ip -d link show v0 | grep -q 'allmulti 0'");
    ck_assert_int_eq(netdev_open(&nd, "v0"), 0);
}
END_TEST

START_TEST(a_socket_is_found_by_its_interface)
{
    struct netdev_fdset before;
    int early = packet_socket("v0", ETH_P_ALL), fd;

    netdev_fds(&before);
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex), -1);
    packet_socket("v1", ETH_P_ALL); /* another interface's */
    packet_socket("v0", 0);         /* one that receives nothing */
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex), -1);
    fd = packet_socket("v0", ETH_P_ALL);
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex), fd);
    ck_assert_int_ne(fd, early);
}
END_TEST

START_TEST(xdp_sockets_and_nothing_else_are_closed)
{
    struct netdev_fdset before, mine;
    int fd, other, xdp;

    netdev_fds(&before);
    other = packet_socket("v0", ETH_P_ALL);
    fd = dup(0);
    xdp = socket(AF_XDP, SOCK_RAW, 0);
    ck_assert_int_ge(xdp, 0);
    ck_assert_int_eq(netdev_find_socket(&before, AF_XDP, 0), xdp);
    netdev_find_xdp(&before, &mine);
    netdev_close_xdp(&mine);
    ck_assert_int_eq(close(xdp), -1);
    ck_assert_int_eq(close(other), 0);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(what_goes_out_is_not_heard)
{
    static const char frame[64] = "\xff\xff\xff\xff\xff\xff\x02\x01\x01\x01\x01\x01\x88\xb5";
    int ear = packet_socket("v0", ETH_P_ALL), here = packet_socket("v0", 0x88b6);
    int there = packet_socket("v1", 0x88b6);
    char buf[100];

    ck_assert_int_eq(netdev_ignore_outgoing(ear), 0);
    ck_assert_int_eq((int)send(here, frame, sizeof(frame), 0), 64);
    ck_assert_int_eq((int)recv(ear, buf, sizeof(buf), MSG_DONTWAIT), -1);
    ck_assert_int_eq((int)send(there, frame, sizeof(frame), 0), 64);
    ck_assert_int_eq((int)recv(ear, buf, sizeof(buf), 0), 64);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dpdk_netdev");
    TCase *tc = tcase_create("netdev");

    if (geteuid() != 0)
        return 77;
    tcase_add_checked_fixture(tc, veth, no_veth);
    tcase_set_timeout(tc, 20);
    tcase_add_test(tc, what_is_there_is_known);
    tcase_add_test(tc, each_change_of_the_link_counts);
    tcase_add_test(tc, a_blink_is_two_changes);
    tcase_add_test(tc, an_interface_goes_and_another_comes);
    tcase_add_test(tc, a_replacement_between_two_looks_is_seen);
    tcase_add_test(tc, mtu_is_raised_and_never_lowered);
    tcase_add_test(tc, all_multicast_for_as_long_as_the_watch_lives);
    tcase_add_test(tc, a_socket_is_found_by_its_interface);
    tcase_add_test(tc, xdp_sockets_and_nothing_else_are_closed);
    tcase_add_test(tc, what_goes_out_is_not_heard);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
