/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and numbers of verbs, for the engine and for the protocol between application and daemon.
 * Every part of urnic passes these numbers on as they are. Where a name is urnic's own, its comment
 * says so. The public headers of liburnic repeat the numbers. When the library is compiled, it
 * checks each of them against these lists.
 */
#ifndef URNIC_IB_H
#define URNIC_IB_H

#include <stdint.h>

/* ---- completions (CQ-02) ---- */

#define WC_STATUSES(X)                                                                             \
    X(SUCCESS)                                                                                     \
    X(LOC_LEN_ERR)                                                                                 \
    X(LOC_QP_OP_ERR)                                                                               \
    X(LOC_EEC_OP_ERR)                                                                              \
    X(LOC_PROT_ERR)                                                                                \
    X(WR_FLUSH_ERR)                                                                                \
    X(MW_BIND_ERR)                                                                                 \
    X(BAD_RESP_ERR)                                                                                \
    X(LOC_ACCESS_ERR)                                                                              \
    X(REM_INV_REQ_ERR)                                                                             \
    X(REM_ACCESS_ERR)                                                                              \
    X(REM_OP_ERR)                                                                                  \
    X(RETRY_EXC_ERR)                                                                               \
    X(RNR_RETRY_EXC_ERR)                                                                           \
    X(LOC_RDD_VIOL_ERR)                                                                            \
    X(REM_INV_RD_REQ_ERR)                                                                          \
    X(REM_ABORT_ERR)                                                                               \
    X(INV_EECN_ERR)                                                                                \
    X(INV_EEC_STATE_ERR)                                                                           \
    X(FATAL_ERR)                                                                                   \
    X(RESP_TIMEOUT_ERR)                                                                            \
    X(GENERAL_ERR)

enum wc_status {
#define X(name) WC_##name,
    WC_STATUSES(X)
#undef X
        WC_STATUS_MAX
};

/* name, number */
#define WC_OPCODES(X)                                                                              \
    X(SEND, 0)                                                                                     \
    X(RDMA_WRITE, 1)                                                                               \
    X(RDMA_READ, 2)                                                                                \
    X(COMP_SWAP, 3)                                                                                \
    X(FETCH_ADD, 4)                                                                                \
    X(BIND_MW, 5)                                                                                  \
    X(LOCAL_INV, 6)                                                                                \
    X(REG_MR, 7) /* ours: fast register */                                                         \
    X(FLUSH, 8)                                                                                    \
    X(ATOMIC_WRITE, 9)                                                                             \
    X(RECV, 128)                                                                                   \
    X(RECV_RDMA_WITH_IMM, 129)

enum wc_opcode {
#define X(name, number) WC_##name = (number),
    WC_OPCODES(X)
#undef X
};

#define WC_F_GRH  1u
#define WC_F_IMM  2u
#define WC_F_INV  8u
#define WC_F_IPV4 0x100u /* ours: a datagram came with IPv4, not IPv6 */

/* vendor_err of a completion with an error: the rule that was broken (doc/conformance.md), its area
 * in the upper half, its number in the lower one; 0 = none is known. Areas count from 1, and new
 * ones come at the end: applications have the numbers. */
#define RULE_AREAS(X)                                                                              \
    X(WIRE)                                                                                        \
    X(HDR)                                                                                         \
    X(OPC)                                                                                         \
    X(ICRC)                                                                                        \
    X(KEY)                                                                                         \
    X(GID)                                                                                         \
    X(VAL)                                                                                         \
    X(PSN)                                                                                         \
    X(REQ)                                                                                         \
    X(ACK)                                                                                         \
    X(RNR)                                                                                         \
    X(TMR)                                                                                         \
    X(RTX)                                                                                         \
    X(RSP)                                                                                         \
    X(RD)                                                                                          \
    X(ATM)                                                                                         \
    X(UC)                                                                                          \
    X(UD)                                                                                          \
    X(GSI)                                                                                         \
    X(SRQ)                                                                                         \
    X(XRC)                                                                                         \
    X(MR)                                                                                          \
    X(MW)                                                                                          \
    X(QP)                                                                                          \
    X(CQ)                                                                                          \
    X(EVT)                                                                                         \
    X(SHM)                                                                                         \
    X(CM)                                                                                          \
    X(CC)                                                                                          \
    X(CTR)                                                                                         \
    X(LR)                                                                                          \
    X(SEC)                                                                                         \
    X(DEV)

enum rule_area {
    RULE_NONE,
#define X(name) RULE_##name,
    RULE_AREAS(X)
#undef X
};
#define RULE(area, number) ((uint32_t)RULE_##area << 16 | (number))

/* ---- events (EVT-01) ---- */

enum ib_event {
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

/* Attributes to modify. */
#define QPA_STATE               (1u << 0)
#define QPA_CUR_STATE           (1u << 1)
#define QPA_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define QPA_ACCESS_FLAGS        (1u << 3)
#define QPA_PKEY_INDEX          (1u << 4)
#define QPA_PORT                (1u << 5)
#define QPA_QKEY                (1u << 6)
#define QPA_AV                  (1u << 7)
#define QPA_PATH_MTU            (1u << 8)
#define QPA_TIMEOUT             (1u << 9)
#define QPA_RETRY_CNT           (1u << 10)
#define QPA_RNR_RETRY           (1u << 11)
#define QPA_RQ_PSN              (1u << 12)
#define QPA_MAX_QP_RD_ATOMIC    (1u << 13)
#define QPA_ALT_PATH            (1u << 14)
#define QPA_MIN_RNR_TIMER       (1u << 15)
#define QPA_SQ_PSN              (1u << 16)
#define QPA_MAX_DEST_RD_ATOMIC  (1u << 17)
#define QPA_PATH_MIG_STATE      (1u << 18)
#define QPA_CAP                 (1u << 19)
#define QPA_DEST_QPN            (1u << 20)
#define QPA_RATE_LIMIT          (1u << 25)

/* Attributes that are plain numbers: the member of engine_qp_attr and ipc_qp_attr, the member of
 * verbs' and of urnic_qp_attr, the bit of the mask. States and address vectors are not in this
 * list: the engine, the protocol and liburnic have types of their own for them. */
#define QP_ATTRS(X)                                                                                \
    X(qkey, qkey, QKEY)                                                                            \
    X(rq_psn, rq_psn, RQ_PSN)                                                                      \
    X(sq_psn, sq_psn, SQ_PSN)                                                                      \
    X(dest_qpn, dest_qp_num, DEST_QPN)                                                             \
    X(access_flags, qp_access_flags, ACCESS_FLAGS)                                                 \
    X(pkey_index, pkey_index, PKEY_INDEX)                                                          \
    X(port, port_num, PORT)                                                                        \
    X(path_mtu, path_mtu, PATH_MTU)                                                                \
    X(timeout, timeout, TIMEOUT)                                                                   \
    X(retry_cnt, retry_cnt, RETRY_CNT)                                                             \
    X(rnr_retry, rnr_retry, RNR_RETRY)                                                             \
    X(min_rnr_timer, min_rnr_timer, MIN_RNR_TIMER)                                                 \
    X(max_rd_atomic, max_rd_atomic, MAX_QP_RD_ATOMIC)                                              \
    X(max_dest_rd_atomic, max_dest_rd_atomic, MAX_DEST_RD_ATOMIC)                                  \
    X(en_sqd_async_notify, en_sqd_async_notify, EN_SQD_ASYNC_NOTIFY)

/* ---- work requests ---- */

/* name, number; the highest one is the last */
#define WR_OPCODES_VERBS(X)                                                                        \
    X(RDMA_WRITE, 0)                                                                               \
    X(RDMA_WRITE_WITH_IMM, 1)                                                                      \
    X(SEND, 2)                                                                                     \
    X(SEND_WITH_IMM, 3)                                                                            \
    X(RDMA_READ, 4)                                                                                \
    X(ATOMIC_CMP_AND_SWP, 5)                                                                       \
    X(ATOMIC_FETCH_AND_ADD, 6)                                                                     \
    X(LOCAL_INV, 7)                                                                                \
    X(BIND_MW, 8)                                                                                  \
    X(SEND_WITH_INV, 9)                                                                            \
    X(ATOMIC_WRITE, 15)
#define WR_OPCODES(X)                                                                              \
    X(REG_MR, 10) /* ours: verbs have it in the kernel only */                                     \
    X(FLUSH, 14)  /* not in the headers of 2022 */                                                 \
    WR_OPCODES_VERBS(X)

enum wr_opcode {
#define X(name, number) WR_##name = (number),
    WR_OPCODES(X)
#undef X
        WR_OPCODE_MAX
};

#define WR_F_FENCE     1u
#define WR_F_SIGNALED  2u
#define WR_F_SOLICITED 4u
#define WR_F_INLINE    8u
#define WR_F_ALL       (WR_F_FENCE | WR_F_SIGNALED | WR_F_SOLICITED | WR_F_INLINE)

#endif
