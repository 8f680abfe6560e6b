/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Basics of the control protocol: hello, size-tolerant unpacking, messages with descriptors.
 */
#include "ipc_msg.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ipc_ring.h"

static const uint32_t own_sizes[IPC_SIZE_MAX] = {
    [IPC_SIZE_HDR] = sizeof(struct ipc_hdr),
    [IPC_SIZE_SQ_UNIT] = IPC_UNIT,
    [IPC_SIZE_CQE] = sizeof(struct ipc_cqe),
    [IPC_SIZE_QUEUE] = sizeof(struct ipc_queue),
    [IPC_SIZE_DOORBELL] = offsetof(struct ipc_doorbell, slot),
    [IPC_SIZE_WORKER] = sizeof(struct ipc_worker),
    [IPC_SIZE_SGE] = sizeof(struct ipc_sge),
};

int ipc_msg_unpack(void *dst, size_t size, size_t min, const void *src, size_t len, bool strict)
{
    if (len < min)
        return -EBADMSG;
    size_t known = len < size ? len : size;
    memcpy(dst, src, known);
    memset((uint8_t *)dst + known, 0, size - known);
    if (strict) {
        const uint8_t *p = src;
        for (size_t i = known; i < len; i++)
            if (p[i] != 0)
                return -E2BIG;
    }
    return 0;
}

void ipc_hello_fill(struct ipc_hello *hello, uint64_t features)
{
    *hello = (struct ipc_hello){
        .hdr = {.type = IPC_HELLO},
        .magic = IPC_MAGIC,
        .major = IPC_MAJOR,
        .minor = IPC_MINOR,
        .features = features,
    };
    memcpy(hello->sizes, own_sizes, sizeof(own_sizes));
}

int ipc_hello_check(const struct ipc_hello *theirs)
{
    if (theirs->hdr.type != IPC_HELLO || theirs->magic != IPC_MAGIC)
        return -EPROTO;
    if (theirs->major != IPC_MAJOR)
        return -EPROTONOSUPPORT;
    return memcmp(theirs->sizes, own_sizes, sizeof(own_sizes)) == 0 ? 0 : -EPROTO;
}

static int64_t ms_since(const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000;
}

bool ipc_time_left(int sock, int option, short events, const struct timespec *since)
{
    struct timeval all = {0};
    socklen_t len = sizeof(all);
    getsockopt(sock, SOL_SOCKET, option, &all, &len);
    const int64_t ms = (int64_t)all.tv_sec * 1000 + all.tv_usec / 1000;
    if (ms == 0)
        return true; /* it has none */
    struct pollfd p = {.fd = sock, .events = events};
    for (;;) {
        int64_t left = ms - ms_since(since);
        if (left <= 0) {
            errno = EAGAIN;
            return false;
        }
        if (poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX) > 0)
            return true;
    }
}

int ipc_send(int sock, const void *msg, size_t len, const int *fds, unsigned nfds, int flags)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(IPC_FD_MAX * sizeof(int))];
    } control;
    struct iovec iov = {.iov_len = len};
    memcpy(&iov.iov_base, &msg, sizeof(msg)); /* sendmsg only reads it */
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (nfds > IPC_FD_MAX || len > IPC_MSG_MAX)
        return -EINVAL;
    if (nfds > 0) {
        memset(&control, 0, sizeof(control));
        mh.msg_control = control.buf;
        mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
        cm->cmsg_level = SOL_SOCKET;
        cm->cmsg_type = SCM_RIGHTS;
        cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
    }
    struct timespec since;
    clock_gettime(CLOCK_MONOTONIC, &since);
    ssize_t n;
    do
        n = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR && ipc_time_left(sock, SO_SNDTIMEO, POLLOUT, &since));
    return n < 0 ? -errno : 0;
}

/* Take the descriptors out of a received message. There is room for the most that a message can
 * carry. */
static unsigned take_fds(struct msghdr *mh, int *fds)
{
    unsigned got = 0;
    for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
        if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned n = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        if (n > IPC_FD_ANY - got)
            n = IPC_FD_ANY - got; /* never more: the buffer has no room for it */
        memcpy(fds + got, CMSG_DATA(cm), n * sizeof(int));
        got += n;
    }
    return got;
}

ssize_t ipc_recv_all(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(IPC_FD_ANY * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = msg, .iov_len = cap};
    struct msghdr mh = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.buf,
        .msg_controllen = sizeof(control.buf),
    };
    struct timespec since;
    clock_gettime(CLOCK_MONOTONIC, &since);
    ssize_t n;
    do
        n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR && ipc_time_left(sock, SO_RCVTIMEO, POLLIN, &since));
    *nfds = 0;
    if (n < 0)
        return -errno;
    *nfds = take_fds(&mh, fds);
    if ((mh.msg_flags & MSG_TRUNC) || *nfds > IPC_FD_MAX)
        return -EMSGSIZE;
    return mh.msg_flags & MSG_CTRUNC ? -EMFILE : n; /* `control` had room */
}

ssize_t ipc_recv(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags)
{
    int all[IPC_FD_ANY];
    unsigned got, room = nfds != NULL ? *nfds : 0;
    ssize_t n = ipc_recv_all(sock, msg, cap, all, &got, flags);
    if (n <= 0)
        room = 0;
    while (got > room)
        close(all[--got]);
    if (got > 0)
        memcpy(fds, all, got * sizeof(int));
    if (nfds != NULL)
        *nfds = got;
    return n;
}

int ipc_socket_folder(const char *path, uid_t *owner)
{
    char dir[256];
    struct stat st;
    const char *slash = strrchr(path, '/');
    int len = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    if ((size_t)len >= sizeof(dir))
        return -ENAMETOOLONG;
    snprintf(dir, sizeof(dir), "%.*s", len, slash == NULL ? "." : path);
    if (lstat(dir, &st) < 0)
        return -errno;
    *owner = st.st_uid;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0 ? 0 : -EPERM;
}

/* Is the file at `path` the caller's own, in a folder where no other user can make names? */
static bool is_own(const char *path)
{
    struct stat st;
    uid_t owner;
    return lstat(path, &st) == 0 && st.st_uid == geteuid() && ipc_socket_folder(path, &owner) == 0;
}

int ipc_socket_path(const char *explicit_path, char *buf, size_t size)
{
    /* The user of a set-uid program doesn't choose which daemon gets its memory. */
    const char *env = secure_getenv(IPC_SOCKET_ENV);
    const char *run = secure_getenv("XDG_RUNTIME_DIR");
    int n;
    if (explicit_path == NULL && env != NULL && env[0] != '\0')
        explicit_path = env;
    if (explicit_path != NULL) {
        n = snprintf(buf, size, "%s", explicit_path);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
    }
    if (run != NULL && run[0] == '/') {
        n = snprintf(buf, size, "%s/%s", run, IPC_SOCKET_USER);
        if (n > 0 && (size_t)n < size && is_own(buf))
            return 0;
    }
    /* The socket of a user without a run-time folder. All users can make names in /tmp, so only
     * the user's own file counts. */
    n = snprintf(buf, size, IPC_SOCKET_TMP, (unsigned)geteuid());
    if (n > 0 && (size_t)n < size && is_own(buf))
        return 0;
    n = snprintf(buf, size, "%s", IPC_SOCKET_SYSTEM);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static const char *const type_names[IPC_TYPE_MAX] = {
    [IPC_HELLO] = "hello",
    [IPC_VERSION] = "version",
    [IPC_DEVICE_LIST] = "device-list",
    [IPC_DEVICE_QUERY] = "device-query",
    [IPC_PORT_QUERY] = "port-query",
    [IPC_GID_TABLE] = "gid-table",
    [IPC_CTX_OPEN] = "ctx-open",
    [IPC_PD_ALLOC] = "pd-alloc",
    [IPC_PD_FREE] = "pd-free",
    [IPC_SLAB_ALLOC] = "slab-alloc",
    [IPC_SLAB_FREE] = "slab-free",
    [IPC_MR_REG] = "mr-reg",
    [IPC_MR_DEREG] = "mr-dereg",
    [IPC_MW_ALLOC] = "mw-alloc",
    [IPC_MR_ALLOC] = "mr-alloc",
    [IPC_MR_REREG] = "mr-rereg",
    [IPC_MW_DEALLOC] = "mw-dealloc",
    [IPC_CHANNEL_CREATE] = "channel-create",
    [IPC_CHANNEL_DESTROY] = "channel-destroy",
    [IPC_CQ_CREATE] = "cq-create",
    [IPC_CQ_RESIZE] = "cq-resize",
    [IPC_CQ_MODIFY] = "cq-modify",
    [IPC_CQ_DESTROY] = "cq-destroy",
    [IPC_SRQ_CREATE] = "srq-create",
    [IPC_SRQ_MODIFY] = "srq-modify",
    [IPC_SRQ_QUERY] = "srq-query",
    [IPC_SRQ_DESTROY] = "srq-destroy",
    [IPC_QP_CREATE] = "qp-create",
    [IPC_QP_MODIFY] = "qp-modify",
    [IPC_QP_QUERY] = "qp-query",
    [IPC_QP_DESTROY] = "qp-destroy",
    [IPC_AV_RESOLVE] = "av-resolve",
    [IPC_MCAST_ATTACH] = "mcast-attach",
    [IPC_MCAST_DETACH] = "mcast-detach",
    [IPC_SLABS_AGAIN] = "slabs-again",
    [IPC_SRQ_RESIZE] = "srq-resize",
    [IPC_CM_CHANNEL_CREATE] = "cm-channel-create",
    [IPC_CM_CHANNEL_DESTROY] = "cm-channel-destroy",
    [IPC_CM_ID_CREATE] = "cm-id-create",
    [IPC_CM_ID_DESTROY] = "cm-id-destroy",
    [IPC_CM_BIND] = "cm-bind",
    [IPC_CM_RESOLVE_ADDR] = "cm-resolve-addr",
    [IPC_CM_RESOLVE_ROUTE] = "cm-resolve-route",
    [IPC_CM_LISTEN] = "cm-listen",
    [IPC_CM_CONNECT] = "cm-connect",
    [IPC_CM_ACCEPT] = "cm-accept",
    [IPC_CM_REJECT] = "cm-reject",
    [IPC_CM_ESTABLISH] = "cm-establish",
    [IPC_CM_DISCONNECT] = "cm-disconnect",
    [IPC_CM_QP_ATTR] = "cm-qp-attr",
    [IPC_CM_QUERY] = "cm-query",
    [IPC_CM_JOIN] = "cm-join",
    [IPC_CM_LEAVE] = "cm-leave",
    [IPC_CM_MIGRATE] = "cm-migrate",
    [IPC_CM_QP] = "cm-qp",
    [IPC_ENGINE_BLOCK] = "engine-block",
    [IPC_ENGINE_OPEN] = "engine-open",
    [IPC_ENGINE_MAPPED] = "engine-mapped",
    [IPC_ENGINE_PEER] = "engine-peer",
    [IPC_ENGINE_PART] = "engine-part",
    [IPC_ENGINE_JOIN] = "engine-join",
    [IPC_ENGINE_LEAVE] = "engine-leave",
    [IPC_ENGINE_SOCKET] = "engine-socket",
    [IPC_ENGINE_GROW] = "engine-grow",
    [IPC_STATS] = "stats",
    [IPC_QP_LIST] = "qp-list",
    [IPC_QP_HISTORY] = "qp-history",
    [IPC_CAPTURE_START] = "capture-start",
    [IPC_CAPTURE_STOP] = "capture-stop",
    [IPC_ADDR_ADD] = "addr-add",
    [IPC_ADDR_DEL] = "addr-del",
    [IPC_LINK_SET] = "link-set",
    [IPC_ADMIN] = "admin",
};

const char *ipc_type_name(unsigned type)
{
    return type < IPC_TYPE_MAX && type_names[type] != NULL ? type_names[type] : "?";
}
