/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving by a udp port (udp_rx.h): the count of lost datagrams.
 */
#include "udp_rx.h"

#include <arpa/inet.h>
#include <netinet/in.h>
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

UNIT_MAIN("udp_rx", datagrams_for_which_the_socket_had_no_room_are_counted)
