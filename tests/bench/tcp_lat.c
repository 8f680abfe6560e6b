/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_lat: half round trip of 8 octets over kernel TCP, both sides spinning on a non-blocking
 * socket: the baseline for WRITE latency.
 *
 * usage: tcp_lat server IP PORT | tcp_lat client IP PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 50000u
#define WARM   2000u

static void die(const char *what)
{
    fprintf(stderr, "tcp_lat: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* 8 octets; spins. 0 = the peer has closed. */
static int take(int fd, uint64_t *value)
{
    for (;;) {
        ssize_t n = recv(fd, value, sizeof(*value), MSG_DONTWAIT | MSG_WAITALL);
        if (n == sizeof(*value))
            return 1;
        if (n == 0)
            return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            die("recv");
        sched_yield();
    }
}

static void give(int fd, uint64_t value)
{
    if (send(fd, &value, sizeof(value), MSG_NOSIGNAL) != sizeof(value))
        die("send");
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int one = 1;
    if (argc != 4 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) {
        fprintf(stderr, "usage: tcp_lat server|client IP PORT\n");
        return 2;
    }
    to.sin_port = htons((uint16_t)atoi(argv[3]));
    alarm(60);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (strcmp(argv[1], "server") == 0) {
        if (bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 1) < 0)
            die("listen");
        int c = accept(fd, NULL, NULL);
        uint64_t v;
        if (c < 0)
            die("accept");
        setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        while (take(c, &v))
            give(c, v);
        return 0;
    }
    for (int tries = 0; connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0; tries++) {
        if (tries == 100)
            die("connect");
        usleep(20000);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    static uint32_t sample[ROUNDS];
    for (unsigned r = 0; r < ROUNDS + WARM; r++) {
        uint64_t v, start = clock_ns();
        give(fd, r);
        if (!take(fd, &v) || v != r)
            die("the echo is wrong");
        if (r >= WARM)
            sample[r - WARM] = (uint32_t)((clock_ns() - start) / 2);
    }
    qsort(sample, ROUNDS, sizeof(sample[0]), by_value);
    printf("{\"name\":\"tcp_lat\",\"value\":%u,\"unit\":\"ns\",\"min\":%u,\"p99\":%u}\n",
           sample[ROUNDS / 2], sample[0], sample[ROUNDS * 99ull / 100]);
    close(fd);
    return 0;
}
