/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors of other users with a close that waits (SEC-22).
 */
#include "foreign.h"

#include <sys/mman.h>
#include <time.h>

#include "../lingering.h"
#include "unit.h"

#define LONG 30 /* s */
#define EVE  1u
#define ADAM 2u

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pair(int sv[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void until_closed(int fd)
{
    double end = now() + 10;
    while (is_open(fd)) {
        ck_assert_msg(now() < end, "it isn't closed");
        usleep(1000);
    }
}

/* A user that passes a descriptor with a blocking close delays no other user. */
START_TEST(others_are_closed)
{
    struct lingering l = lingering_new(LONG);
    double begin = now();
    int mine = dup(0), later = dup(0);
    foreign_close(EVE, l.fd);
    foreign_close(EVE, later);
    ck_assert_uint_eq(foreign_waiting(EVE), 2);
    foreign_close(ADAM, mine);
    until_closed(mine);
    ck_assert(is_open(later));
    ck_assert(!foreign_settle(10));
    ck_assert_uint_eq(foreign_waiting(EVE), 2);
    close(l.peer);
    ck_assert(foreign_settle(10000));
    ck_assert_double_lt(now() - begin, LONG / 2.0);
    ck_assert(!is_open(later));
    ck_assert_uint_eq(foreign_waiting(EVE), 0);
}
END_TEST

/* Memory needs no thread. */
START_TEST(memory_closes_at_once)
{
    int fd = memfd_create("memory", MFD_CLOEXEC);
    foreign_close(EVE, fd);
    ck_assert(!is_open(fd));
    ck_assert_uint_eq(foreign_waiting(EVE), 0);
}
END_TEST

/* A socket without waiting messages, with or without its other end. */
START_TEST(empty_socket_closes_at_once)
{
    for (unsigned i = 0; i < 2; i++) {
        int sv[2];
        char octet;
        pair(sv);
        if (i == 1)
            close(sv[0]);
        foreign_hang_up(EVE, sv[1]);
        ck_assert(!is_open(sv[1]));
        if (i == 0) {
            ck_assert_int_eq(recv(sv[0], &octet, 1, 0), 0);
            ck_assert_int_lt(send(sv[0], "", 1, MSG_NOSIGNAL), 0);
            close(sv[0]);
        }
    }
}
END_TEST

/* A descriptor waits in the socket after other messages, also after an empty one. */
START_TEST(message_that_waits)
{
    for (unsigned i = 0; i < 4; i++) {
        struct lingering l = lingering_new(LONG);
        double begin = now();
        char octet;
        int sv[2];

        pair(sv);
        if (i == 1)
            ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
        if (i >= 2)
            ck_assert_int_eq(send(sv[0], "", 0, 0), 0);
        ck_assert(lingering_pass(sv[0], "", i == 3 ? 0 : 1, l.fd, 1));
        lingering_passed(&l);
        ck_assert(foreign_comes(sv[1]) == (i == 0));
        foreign_hang_up(EVE, sv[1]);
        ck_assert_uint_eq(foreign_waiting(EVE), 1);
        ck_assert_int_le(recv(sv[0], &octet, 1, 0), 0); /* the other end notices at once */
        close(l.peer);
        close(sv[0]);
        ck_assert(foreign_settle(10000));
        ck_assert_double_lt(now() - begin, LONG / 2.0);
    }
}
END_TEST

START_TEST(who_is_there)
{
    int sv[2];
    pair(sv);
    ck_assert_uint_eq(foreign_user(sv[0]), geteuid());
    close(sv[0]);
    close(sv[1]);
    ck_assert_uint_eq(foreign_user(0), (uid_t)-1);
}
END_TEST

/* More users than threads: the others have their turn later. */
START_TEST(many_users)
{
    struct lingering l[70];
    int fd[80];
    for (unsigned i = 0; i < 70; i++) {
        l[i] = lingering_new(LONG);
        foreign_close(100 + i, l[i].fd);
    }
    for (unsigned i = 0; i < 80; i++) {
        fd[i] = dup(0);
        foreign_close(1000 + i, fd[i]);
    }
    for (unsigned i = 0; i < 70; i++)
        close(l[i].peer);
    ck_assert(foreign_settle(20000));
    for (unsigned i = 0; i < 80; i++)
        ck_assert(!is_open(fd[i]));
}
END_TEST

UNIT_MAIN("foreign", others_are_closed, memory_closes_at_once, empty_socket_closes_at_once,
          message_that_waits, who_is_there, many_users)
