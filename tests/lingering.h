/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A descriptor whose close takes long: a TCP connection with SO_LINGER whose peer doesn't read the
 * sent data.
 */
#ifndef URNIC_TESTS_LINGERING_H
#define URNIC_TESTS_LINGERING_H

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct lingering {
    int fd;
    int peer; /* closing it ends the wait */
};

static inline struct lingering lingering_new(int seconds)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger linger = {.l_onoff = 1, .l_linger = seconds};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(at);
    struct lingering l;
    static char data[65536];
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    l.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(l.fd, (struct sockaddr *)&at, len), 0);
    l.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(l.peer, 0);
    close(listener);
    ck_assert_int_eq(fcntl(l.fd, F_SETFL, O_NONBLOCK), 0);
    while (send(l.fd, data, sizeof(data), MSG_NOSIGNAL) > 0)
        ;
    ck_assert_int_eq(setsockopt(l.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    return l;
}

static inline void *lingering_close(void *fd)
{
    close((int)(intptr_t)fd);
    return NULL;
}

/* Send a message with this descriptor, `n` times, and close it, on a thread: the receiver may
 * have closed it before. False: the socket doesn't take it. */
static inline bool lingering_pass(int sock, const void *msg, size_t len, int fd, unsigned n)
{
    union {
        struct cmsghdr align;
        char octets[CMSG_SPACE(253 * sizeof(int))];
    } control = {0};
    char copy[16384];
    struct iovec iov = {.iov_base = copy, .iov_len = len};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.octets};
    memcpy(copy, msg, len);
    mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
    struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
    cm->cmsg_level = SOL_SOCKET;
    cm->cmsg_type = SCM_RIGHTS;
    cm->cmsg_len = CMSG_LEN(n * sizeof(int));
    for (unsigned i = 0; i < n; i++)
        memcpy(CMSG_DATA(cm) + i * sizeof(int), &fd, sizeof(fd));
    bool sent = sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    const struct linger none = {0};
    pthread_t closer;
    if (!sent)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    if (pthread_create(&closer, NULL, lingering_close, (void *)(intptr_t)fd) == 0)
        pthread_detach(closer);
    return sent;
}

/* Wait until that thread has closed it. While the message isn't received, the close need not wait,
 * and the last close is that of the descriptor in the message. */
static inline void lingering_passed(const struct lingering *l)
{
    while (fcntl(l->fd, F_GETFD) >= 0)
        usleep(100);
}

#endif
