/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rsock: rsockets (libvma-like users, rsocket preload): rlisten, rconnect, rsend/rrecv of 4 MiB in
 * odd pieces both ways, rpoll, non-blocking rrecv, rgetsockname/rgetpeername, rshutdown ends the
 * peer's rrecv with 0. */
#include "vt_cm.h"
#include <rdma/rsocket.h>
#define LEN (4 << 20)
static int port;
static pthread_barrier_t up;
static void all(int fd, char *p, size_t n, bool out, unsigned step)
{
    size_t at = 0;
    while (at < n) {
        size_t k = n - at < step ? n - at : step;
        ssize_t r = out ? rsend(fd, p + at, k, 0) : rrecv(fd, p + at, k, 0);
        WANT(r > 0, "%s at %zu gave %zd errno %d", out ? "rsend" : "rrecv", at, r, errno);
        at += r;
    }
}
static void *server(void *x)
{
    int l = rsocket(AF_INET, SOCK_STREAM, 0);
    WANT(l >= 0, "rsocket failed, errno %d", errno);
    struct sockaddr_in a = cm_addr(vt.ip[0], 0);
    socklen_t n = sizeof(a);
    OK0(rbind(l, (struct sockaddr *)&a, n));
    OK0(rlisten(l, 4));
    OK0(rgetsockname(l, (struct sockaddr *)&a, &n));
    port = ntohs(a.sin_port);
    pthread_barrier_wait(&up);
    int fd = raccept(l, NULL, NULL);
    WANT(fd >= 0, "raccept failed, errno %d", errno);
    char *b = malloc(LEN);
    all(fd, b, LEN, false, 70001);
    SAME(b, LEN, 1, "client to server");
    vt_fill(b, LEN, 2);
    all(fd, b, LEN, true, 50021);
    WANT(rrecv(fd, b, 10, 0) == 0, "rrecv after the peer's rshutdown: not 0");
    rclose(fd);
    rclose(l);
    free(b);
    return x;
}
int main(int argc, char **argv)
{
    vt_start(argc, argv, "rsock");
    pthread_t t;
    pthread_barrier_init(&up, NULL, 2);
    pthread_create(&t, NULL, server, NULL);
    pthread_barrier_wait(&up);
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = cm_addr(vt.ip[0], port), q;
    socklen_t n = sizeof(q);
    int r = rconnect(fd, (struct sockaddr *)&a, sizeof(a));
    WANT(!r, "rconnect gave %d errno %d (%s)", r, errno, strerror(errno));
    OK0(rgetpeername(fd, (struct sockaddr *)&q, &n));
    WANT(q.sin_port == a.sin_port && q.sin_addr.s_addr == a.sin_addr.s_addr,
         "rgetpeername differs");
    char *b = malloc(LEN);
    errno = 0;
    WANT(rrecv(fd, b, 10, MSG_DONTWAIT) == -1 && (errno == EAGAIN || errno == EWOULDBLOCK),
         "rrecv(MSG_DONTWAIT) without data: errno %d, expected EAGAIN", errno);
    vt_fill(b, LEN, 1);
    all(fd, b, LEN, true, 65536 + 3);
    struct pollfd p = {fd, POLLIN, 0};
    WANT(rpoll(&p, 1, 9000) == 1 && (p.revents & POLLIN), "rpoll: no POLLIN within 9 s");
    memset(b, 0, LEN);
    all(fd, b, LEN, false, 99999);
    SAME(b, LEN, 2, "server to client");
    OK0(rshutdown(fd, SHUT_RDWR));
    pthread_join(t, NULL);
    rclose(fd);
    vt_pass(NULL);
}
