/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control socket, seen from an application. One request is under way at a time. A daemon that
 * dies shows as end of file, which ends the connection; one that hangs as a time-out, whose reply
 * is skipped when it comes after all.
 */
#include "client_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_TIMEOUT_S 60

static int connect_socket(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (ipc_socket_path(path, sa.sun_path, sizeof(sa.sun_path)) < 0)
        return -ENAMETOOLONG;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    struct timeval tv = {.tv_sec = REPLY_TIMEOUT_S};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
    if (connect(sock, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return sock;
    int err = errno;
    close(sock);
    return err == ENOENT || err == ECONNREFUSED ? -ENODEV : -err;
}

static int say_hello(struct client_conn *c)
{
    struct ipc_hello ours, theirs = {0};
    ipc_hello_fill(&ours, IPC_FEAT_CM | IPC_FEAT_SRQ | IPC_FEAT_MW | IPC_FEAT_UD | IPC_FEAT_DRIVE |
                              IPC_FEAT_REG_MR);
    int err = ipc_send(c->sock, &ours, sizeof(ours), NULL, 0, 0);
    if (err < 0)
        return err;
    ssize_t n = ipc_recv(c->sock, &theirs, sizeof(theirs), NULL, NULL, 0);
    if (n <= 0)
        return n < 0 ? (int)n : -ENODEV;
    if (n >= (ssize_t)sizeof(struct ipc_hdr) && theirs.hdr.status < 0)
        return theirs.hdr.status;
    if (n < (ssize_t)sizeof(theirs))
        return -EPROTO;
    c->features = theirs.features;
    return ipc_hello_check(&theirs);
}

int client_conn_open(struct client_conn *c, const char *path)
{
    *c = (struct client_conn){.pid = getpid()};
    c->sock = connect_socket(path);
    if (c->sock < 0)
        return c->sock;
    int err = say_hello(c);
    if (err < 0) {
        close(c->sock);
        return err;
    }
    pthread_mutex_init(&c->lock, NULL);
    return 0;
}

void client_conn_close(struct client_conn *c)
{
    close(c->sock);
    pthread_mutex_destroy(&c->lock);
}

static void close_fds(const int *fds, unsigned n)
{
    while (fds != NULL && n > 0)
        close(fds[--n]);
}

/* Wait for the reply to request `id`; late replies to requests that timed out are skipped. */
static ssize_t await_reply(struct client_conn *c, uint32_t id, void *reply, size_t cap, int *fds,
                           unsigned *nfds)
{
    unsigned room = nfds != NULL ? *nfds : 0;
    for (;;) {
        unsigned got = room;
        ssize_t n = ipc_recv(c->sock, reply, cap, fds, &got, 0);
        if (n == -EAGAIN)
            return -ETIMEDOUT;
        if (n == 0)
            return -ENODEV;
        if (n < 0)
            return n;
        struct ipc_hdr hdr;
        if (n < (ssize_t)sizeof(hdr)) {
            close_fds(fds, got);
            return -EPROTO;
        }
        memcpy(&hdr, reply, sizeof(hdr));
        if (hdr.id != id || !(hdr.flags & IPC_F_REPLY)) {
            close_fds(fds, got);
            continue;
        }
        if (hdr.status < 0) {
            close_fds(fds, got);
            return hdr.status;
        }
        if (nfds != NULL)
            *nfds = got;
        return n;
    }
}

ssize_t client_conn_raw(struct client_conn *c, void *req, size_t req_len, const int *send_fds,
                        unsigned nsend, void *reply, size_t cap, int *fds, unsigned *nfds)
{
    struct ipc_hdr *hdr = req;
    if (getpid() != c->pid)
        return -EPERM;
    if (atomic_load_explicit(&c->dead, memory_order_relaxed))
        return -ENODEV;

    pthread_mutex_lock(&c->lock);
    hdr->id = ++c->next_id;
    ssize_t n = ipc_send(c->sock, req, req_len, send_fds, nsend, 0);
    bool broken = n < 0 && n != -EINVAL && n != -EBADF;
    if (n == 0) {
        n = await_reply(c, hdr->id, reply, cap, fds, nfds);
        broken = n == -ENODEV || n == -ETIMEDOUT || n == -ECONNRESET;
    }
    /* -ENODEV can also be the status of a reply; ask the socket which it was. */
    if (broken) {
        char octet;
        ssize_t r = recv(c->sock, &octet, 1, MSG_PEEK | MSG_DONTWAIT);
        if (r == 0 || (r < 0 && errno != EAGAIN)) {
            atomic_store_explicit(&c->dead, true, memory_order_relaxed);
            n = -ENODEV;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return n;
}

int client_conn_call(struct client_conn *c, void *req, size_t req_len, void *reply, size_t size,
                     int *fds, unsigned *nfds)
{
    _Alignas(8) uint8_t buf[1024];
    ssize_t n = client_conn_raw(c, req, req_len, NULL, 0, buf, sizeof(buf), fds, nfds);
    if (n < 0)
        return (int)n;
    return ipc_msg_unpack(reply, size, sizeof(struct ipc_hdr), buf, (size_t)n, false);
}

int client_conn_handle(struct client_conn *c, enum ipc_type type, uint32_t handle)
{
    struct ipc_handle req = {.hdr.type = (uint16_t)type, .handle = handle};
    struct ipc_hdr reply;
    return client_conn_call(c, &req, sizeof(req), &reply, sizeof(reply), NULL, NULL);
}
