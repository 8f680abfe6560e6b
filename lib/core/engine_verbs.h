/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names that the engine shares with verbs, with the numbers that they have there: whoever sits
 * between an application and the engine passes them on as they are. What is ours alone says so.
 */
#ifndef URNIC_ENGINE_VERBS_H
#define URNIC_ENGINE_VERBS_H

/* ---- completions (CQ-02) ---- */

enum engine_status {
    WC_SUCCESS,
    WC_LOC_LEN_ERR,
    WC_LOC_QP_OP_ERR,
    WC_LOC_EEC_OP_ERR,
    WC_LOC_PROT_ERR,
    WC_WR_FLUSH_ERR,
    WC_MW_BIND_ERR,
    WC_BAD_RESP_ERR,
    WC_LOC_ACCESS_ERR,
    WC_REM_INV_REQ_ERR,
    WC_REM_ACCESS_ERR,
    WC_REM_OP_ERR,
    WC_RETRY_EXC_ERR,
    WC_RNR_RETRY_EXC_ERR,
    WC_LOC_RDD_VIOL_ERR,
    WC_REM_INV_RD_REQ_ERR,
    WC_REM_ABORT_ERR,
    WC_INV_EECN_ERR,
    WC_INV_EEC_STATE_ERR,
    WC_FATAL_ERR,
    WC_RESP_TIMEOUT_ERR,
    WC_GENERAL_ERR,
    WC_STATUS_MAX
};
/* "SUCCESS", "LOC_LEN_ERR" ...; never NULL. */
const char *engine_status_name(unsigned status);

enum engine_wc_opcode {
    WC_SEND = 0,
    WC_RDMA_WRITE = 1,
    WC_RDMA_READ = 2,
    WC_COMP_SWAP = 3,
    WC_FETCH_ADD = 4,
    WC_BIND_MW = 5,
    WC_LOCAL_INV = 6,
    WC_REG_MR = 7, /* ours: fast register */
    WC_FLUSH = 8,
    WC_ATOMIC_WRITE = 9,
    WC_RECV = 128,
    WC_RECV_RDMA_WITH_IMM = 129,
};

#define WC_F_GRH  1u
#define WC_F_IMM  2u
#define WC_F_INV  8u
#define WC_F_IPV4 0x100u /* ours: a datagram came with IPv4, not IPv6 */

/* ---- events (EVT-01) ---- */

enum engine_event {
    EVT_CQ_ERR = 0,
    EVT_QP_FATAL = 1,
    EVT_QP_REQ_ERR = 2,
    EVT_QP_ACCESS_ERR = 3,
    EVT_COMM_EST = 4,
    EVT_SQ_DRAINED = 5,
    EVT_PATH_MIG = 6,
    EVT_PATH_MIG_ERR = 7,
    EVT_DEVICE_FATAL = 8,
    EVT_PORT_ACTIVE = 9,
    EVT_PORT_ERR = 10,
    EVT_SRQ_ERR = 14,
    EVT_SRQ_LIMIT_REACHED = 15,
    EVT_QP_LAST_WQE_REACHED = 16,
    EVT_GID_CHANGE = 18,
};

/* ---- shared receive queues ---- */

/* Attributes to modify. */
#define SRQA_MAX_WR (1u << 0)
#define SRQA_LIMIT  (1u << 1)

/* ---- queue pairs ---- */

enum qp_type {
    QP_GSI = 1, /* internal */
    QP_RC = 2,
    QP_UC = 3,
    QP_UD = 4,
    QP_XRC_INI = 9,  /* sends only (XRC-01) */
    QP_XRC_TGT = 10, /* receives only */
};
enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR };
extern const char *const qp_state_names[];

/* Attributes to modify. */
#define QPA_STATE              (1u << 0)
#define QPA_CUR_STATE          (1u << 1)
#define QPA_EN_SQD_NOTIFY      (1u << 2)
#define QPA_ACCESS_FLAGS       (1u << 3)
#define QPA_PKEY_INDEX         (1u << 4)
#define QPA_PORT               (1u << 5)
#define QPA_QKEY               (1u << 6)
#define QPA_AV                 (1u << 7)
#define QPA_PATH_MTU           (1u << 8)
#define QPA_TIMEOUT            (1u << 9)
#define QPA_RETRY_CNT          (1u << 10)
#define QPA_RNR_RETRY          (1u << 11)
#define QPA_RQ_PSN             (1u << 12)
#define QPA_MAX_QP_RD_ATOMIC   (1u << 13)
#define QPA_ALT_PATH           (1u << 14)
#define QPA_MIN_RNR_TIMER      (1u << 15)
#define QPA_SQ_PSN             (1u << 16)
#define QPA_MAX_DEST_RD_ATOMIC (1u << 17)
#define QPA_PATH_MIG_STATE     (1u << 18)
#define QPA_CAP                (1u << 19)
#define QPA_DEST_QPN           (1u << 20)
#define QPA_RATE_LIMIT         (1u << 25)

/* ---- work requests ---- */

enum engine_wr_opcode {
    WR_RDMA_WRITE = 0,
    WR_RDMA_WRITE_WITH_IMM = 1,
    WR_SEND = 2,
    WR_SEND_WITH_IMM = 3,
    WR_RDMA_READ = 4,
    WR_ATOMIC_CMP_AND_SWP = 5,
    WR_ATOMIC_FETCH_AND_ADD = 6,
    WR_LOCAL_INV = 7,
    WR_BIND_MW = 8,
    WR_SEND_WITH_INV = 9,
    WR_REG_MR = 10, /* ours: verbs have it in the kernel only */
    WR_FLUSH = 14,
    WR_ATOMIC_WRITE = 15,
    WR_OPCODE_MAX
};
#define WR_F_FENCE     1u
#define WR_F_SIGNALED  2u
#define WR_F_SOLICITED 4u
#define WR_F_INLINE    8u

#endif
