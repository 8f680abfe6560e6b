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
 * when it is 0. A receiver that knows less accepts a longer message if the octets that it doesn't
 * know are 0 (a daemon answers -E2BIG otherwise, a client ignores them); one that knows more reads
 * missing octets as 0. ipc_msg_unpack does that; nobody casts a received buffer. Numbers (types,
 * states, opcodes, event codes, access flags, attribute masks) are those of verbs wherever verbs
 * has them, so that libibverbs can be laid on top without a second protocol.
 *
 * Descriptors travel in the order which the struct's comment gives. All are CLOEXEC.
 */
#ifndef URNIC_IPC_MSG_H
#define URNIC_IPC_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IPC_MAGIC 0x43494e52u /* "RNIC" */
#define IPC_MAJOR 1u
#define IPC_MINOR 5u

#define IPC_MSG_MAX       16384u /* octets of the longest message */
#define IPC_FD_MAX        4u     /* descriptors with one message */
#define IPC_FD_ANY        253u   /* ... as many as the kernel lets anybody send */
#define IPC_NAME_MAX      32u    /* device names, zero-terminated */
#define IPC_PRIVATE_MAX   256u   /* private data of CM messages */
#define IPC_SOCKET_ENV    "URNIC_SOCKET"
#define IPC_SOCKET_SYSTEM "/run/urnic/urnicd.sock"
#define IPC_SOCKET_USER   "urnic/urnicd.sock"         /* below $XDG_RUNTIME_DIR */
#define IPC_SOCKET_TMP    "/tmp/urnic-%u/urnicd.sock" /* %u: user id; who has no $XDG_RUNTIME_DIR */

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
    /* queues */
    IPC_CHANNEL_CREATE = 48, /* ipc_hdr -> ipc_handle, fd 0: where completion events arrive */
    IPC_CHANNEL_DESTROY,     /* ipc_handle -> ipc_hdr; -EBUSY: CQs use it */
    IPC_CQ_CREATE,           /* ipc_cq_create -> ipc_cq */
    IPC_CQ_RESIZE,           /* -ENOTSUP */
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
    IPC_CM_QP_ATTR,    /* ipc_cm_qp_attr -> ipc_qp_modify: what to modify a QP with */
    IPC_CM_QUERY,      /* ipc_handle -> ipc_cm_route */
    IPC_CM_JOIN,       /* ipc_cm_addr (dst = group) -> ipc_hdr; event MULTICAST_JOIN */
    IPC_CM_LEAVE,      /* ipc_cm_addr (dst = group) -> ipc_hdr */
    IPC_CM_MIGRATE,    /* ipc_cm_migrate -> ipc_cm_destroyed */
    IPC_CM_QP,         /* ipc_cm_qp -> ipc_hdr: from now on the daemon moves this queue pair */
    /* looking in, steering: for tools; needs no context */
    IPC_STATS = 112,   /* ipc_by_device -> ipc_stats */
    IPC_QP_LIST,       /* ipc_qp_filter -> ipc_qp_list */
    IPC_QP_HISTORY,    /* ipc_qp_filter (device, qpn) -> ipc_text: the flight recorder */
    IPC_CAPTURE_START, /* ipc_capture, fd 0: file to write pcapng into -> ipc_handle */
    IPC_CAPTURE_STOP,  /* ipc_handle -> ipc_captured */
    IPC_ADDR_ADD,      /* ipc_addr_admin -> ipc_hdr */
    IPC_ADDR_DEL,      /* ipc_addr_admin -> ipc_hdr */
    IPC_LINK_SET,      /* ipc_link_admin -> ipc_hdr */
    IPC_ADMIN,         /* ipc_text, a JSON object -> ipc_text, a JSON object: what has no struct */
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

/* What ipc_hello.sizes holds. */
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
#define IPC_FEAT_UD     (1ull << 4) /* bit 3 stands for nothing */
#define IPC_FEAT_DRIVE  (1ull << 5) /* IPC_CM_QP, and the fields that came with it (minor 1) */
#define IPC_FEAT_REG_MR (1ull << 6) /* IPC_MR_ALLOC, IPC_WR_REG_MR (minor 3) */

/* The first message, both ways. Frozen for all time: this struct never changes. */
struct ipc_hello {
    struct ipc_hdr hdr;
    uint32_t magic;
    uint16_t major, minor;
    uint64_t features; /* what the sender offers; the daemon's answer: what it serves */
    uint32_t sizes[IPC_SIZE_MAX];
};

struct ipc_version {
    struct ipc_hdr hdr;
    char text[96]; /* "urnicd 0.1.0 ..." */
    uint32_t pid, workers;
    uint64_t uptime_ns;
};

/* Requests and replies that say nothing else. */
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

/* ---- devices ---- */

struct ipc_device {
    char name[IPC_NAME_MAX];
    uint64_t guid; /* network order octets, as verbs */
    uint32_t index;
    uint32_t workers;
};

struct ipc_device_list {
    struct ipc_hdr hdr;
    uint32_t count, zero;
    struct ipc_device dev[]; /* count of them */
};

struct ipc_device_attr {
    struct ipc_hdr hdr;
    struct ipc_device dev;
    char fw_ver[32];
    char port_spec[128]; /* "memif:/path,role=server" */
    uint64_t max_mr_size;
    uint32_t max_qp, max_qp_wr, max_send_sge, max_recv_sge, max_inline;
    uint32_t max_cq, max_cqe, max_mr, max_pd, max_mw, max_ah;
    uint32_t max_srq, max_srq_wr, max_srq_sge;
    uint32_t max_qp_rd_atom, max_qp_init_rd_atom;
    uint32_t max_mcast_grp, max_mcast_qp_attach;
    uint32_t max_pkeys, local_ca_ack_delay;
    uint32_t atomic_cap; /* as ibv_atomic_cap: 2 = GLOB */
    uint32_t num_comp_vectors;
    uint32_t spare[8];
};

struct ipc_port_attr {
    struct ipc_hdr hdr;
    uint32_t state;               /* 1 down, 4 active */
    uint32_t max_mtu, active_mtu; /* enum 1..5 */
    uint32_t gid_tbl_len, pkey_tbl_len;
    uint32_t max_msg_sz;
    uint32_t ifindex;   /* 0 = the kernel has no such interface */
    uint32_t mtu;       /* octets of the Ethernet link */
    uint64_t line_rate; /* bit/s, 0 = unknown */
    uint8_t mac[6];
    uint16_t vlan;
    uint16_t pkeys[4];
    /* minor 4 */
    uint16_t bad_pkey_cntr, qkey_viol_cntr; /* stay at 0xFFFF (KEY-03, KEY-06) */
    uint32_t zero;
};

#define IPC_GID_V1 1u
#define IPC_GID_V2 2u
struct ipc_gid {
    uint8_t gid[16];
    uint32_t index;
    uint32_t type; /* IPC_GID_* */
};

struct ipc_gid_table {
    struct ipc_hdr hdr;
    uint32_t count, zero;
    struct ipc_gid gid[]; /* empty entries are left out */
};

struct ipc_ctx_open {
    struct ipc_hdr hdr;
    char device[IPC_NAME_MAX];
    int32_t worker; /* -1 = the daemon chooses */
    uint32_t zero;
};

/* fd 0: the context's slab: an ipc_doorbell at offset 0 (map slab_size octets, shared, writable)
 * fd 1: the worker's page: an ipc_worker, then an ipc_life (map worker_size octets, shared,
 *       read-only)
 * fd 2: kick: a stream socket; send one octet (MSG_DONTWAIT | MSG_NOSIGNAL) to wake the worker
 * fd 3: async events: a SOCK_SEQPACKET socket, one ipc_async each; end of file = daemon gone */
struct ipc_ctx_opened {
    struct ipc_hdr hdr;
    uint64_t slab_size;
    uint64_t worker_size;
    uint32_t doorbells; /* slots of the doorbell ring: a power of two, >= every queue possible */
    uint32_t worker;
    uint32_t device_index;
    uint32_t zero;
};

/* ---- memory ---- */

/* A slab of memory for application data. The daemon creates it and seals it
 * (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL): its size can't change under anyone. */
struct ipc_slab_alloc {
    struct ipc_hdr hdr;
    uint64_t size; /* rounded up to pages (2 MiB with HUGE) */
    uint32_t flags;
    uint32_t zero;
};
#define IPC_SLAB_HUGE 1u /* ask for transparent or explicit huge pages; not a promise */

struct ipc_slab { /* fd 0: map `size` octets, shared, read-write */
    struct ipc_hdr hdr;
    uint32_t slab; /* handle */
    uint32_t zero;
    uint64_t size;
};

/* Any other: -ENOTSUP. */
enum ipc_mr_kind {
    IPC_MR_SLAB = 1, /* [off, off+len) of slab `obj` */
    IPC_MR_FD = 2,   /* [off, off+len) of fd 0, a MAP_SHARED object on tmpfs or hugetlbfs */
};

struct ipc_mr_reg {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t kind; /* enum ipc_mr_kind */
    uint32_t obj;
    uint32_t access; /* verbs' access flags: 1 local write, 2 remote write, 4 read, 8 atomic ... */
    uint64_t off, len;
    uint64_t iova; /* address that SGEs and peers use for the first octet */
};

struct ipc_mr {
    struct ipc_hdr hdr;
    uint32_t mr; /* handle */
    uint32_t lkey, rkey;
    uint32_t zero;
};

struct ipc_mw_alloc {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t mw_type; /* 1, 2 */
};

/* Parts of [off, off+len) of slab `obj`, at most max_segs of them, become the region when a work
 * request says so (IPC_WR_REG_MR), and cease to be it when one invalidates it. */
struct ipc_mr_alloc {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t obj;
    uint32_t max_segs; /* 1 .. 16 */
    uint32_t zero;
    uint64_t off, len;
};

/* ---- queues ---- */

/* A send queue has units for max_send_wr of the longest request that its limits allow, so that
 * posting never runs out of units before it runs out of requests: ipc_sqe_units_max() in
 * ipc_ring.h. A QP's queues come with 0, 1 or 2 descriptors, the send queue's first. */

/* Where a queue lies: ipc_queue (or ipc_cq_ring) at `off` of slab `slab`, entries right behind it.
 * When the client has not seen this slab before, slab_size is not 0 and the next descriptor of the
 * message is the slab (map slab_size octets, shared, read-write). A client that couldn't take it
 * says IPC_SLABS_AGAIN: then each slab is new once more, those that it has as well. */
struct ipc_where {
    uint64_t off;
    uint64_t slab_size; /* 0 = seen before */
    uint32_t slab;      /* numbers of their own, not handles */
    uint32_t entries;   /* power of two: SQ units, RQ entries, CQ entries; 0 = no such queue */
    uint32_t stride;    /* octets of one entry: 64, or ipc_rq_stride(max_sge) */
    uint32_t doorbell;  /* number to ring; CQs have none */
};

struct ipc_cq_create {
    struct ipc_hdr hdr;
    uint32_t cqe;     /* at least this many (CQ-04) */
    uint32_t channel; /* handle, 0 = none */
    uint32_t ref;     /* the client's: comes back in completion and async events */
    uint32_t vector;
};

struct ipc_cq {
    struct ipc_hdr hdr;
    uint32_t cq; /* handle */
    uint32_t cqe;
    struct ipc_where ring;
};

struct ipc_cq_modify {
    struct ipc_hdr hdr;
    uint32_t cq;
    uint32_t count, period_us; /* the event waits for so many completions, or so long; 0, 0 = off */
    uint32_t zero;
};

struct ipc_srq_create {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t max_wr, max_sge, limit;
    uint32_t ref;
    uint32_t zero;
};

struct ipc_srq {
    struct ipc_hdr hdr;
    uint32_t srq; /* handle */
    uint32_t srqn;
    uint32_t max_wr, max_sge; /* granted */
    struct ipc_where ring;
};

#define IPC_SRQ_MAX_WR 1u /* verbs' numbers; -ENOTSUP: rings don't grow */
#define IPC_SRQ_LIMIT  2u
struct ipc_srq_modify {
    struct ipc_hdr hdr;
    uint32_t srq;
    uint32_t mask; /* IPC_SRQ_* */
    uint32_t max_wr, limit;
};

struct ipc_srq_attr {
    struct ipc_hdr hdr;
    uint32_t max_wr, max_sge, limit, zero;
};

struct ipc_qp_create {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t type; /* 2 RC, 3 UC, 4 UD */
    uint32_t send_cq, recv_cq;
    uint32_t srq; /* 0 = own receive queue */
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    uint32_t sq_sig_all;
    uint32_t ref; /* the client's: comes back in CQEs and async events */
    char cc[16];  /* congestion control by name, "" = cc_spec */
    /* minor 1 */
    uint32_t cm_id; /* not 0: IPC_CM_QP as well, the queue pair is in INIT then */
    uint32_t zero;
    /* minor 2 */
    char cc_spec[256]; /* ... with parameters, "" = the device's */
};

struct ipc_qp {
    struct ipc_hdr hdr;
    uint32_t qp; /* handle */
    uint32_t qpn;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* granted */
    uint32_t zero;
    struct ipc_where sq, rq;
};

struct ipc_qp_destroy {
    struct ipc_hdr hdr;
    uint32_t qp;
    uint32_t cm_id; /* minor 1; not 0: this id is destroyed as well, if the queue pair could be */
};

/* An address vector. sgid_index chooses the local address: a client can't lie about it. */
struct ipc_av {
    uint8_t dgid[16];
    uint8_t dmac[6]; /* all 0: the daemon resolves it */
    uint8_t tclass, hop_limit;
    uint8_t sl, zero[3];
    uint16_t sgid_index, zero2;
    uint32_t flow_label;
    uint32_t spare;
};

struct ipc_qp_attr { /* with verbs' masks, states, MTU numbers */
    uint32_t state, cur_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qpn;
    uint32_t access_flags;
    uint32_t rate_limit; /* kbit/s, as verbs */
    struct ipc_av av;
    uint16_t pkey_index;
    uint8_t port, path_mtu;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic, en_sqd_async_notify, sq_draining;
    uint8_t path_mig_state, e2e_credits, zero[2];
};

/* A move to RESET empties both rings: the daemon sets prod = cons = 0 (not `pending`: that belongs
 * to the doorbell ring) before it answers, and stores no CQE of the queue pair after that. The
 * client posts nothing meanwhile. */
struct ipc_qp_modify {
    struct ipc_hdr hdr;
    uint32_t qp;
    uint32_t mask; /* verbs' attribute mask */
    struct ipc_qp_attr attr;
};

struct ipc_qp_queried {
    struct ipc_hdr hdr;
    struct ipc_qp_attr attr;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline, sq_sig_all;
};

struct ipc_av_resolve {
    struct ipc_hdr hdr;
    struct ipc_av av;
};

struct ipc_mcast {
    struct ipc_hdr hdr;
    uint32_t qp, zero;
    uint8_t gid[16];
};

/* ---- events on sockets of their own ---- */

/* On a completion channel: exactly these 8 octets per event (SOCK_SEQPACKET). When the socket is
 * full the daemon keeps the event owed, and sends it later. */
struct ipc_comp_event {
    uint32_t ref; /* ipc_cq_create.ref */
    uint32_t zero;
};

/* On the context's async socket. */
struct ipc_async {
    uint32_t event; /* verbs' numbers */
    uint32_t ref;   /* of the QP, CQ or SRQ; the port number for port events */
    uint32_t flags; /* 1 = events before this one were lost (EVT-04) */
    uint32_t zero;
};

/* ---- helpers ---- */

/* Copy a received message of `len` octets into a struct of `size` octets, of which the first `min`
 * must be present; what is missing becomes 0. strict (the daemon's side): octets that the struct
 * doesn't have must be 0. Returns 0; -EBADMSG too short; -E2BIG strict, and they aren't 0. */
int ipc_msg_unpack(void *dst, size_t size, size_t min, const void *src, size_t len, bool strict);

/* Fill in a hello with this build's values. */
void ipc_hello_fill(struct ipc_hello *hello, uint64_t features);

/* Can we talk? `theirs` is a received hello. 0; -EPROTO not urnic or other struct sizes;
 * -EPROTONOSUPPORT another major version. */
int ipc_hello_check(const struct ipc_hello *theirs);

/* Send one message with nfds descriptors (<= IPC_FD_MAX), which stay the caller's. flags: MSG_*,
 * MSG_NOSIGNAL is added. 0 or -errno (-EAGAIN with MSG_DONTWAIT). */
int ipc_send(int sock, const void *msg, size_t len, const int *fds, unsigned nfds, int flags);

/* Receive one message and its descriptors (CLOEXEC, the caller's from now on). *nfds in: room in
 * fds; out: how many came; surplus ones are closed. Returns the length; 0 end of file, or an empty
 * message (descriptors closed); -errno; -EMSGSIZE truncated (descriptors closed); -EMFILE it came
 * whole and is in msg, but this process has no room for its descriptors, and got none. */
ssize_t ipc_recv(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags);

/* The same for who can't trust the sender: nothing is closed. All descriptors that came, in fds,
 * which has room for IPC_FD_ANY, are the caller's, with an error as well. */
ssize_t ipc_recv_all(int sock, void *msg, size_t cap, int *fds, unsigned *nfds, int flags);

/* The socket's path by the rules: `explicit_path` if not NULL, else $URNIC_SOCKET, else the user's
 * (below $XDG_RUNTIME_DIR, or in /tmp and owned by the caller) if it exists, else the system's. 0
 * or -ENAMETOOLONG. */
int ipc_socket_path(const char *explicit_path, char *buf, size_t size);

/* Name of a request type for logs, "?" if unknown. */
const char *ipc_type_name(unsigned type);

/* Both ends see the same bytes. */
#define IPC_SIZE_CHECK(type, size) _Static_assert(sizeof(type) == (size), #type)
IPC_SIZE_CHECK(struct ipc_hdr, 16);
IPC_SIZE_CHECK(struct ipc_hello, 64);
IPC_SIZE_CHECK(struct ipc_handle, 24);
IPC_SIZE_CHECK(struct ipc_by_device, 56);
IPC_SIZE_CHECK(struct ipc_device, 48);
IPC_SIZE_CHECK(struct ipc_gid, 24);
IPC_SIZE_CHECK(struct ipc_ctx_opened, 48);
IPC_SIZE_CHECK(struct ipc_where, 32);
IPC_SIZE_CHECK(struct ipc_mr_reg, 56);
IPC_SIZE_CHECK(struct ipc_mr_alloc, 48);
IPC_SIZE_CHECK(struct ipc_cq, 56);
IPC_SIZE_CHECK(struct ipc_qp_create, 344);
IPC_SIZE_CHECK(struct ipc_qp, 112);
IPC_SIZE_CHECK(struct ipc_av, 40);
IPC_SIZE_CHECK(struct ipc_qp_attr, 88);
IPC_SIZE_CHECK(struct ipc_qp_modify, 112);
IPC_SIZE_CHECK(struct ipc_comp_event, 8);
IPC_SIZE_CHECK(struct ipc_async, 16);

#endif
