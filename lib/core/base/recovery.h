/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss recovery as the rest of the engine uses it: go-back-N, and the additions of sr.h. Only this
 * file, req_recovery.h and resp_recovery.h test whether a queue pair has a `struct sr`. Without
 * one, each function does go-back-N, which costs one test and no call. Rules: LR-01..LR-10, LR-15.
 */
#ifndef URNIC_RECOVERY_H
#define URNIC_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "qp.h"
#include "sr.h"

/* The requested enum engine_recovery; never RECOVER_DEFAULT. */
static inline uint8_t recovery_mode(const struct qp *qp)
{
    return qp->sr ? qp->sr->mode : RECOVER_GBN;
}

/* Does the queue pair keep early packets? Packets of a message then may not share a record. */
static inline bool recovery_keeps_early(const struct qp *qp)
{
    return qp->sr;
}

/* Do both ends do selective repeat? */
static inline bool recovery_agreed(const struct qp *qp)
{
    return qp->sr && qp->sr->agreed;
}

/* Does the peer count as one that knows only go-back-N (LR-04)? */
static inline bool recovery_plain(const struct qp *qp)
{
    return !qp->sr || sr_plain(qp);
}

/* Entering RTS. */
static inline void recovery_begin(struct qp *qp, psn_t sq_psn)
{
    if (qp->sr)
        sr_begin(qp, sq_psn);
}

/* Start a message that uses a receive of the peer: *number becomes the number of that receive
 * (LR-06). Unchanged with go-back-N. */
static inline void recovery_number(struct qp *qp, uint64_t *number)
{
    if (qp->sr)
        *number = qp->sr->sends++;
}

/* Packets are about to be sent: say hello, if the peer hasn't. */
static inline void recovery_hello(struct engine *e, struct qp *qp, uint64_t now)
{
    if (qp->sr)
        sr_hello(e, qp, now);
}

/* Is a hello waiting, which goes before everything else? */
static inline bool recovery_hello_due(const struct qp *qp)
{
    return qp->sr && sr_hello_due(qp);
}

/* Is there a selective NAK or a hello to send? sr_emit does it. */
static inline bool recovery_tx_ready(const struct qp *qp)
{
    return qp->sr && sr_tx_ready(qp);
}

/* Entering ERR: no more hellos or selective NAKs. */
static inline void recovery_stop(struct qp *qp)
{
    if (qp->sr)
        sr_stop(qp);
}

/* LR-15: the time until which NAKs are held; TIMER_NEVER = they aren't. */
static inline uint64_t recovery_hold_at(const struct qp *qp)
{
    return qp->sr ? qp->sr->hold_at : TIMER_NEVER;
}

#endif
