/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control protocol: structs of the requests about devices, memory and queues, and of the queues'
 * events.
 */
#ifndef URNIC_IPC_VERBS_H
#define URNIC_IPC_VERBS_H

#include "ipc_msg.h"

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

#define IPC_CAP_FLUSH_GLOBAL (1ull << 38)
#define IPC_CAP_ATOMIC_WRITE (1ull << 40)

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
    uint32_t atomic_cap; /* as ibv_atomic_cap: 1 = HCA, 2 = GLOB */
    uint32_t num_comp_vectors;
    uint64_t cap_flags; /* minor 14: verbs' numbers of abilities added after atomic_cap */
    uint32_t spare[6];
};

#define IPC_PORT_DOWN   1u
#define IPC_PORT_ACTIVE 4u
#define IPC_MTU_4096    5u /* 1 = 256 octets, each twice the one before */

struct ipc_port_attr {
    struct ipc_hdr hdr;
    uint32_t state;               /* IPC_PORT_* */
    uint32_t max_mtu, active_mtu; /* 1..IPC_MTU_4096 */
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
    uint8_t dscp; /* minor 7: for queue pairs without a traffic class (WIRE-13) */
    uint8_t zero[3];
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

/* A slab of memory for application data. The daemon creates it and seals it (F_SEAL_SHRINK |
 * F_SEAL_GROW): its size can't change. The client maps the slab before it registers the first
 * region in it. The daemon then adds F_SEAL_FUTURE_WRITE and F_SEAL_SEAL. After that no process can
 * map the slab anew for writing, or punch a hole into it. */
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

/* Other values: -ENOTSUP. */
enum ipc_mr_kind {
    IPC_MR_SLAB = 1, /* [off, off+len) of slab `obj` */
    /* [off, off+len) of fd 0, a MAP_SHARED object on tmpfs or hugetlbfs. -EPERM: the daemon is
     * another user's, and the object could make it wait (memory_foreign) */
    IPC_MR_FD = 2,
    /* addresses [off, off+len) of the process itself: for an engine in a program. A daemon takes
     * only len 0, and answers -EOPNOTSUPP to other lengths. (With minor 8 to 19 a daemon copied
     * memory of programs of its own user.) */
    IPC_MR_PROCESS = 3,
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

/* A region gets other rights or another domain, and keeps its keys. -EOPNOTSUPP: its memory is
 * mapped for reading only, and the new rights need writing. */
struct ipc_mr_rereg {
    struct ipc_hdr hdr;
    uint32_t mr; /* handle */
    uint32_t pd;
    uint32_t access; /* as ipc_mr_reg */
    uint32_t zero;
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

/* A work request (WR_REG_MR) makes at most max_segs parts of [off, off+len) of slab `obj` the
 * region, until another one invalidates it. */
struct ipc_mr_alloc {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t obj;
    uint32_t max_segs; /* 1 .. 16 */
    uint32_t zero;
    uint64_t off, len;
};

/* ---- queues ---- */

/* An entry of a send queue takes 1 to 8 units of 64 octets. The queue has room for max_send_wr
 * entries of the greatest length that its limits allow, so posting never runs out of units before
 * it runs out of entries: ipc_sqe_units_max() in ipc_ring.h. A QP's queues come with 0, 1 or 2
 * descriptors, the send queue's first. */

/* The place of a queue: ipc_queue (or ipc_cq_ring) at `off` of slab `slab`, entries right after it.
 * When the client has not seen this slab before, slab_size is not 0 and the next descriptor of the
 * message is the slab (map slab_size octets, shared, read-write). A client that couldn't take it
 * sends IPC_SLABS_AGAIN: then each slab is new once more, even those that the client has. It maps a
 * slab before it names an object in it (but for destroying that): from then on the slab can't be
 * mapped for writing any more. A slab of more than IPC_SLAB_SHARED octets has one queue. For a
 * client with IPC_FEAT_UNMAP it ends with that queue: the client unmaps it when the reply to the
 * request that destroys the queue has come; its number doesn't come again. */
#define IPC_SLAB_SHARED (1u << 20)
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
    uint32_t count, period_us; /* bounds of the wait; 0, 0 = off */
    uint32_t zero;
};

/* The queue gets a longer ring, in two steps: first the ring is made, and the client maps it; then
 * the queue moves there (`move`). Completions that the client has not polled keep their indices
 * there, and the old ring gets no more completions; its memory goes to other queues. The client
 * polls and arms nothing during the second step. If the queue is long enough already, the first
 * reply's ring has 0 entries, and there is no second step. */
struct ipc_cq_resize {
    struct ipc_hdr hdr;
    uint32_t cq;
    uint32_t cqe; /* entries, at least; -EINVAL: more entries wait */
    uint32_t move;
    uint32_t zero;
};

struct ipc_srq_create {
    struct ipc_hdr hdr;
    uint32_t pd;
    uint32_t max_wr, max_sge, limit;
    uint32_t ref;
    uint32_t zero;
    /* minor 13: of XRC; 0, 0 = it is not */
    uint32_t xrcd; /* the domain, which IPC_PD_ALLOC made */
    uint32_t cq;   /* completion queue of its receives */
};

struct ipc_srq {
    struct ipc_hdr hdr;
    uint32_t srq;             /* handle */
    uint32_t srqn;            /* XRC: number by which peers name it; otherwise any number */
    uint32_t max_wr, max_sge; /* granted */
    struct ipc_where ring;
};

#define IPC_SRQ_MAX_WR 1u /* verbs' numbers; -ENOTSUP: use IPC_SRQ_RESIZE */
#define IPC_SRQ_LIMIT  2u
struct ipc_srq_modify {
    struct ipc_hdr hdr;
    uint32_t srq;
    uint32_t mask; /* IPC_SRQ_* */
    uint32_t max_wr, limit;
};

/* A shared receive queue grows, in three steps, so that the client has the new ring before the
 * daemon uses it:
 *
 *     PREPARE  a second ring is made for max_wr receives; the answer has its place. -EINVAL: max_wr
 *     COMMIT   the daemon goes on in the second ring, with the indices of the first; it is empty.
 *              Meanwhile the client posts nothing. It moves entries that the daemon has not taken
 *              yet, from cons on, and shows them again. -EINVAL: more entries than fit
 *     END      the unused ring is freed: the first one, or without COMMIT the second
 *
 * A bare handle, from a client that couldn't take the answer, is an END. */
enum ipc_resize_step { IPC_RESIZE_END, IPC_RESIZE_PREPARE, IPC_RESIZE_COMMIT };
struct ipc_srq_resize {
    struct ipc_hdr hdr;
    uint32_t srq;
    uint32_t step; /* enum ipc_resize_step */
    uint32_t max_wr;
    uint32_t zero;
};

struct ipc_srq_attr {
    struct ipc_hdr hdr;
    uint32_t max_wr, max_sge, limit, zero;
};

struct ipc_qp_create {
    struct ipc_hdr hdr;
    uint32_t pd;
    /* 2 RC, 3 UC, 4 UD; since minor 13: 9 XRC, sends only, without recv_cq and srq; 10 XRC,
     * receives only, with neither of the CQs and no srq, its pd being the XRC domain */
    uint32_t type;
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
    char cc_spec[256]; /* congestion control with parameters, "" = the device's */
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

/* On the context's async socket. When it is full the daemon keeps some thousands, but none of an
 * object that is destroyed meanwhile: a client's QPs, CQs and SRQs need refs that all differ. */
struct ipc_async {
    uint32_t event; /* verbs' numbers */
    uint32_t ref;   /* of the QP, CQ or SRQ; the port number for port events */
    uint32_t flags; /* 1 = events before this one were lost (EVT-04) */
    uint32_t zero;
};

IPC_SIZE_CHECK(struct ipc_device, 48);
IPC_SIZE_CHECK(struct ipc_gid, 24);
IPC_SIZE_CHECK(struct ipc_ctx_opened, 48);
IPC_SIZE_CHECK(struct ipc_where, 32);
IPC_SIZE_CHECK(struct ipc_mr_reg, 56);
IPC_SIZE_CHECK(struct ipc_mr_alloc, 48);
IPC_SIZE_CHECK(struct ipc_mr_rereg, 32);
IPC_SIZE_CHECK(struct ipc_cq, 56);
IPC_SIZE_CHECK(struct ipc_srq_resize, 32);
IPC_SIZE_CHECK(struct ipc_qp_create, 344);
IPC_SIZE_CHECK(struct ipc_qp, 112);
IPC_SIZE_CHECK(struct ipc_av, 40);
IPC_SIZE_CHECK(struct ipc_qp_attr, 88);
IPC_SIZE_CHECK(struct ipc_qp_modify, 112);
IPC_SIZE_CHECK(struct ipc_comp_event, 8);
IPC_SIZE_CHECK(struct ipc_async, 16);

#endif
