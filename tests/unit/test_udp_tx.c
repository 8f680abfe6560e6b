/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending by a udp port (udp_tx.h): the length of its bursts, and the datagrams of a train.
 */
#include "udp_tx.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "udp.h"
#include "unit.h"
#include "wire.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define PAYLOAD 64u
#define QPN_AT  5u /* offset in a BTH */

/* ---- time: it passes only in the kernel's calls ---- */

static uint64_t now_ns = 1000000000u;
static unsigned datagram_us = 4;

/* These are in the place of libc's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    (void)id;
    ts->tv_sec = (time_t)(now_ns / 1000000000u);
    ts->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

int sendmmsg(int fd, struct mmsghdr *msg, unsigned n, int flags)
{
    now_ns += (uint64_t)n * datagram_us * 1000;
    return (int)syscall(SYS_sendmmsg, fd, msg, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    now_ns += datagram_us * 1000u;
    return syscall(SYS_sendmsg, fd, msg, flags);
}

/* ---- frames ---- */

static struct io_port *port_at(const char *spec)
{
    struct io_open_params params = {0};
    struct io_port *port;
    char err[256] = "";
    ck_assert_msg(io_udp_open(spec, &params, &port, err, sizeof(err)) == 0, "%s", err);
    return port;
}

/* A frame from the address to itself, into a reserved slot. */
static void fill(struct io_slot *s, const char *addr, uint32_t psn)
{
    struct wire_pkt p = {.ip_version = 4,
                         .ttl = 64,
                         .ip_flags = WIRE_IP_DF,
                         .sport = 4791,
                         .opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_MIDDLE),
                         .pkey = 0xFFFF,
                         .dqpn = 0x123456,
                         .psn = psn,
                         .payload_len = PAYLOAD};
    ck_assert(wire_addr_parse(addr, &p.sip) == 0);
    p.dip = p.sip;
    size_t off = wire_build(s->data, s->cap, &p);
    ck_assert_uint_gt(off, 0);
    memset(s->data + off, 0x5A, PAYLOAD);
    s->len = (uint32_t)wire_frame_len(&p);
    wire_icrc_seal(s->data, s->len, p.ip_off, p.bth_off);
}

/* Ask for a whole burst, and send up to n frames in it. Returns the number of slots that the port
 * has granted. */
static unsigned burst(struct io_port *port, const char *addr, unsigned n)
{
    static uint32_t psn;
    struct io_slot slots[IO_BURST_MAX];
    unsigned room = port->ops->tx_reserve(port, slots, IO_BURST_MAX, 0);
    for (unsigned i = 0; i < room && i < n; i++)
        fill(&slots[i], addr, psn++);
    port->ops->tx_commit(port, slots, room, 0);
    return room;
}

/* Otherwise the owner sends 64 datagrams one by one, and sees no packet in the meantime: with IPsec
 * on a slow machine for so long that its peers' timers expire. */
START_TEST(bursts_of_single_datagrams_are_short)
{
    const char *addr = "127.83.7.21";
    struct io_port *port = port_at("lo,addr=127.83.7.21,trains=off");
    struct io_stats before, after;
    ck_assert_uint_eq(burst(port, addr, 1), IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX); /* one frame says nothing */
    port->ops->stats(port, &before);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    ck_assert_uint_eq(burst(port, addr, 1), 16);
    port->ops->stats(port, &after);
    ck_assert_uint_eq(after.tx_frames - before.tx_frames, 4 * 16 + 1);
    ck_assert_uint_eq(after.tx_full, before.tx_full); /* the port has room */
    port->ops->close(port);
}
END_TEST

/* On a processor that others want, too, 16 of them took so long that READs ran out of retries. */
START_TEST(the_slower_single_datagrams_are_the_shorter_are_bursts)
{
    const char *addr = "127.83.7.28";
    struct io_port *port = port_at("lo,addr=127.83.7.28,trains=off");
    burst(port, addr, IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    datagram_us = 1300;
    burst(port, addr, IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 3); /* 4 ms */
    datagram_us = 20000;
    burst(port, addr, IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 1);
    datagram_us = 4;
    burst(port, addr, IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    port->ops->close(port);
}
END_TEST

START_TEST(trains_leave_in_long_bursts)
{
    const char *addr = "127.83.7.22";
    struct io_port *port = port_at("lo,addr=127.83.7.22");
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    port->ops->close(port);
}
END_TEST

/* The kernel's refusal of the first train makes its datagrams single ones, as for IPsec. */
START_TEST(a_peer_that_trains_do_not_reach_gets_short_bursts)
{
    const char *addr = "127.83.7.23";
    struct io_port *port = port_at("lo,addr=127.83.7.23");
    struct io_addr to;
    struct wire_addr w;
    ck_assert(wire_addr_parse(addr, &w) == 0);
    memcpy(to.b, w.b, sizeof(to.b));
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    udp_train_never(&udp_port_of(port)->trains, &to);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), IO_BURST_MAX);
    ck_assert_uint_eq(burst(port, addr, IO_BURST_MAX), 16);
    port->ops->close(port);
}
END_TEST

/* The next message at the socket, a train in one piece. Returns its octets, 0 = there is none; and
 * those of each datagram. */
static unsigned next_message(int fd, uint8_t *buf, size_t size, unsigned *segment)
{
    _Alignas(struct cmsghdr) uint8_t control[64];
    struct iovec iov = {buf, size};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control)};
    const ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT);
    *segment = 0;
    for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&mh) : NULL; c; c = CMSG_NXTHDR(&mh, c)) {
        int v = 0;
        memcpy(&v, CMSG_DATA(c), sizeof(v));
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
            *segment = (unsigned)v;
    }
    return n > 0 ? (unsigned)n : 0;
}

static const uint8_t *qpn_at(const uint8_t *datagram)
{
    return datagram + QPN_AT;
}

/* The kernel gives a train to the owner of its first datagram. */
START_TEST(a_train_is_for_one_queue_pair)
{
    static uint8_t got[65536];
    struct io_port *port = port_at("lo,addr=127.83.7.24");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4791)};
    struct io_slot slots[IO_BURST_MAX];
    const int one = 1;
    unsigned trains = 0, datagrams = 0, segment, len;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(inet_pton(AF_INET, "127.83.7.25", &at.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)), 0);

    ck_assert_uint_eq(port->ops->tx_reserve(port, slots, 24, 0), 24);
    for (unsigned i = 0; i < 24; i++) { /* runs of 1, 2, 3 ... to two queue pairs in turn */
        static const uint8_t owner[] = {1, 2, 2, 1, 1, 1, 2, 2, 2, 2, 1, 1,
                                        1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 1};
        struct wire_addr to;
        fill(&slots[i], "127.83.7.24", i);
        ck_assert(wire_addr_parse("127.83.7.25", &to) == 0);
        memcpy(slots[i].data + 30, to.b + 12, 4);
        slots[i].data[UDP_HDR_V4 + QPN_AT] = owner[i];
        wire_icrc_seal(slots[i].data, slots[i].len, 14, UDP_HDR_V4);
    }
    port->ops->tx_commit(port, slots, 24, 0);
    while ((len = next_message(fd, got, sizeof(got), &segment)) > 0) {
        const unsigned n = segment ? len / segment : 1;
        trains += n > 1;
        datagrams += n;
        for (unsigned i = 1; i < n; i++)
            ck_assert_mem_eq(qpn_at(got + (size_t)i * segment), qpn_at(got), 3);
    }
    ck_assert_uint_eq(datagrams, 24);
    ck_assert_uint_eq(trains, 5);
    close(fd);
    port->ops->close(port);
}
END_TEST

/* As the kernel does for a route with IPsec: it refuses trains, and takes single datagrams. A
 * socket that sends no checksums makes it do the same. */
START_TEST(a_peer_to_which_the_kernel_refuses_trains_gets_single_datagrams)
{
    const char *addr = "127.83.7.26";
    struct io_port *port = port_at("lo,addr=127.83.7.26");
    struct udp_port *p = udp_port_of(port);
    const int one = 1;
    struct io_stats st;
    char text[256];
    while (port->ops->news(port, text, sizeof(text)))
        ;
    ck_assert_int_eq(setsockopt(p->sock[0].fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
    for (unsigned i = 1; i <= 3; i++) {
        unsigned room = burst(port, addr, IO_BURST_MAX);
        ck_assert_uint_eq(room, i < 3 ? IO_BURST_MAX : 16);
        ck_assert_int_eq(port->ops->news(port, text, sizeof(text)), i == 1); /* once */
        ck_assert_ptr_nonnull(
            strstr(text, "trains of datagrams to 127.83.7.26 do not get through"));
    }
    port->ops->stats(port, &st);
    ck_assert_uint_eq(st.tx_frames, 2 * IO_BURST_MAX + 16); /* none is lost */
    ck_assert_uint_eq(st.tx_drop, 0);
    ck_assert(udp_train_is_never(&p->trains, &p->sock[0].addr));
    port->ops->close(port);
}
END_TEST

UNIT_MAIN("udp_tx", bursts_of_single_datagrams_are_short,
          the_slower_single_datagrams_are_the_shorter_are_bursts, trains_leave_in_long_bursts,
          a_peer_that_trains_do_not_reach_gets_short_bursts, a_train_is_for_one_queue_pair,
          a_peer_to_which_the_kernel_refuses_trains_gets_single_datagrams)
