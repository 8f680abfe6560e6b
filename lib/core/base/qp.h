/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A queue pair: identity, state, attributes, and its two halves.
 */
#ifndef URNIC_QP_H
#define URNIC_QP_H

#include <stddef.h>

#include "engine.h"
#include "psn.h"
#include "recorder.h"
#include "req.h"
#include "resp.h"
#include "timer.h"

/* XRC-01: a queue pair of XRC is one of RC that lacks a half, and names a shared queue. */
enum qp_xrc { XRC_NOT, XRC_INI, XRC_TGT };

struct qp_stats {
    uint64_t tx_packets, rx_packets, tx_bytes, rx_bytes;
    uint32_t retransmits, timeouts, naks, rnr_naks;
};

struct qp {
    /* read for every received packet: one cache line */
    uint32_t qpn, dest_qpn;
    uint8_t type, state; /* enum qp_type, enum qp_state */
    uint8_t mtu_shift;
    uint8_t is_active; /* on engine.active */
    uint8_t dead;      /* destroyed; lives on for its records */
    uint8_t access;    /* MEM_REMOTE_* that requests may use */
    uint8_t credits;   /* end-to-end credits are honoured and given (ACK-13) */
    uint8_t xrc;       /* enum qp_xrc: of type RC, but only one half of it */
    uint16_t pkey;     /* of the table, by pkey_index */
    uint16_t nrecords;
    uint32_t pd;
    struct wire_addr lip, rip;
    struct qp *active_next; /* next active queue pair; of a dead one, next lingering one */

    struct req req;
    struct resp resp;

    struct wire_tmpl tmpl;
    uint8_t tclass, sq_sig_all, drain_wanted, drained;
    uint16_t ip_id;
    uint8_t ect;           /* ECN field of data, 0 = as tclass says */
    uint8_t cc_own;        /* cc_conf isn't the device's */
    uint8_t mute;          /* GID-04: sends nothing, timers stopped */
    uint8_t id_step;       /* added to ip_id for each packet: 0 or 1 */
    struct qp **active_at; /* pointer to it in the list of active or lingering ones */

    struct cq *send_cq, *recv_cq;
    struct srq *srq;
    void *arg;
    uint64_t t_ack;      /* TMR-01: ns, 0 = no timer */
    struct timer timer;  /* one for all deadlines of the queue pair */
    struct sr *sr;       /* NULL = plain go-back-N */
    struct limiter *lim; /* NULL = nothing limits it */
    uint64_t cnp_at;     /* CC-04: when it last made a CNP */
    struct qp_stats stats;
    struct recorder rec;
    uint32_t qkey;
    uint32_t slot;
    struct limiter_conf *cc_conf;
    uint32_t max_inline;
    uint16_t max_send_sge, max_recv_sge;
    uint32_t max_send_wr, max_recv_wr;
    struct engine_qp_attr attr;
    char *error;      /* set by recorder_error */
    struct srq *xsrq; /* XRC: the shared queue that the packet at hand names, or NULL */
    uint32_t xsrqn;   /* XRC: number of the shared queue of the current message */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct qp, req) <= 128, "what every packet reads stays within two lines");
_Static_assert(offsetof(struct qp, stats) / 64 == offsetof(struct qp, rec.n) / 64,
               "what every packet counts is one line");
_Static_assert(sizeof(struct qp) <= 1024, "state of an idle queue pair");

static inline uint32_t qp_mtu(const struct qp *qp)
{
    return 1u << qp->mtu_shift;
}

/* Does it have one peer? */
static inline bool qp_connected(const struct qp *qp)
{
    return qp->type == QP_RC || qp->type == QP_UC;
}

/* Its type as its owner knows it. */
static inline enum qp_type qp_type_of(const struct qp *qp)
{
    return qp->xrc == XRC_NOT   ? (enum qp_type)qp->type
           : qp->xrc == XRC_INI ? QP_XRC_INI
                                : QP_XRC_TGT;
}

/* The opcode of a reliable queue pair's packet. */
static inline uint8_t qp_opcode(const struct qp *qp, unsigned op)
{
    return qp->xrc ? WIRE_OPCODE(WIRE_XRC, op) : WIRE_OPCODE(WIRE_RC, op);
}

#endif
