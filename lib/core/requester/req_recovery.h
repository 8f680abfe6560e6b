/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss recovery of the requester: see recovery.h.
 */
#ifndef URNIC_REQ_RECOVERY_H
#define URNIC_REQ_RECOVERY_H

#include "recovery.h"
#include "retransmit.h"
#include "rx.h"
#include "send_queue.h"
#include "sr_read.h"
#include "sr_sender.h"

/* ---- sending ---- */

/* The packet's fields in addition to those of every RC packet; it is packet `index` of a message
 * with this number. */
static inline void recovery_describe(const struct qp *qp, struct wire_var *v, uint64_t number,
                                     uint32_t index)
{
    if (recovery_agreed(qp))
        sr_describe(qp, v, (uint32_t)number, index);
}

/* p has been put into a slot; `again`: it is a retransmission. */
static inline void recovery_sent(struct qp *qp, psn_t p, bool again, uint64_t now)
{
    if (qp->sr)
        sr_sent(qp, p, again, now);
}

/* How many packets the READ request at req.nxt is to ask for; 0 = all to the READ's end. */
static inline uint32_t recovery_read_part(const struct qp *qp)
{
    return qp->sr ? sr_read_part(qp) : 0;
}

/* ---- answers ---- */

/* Is the NAK at hand a selective one? Then sr_lost handles it. */
static inline bool recovery_selective(const struct qp *qp)
{
    return qp->sr && qp->sr->selective;
}

/* A response to w, the oldest READ with missing responses. The one for PSN `due` is missing. True:
 * handled. */
static inline bool recovery_read_early(struct rx *rx, struct qp *qp, struct swqe *w, psn_t due)
{
    return qp->sr && sr_read_early(rx, qp, w, due);
}

/* The number of early responses from una on; they are forgotten here. */
static inline uint32_t recovery_read_due(struct qp *qp)
{
    return qp->sr ? sr_read_due(qp) : 0;
}

/* una has moved within a READ: is there another gap? */
static inline void recovery_read_go_on(struct engine *e, struct qp *qp, uint64_t now)
{
    if (qp->sr)
        sr_read_go_on(e, qp, now);
}

/* una has moved by n PSNs. */
static inline void recovery_progress(struct qp *qp, uint32_t n, uint64_t now)
{
    if (qp->sr)
        sr_progress(qp, n, now);
}

/* Record a round trip, ns. */
static inline void recovery_round_trip(struct qp *qp, uint32_t rtt)
{
    if (qp->sr && rtt < qp->sr->rtt_min)
        qp->sr->rtt_min = rtt;
}

/* ---- retransmission ---- */

/* Retransmit all packets up to the last one sent. */
static inline void recovery_go_back(struct qp *qp)
{
    if (qp->sr) {
        qp->sr->end = qp->req.max;
        qp->sr->part_due = 0;
    }
}

/* After recovery_go_back: leave out the packets that the peer is known to have. */
static inline void recovery_round(struct qp *qp)
{
    if (qp->sr)
        sr_round(qp);
}

/* During retransmission, skip packets that the peer is known to have (selective repeat). */
static inline void recovery_skip(struct qp *qp)
{
    if (qp->sr)
        sr_skip(qp);
}

/* ns for which the ACK timer runs (TMR-01, LR-04, LR-10). */
static inline uint64_t recovery_timeout(const struct qp *qp)
{
    if (qp->req.adaptive)
        return rtx_adaptive(qp);
    return qp->sr ? sr_timeout(qp) : qp->t_ack;
}

/* The ACK timer has fired. */
static inline void recovery_timed_out(struct qp *qp)
{
    if (qp->sr)
        sr_timed_out(qp);
}

/* Does a retransmission cost a retry? With selective repeat, once within T of TMR-01 (LR-04). */
static inline bool recovery_charge(struct qp *qp, uint64_t now)
{
    return !qp->sr || sr_charge(qp, now);
}

#endif
