/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss recovery of the responder: see recovery.h.
 */
#ifndef URNIC_RESP_RECOVERY_H
#define URNIC_RESP_RECOVERY_H

#include "recovery.h"
#include "rx.h"
#include "sr_receiver.h"
#include "srq.h"

/* Handle a request after the expected one. True: handled; no ordinary NAK. */
static inline bool recovery_rx_early(struct rx *rx, struct qp *qp)
{
    return qp->sr && sr_rx_early(rx, qp);
}

/* Are early packets kept? */
static inline bool recovery_has_early(const struct qp *qp)
{
    return qp->sr && qp->sr->nearly;
}

/* Count in the early packets that are next. Some may have waited for records. */
static inline void recovery_drain(struct engine *e, struct qp *qp, uint64_t now)
{
    if (recovery_has_early(qp))
        sr_drain(e, qp, now);
}

/* The expected packet has been placed. */
static inline void recovery_placed(struct rx *rx, struct qp *qp)
{
    if (qp->sr)
        sr_placed(rx, qp);
}

/* The receive work request of the next message, NULL = none. */
static inline struct rwqe *recovery_take(struct engine *e, struct qp *qp)
{
    return qp->sr ? sr_take(e, qp) : resp_take(e, qp);
}

/* A record of PSN p has failed. True: the packet is early, and the caller has nothing else to do.
 */
static inline bool recovery_copy_failed(struct qp *qp, psn_t p)
{
    if (!qp->sr || psn_diff(p, qp->resp.done_epsn) <= 0)
        return false;
    sr_copy_failed(qp, p);
    return true;
}

/* Did a copy of this packet fail before its turn came? */
static inline bool recovery_broken(const struct qp *qp, psn_t p)
{
    return qp->sr && qp->sr->broken && psn_eq(p, qp->sr->broken_psn);
}

/* Release held NAKs if that time has come. */
static inline void recovery_expire(struct engine *e, struct qp *qp, uint64_t now)
{
    if (recovery_hold_at(qp) <= now)
        sr_expire(e, qp);
}

#endif
