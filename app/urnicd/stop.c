/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel knows which process listens on a socket, so no pid file is needed. (A pid file could
 * outlive its process.) The daemon is held by a descriptor before it is signalled: a process id may
 * name another process a moment later, a descriptor may not.
 */
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"

static int stop_fail(char *err, const char *path, int rc, const char *text)
{
    snprintf(err, CONFIG_ERR, "socket=%s: %s", path, text);
    return rc;
}

/* -EAGAIN: it accepted no connection in that time. */
static int stop_connect(const char *path, int timeout_ms)
{
    const struct timeval most = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000L};
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(sa.sun_path))
        return -ENAMETOOLONG;
    memcpy(sa.sun_path, path, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
        connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

/* A descriptor of the process that listens at the other end of `sock`. */
static int stop_pidfd(int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    if (peer.pid <= 0) /* of another process id namespace */
        return -ESRCH;
    int fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    return fd < 0 ? -errno : fd;
}

/* Has the listener gone in the meantime? Then the process id may already be another's. */
static bool stop_gone(const char *path)
{
    int sock = stop_connect(path, 1);
    if (sock >= 0)
        close(sock);
    return sock < 0 && sock != -EAGAIN;
}

int stop_daemon(const char *path, int timeout_ms, char *err)
{
    int sock = stop_connect(path, timeout_ms);
    if (sock == -ENOENT || sock == -ECONNREFUSED || sock == -EPROTOTYPE)
        return stop_fail(err, path, -ECONNREFUSED, "no urnicd serves there");
    if (sock == -EAGAIN)
        return stop_fail(err, path, -ETIMEDOUT,
                         "urnicd takes no connection: it was halted, or hangs");
    if (sock < 0)
        return stop_fail(err, path, sock, strerror(-sock));
    int pidfd = stop_pidfd(sock);
    close(sock);
    if (pidfd < 0)
        return stop_fail(err, path, pidfd, "cannot find its process");

    int rc = 0;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    if (!stop_gone(path) && syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
        rc = errno == ESRCH ? 0 : stop_fail(err, path, -errno, strerror(errno));
    else if (poll(&p, 1, timeout_ms) != 1)
        rc = stop_fail(err, path, -ETIMEDOUT, "urnicd got the signal and has not ended yet");
    close(pidfd);
    return rc;
}
