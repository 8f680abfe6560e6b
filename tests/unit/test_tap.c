/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port that shares its wire with the kernel: the owner of each frame, the word kernel= in a
 * specification, the queue between the threads, and a tap interface in a namespace of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "tap_ring.h"
#include "tap_sort.h"
#include "tap_spec.h"
#include "unit.h"

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xAA};

/* ---- the owner of a frame ---- */

/* An Ethernet frame from hexadecimal digits, after its two addresses. */
static uint32_t frame(uint8_t out[128], const char *hex)
{
    uint32_t len = 12;
    memset(out, 2, 12);
    for (; hex[0] && hex[1]; hex += *hex == ' ' ? 1 : 2) {
        unsigned octet;
        if (*hex == ' ')
            continue;
        ck_assert_int_eq(sscanf(hex, "%2x", &octet), 1);
        out[len++] = (uint8_t)octet;
    }
    return len;
}

#define IP4(frag, proto, dst) "0800 4500 0030 0000 " frag " 40" proto " 0000 0a000002 " dst " "
#define IP6(proto, dst)       "86dd 60000000 0020" proto "40 fd000000000000000000000000000002 " dst " "
#define OURS4                 "0a000001"
#define OURS6                 "fd000000000000000000000000000001"
#define ROCE                  "c000 12b7 001c 0000 04 40 ffff 00 000001 00 000000"

START_TEST(a_frame_is_the_devices_or_the_kernels_or_for_both)
{
    static const struct {
        const char *hex;
        uint16_t vlan;
        enum tap_owner owner;
    } rows[] = {
        {IP4("4000", "11", OURS4) ROCE, 0, TAP_DEVICE},
        {IP6("11", OURS6) ROCE, 0, TAP_DEVICE},
        {IP4("4000", "11", "e0000105") ROCE, 0, TAP_DEVICE}, /* a group */
        {IP6("11", "ff0e0000000000000000000000000005") ROCE, 0, TAP_DEVICE},
        {"8100 0005 " IP4("4000", "11", OURS4) ROCE, 5, TAP_DEVICE},
        {"8100 e005 " IP4("4000", "11", OURS4) ROCE, 5, TAP_DEVICE},
        {"8100 e000 " IP4("4000", "11", OURS4) ROCE, 0, TAP_DEVICE},
        {"8100 0006 " IP4("4000", "11", OURS4) ROCE, 5, TAP_KERNEL}, /* another VLAN */
        {IP4("4000", "11", OURS4) ROCE, 5, TAP_KERNEL},
        {"8100 0005 " IP4("4000", "11", OURS4) ROCE, 0, TAP_KERNEL},
        {IP4("4000", "11", "0a000009") ROCE, 0, TAP_KERNEL}, /* another address */
        {IP6("11", "fd000000000000000000000000000009") ROCE, 0, TAP_KERNEL},
        {IP4("2000", "11", OURS4) ROCE, 0, TAP_KERNEL}, /* the first fragment, a later one */
        {IP4("0010", "11", OURS4) ROCE, 0, TAP_KERNEL},
        {IP6("2c", OURS6) ROCE, 0, TAP_KERNEL},
        {IP4("4000", "11", OURS4) "c000 0035 001c 0000", 0, TAP_KERNEL},     /* DNS */
        {IP4("4000", "06", OURS4) ROCE, 0, TAP_KERNEL},                      /* TCP */
        {IP4("4000", "01", OURS4) "0800", 0, TAP_BOTH},                      /* ICMP */
        {IP4("4000", "02", "e0000001") "1100", 0, TAP_BOTH},                 /* IGMP */
        {IP6("3a", OURS6) "8700", 0, TAP_BOTH},                              /* discovery */
        {IP6("00", "ff020000000000000000000000000001") "3a00", 0, TAP_BOTH}, /* MLD */
        {"0806 0001", 0, TAP_BOTH},
        {"8100 0005 0806 0001", 0, TAP_BOTH},
        {"88cc 0207", 0, TAP_KERNEL}, /* LLDP */
        {"", 0, TAP_KERNEL},          /* cut short, everywhere */
        {"8100 00", 0, TAP_KERNEL},
        {"0800 4500", 0, TAP_KERNEL},
        {IP4("4000", "11", OURS4) "c000 12", 0, TAP_KERNEL},
        {"0800 4f00 0030 0000 4000 4011 0000 0a000002 " OURS4 " c000 12b7", 0, TAP_KERNEL},
        {"0800 4400 0030 0000 4000 4011 0000 0a000002 " OURS4 " c000 12b7", 0, TAP_KERNEL},
        {"86dd 6000", 0, TAP_KERNEL},
        {IP6("11", OURS6) "c000 12", 0, TAP_KERNEL},
    };
    struct tap_filter f = {.naddr = 2};
    f.addr[0] = (struct io_addr){.b = {[10] = 0xFF, 0xFF, 10, 0, 0, 1}};
    f.addr[1] = (struct io_addr){.b = {0xFD, [15] = 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t data[128];
        uint32_t len = frame(data, rows[i].hex);
        uint8_t *exact = malloc(len);
        memcpy(exact, data, len);
        f.vlan = rows[i].vlan;
        ck_assert_msg(tap_sort(&f, exact, len) == rows[i].owner, "row %zu: %s: %d", i, rows[i].hex,
                      tap_sort(&f, exact, len));
        free(exact);
    }
}
END_TEST

/* ---- the word in the specification ---- */

START_TEST(kernel_is_taken_out_of_a_specification)
{
    static const struct {
        const char *spec, *rest, *name;
    } good[] = {
        {"mem:a", "mem:a", ""},
        {"mem:a,kernel=tap0", "mem:a", "tap0"},
        {"dpdk:0000:01:00.0,kernel=tap0,urnic_mtu=4200", "dpdk:0000:01:00.0,urnic_mtu=4200",
         "tap0"},
        {"dpdk:net_failsafe0,dev(net_x0,kernel=y),kernel=a",
         "dpdk:net_failsafe0,dev(net_x0,kernel=y)", "a"},
        {"dpdk:net_failsafe0,dev(net_x0,kernel=y)", "dpdk:net_failsafe0,dev(net_x0,kernel=y)", ""},
        {"mem:a,kernel=fifteen-letters", "mem:a", "fifteen-letters"},
    };
    static const struct {
        const char *spec, *says;
    } bad[] = {
        {"mem:a,kernel=", "kernel=: want the name"},
        {"mem:a,kernel=sixteen-letters-", "sixteen-letters-"},
        {"mem:a,kernel=a/b", "kernel=a/b"},
        {"mem:a,kernel=tap%d", "kernel=tap%d"},
        {"mem:a,kernel=..", "kernel=.."},
        {"mem:a,kernel=a b", "kernel=a b"},
        {"mem:a,kernel=a,kernel=b", "twice"},
        {"udp:eth0,kernel=a", "leave it out"},
        {"pcap:a,b,kernel=a", "leave it out"},
    };
    char rest[IO_SPEC_MAX], name[IF_NAMESIZE], err[256];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_int_eq(tap_spec_split(good[i].spec, rest, name, NULL, 0), 0);
        ck_assert_str_eq(rest, good[i].rest);
        ck_assert_str_eq(name, good[i].name);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(tap_spec_split(bad[i].spec, rest, name, err, sizeof(err)), -EINVAL);
        ck_assert_msg(strstr(err, bad[i].says) && strstr(err, "kernel"), "%s: %s", bad[i].spec,
                      err);
        ck_assert_int_eq(io_check(bad[i].spec, err, sizeof(err)), -EINVAL);
    }
    ck_assert_int_eq(io_check("mem:a,kernel=tap0", err, sizeof(err)), 0);
}
END_TEST

/* ---- the queue ---- */

START_TEST(a_full_queue_has_no_room_and_keeps_the_order)
{
    struct tap_ring *r = tap_ring_new();
    uint32_t len = 0;
    ck_assert_ptr_null(tap_ring_look(r, 0, &len));
    for (uint32_t i = 0; i < 3 * TAP_RING_FRAMES; i++) {
        uint8_t *room = tap_ring_room(r);
        if (i >= TAP_RING_FRAMES) {
            ck_assert_ptr_null(room);
            const uint8_t *f = tap_ring_look(r, 0, &len);
            ck_assert_uint_eq(len, 60 + (i - TAP_RING_FRAMES) % 100);
            ck_assert_uint_eq(f[59], (uint8_t)(i - TAP_RING_FRAMES));
            tap_ring_take(r, 1);
            room = tap_ring_room(r);
        }
        ck_assert_ptr_nonnull(room);
        room[59] = (uint8_t)i;
        tap_ring_put(r, 60 + i % 100);
    }
    ck_assert_ptr_nonnull(tap_ring_look(r, TAP_RING_FRAMES - 1, &len));
    ck_assert_ptr_null(tap_ring_look(r, TAP_RING_FRAMES, &len));
    tap_ring_free(r);
}
END_TEST

/* ---- a tap interface ---- */

static struct io_port *port, *peer;

/* False: without a namespace the test can't run. */
static bool apart(void)
{
    if (unshare(CLONE_NEWNET) < 0 || access("/dev/net/tun", R_OK | W_OK) < 0) {
        fprintf(stderr, "skipped: no network namespace, or no /dev/net/tun\n");
        return false;
    }
    ck_assert_int_eq(system("sysctl -qw net.ipv6.conf.default.disable_ipv6=1"), 0);
    return true;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct io_port *open_sized(const char *spec, const uint8_t mac[6], uint32_t frame_max)
{
    struct io_open_params params = {.frame_max = frame_max};
    struct io_port *p = NULL;
    char err[512] = "";
    memcpy(params.mac, mac, 6);
    ck_assert_msg(io_open(spec, &params, &p, err, sizeof(err)) == 0, "%s", err);
    return p;
}

static struct io_port *open_port(const char *spec, const uint8_t mac[6])
{
    return open_sized(spec, mac, 0);
}

static void service(struct io_port *p)
{
    if (p->ops->service)
        p->ops->service(p, 0);
}

/* A value of t0 as in /sys/class/net. That folder shows the namespace in which it was mounted, so
 * ask ip. */
static bool ip_says(const char *word)
{
    char command[128];
    snprintf(command, sizeof(command), "ip -d link show t0 2>/dev/null | grep -q -- '%s'", word);
    return system(command) == 0;
}

static bool soon(bool (*is)(const char *), const char *arg)
{
    for (unsigned i = 0; i < 3000 && !is(arg); i += 10)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return is(arg);
}

static uint64_t counter(struct io_port *p, size_t offset)
{
    struct io_stats s = {0};
    p->ops->stats(p, &s);
    return *(uint64_t *)(void *)((uint8_t *)&s + offset);
}

/* The port's thread counts a frame after it has passed it on. */
static bool all_passed(const char *frames)
{
    return counter(port, offsetof(struct io_stats, kernel_rx)) == strtoul(frames, NULL, 10);
}

static void send_frame(struct io_port *p, const uint8_t *data, uint32_t len)
{
    struct io_slot s;
    ck_assert_uint_eq(p->ops->tx_reserve(p, &s, 1, 0), 1);
    memcpy(s.data, data, len);
    s.len = len;
    p->ops->tx_commit(p, &s, 1, 0);
}

static int listener(void)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(0x88B5),
                             .sll_ifindex = (int)if_nametoindex("t0")};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(0x88B5));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

START_TEST(the_interface_has_mac_mtu_and_carrier_of_the_port)
{
    if (!apart())
        return;
    port = open_port("mem:tap,kernel=t0,frame=4214", mac_a);
    ck_assert(ip_says("02:00:00:00:00:aa") || soon(ip_says, "02:00:00:00:00:aa"));
    ck_assert(soon(ip_says, "mtu 4200"));
    ck_assert(soon(ip_says, "LOWER_UP"));
    ck_assert(ip_says("persist off"));
    peer = open_port("mem:tap,frame=4214", mac_a);
    service(port);
    ck_assert(soon(ip_says, "LOWER_UP"));
    ck_assert(soon(ip_says, "persist on")); /* a worker has the port */
    ck_assert_uint_eq(port->caps.ifindex, if_nametoindex("t0"));
    ck_assert_str_eq(port->ops->name, "mem");
    peer->ops->close(peer);
    service(port);
    ck_assert(soon(ip_says, "NO-CARRIER"));
    port->ops->close(port);
    ck_assert(ip_says("NO-CARRIER")); /* the interface stays */
    port = open_port("mem:tap,kernel=t0", mac_a);
    port->ops->close(port);
}
END_TEST

/* A device with mtu=4200 asks for frames with room for a VLAN tag, which the kernel adds itself. */
START_TEST(the_interface_has_the_mtu_that_was_asked_for)
{
    if (!apart())
        return;
    port = open_sized("mem:tap,kernel=t0", mac_a, 4200 + 18);
    ck_assert(soon(ip_says, "mtu 4200 "));
    service(port);
    ck_assert(soon(ip_says, "persist on"));
    ck_assert(ip_says("mtu 4200 "));
    port->ops->close(port);
    /* A port that has no room for it decides. */
    port = open_sized("mem:tap2,kernel=t0,frame=1514", mac_a, 4200 + 18);
    ck_assert(soon(ip_says, "mtu 1500 "));
    port->ops->close(port);
}
END_TEST

/* The peer's frames reach the kernel, and the port's owner sees them with a flag. */
START_TEST(frames_of_the_kernel_pass_both_ways)
{
    uint8_t data[64] = {2, 0, 0, 0, 0, 0xAA, 2, 0, 0, 0, 0, 0xBB, 0x88, 0xB5}, got[128];
    if (!apart())
        return;
    port = open_port("mem:tap,kernel=t0", mac_a);
    peer = open_port("mem:tap", mac_a);
    service(port);
    ck_assert(soon(ip_says, "LOWER_UP"));
    int fd = listener();
    struct io_frame f;
    for (unsigned n = 1; n <= 200; n++) {
        data[20] = (uint8_t)n;
        send_frame(peer, data, sizeof(data));
        unsigned seen = port->ops->rx_peek(port, &f, 1, 0);
        ck_assert_uint_eq(seen, 1);
        ck_assert_uint_eq(f.flags & IO_RX_KERNEL, IO_RX_KERNEL);
        port->ops->rx_release(port, 1);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 3000), 1);
        ck_assert_int_eq(recv(fd, got, sizeof(got), 0), (ssize_t)sizeof(data));
        ck_assert_uint_eq(got[20], (uint8_t)n);
    }
    ck_assert(soon(all_passed, "200"));

    /* And back: the port's descriptor wakes the owner. */
    port->ops->rx_arm(port, true);
    ck_assert_uint_eq(port->ops->carry(port, 0), 0);
    data[20] = 201;
    ck_assert_int_eq(send(fd, data, sizeof(data), 0), (ssize_t)sizeof(data));
    struct pollfd p = {.fd = port->caps.rx_fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 3000), 1);
    port->ops->rx_arm(port, false);
    ck_assert_uint_eq(port->ops->carry(port, 0), 1);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    ck_assert_uint_eq(peer->ops->rx_peek(peer, &f, 1, 0), 1);
    ck_assert_uint_eq(f.data[20], 201);
    peer->ops->rx_release(peer, 1);
    ck_assert_uint_eq(counter(port, offsetof(struct io_stats, kernel_tx)), 1);
    close(fd);
    peer->ops->close(peer);
    port->ops->close(port);
}
END_TEST

/* More frames than the queues hold, in both directions: lost and counted, or kept back in the
 * kernel; all received frames are right, and the port continues. */
START_TEST(a_flood_is_bounded_and_counted)
{
    uint8_t data[64] = {2, 0, 0, 0, 0, 0xAA, 2, 0, 0, 0, 0, 0xBB, 0x88, 0xB5};
    struct io_frame f[IO_BURST_MAX];
    unsigned n = 0;
    if (!apart())
        return;
    port = open_port("mem:tap,kernel=t0", mac_a);
    peer = open_port("mem:tap", mac_a);
    service(port);
    ck_assert(soon(ip_says, "LOWER_UP"));
    for (unsigned i = 0; i < 20000; i++) {
        send_frame(peer, data, sizeof(data));
        n += port->ops->rx_peek(port, f, 1, 0);
        port->ops->rx_release(port, 1);
    }
    ck_assert_uint_eq(n, 20000);
    for (unsigned i = 0; i < 3000; i++) {
        if (counter(port, offsetof(struct io_stats, kernel_rx)) +
                counter(port, offsetof(struct io_stats, kernel_drop_full)) ==
            n)
            break;
        nap();
    }
    ck_assert_uint_eq(counter(port, offsetof(struct io_stats, kernel_rx)) +
                          counter(port, offsetof(struct io_stats, kernel_drop_full)),
                      n);

    int fd = listener();
    unsigned sent = 0, left = 0;
    for (unsigned i = 0; i < 2 * TAP_RING_FRAMES; i++)
        sent += send(fd, data, sizeof(data), 0) > 0;
    for (unsigned i = 0; i < 3000 && left < sent; i++) {
        left += port->ops->carry(port, 0);
        unsigned m = peer->ops->rx_peek(peer, f, IO_BURST_MAX, 0);
        peer->ops->rx_release(peer, m);
        if (m == 0)
            nap();
    }
    ck_assert_uint_eq(left, sent);
    ck_assert_uint_eq(counter(port, offsetof(struct io_stats, kernel_tx)), sent);

    /* No cable: the kernel's frames are lost, and counted, and keep nothing busy. */
    peer->ops->close(peer);
    ck_assert_int_gt(send(fd, data, sizeof(data), 0), 0);
    for (unsigned i = 0; i < 3000 && port->ops->carry(port, 0) == 0; i++)
        nap();
    ck_assert_uint_eq(counter(port, offsetof(struct io_stats, kernel_tx_drop)), 1);
    close(fd);
    port->ops->close(port);
}
END_TEST

static bool named(const char *name)
{
    return if_nametoindex(name) != 0;
}

START_TEST(an_interface_that_was_removed_is_made_again)
{
    char text[256];
    if (!apart())
        return;
    port = open_port("mem:tap,kernel=t0", mac_a);
    service(port);
    ck_assert(soon(ip_says, "persist on"));
    ck_assert_int_eq(system("ip link del t0"), 0);
    ck_assert(soon(named, "t0") || soon(named, "t0"));
    ck_assert(soon(ip_says, "02:00:00:00:00:aa"));
    ck_assert(port->ops->news(port, text, sizeof(text)));
    ck_assert_msg(strstr(text, "t0: the kernel's interface was removed"), "%s", text);
    for (unsigned i = 0; i < 3000 && !port->ops->news(port, text, sizeof(text)); i++)
        nap();
    ck_assert_msg(strstr(text, "there again"), "%s", text);
    ck_assert(!port->ops->news(port, text, sizeof(text)));
    service(port);
    ck_assert_uint_eq(port->caps.ifindex, if_nametoindex("t0"));
    port->ops->close(port);
}
END_TEST

START_TEST(what_stands_in_the_way_is_named)
{
    struct io_port *other = NULL;
    char err[512] = "";
    if (!apart())
        return;
    ck_assert_int_eq(system("ip link add d0 type veth peer name d1"), 0);
    port = open_port("mem:tap,kernel=t0", mac_a);
    ck_assert_int_eq(io_open("mem:other,kernel=t0", NULL, &other, err, sizeof(err)), -EBUSY);
    ck_assert_msg(strstr(err, "kernel=t0: another program"), "%s", err);
    ck_assert_ptr_null(other); /* nothing for the caller to close */
    ck_assert_int_eq(io_open("mem:other,kernel=d0", NULL, &other, err, sizeof(err)), -EINVAL);
    ck_assert_msg(strstr(err, "kernel=d0: there is an interface"), "%s", err);
    port->ops->close(port);
    ck_assert_int_eq(system("ip tuntap add u0 mode tap user 65534"), 0);
    if (seteuid(65534) == 0) {
        ck_assert_int_eq(io_open("mem:other,kernel=t1", NULL, &other, err, sizeof(err)), -EPERM);
        ck_assert_msg(strstr(err, "CAP_NET_ADMIN") && strstr(err, "ip tuntap add dev t1 mode tap"),
                      "%s", err);
        if (io_open("mem:other,kernel=u0", NULL, &other, err, sizeof(err)) == 0)
            other->ops->close(other);
        else
            ck_abort_msg("the user's own tap: %s", err);
        ck_assert_int_eq(seteuid(0), 0);
    }
}
END_TEST

UNIT_MAIN("tap", a_frame_is_the_devices_or_the_kernels_or_for_both,
          kernel_is_taken_out_of_a_specification, a_full_queue_has_no_room_and_keeps_the_order,
          the_interface_has_mac_mtu_and_carrier_of_the_port,
          the_interface_has_the_mtu_that_was_asked_for, frames_of_the_kernel_pass_both_ways,
          a_flood_is_bounded_and_counted, an_interface_that_was_removed_is_made_again,
          what_stands_in_the_way_is_named)
