/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frames that a claim withholds from the kernel's UDP sockets, and those that it leaves them,
 * on a veth pair in a network namespace of the test's own. Needs root and Linux 6.6; otherwise the
 * test counts as skipped (77).
 */
#include "dpdk_claim.h"

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

#define MAC_V1 "\x02\x00\x00\x00\x00\x01"

static int out; /* sends whole frames through v0 */
static int ear; /* receives all frames of v1 */

static void veth(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    sh("ip link add v0 type veth peer name v1 address 02:00:00:00:00:01 &&"
       "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.v1.rp_filter=0"
       "    net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=0 &&"
       "ip addr add 10.0.0.1/24 dev v1 && ip addr add 200.0.0.1/24 dev v1 &&"
       "ip addr add fd00::1/64 dev v1 nodad && ip addr add fd00::2/64 dev v1 nodad &&"
       "ip link set v0 up && ip link set v1 up");
    iface_wait("v0");
    iface_wait("v1");
    out = packet_socket("v0", 0);
    ear = packet_socket("v1", ETH_P_ALL);
}

static struct io_addr addr(const char *text)
{
    struct io_addr a = {.b = {[10] = 0xff, [11] = 0xff}};
    if (strchr(text, ':'))
        ck_assert_int_eq(inet_pton(AF_INET6, text, a.b), 1);
    else
        ck_assert_int_eq(inet_pton(AF_INET, text, a.b + 12), 1);
    return a;
}

/* The kernel's end: takes UDP for a port of any address. */
static int listener(uint16_t port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static uint16_t checksum(const uint8_t *at, size_t n, uint32_t sum)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

/* A datagram of one octet pair, `mark`, to v1; `words` of IPv4 options before it. */
static void send_udp(const char *to, uint16_t port, unsigned words, uint16_t mark)
{
    uint8_t f[128] = MAC_V1;
    struct io_addr dst = addr(to);
    bool six = strchr(to, ':');
    uint8_t *ip = f + 14, *udp = ip + (six ? 40 : 20 + 4 * words);
    size_t len = (size_t)(udp + 10 - f);
    memcpy(f + 6, "\x02\x00\x00\x00\x00\x02", 6);
    put16(f + 12, six ? ETH_P_IPV6 : ETH_P_IP);
    put16(udp, 4791);
    put16(udp + 2, port);
    put16(udp + 4, 10);
    put16(udp + 8, mark);
    if (six) {
        ip[0] = 0x60;
        ip[5] = 10;
        ip[6] = IPPROTO_UDP;
        ip[7] = 64;
        memcpy(ip + 8, addr("fd00::9").b, 16);
        memcpy(ip + 24, dst.b, 16);
        put16(udp + 6, checksum(ip + 8, 32 + 10, 10 + IPPROTO_UDP));
    } else {
        ip[0] = (uint8_t)(0x45 + words);
        put16(ip + 2, (uint16_t)(len - 14));
        ip[8] = 64;
        ip[9] = IPPROTO_UDP;
        memcpy(ip + 12, "\x0a\x00\x00\x09", 4);
        memcpy(ip + 16, dst.b + 12, 4);
        memset(ip + 20, 1, 4 * (size_t)words); /* options that do nothing */
        put16(ip + 10, checksum(ip, 20 + 4 * (size_t)words, 0));
    }
    ck_assert_int_eq((int)send(out, f, len, 0), (int)len);
    do { /* the packet sockets come before the claim: nothing is kept from them */
        ssize_t got = recv(ear, f, sizeof(f), 0);
        ck_assert_int_gt(got, 42);
        ip = f + got - 2;
    } while (ip[0] != mark >> 8 || ip[1] != (uint8_t)mark);
}

/* The mark of the next datagram the kernel delivers. */
static int next_mark(int fd)
{
    uint8_t b[2];
    ck_assert_msg(recv(fd, b, 2, 0) == 2, "nothing comes");
    return b[0] << 8 | b[1];
}

START_TEST(our_packets_are_kept_from_the_kernel)
{
    static const struct {
        const char *to;
        uint16_t port;
        unsigned options;
        bool ours;
    } cases[] = {
        {"10.0.0.1", 4791, 0, true},  {"10.0.0.1", 4792, 0, false}, {"200.0.0.1", 4791, 0, false},
        {"10.0.0.1", 4791, 1, false}, {"fd00::1", 4791, 0, true},   {"fd00::1", 4792, 0, false},
        {"fd00::2", 4791, 0, false},
    };
    const struct io_addr ours[] = {addr("10.0.0.1"), addr("fd00::1"), addr("10.0.0.77")};
    int roce = listener(4791), other = listener(4792);
    int claim = claim_make((int)if_nametoindex("v1"), ours, 3);
    ck_assert_msg(claim >= 0, "%s", strerror(-claim));
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        send_udp(cases[i].to, cases[i].port, cases[i].options, i);
        if (!cases[i].ours)
            ck_assert_int_eq(next_mark(cases[i].port == 4791 ? roce : other), i);
    }
    close(claim);
    send_udp("10.0.0.1", 4791, 0, 1000);
    ck_assert_int_eq(next_mark(roce), 1000);
    send_udp("fd00::1", 4791, 0, 1001);
    ck_assert_int_eq(next_mark(roce), 1001);
}
END_TEST

START_TEST(as_many_addresses_as_a_claim_takes)
{
    struct io_addr many[CLAIM_ADDRS_MAX + 1];
    int roce = listener(4791), claim;
    for (unsigned i = 0; i < CLAIM_ADDRS_MAX; i++) {
        many[i] = addr(i % 2 ? "fd00::7:1" : "10.7.0.1");
        many[i].b[15] = (uint8_t)i;
    }
    many[CLAIM_ADDRS_MAX - 2] = addr("200.0.0.1");
    many[CLAIM_ADDRS_MAX - 1] = addr("fd00::1");
    many[CLAIM_ADDRS_MAX] = addr("10.0.0.1"); /* one too many */
    claim = claim_make((int)if_nametoindex("v1"), many, CLAIM_ADDRS_MAX + 1);
    ck_assert_msg(claim >= 0, "%s", strerror(-claim));
    send_udp("200.0.0.1", 4791, 0, 1);
    send_udp("fd00::1", 4791, 0, 2);
    send_udp("10.0.0.1", 4791, 0, 3);
    ck_assert_int_eq(next_mark(roce), 3);
    sh("ip link del v0"); /* a claim on a removed interface is harmless */
    close(claim);
    ck_assert_int_lt(claim_make(12345, many, 1), 0);
}
END_TEST

int main(void)
{
    const struct io_addr some = {{1}};
    Suite *s = suite_create("dpdk_claim");
    TCase *tc = tcase_create("claim");
    int probe = geteuid() == 0 ? claim_make((int)if_nametoindex("lo"), &some, 1) : -EPERM;

    if (probe == -EPERM || probe == -EINVAL || probe == -ENOSYS)
        return 77;
    close(probe);
    tcase_add_checked_fixture(tc, veth, NULL);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, our_packets_are_kept_from_the_kernel);
    tcase_add_test(tc, as_many_addresses_as_a_claim_takes);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
