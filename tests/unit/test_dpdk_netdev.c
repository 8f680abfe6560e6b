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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

/* The kernel's flag "running" and its carrier events may come a second late, also for a veth whose
 * ends have the same number. */
START_TEST(a_link_is_up_at_once)
{
    char cmd[200];
    int told[2];
    char ready;
    ck_assert_int_eq(pipe(told), 0);
    pid_t there = fork();
    ck_assert_int_ge(there, 0);
    if (there == 0) {
        ready = (char)(unshare(CLONE_NEWNET) == 0);
        (void)!write(told[1], &ready, 1);
        sleep(20);
        _exit(0);
    }
    ck_assert_int_eq((int)read(told[0], &ready, 1), 1);
    ck_assert(ready);
    netdev_close(&nd);
    snprintf(cmd, sizeof(cmd),
             "ip link add w0 index 77 type veth peer name w1 index 77 netns %d && "
             "ip link set w0 up && nsenter -n -t %d ip link set w1 up",
             (int)there, (int)there);
    sh(cmd);
    ck_assert_int_eq(netdev_open(&nd, "w0"), 0);
    settle(true);
    for (int i = 0; i < 5; i++) {
        sh("ip link set w0 down");
        netdev_poll(&nd);
        ck_assert(!nd.up);
        sh("ip link set w0 up");
        netdev_poll(&nd);
        ck_assert_msg(nd.up, "own end, round %d", i);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(cmd, sizeof(cmd), "nsenter -n -t %d ip link set w1 down", (int)there);
        sh(cmd);
        settle(false);
        snprintf(cmd, sizeof(cmd), "nsenter -n -t %d ip link set w1 up", (int)there);
        sh(cmd);
        netdev_poll(&nd);
        ck_assert_msg(nd.up, "other end, round %d", i);
    }
    kill(there, SIGKILL);
    waitpid(there, NULL, 0);
}
END_TEST

START_TEST(a_new_name_and_a_new_mac_are_seen)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};
    int index = nd.ifindex;
    sh("ip link set v0 down && ip link set v0 name eth9 address 02:00:00:00:00:07 && "
       "ip link set eth9 up");
    netdev_poll(&nd);
    ck_assert_int_eq(nd.ifindex, index);
    ck_assert_str_eq(nd.name, "eth9");
    ck_assert_mem_eq(nd.mac, mac, 6);
    ck_assert(nd.up && !nd.replaced);
    /* Another interface under the old name is not ours. */
    sh("ip link add v0 type veth peer name v9");
    netdev_poll(&nd);
    ck_assert_int_eq(nd.ifindex, index);
    ck_assert_int_eq(netdev_raise_mtu(&nd, 1600), 0);
    sh("ip link show eth9 | grep -q 'mtu 1600'");
    /* When ours goes, it takes ours' place. */
    sh("ip link del eth9");
    netdev_poll(&nd);
    ck_assert_str_eq(nd.name, "v0");
    ck_assert(nd.replaced && !nd.moved);
}
END_TEST

START_TEST(one_that_moves_away_is_told_from_one_that_is_deleted)
{
    sh("unshare -n sleep 10 & p=$!; sleep 0.2; ip link set v0 netns $p; rc=$?; "
       "ip link del v1; kill $p; exit $rc");
    netdev_poll(&nd);
    ck_assert_int_eq(nd.ifindex, 0);
    ck_assert(nd.moved);
    sh("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
    settle(true);
    ck_assert(nd.replaced && !nd.moved);
    sh("ip link del v0");
    netdev_poll(&nd);
    ck_assert(nd.ifindex == 0 && !nd.moved);
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
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex, 0), -1);
    packet_socket("v1", ETH_P_ALL); /* another interface's */
    packet_socket("v0", 0);         /* one that receives nothing */
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex, 0), -1);
    fd = packet_socket("v0", ETH_P_ALL);
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex, 0), fd);
    ck_assert_int_ne(fd, early);
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex, 1), -1);
    int second = packet_socket("v0", ETH_P_ALL);
    ck_assert_int_eq(netdev_find_socket(&before, AF_PACKET, nd.ifindex, 1), second);
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
    ck_assert_int_eq(netdev_find_socket(&before, AF_XDP, 0, 0), xdp);
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
    tcase_add_test(tc, a_link_is_up_at_once);
    tcase_add_test(tc, a_new_name_and_a_new_mac_are_seen);
    tcase_add_test(tc, one_that_moves_away_is_told_from_one_that_is_deleted);
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
