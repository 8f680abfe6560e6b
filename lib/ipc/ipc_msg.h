/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control protocol: SOCK_SEQPACKET unix socket, one message per packet, little-endian hosts only.
 *
 *     client                          daemon
 *     IPC_HELLO {magic, major ...} -> checks magic, major, sizes
 *                                  <- the same struct with its own values, status 0 or -EPROTO...
 *     request {type, id}           -> acts, possibly later
 *                                  <- reply {type, id, status}: 0 or -errno; fds by SCM_RIGHTS
 *
 * Replies carry the id of their request; the daemon may answer out of order. A reply with a status
 * below 0 may be a bare header. An unknown request type gets -ENOTSUP and does no harm. Events
 * never come on this socket: each kind has a socket of its own, handed out by the daemon, so that
 * an application can poll it.
 *
 * Growing the protocol (same major): structs only grow at the end and a new field means "as before"
 * when it is 0. An older receiver accepts a longer message if the octets that it doesn't know are 0
 * (otherwise a daemon answers -E2BIG, a client ignores them). A newer one reads missing octets as
 * 0. ipc_msg_unpack does that; no code casts a received buffer. Numbers (types, states, opcodes,
 * event codes, access flags, attribute masks) are those of verbs wherever verbs has them, so that
 * libibverbs can be laid on top without a second protocol.
 *
 * Descriptors come in the order of the struct's comment. All are CLOEXEC.
 */
#ifndef URNIC_IPC_MSG_H
#define URNIC_IPC_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define IPC_MAGIC 0x43494e52u /* "RNIC" */
#define IPC_MAJOR 1u
#define IPC_MINOR 21u

#define IPC_MSG_MAX       16384u /* octets of the longest message */
#define IPC_FD_MAX        4u     /* descriptors with one message */
#define IPC_FD_ANY        253u   /* the kernel's limit of descriptors with a message */
#define IPC_NAME_MAX      32u    /* device names, zero-terminated */
#define IPC_PRIVATE_MAX   256u   /* private data of CM messages */
#define IPC_SOCKET_ENV    "URNIC_SOCKET"
#define IPC_SOCKET_SYSTEM "/run/urnic/urnicd.sock"
#define IPC_SOCKET_USER   "urnic/urnicd.sock"         /* below $XDG_RUNTIME_DIR */
#define IPC_SOCKET_TMP    "/tmp/urnic-%u/urnicd.sock" /* %u: user id; without $XDG_RUNTIME_DIR */

enum ipc_type {
    IPC_HELLO = 1,
    IPC_VERSION = 2, /* ipc_hdr -> ipc_version */
    /* devices */
    IPC_DEVICE_LIST = 16, /* ipc_hdr -> ipc_device_list */
    IPC_DEVICE_QUERY,     /* ipc_by_device -> ipc_device_attr */
    IPC_PORT_QUERY,       /* ipc_by_device -> ipc_port_attr */
    IPC_GID_TABLE,        /* ipc_by_device -> ipc_gid_table */
    IPC_CTX_OPEN,         /* ipc_ctx_open -> ipc_ctx_opened */
    /* memory */
    IPC_PD_ALLOC = 32, /* ipc_hdr -> ipc_handle */
    IPC_PD_FREE,       /* ipc_handle -> ipc_hdr */
    IPC_SLAB_ALLOC,    /* ipc_slab_alloc -> ipc_slab */
    IPC_SLAB_FREE,     /* ipc_handle -> ipc_hdr; -EBUSY: regions lie in it */
    IPC_MR_REG,        /* ipc_mr_reg -> ipc_mr */
    IPC_MR_DEREG,      /* ipc_handle -> ipc_hdr, after the last copy has finished */
    IPC_MW_ALLOC,      /* ipc_mw_alloc -> ipc_mr */
    IPC_MW_DEALLOC,    /* ipc_handle -> ipc_hdr; unbinds it */
    IPC_MR_ALLOC,      /* ipc_mr_alloc -> ipc_mr: a region that work requests register (minor 3) */
    IPC_MR_REREG,      /* ipc_mr_rereg -> ipc_mr: other rights, another domain (minor 12) */
    /* queues */
    IPC_CHANNEL_CREATE = 48, /* ipc_hdr -> ipc_handle, fd 0: where completion events arrive */
    IPC_CHANNEL_DESTROY,     /* ipc_handle -> ipc_hdr; -EBUSY: CQs use it */
    IPC_CQ_CREATE,           /* ipc_cq_create -> ipc_cq */
    IPC_CQ_RESIZE,           /* ipc_cq_resize -> ipc_cq (minor 10) */
    IPC_CQ_MODIFY,           /* ipc_cq_modify -> ipc_hdr: moderation (CQ-10) */
    IPC_CQ_DESTROY,          /* ipc_handle -> ipc_hdr */
    IPC_SRQ_CREATE,          /* ipc_srq_create -> ipc_srq */
    IPC_SRQ_MODIFY,          /* ipc_srq_modify -> ipc_hdr */
    IPC_SRQ_QUERY,           /* ipc_handle -> ipc_srq_attr */
    IPC_SRQ_DESTROY,         /* ipc_handle -> ipc_hdr */
    IPC_QP_CREATE,           /* ipc_qp_create -> ipc_qp */
    IPC_QP_MODIFY,           /* ipc_qp_modify -> ipc_hdr */
    IPC_QP_QUERY,            /* ipc_handle -> ipc_qp_queried */
    IPC_QP_DESTROY,   /* ipc_qp_destroy -> ipc_hdr; nothing is written for it any more (QP-14) */
    IPC_AV_RESOLVE,   /* ipc_av_resolve -> ipc_av_resolve with dmac; -EHOSTUNREACH */
    IPC_MCAST_ATTACH, /* ipc_mcast -> ipc_hdr */
    IPC_MCAST_DETACH, /* ipc_mcast -> ipc_hdr */
    IPC_SLABS_AGAIN,  /* ipc_hdr -> ipc_hdr: the client has lost a queue slab (minor 5) */
    IPC_SRQ_RESIZE,   /* ipc_srq_resize -> ipc_srq (minor 11) */
    /* connection manager */
    IPC_CM_CHANNEL_CREATE = 80, /* ipc_hdr -> ipc_handle, fd 0: where ipc_cm_event arrive */
    IPC_CM_CHANNEL_DESTROY,     /* ipc_handle -> ipc_hdr; -EBUSY: ids use it */
    IPC_CM_ID_CREATE,           /* ipc_cm_id_create -> ipc_handle */
    IPC_CM_ID_DESTROY,          /* ipc_handle -> ipc_cm_destroyed */
    IPC_CM_BIND,                /* ipc_cm_addr (src) -> ipc_cm_addr: filled in, port chosen if 0 */
    IPC_CM_RESOLVE_ADDR,        /* ipc_cm_addr -> ipc_cm_addr; event ADDR_RESOLVED or ADDR_ERROR */
    IPC_CM_RESOLVE_ROUTE,       /* ipc_cm_timeout -> ipc_hdr; event ROUTE_RESOLVED or ROUTE_ERROR */
    IPC_CM_LISTEN,              /* ipc_cm_listen -> ipc_hdr */
    IPC_CM_CONNECT,             /* ipc_cm_conn -> ipc_hdr; event CONNECT_RESPONSE, REJECTED ... */
    IPC_CM_ACCEPT,     /* ipc_cm_conn -> ipc_hdr; event ESTABLISHED when RTU or data came */
    IPC_CM_REJECT,     /* ipc_cm_conn (private data, reason) -> ipc_hdr */
    IPC_CM_ESTABLISH,  /* ipc_handle -> ipc_hdr: send RTU, the QP is in RTS now */
    IPC_CM_DISCONNECT, /* ipc_handle -> ipc_hdr; event DISCONNECTED on both sides */
    IPC_CM_QP_ATTR,    /* ipc_cm_qp_attr -> ipc_qp_modify: attributes for the QP */
    IPC_CM_QUERY,      /* ipc_handle -> ipc_cm_route */
    IPC_CM_JOIN,       /* ipc_cm_addr (dst = group) -> ipc_hdr; event MULTICAST_JOIN */
    IPC_CM_LEAVE,      /* ipc_cm_addr (dst = group) -> ipc_hdr */
    IPC_CM_MIGRATE,    /* ipc_cm_migrate -> ipc_cm_destroyed */
    IPC_CM_QP, /* ipc_cm_qp -> ipc_hdr: from now on the daemon changes this queue pair's state */
    /* for programs with an engine of their own (ipc_channel.h), since minor version 15 */
    IPC_ENGINE_BLOCK = 103, /* ipc_hdr -> ipc_engine_block: one more (minor 19) */
    IPC_ENGINE_OPEN = 104,  /* ipc_engine_open -> ipc_engine_opened, fds: rings, eventfd, facts */
    IPC_ENGINE_MAPPED,      /* ipc_hdr -> ipc_engine_block: the rings are mapped */
    IPC_ENGINE_PEER,   /* ipc_engine_peer -> ipc_engine_peer with dmac; -EHOSTUNREACH (minor 18) */
    IPC_ENGINE_PART,   /* ipc_engine_peer -> ipc_hdr */
    IPC_ENGINE_JOIN,   /* ipc_engine_group -> ipc_hdr (minor 16) */
    IPC_ENGINE_LEAVE,  /* ipc_engine_group -> ipc_hdr */
    IPC_ENGINE_SOCKET, /* ipc_engine_socket -> ipc_engine_socket_given, fds (minor 17) */
    IPC_ENGINE_GROW,   /* ipc_engine_open -> ipc_engine_opened, fd: larger rings (minor 19) */
    /* looking in, steering: for tools; needs no context */
    IPC_STATS = 112,   /* ipc_by_device -> ipc_stats */
    IPC_QP_LIST,       /* ipc_qp_filter -> ipc_qp_list */
    IPC_QP_HISTORY,    /* ipc_qp_filter (device, qpn) -> ipc_text: the flight recorder */
    IPC_CAPTURE_START, /* ipc_capture, fd 0: file to write pcapng into -> ipc_handle, once it has
                          started */
    IPC_CAPTURE_STOP,  /* ipc_handle -> ipc_captured */
    IPC_ADDR_ADD,      /* ipc_addr_admin -> ipc_hdr */
    IPC_ADDR_DEL,      /* ipc_addr_admin -> ipc_hdr */
    IPC_LINK_SET,      /* ipc_link_admin -> ipc_hdr */
    IPC_ADMIN, /* ipc_text, a JSON object -> ipc_text, a JSON object: requests without a struct */
    IPC_TYPE_MAX
};

struct ipc_hdr {
    uint16_t type;  /* enum ipc_type; the same in the reply */
    uint16_t flags; /* IPC_F_* */
    uint32_t id;    /* the client's; comes back in the reply */
    int32_t status; /* request: 0; reply: 0 or -errno */
    uint32_t zero;
};
#define IPC_F_REPLY 1u

/* ---- hello ---- */

/* The contents of ipc_hello.sizes. */
enum ipc_size {
    IPC_SIZE_HDR,
    IPC_SIZE_SQ_UNIT,
    IPC_SIZE_CQE,
    IPC_SIZE_QUEUE,
    IPC_SIZE_DOORBELL,
    IPC_SIZE_WORKER,
    IPC_SIZE_SGE,
    IPC_SIZE_SPARE,
    IPC_SIZE_MAX
};

#define IPC_FEAT_CM     (1ull << 0)
#define IPC_FEAT_SRQ    (1ull << 1)
#define IPC_FEAT_MW     (1ull << 2)
#define IPC_FEAT_UD     (1ull << 4) /* bit 3 is unused */
#define IPC_FEAT_DRIVE  (1ull << 5) /* IPC_CM_QP, and the fields that came with it (minor 1) */
#define IPC_FEAT_REG_MR (1ull << 6) /* IPC_MR_ALLOC, WR_REG_MR (minor 3) */
#define IPC_FEAT_CLASS  (1ull << 7) /* ipc_cm_conn.tclass and .sl (minor 6) */
#define IPC_FEAT_UNMAP                                                                             \
    (1ull << 8) /* the client unmaps slabs with their queues (ipc_where; minor 9) */

/* The first message, both ways. Frozen for all time: this struct never changes. */
struct ipc_hello {
    struct ipc_hdr hdr;
    uint32_t magic;
    uint16_t major, minor;
    uint64_t features; /* features that the sender offers; in the daemon's answer: those that it
                          serves */
    uint32_t sizes[IPC_SIZE_MAX];
};

struct ipc_version {
    struct ipc_hdr hdr;
    char text[96]; /* "urnicd 0.1.0 ..." */
    uint32_t pid, workers;
    uint64_t uptime_ns;
};

/* Requests and replies that are only a handle. */
struct ipc_handle {
    struct ipc_hdr hdr;
    uint32_t handle;
    uint32_t zero;
};

struct ipc_by_device {
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX]; /* "" = the one which the connection has opened */
    uint32_t port;             /* 1 */
    uint32_t first;            /* lists: begin with this index */
};

/* A variable-length text: hdr, len, octets without terminator. */
struct ipc_text {
    struct ipc_hdr hdr;
    uint32_t len, zero;
    char text[];
};

/* ---- helpers ---- */

/* Copy a received message of `len` octets into a struct of `size` octets, of which the first `min`
 * must be present; missing octets become 0. strict (the daemon's side): octets past the struct must
 * be 0. Returns 0; -EBADMSG: too short; -E2BIG: strict, and they aren't 0. */
int ipc_msg_unpack(void *dst, size_t size, size_t min, const void *src, size_t len, bool strict);

/* Fill in a hello with this build's values. */
void ipc_hello_fill(struct ipc_hello *hello, uint64_t features);

/* Can we talk? `theirs` is a received hello. 0; -EPROTO: not urnic or other struct sizes;
 * -EPROTONOSUPPORT: another major version. */
int ipc_hello_check(const struct ipc_hello *theirs);

/* After a signal (EINTR): is time left of the socket's time-out, `option` SO_RCVTIMEO or
 * SO_SNDTIMEO, for a call that began at `since`? Waits for `events` first. False: the time is over,
 * errno is EAGAIN. Without this, a repeated call would get the whole time again, and under constant
 * signals it would never end. */
bool ipc_time_left(int sock, int option, short events, const struct timespec *since);

/* Send one message with nfds descriptors (<= IPC_FD_MAX), which stay the caller's. flags: MSG_*;
 * MSG_NOSIGNAL is added. A signal doesn't end the call. 0 or -errno; -EAGAIN: with MSG_DONTWAIT, or
 * the socket's time-out is over. */
int ipc_send(int sock, const void *msg, size_t len, const int *fds, unsigned nfds, int flags);

/* Receive one message and its descriptors (CLOEXEC, the caller's from now on). *nfds in: room in
 * fds; out: the number received; surplus ones are closed. Returns the length; 0: end of file, or an
 * empty message (descriptors closed); -errno. -EMSGSIZE: truncated (descriptors closed). -EMFILE:
 * the whole message is in msg, but this process has no room for its descriptors, and got none. */
ssize_t ipc_recv(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags);

/* The same for untrusted senders: nothing is closed. All received descriptors are in fds, which has
 * room for IPC_FD_ANY, and are the caller's, also after an error. */
ssize_t ipc_recv_all(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags);

/* The socket's path by the rules: `explicit_path` if not NULL, else $URNIC_SOCKET, else the user's
 * (below $XDG_RUNTIME_DIR, or in /tmp) if it exists, is the caller's own and in a folder of the
 * caller's (ipc_socket_folder), else the system's. A set-uid program ignores the environment
 * (SEC-34). 0 or -ENAMETOOLONG. */
int ipc_socket_path(const char *explicit_path, char *buf, size_t size);

/* Can only the caller make, move and remove names in the folder of `path`? It must be a folder, no
 * link to one, be the caller's, and be writable for no other user (SEC-34). *owner: its owner. 0;
 * -EPERM: no; -ENOTDIR; -ENOENT and other errors of lstat; -ENAMETOOLONG. Any thread. */
int ipc_socket_folder(const char *path, uid_t *owner);

/* Name of a request type for logs, "?" if unknown. */
const char *ipc_type_name(unsigned type);

/* Both ends see the same bytes. */
#define IPC_SIZE_CHECK(type, size) _Static_assert(sizeof(type) == (size), #type)
IPC_SIZE_CHECK(struct ipc_hdr, 16);
IPC_SIZE_CHECK(struct ipc_hello, 64);
IPC_SIZE_CHECK(struct ipc_handle, 24);
IPC_SIZE_CHECK(struct ipc_by_device, 56);

#endif
