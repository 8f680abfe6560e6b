/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unix sockets for the control channel: addresses in the file system and in the abstract name
 * space, messages with descriptors.
 */
#include "memif_sock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "foreign.h"

/* Returns the length of the address, or -ENAMETOOLONG. */
static int sock_address(const char *path, struct sockaddr_un *un)
{
    size_t len = strlen(path);
    memset(un, 0, sizeof(*un));
    un->sun_family = AF_UNIX;
    if (len == 0 || len >= sizeof(un->sun_path))
        return -ENAMETOOLONG;
    memcpy(un->sun_path, path, len);
    if (path[0] != '@')
        return (int)sizeof(*un);
    un->sun_path[0] = '\0';
    return (int)(offsetof(struct sockaddr_un, sun_path) + len);
}

static int sock_new(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int memif_sock_connect(const char *path)
{
    struct sockaddr_un un;
    int len = sock_address(path, &un);
    int fd = len < 0 ? len : sock_new();
    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&un, (socklen_t)len) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

int memif_sock_listen(const char *path)
{
    struct sockaddr_un un;
    int len = sock_address(path, &un);
    int fd = len < 0 ? len : sock_new();
    if (fd < 0)
        return fd;
    int error = bind(fd, (struct sockaddr *)&un, (socklen_t)len) < 0 ? -errno : 0;
    if (error == -EADDRINUSE && path[0] != '@') {
        /* A socket file left by a dead process refuses connections. Only such a file is replaced.
         */
        int probe = memif_sock_connect(path);
        if (probe >= 0)
            close(probe);
        if (probe == -ECONNREFUSED && unlink(path) == 0)
            error = bind(fd, (struct sockaddr *)&un, (socklen_t)len) < 0 ? -errno : 0;
    }
    if (!error && listen(fd, 4) < 0)
        error = -errno;
    if (error) {
        close(fd);
        return error;
    }
    return fd;
}

int memif_sock_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

union sock_control {
    char octets[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int memif_sock_send(int sock, const struct memif_msg *msg, int fd)
{
    struct memif_msg copy = *msg;
    union sock_control control = {0};
    struct iovec iov = {.iov_base = &copy, .iov_len = sizeof(copy)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        mh.msg_control = &control;
        mh.msg_controllen = sizeof(control);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&mh);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
    }
    ssize_t n = sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof(copy) ? 0 : -EMSGSIZE;
}

bool memif_sock_holds(int fd)
{
    char link[32], target[64] = "";
    int domain = 0;
    socklen_t len = sizeof(domain);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0)
        return domain == AF_UNIX;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (readlink(link, target, sizeof(target) - 1) < 0)
        return false;
    return strncmp(target, "anon_inode:", strlen("anon_inode:")) == 0 &&
           strcmp(target, "anon_inode:[eventfd]") != 0;
}

/* The first descriptor in a message. Further ones, which a peer should not send, are closed.
 * *holds: one of them may contain other descriptors. */
static int sock_take_fd(int sock, struct msghdr *mh, bool *holds)
{
    int first = -1;
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(mh); cmsg; cmsg = CMSG_NXTHDR(mh, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
            if (first < 0) {
                first = fd;
                continue;
            }
            *holds |= memif_sock_holds(fd);
            memif_sock_drop(sock, fd);
        }
    }
    return first;
}

int memif_sock_recv(int sock, struct memif_msg *msg, int *fd)
{
    union {
        char octets[CMSG_SPACE(FOREIGN_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = sizeof(control)};
    bool holds = false;

    *fd = -1;
    ssize_t n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : -ECONNRESET;
    *fd = sock_take_fd(sock, &mh, &holds);
    if (!holds && n == (ssize_t)sizeof(*msg) && !(mh.msg_flags & MSG_TRUNC))
        return 0;
    if (*fd >= 0)
        memif_sock_drop(sock, *fd);
    *fd = -1;
    if (holds)
        return -EPERM;
    return n == 0 ? -ECONNRESET : -EBADMSG;
}

void memif_sock_drop(int sock, int fd)
{
    foreign_close(foreign_user(sock), fd);
}

void memif_sock_hang_up(int sock)
{
    foreign_hang_up(foreign_user(sock), sock);
}
