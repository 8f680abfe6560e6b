/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving by a udp port (udp_rx.h): the count of lost datagrams; trains taken apart.
 */
#include "udp_rx.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "udp.h"
#include "unit.h"

#define SENT   3000u
#define OCTETS 1000u

/* The kernel says with a later datagram how many it has dropped before (SO_RXQ_OVFL). Here they are
 * not joined, so that all losses are counted. */
START_TEST(datagrams_for_which_the_socket_had_no_room_are_counted)
{
    const struct io_open_params params = {0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4791)};
    struct io_port *port;
    struct io_frame f[IO_BURST_MAX];
    struct io_stats st;
    uint8_t octets[OCTETS] = {0};
    char err[256] = "";
    unsigned taken = 0, n;
    int rc = io_udp_open("lo,addr=127.83.7.27,buffer=64K", &params, &port, err, sizeof(err));
    ck_assert_msg(rc == 0, "%s", err);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(inet_pton(AF_INET, "127.83.7.27", &to.sin_addr), 1);
    for (unsigned i = 0; i <= SENT; i++) {
        if (i == SENT) { /* room again, for one that tells of the losses */
            while ((n = port->ops->rx_peek(port, f, IO_BURST_MAX, 0)) > 0) {
                taken += n;
                port->ops->rx_release(port, n);
            }
            port->ops->stats(port, &st);
            ck_assert_uint_eq(st.rx_drop, 0); /* these came before the losses */
        }
        ck_assert_int_eq(sendto(fd, octets, sizeof(octets), 0, (struct sockaddr *)&to, sizeof(to)),
                         OCTETS);
    }
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_lt(taken, SENT / 2);
    ck_assert_uint_eq(port->ops->rx_peek(port, f, IO_BURST_MAX, 0), 1);
    port->ops->rx_release(port, 1);
    port->ops->stats(port, &st);
    ck_assert_uint_eq(st.rx_drop, SENT - taken);
    close(fd);
    port->ops->close(port);
}
END_TEST

/* ---- trains ---- */

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define TRAINS 2u
#define HDR_V4 42u /* Ethernet, IPv4, UDP */

static uint8_t train[TRAINS][65536];

/* One call sends datagrams of `segment` octets, the last one perhaps shorter. */
static void send_train(int fd, const uint8_t *octets, unsigned len, unsigned segment)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct iovec iov = {(void *)(uintptr_t)octets, len};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control,
                        .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    uint16_t value = (uint16_t)segment;
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(value));
    memcpy(CMSG_DATA(c), &value, sizeof(value));
    ck_assert_int_eq(sendmsg(fd, &mh, 0), len);
}

/* All datagrams arrive whole, in their order. */
static void expect_trains(struct io_port *port, unsigned trains, unsigned len, unsigned segment)
{
    struct io_frame f[IO_BURST_MAX];
    unsigned t = 0, at = 0, n;
    while ((n = port->ops->rx_peek(port, f, IO_BURST_MAX, 0)) > 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned want = len - at < segment ? len - at : segment;
            ck_assert_uint_lt(t, trains);
            ck_assert_uint_eq(f[i].len, want + HDR_V4);
            ck_assert_msg(memcmp(f[i].data + HDR_V4, train[t] + at, want) == 0,
                          "train %u of %u octets in %u, at %u", t, len, segment, at);
            at += want;
            t += at == len;
            at = at == len ? 0 : at;
        }
        port->ops->rx_release(port, n);
    }
    ck_assert_uint_eq(t, trains);
}

/* The port expects datagrams of the length that those of the last train had. Others come: a little
 * longer, a little shorter, quite different; many, or few. */
START_TEST(trains_of_any_length_after_any_other_are_taken_apart)
{
    static const unsigned expected[] = {300, 1068, 2064, 4112, 9000};
    static const int other[] = {0, 1, -1, 16, -16, 100, -100, 250, -250, 2000, -2000};
    const struct io_open_params params = {0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4791)};
    struct io_port *port;
    char err[256] = "";
    uint32_t dice = 1;
    int rc = io_udp_open("lo,addr=127.83.7.28", &params, &port, err, sizeof(err));
    ck_assert_msg(rc == 0, "%s", err);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert_int_eq(inet_pton(AF_INET, "127.83.7.28", &to.sin_addr), 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    for (size_t i = 0; i < sizeof(train); i++) {
        dice = dice * 1664525 + 1013904223;
        train[i / sizeof(train[0])][i % sizeof(train[0])] = (uint8_t)(dice >> 24);
    }
    for (unsigned e = 0; e < sizeof(expected) / sizeof(expected[0]); e++) {
        for (unsigned o = 0; o < sizeof(other) / sizeof(other[0]); o++) {
            int segment = (int)expected[e] + other[o];
            for (unsigned count = 2; segment > 0 && segment <= 9216 && count <= 64; count++) {
                for (unsigned cut = 0; cut < 3; cut++) {
                    unsigned len = count * (unsigned)segment;
                    len -= cut == 0 ? 0 : cut == 1 ? (unsigned)segment - 1 : (unsigned)segment / 2;
                    if (len > 65507)
                        continue;
                    send_train(fd, train[0], 2 * expected[e], expected[e]);
                    expect_trains(port, 1, 2 * expected[e], expected[e]);
                    for (unsigned t = 0; t < TRAINS; t++)
                        send_train(fd, train[t], len, (unsigned)segment);
                    expect_trains(port, TRAINS, len, (unsigned)segment);
                }
            }
        }
    }
    close(fd);
    port->ops->close(port);
}
END_TEST

UNIT_MAIN("udp_rx", datagrams_for_which_the_socket_had_no_room_are_counted,
          trains_of_any_length_after_any_other_are_taken_apart)
