/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sockets of a udp port's queues (udp_queue.h), on an address of the loopback interface.
 */
#include "udp_queue.h"

#include "udp.h"
#include "udp_socket.h"
#include "unit.h"

static unsigned sockets(const struct udp_port *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->nsock; i++)
        n += p->sock[i].fd >= 0;
    return n;
}

/* Else the kernel brings frames to a socket that no worker reads, until the address goes. */
START_TEST(a_queue_takes_its_socket_later_when_it_could_not_at_first)
{
    struct io_open_params params = {0};
    struct io_port *first, *second;
    char err[256] = "";
    ck_assert_msg(io_udp_open("lo,addr=127.83.7.19", &params, &first, err, sizeof(err)) == 0, "%s",
                  err);
    ck_assert_int_eq(first->ops->queue(first, 1, 2, &second), 0);
    struct udp_port *a = udp_port_of(first), *b = udp_port_of(second);
    ck_assert_uint_eq(sockets(b), 1);

    struct io_addr addr = a->sock[0].addr;
    int epfd = b->epfd;
    udp_socket_close(a, &a->sock[0]);
    udp_queue_follow(b);
    ck_assert_uint_eq(sockets(b), 0);
    ck_assert_int_eq(udp_socket_open(a, &addr, false, NULL, 0), 0);
    b->epfd = -1;
    udp_queue_follow(b);
    ck_assert_uint_eq(sockets(b), 0);
    b->epfd = epfd;
    udp_queue_follow(b);
    ck_assert_uint_eq(sockets(b), 1);
    udp_queue_follow(b);
    ck_assert_uint_eq(sockets(b), 1);
    second->ops->close(second);
    first->ops->close(first);
}
END_TEST

UNIT_MAIN("udp_queue", a_queue_takes_its_socket_later_when_it_could_not_at_first)
