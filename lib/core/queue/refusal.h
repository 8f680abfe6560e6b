/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reasons to refuse a request, and their consequences: NAK code, completion of the receive work
 * request in use, event. The table is appendix B of the catalogue, responder side.
 */
#ifndef URNIC_REFUSAL_H
#define URNIC_REFUSAL_H

#include "engine.h"

#define EVT_NONE (-1)

/* name, syndrome, status of the receive work request in use, event, text, which begins with the
 * rule's id */
#define REFUSALS(X)                                                                                \
    X(NONE, 0, WC_SUCCESS, EVT_NONE, "")                                                           \
    X(SEQUENCE, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                              \
      "RSP-06 opcode doesn't fit the message under way")                                           \
    X(DISABLED, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                              \
      "RSP-08 request isn't enabled on the queue pair")                                            \
    X(XRC_SRQ, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                               \
      "XRC-02 no shared receive queue of this number in the queue pair's domain")                  \
    X(RESOURCES, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                             \
      "RD-03 more READs and ATOMICs than max_dest_rd_atomic")                                      \
    X(PACKET_LEN, WIRE_SYN_NAK_INV, WC_LOC_LEN_ERR, EVT_QP_REQ_ERR,                                \
      "RSP-10 payload length is wrong for the opcode")                                             \
    X(TOO_LONG, WIRE_SYN_NAK_INV, WC_LOC_LEN_ERR, EVT_QP_REQ_ERR,                                  \
      "RSP-12 message is longer than the receive buffer")                                          \
    X(MSG_LEN, WIRE_SYN_NAK_INV, WC_LOC_LEN_ERR, EVT_QP_REQ_ERR,                                   \
      "RSP-15 message is longer than 2^31 octets")                                                 \
    X(WRITE_SUM, WIRE_SYN_NAK_INV, WC_LOC_LEN_ERR, EVT_QP_REQ_ERR,                                 \
      "RSP-16 payload doesn't add up to the length in the RETH")                                   \
    X(ALIGN, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                                 \
      "ATM-03 address of an atomic isn't a multiple of 8")                                         \
    X(FLUSH, WIRE_SYN_NAK_INV, WC_REM_INV_REQ_ERR, EVT_QP_REQ_ERR,                                 \
      "ATM-13 FLUSH asks for a placement or a selectivity that there is not")                      \
    X(RKEY, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                                    \
      "RSP-14 R_Key doesn't give this access")                                                     \
    X(REVOKED, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                                 \
      "RSP-17 region was invalidated under a WRITE")                                               \
    X(READ_REVOKED, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                            \
      "RD-07 region was invalidated under a READ")                                                 \
    X(READ_GONE, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                               \
      "MR-12 memory of a READ can't be reached")                                                   \
    X(REPLAY, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                                  \
      "RD-09 R_Key of a repeated READ isn't valid any more")                                       \
    X(TARGET_GONE, WIRE_SYN_NAK_ACCESS, WC_SUCCESS, EVT_QP_ACCESS_ERR,                             \
      "MR-12 memory of the region can't be reached")                                               \
    X(RECV_KEY, WIRE_SYN_NAK_OP, WC_LOC_PROT_ERR, EVT_NONE,                                        \
      "RSP-13 L_Key of a receive buffer doesn't give write access")                                \
    X(RECV_FORM, WIRE_SYN_NAK_OP, WC_LOC_QP_OP_ERR, EVT_NONE,                                      \
      "RSP-13 receive work request is malformed")                                                  \
    X(RECV_GONE, WIRE_SYN_NAK_OP, WC_LOC_PROT_ERR, EVT_NONE,                                       \
      "MR-12 memory of a receive buffer can't be reached")

enum refusal {
#define X(name, syn, status, ev, text) REFUSE_##name,
    REFUSALS(X)
#undef X
        REFUSE_MAX,
    /* not fatal: */
    REFUSE_RNR = REFUSE_MAX, /* RNR-01 */
};

struct refusal_info {
    uint8_t syndrome;
    uint8_t status; /* of the receive work request in use; WC_SUCCESS = it is flushed */
    int8_t event; /* event if no receive work request completes with the error (EVT-02); always for
                     SEQUENCE */
    const char *text;
};
extern const struct refusal_info refusals[REFUSE_MAX];

#endif
