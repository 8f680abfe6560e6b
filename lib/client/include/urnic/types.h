/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers and structs of liburnic. All numbers are those of libibverbs and librdmacm.
 */
#ifndef URNIC_TYPES_H
#define URNIC_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URNIC_API __attribute__((visibility("default")))

struct urnic_context; /* an open device */
struct urnic_pd;      /* a protection domain */
struct urnic_cq;      /* a completion queue */
struct urnic_qp;      /* a queue pair */
struct urnic_srq;     /* a shared receive queue */
struct urnic_ah;      /* an address handle: the destination of a datagram */
struct urnic_channel; /* where completion events arrive */

/* ---- devices ---- */

struct urnic_device {
    char name[32]; /* "urn0" */
    uint64_t guid; /* octets in network order */
    uint32_t index;
};

struct urnic_device_attr {
    struct urnic_device dev;
    char fw_ver[32];
    char port_spec[128]; /* the specification of the daemon's port */
    uint64_t max_mr_size;
    uint32_t max_qp, max_qp_wr, max_send_sge, max_recv_sge, max_inline;
    uint32_t max_cq, max_cqe, max_mr, max_pd, max_mw, max_ah;
    uint32_t max_srq, max_srq_wr, max_srq_sge;
    uint32_t max_qp_rd_atom, max_qp_init_rd_atom;
    uint32_t max_mcast_grp, max_mcast_qp_attach;
    uint32_t max_pkeys, local_ca_ack_delay;
    /* As ibv_atomic_cap: 2 = atomic against the CPUs' atomics, too. 1, of a daemon before protocol
     * 1.20: only on memory that it maps, else against other requests of the device. */
    uint32_t atomic_cap;
    uint32_t num_comp_vectors;
    uint64_t cap_flags; /* URNIC_DEVICE_*; a daemon before protocol 1.14 has none of these */
};

/* Verbs' numbers. There is no FLUSH to persistence: the device knows no memory that survives a loss
 * of power. */
#define URNIC_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define URNIC_DEVICE_ATOMIC_WRITE (1ull << 40)

enum urnic_mtu { URNIC_MTU_256 = 1, URNIC_MTU_512, URNIC_MTU_1024, URNIC_MTU_2048, URNIC_MTU_4096 };
enum urnic_port_state { URNIC_PORT_DOWN = 1, URNIC_PORT_ACTIVE = 4 };

struct urnic_port_attr {
    enum urnic_port_state state;
    enum urnic_mtu max_mtu, active_mtu;
    uint32_t gid_tbl_len, pkey_tbl_len, max_msg_sz;
    uint32_t ifindex;   /* of the kernel's interface, 0 = none */
    uint32_t link_mtu;  /* octets */
    uint64_t line_rate; /* bit/s, 0 = unknown */
    uint8_t mac[6];
    uint16_t vlan;
    uint16_t pkeys[4];
    /* packets dropped for a wrong P_Key, datagrams for a wrong Q_Key; 0xFFFF = that many or more */
    uint16_t bad_pkey_cntr, qkey_viol_cntr;
    uint8_t dscp; /* default for queue pairs without a traffic class; 0 before protocol 1.7 */
};

enum urnic_gid_type { URNIC_GID_ROCE_V1 = 1, URNIC_GID_ROCE_V2 = 2 };
struct urnic_gid {
    uint8_t raw[16]; /* an IPv6 address; IPv4 as ::ffff:a.b.c.d */
    uint32_t index;
    enum urnic_gid_type type;
};

/* ---- memory ---- */

#define URNIC_ACCESS_LOCAL_WRITE   0x01u
#define URNIC_ACCESS_REMOTE_WRITE  0x02u
#define URNIC_ACCESS_REMOTE_READ   0x04u
#define URNIC_ACCESS_REMOTE_ATOMIC 0x08u
#define URNIC_ACCESS_MW_BIND       0x10u
#define URNIC_ACCESS_FLUSH_GLOBAL  0x100u
#define URNIC_ACCESS_ZERO_BASED    0x20u /* its addresses start at 0; iova is ignored */

/* A registered region. Read-only for the application. */
struct urnic_mr {
    struct urnic_context *context;
    struct urnic_pd *pd;
    void *addr;    /* NULL: registered from a descriptor */
    uint64_t iova; /* address of the first octet in work requests */
    size_t length;
    uint32_t lkey, rkey;
    uint32_t handle;
};

/* A memory window: a key for a part of a region, with fewer rights. Work requests bind and unbind
 * it. Type 1: for the peers of all queue pairs of the domain. Type 2: for the peer of the queue
 * pair that binds it. */
struct urnic_mw {
    struct urnic_context *context;
    struct urnic_pd *pd;
    uint32_t rkey; /* while bound: the key of the last bind; the application updates it */
    uint32_t handle;
    int type;
};

/* ---- queue pairs ---- */

enum urnic_qp_type {
    URNIC_QPT_RC = 2,
    URNIC_QPT_UC = 3,
    URNIC_QPT_UD = 4,
    URNIC_QPT_XRC_SEND = 9,  /* recv_cq and srq are NULL */
    URNIC_QPT_XRC_RECV = 10, /* both CQs and srq are NULL; its pd is the XRC domain */
};
enum urnic_qp_state {
    URNIC_QPS_RESET,
    URNIC_QPS_INIT,
    URNIC_QPS_RTR,
    URNIC_QPS_RTS,
    URNIC_QPS_SQD,
    URNIC_QPS_SQE,
    URNIC_QPS_ERR
};

struct urnic_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge;
    uint32_t max_inline_data;
};

struct urnic_qp_init_attr {
    void *qp_context; /* for the application: urnic_qp_context */
    struct urnic_cq *send_cq, *recv_cq;
    struct urnic_srq *srq;   /* NULL = a receive queue of its own */
    struct urnic_qp_cap cap; /* in: wanted; out: granted, at least that */
    enum urnic_qp_type qp_type;
    int sq_sig_all; /* every send completes with a CQE */
    const char *cc; /* congestion control, "dcqcn:paper,g=1/256"; NULL = the device's */
};

struct urnic_ah_attr {
    uint8_t dgid[16];
    uint16_t sgid_index;
    uint8_t tclass;      /* 0 = as the device is configured (urnicd(8), dscp) */
    uint8_t hop_limit;   /* 0 = 64 */
    uint8_t sl;          /* 0..15; its low 3 bits are the priority in a VLAN's tag */
    uint8_t dmac[6];     /* all 0 = resolve it */
    uint32_t flow_label; /* 20 bits */
};

enum urnic_qp_attr_mask {
    URNIC_QP_STATE = 1 << 0,
    URNIC_QP_CUR_STATE = 1 << 1,
    URNIC_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    URNIC_QP_ACCESS_FLAGS = 1 << 3,
    URNIC_QP_PKEY_INDEX = 1 << 4,
    URNIC_QP_PORT = 1 << 5,
    URNIC_QP_QKEY = 1 << 6,
    URNIC_QP_AV = 1 << 7,
    URNIC_QP_PATH_MTU = 1 << 8,
    URNIC_QP_TIMEOUT = 1 << 9,
    URNIC_QP_RETRY_CNT = 1 << 10,
    URNIC_QP_RNR_RETRY = 1 << 11,
    URNIC_QP_RQ_PSN = 1 << 12,
    URNIC_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    URNIC_QP_MIN_RNR_TIMER = 1 << 15,
    URNIC_QP_SQ_PSN = 1 << 16,
    URNIC_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    URNIC_QP_DEST_QPN = 1 << 20,
    URNIC_QP_RATE_LIMIT = 1 << 25,
};

struct urnic_qp_attr {
    enum urnic_qp_state qp_state, cur_qp_state;
    struct urnic_ah_attr ah_attr;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
    uint32_t qp_access_flags; /* URNIC_ACCESS_REMOTE_*, URNIC_ACCESS_FLUSH_GLOBAL */
    uint32_t rate_limit;      /* kbit/s, 0 = none; -EOPNOTSUPP with cc "swift" */
    enum urnic_mtu path_mtu;
    uint16_t pkey_index;
    uint8_t port_num; /* 1 */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint8_t en_sqd_async_notify, sq_draining;
    struct urnic_qp_cap cap; /* query only */
};

struct urnic_srq_attr {
    uint32_t max_wr, max_sge;
    uint32_t srq_limit;
};

/* ---- work requests ---- */

struct urnic_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

enum urnic_wr_opcode {
    URNIC_WR_RDMA_WRITE,
    URNIC_WR_RDMA_WRITE_WITH_IMM,
    URNIC_WR_SEND,
    URNIC_WR_SEND_WITH_IMM,
    URNIC_WR_RDMA_READ,
    URNIC_WR_ATOMIC_CMP_AND_SWP,
    URNIC_WR_ATOMIC_FETCH_AND_ADD,
    URNIC_WR_LOCAL_INV,
    URNIC_WR_BIND_MW,
    URNIC_WR_SEND_WITH_INV,
    URNIC_WR_REG_MR, /* not verbs': see urnic_alloc_mr */
    URNIC_WR_FLUSH = 14,
    URNIC_WR_ATOMIC_WRITE = 15, /* `rdma`; 8 octets, inline or one segment, to an aligned address */
};

#define URNIC_SEND_FENCE     1u
#define URNIC_SEND_SIGNALED  2u
#define URNIC_SEND_SOLICITED 4u
#define URNIC_SEND_INLINE    8u /* data is copied at posting: no lkey, buffer free at once */

/* The fields of a send request besides its data, by opcode. */

struct urnic_wr_rdma {
    uint64_t remote_addr;
    uint32_t rkey;
};

/* sg_list is one segment; its first 8 octets get the old value. */
struct urnic_wr_atomic {
    uint64_t remote_addr; /* a multiple of 8 */
    uint64_t compare_add, swap;
    uint32_t rkey;
};

/* The peer answers once all readers of that memory see the data that earlier requests of this queue
 * pair have written. No sg_list. */
struct urnic_wr_flush {
    uint64_t remote_addr; /* with URNIC_FLUSH_RANGE: the first of `length` octets, at most 2^31 */
    uint64_t length;
    uint32_t rkey;
    uint8_t type;  /* URNIC_FLUSH_GLOBAL */
    uint8_t level; /* URNIC_FLUSH_RANGE, or URNIC_FLUSH_MR: the whole region */
};
#define URNIC_FLUSH_GLOBAL     1u
#define URNIC_FLUSH_PERSISTENT 2u /* other devices may have it */
#define URNIC_FLUSH_RANGE      0u
#define URNIC_FLUSH_MR         1u

struct urnic_wr_ud {
    struct urnic_ah *ah;
    uint32_t remote_qpn, remote_qkey;
};

struct urnic_wr_bind_mw {
    uint32_t mw_rkey, new_rkey, mr_lkey, access;
    uint64_t addr, length; /* length 0: unbind (type 1) */
};

/* sg_list: the segments, in memory of mr; their lkey is ignored. At most the queue pair's
 * max_send_sge. */
struct urnic_wr_reg_mr {
    const struct urnic_mr *mr;
    uint64_t iova;        /* address of the first octet from now on */
    uint32_t key, access; /* key: mr->rkey with a variant octet of yours (urnic_inc_rkey) */
};

/* XRC_SEND: used together with rdma or atomic, so it lies after them. */
struct urnic_wr_xrc {
    uint32_t beside[7];
    uint32_t srqn; /* urnic_srq_num of the peer's queue */
};

struct urnic_send_wr {
    uint64_t wr_id;
    struct urnic_send_wr *next;
    const struct urnic_sge *sg_list;
    int num_sge;
    enum urnic_wr_opcode opcode;
    unsigned send_flags; /* URNIC_SEND_* */
    uint32_t imm_data;   /* octets as on the wire; SEND_WITH_INV, LOCAL_INV: the R_Key */
    __extension__ union {
        struct urnic_wr_rdma rdma;
        struct urnic_wr_atomic atomic;
        struct urnic_wr_flush flush;
        struct urnic_wr_ud ud;
        struct urnic_wr_bind_mw bind_mw;
        struct urnic_wr_reg_mr reg_mr;
        struct urnic_wr_xrc xrc;
    };
};

struct urnic_recv_wr {
    uint64_t wr_id;
    struct urnic_recv_wr *next;
    const struct urnic_sge *sg_list;
    int num_sge;
};

/* ---- completions ---- */

enum urnic_wc_status {
    URNIC_WC_SUCCESS,
    URNIC_WC_LOC_LEN_ERR,
    URNIC_WC_LOC_QP_OP_ERR,
    URNIC_WC_LOC_EEC_OP_ERR,
    URNIC_WC_LOC_PROT_ERR,
    URNIC_WC_WR_FLUSH_ERR,
    URNIC_WC_MW_BIND_ERR,
    URNIC_WC_BAD_RESP_ERR,
    URNIC_WC_LOC_ACCESS_ERR,
    URNIC_WC_REM_INV_REQ_ERR,
    URNIC_WC_REM_ACCESS_ERR,
    URNIC_WC_REM_OP_ERR,
    URNIC_WC_RETRY_EXC_ERR,
    URNIC_WC_RNR_RETRY_EXC_ERR,
    URNIC_WC_LOC_RDD_VIOL_ERR,
    URNIC_WC_REM_INV_RD_REQ_ERR,
    URNIC_WC_REM_ABORT_ERR,
    URNIC_WC_INV_EECN_ERR,
    URNIC_WC_INV_EEC_STATE_ERR,
    URNIC_WC_FATAL_ERR,
    URNIC_WC_RESP_TIMEOUT_ERR,
    URNIC_WC_GENERAL_ERR,
};

enum urnic_wc_opcode {
    URNIC_WC_SEND = 0,
    URNIC_WC_RDMA_WRITE = 1,
    URNIC_WC_RDMA_READ = 2,
    URNIC_WC_COMP_SWAP = 3,
    URNIC_WC_FETCH_ADD = 4,
    URNIC_WC_BIND_MW = 5,
    URNIC_WC_LOCAL_INV = 6,
    URNIC_WC_REG_MR = 7, /* not verbs' */
    URNIC_WC_FLUSH = 8,
    URNIC_WC_ATOMIC_WRITE = 9,
    URNIC_WC_RECV = 128,
    URNIC_WC_RECV_RDMA_WITH_IMM = 129,
};

#define URNIC_WC_GRH      1u /* UD: 40 octets of IP header precede the data in the buffer */
#define URNIC_WC_WITH_IMM 2u
#define URNIC_WC_WITH_INV 8u
#define URNIC_WC_IPV4     0x100u /* not verbs': the header at 20 of those 40 octets is IPv4's */

/* A rule has an area and a number, as in doc/conformance.md: RSP-12 (urnic_rule_area). */
#define URNIC_RULE_NUMBER(vendor_err) ((vendor_err)&0xFFFFu)

struct urnic_wc { /* on error only wr_id, status, vendor_err and qp_num are valid */
    uint64_t wr_id;
    enum urnic_wc_status status;
    enum urnic_wc_opcode opcode;
    uint32_t vendor_err; /* the broken rule; 0 = not known */
    uint32_t byte_len;   /* of the message; for a received datagram 40 octets more */
    uint32_t imm_data;   /* octets as on the wire, or the invalidated R_Key */
    uint32_t qp_num;
    uint32_t src_qp;   /* of received datagrams: the sender; else 0 */
    uint32_t wc_flags; /* URNIC_WC_GRH ... */
    uint16_t pkey_index;
    uint8_t sl;
    uint64_t timestamp; /* when the engine completed it: ns of CLOCK_MONOTONIC */
};

/* ---- asynchronous events ---- */

/* PATH_MIG, PATH_MIG_ERR, LID_CHANGE, PKEY_CHANGE, SM_CHANGE and CLIENT_REREGISTER never come. */
enum urnic_event_type {
    URNIC_EVENT_CQ_ERR = 0,
    URNIC_EVENT_QP_FATAL = 1,
    URNIC_EVENT_QP_REQ_ERR = 2,
    URNIC_EVENT_QP_ACCESS_ERR = 3,
    URNIC_EVENT_COMM_EST = 4,
    URNIC_EVENT_SQ_DRAINED = 5,
    URNIC_EVENT_PATH_MIG = 6,
    URNIC_EVENT_PATH_MIG_ERR = 7,
    URNIC_EVENT_DEVICE_FATAL = 8,
    URNIC_EVENT_PORT_ACTIVE = 9,
    URNIC_EVENT_PORT_ERR = 10,
    URNIC_EVENT_LID_CHANGE = 11,
    URNIC_EVENT_PKEY_CHANGE = 12,
    URNIC_EVENT_SM_CHANGE = 13,
    URNIC_EVENT_SRQ_ERR = 14,
    URNIC_EVENT_SRQ_LIMIT_REACHED = 15,
    URNIC_EVENT_QP_LAST_WQE_REACHED = 16,
    URNIC_EVENT_CLIENT_REREGISTER = 17,
    URNIC_EVENT_GID_CHANGE = 18,
};

struct urnic_async_event {
    enum urnic_event_type type;
    __extension__ union { /* by type; acknowledge the event before destroying the object */
        struct urnic_cq *cq;
        struct urnic_qp *qp;
        struct urnic_srq *srq;
        uint32_t port;
    };
    bool lost; /* events before this one didn't fit the queue */
};

#ifdef __cplusplus
}
#endif
#endif
