/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss recovery as the rest of the engine uses it: go-back-N, and the additions of sr.h. Only this
 * file tests whether a queue pair has a `struct sr`. Without one, each function does go-back-N,
 * which costs one test and no call. Rules: LR-01..LR-10, LR-15.
 */
#ifndef URNIC_RECOVERY_H
#define URNIC_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine_rx.h"
#include "qp.h"
#include "retransmit.h"
#include "sr.h"
#include "sr_read.h"
#include "sr_sender.h"
#include "srq.h"

/* ---- mode ---- */

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

/* ---- requester ---- */

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

/* ---- responder ---- */

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

/* Is there a selective NAK or a hello to send? sr_emit does it. */
static inline bool recovery_tx_ready(const struct qp *qp)
{
    return qp->sr && sr_tx_ready(qp);
}

/* Is a hello waiting, which goes before everything else? */
static inline bool recovery_hello_due(const struct qp *qp)
{
    return qp->sr && sr_hello_due(qp);
}

/* Entering ERR: no more hellos or selective NAKs. */
static inline void recovery_stop(struct qp *qp)
{
    if (qp->sr)
        sr_stop(qp);
}

/* ---- time ---- */

/* LR-15: the time until which NAKs are held; TIMER_NEVER = they aren't. */
static inline uint64_t recovery_hold_at(const struct qp *qp)
{
    return qp->sr ? qp->sr->hold_at : TIMER_NEVER;
}

/* Release held NAKs if that time has come. */
static inline void recovery_expire(struct engine *e, struct qp *qp, uint64_t now)
{
    if (recovery_hold_at(qp) <= now)
        sr_expire(e, qp);
}

#endif
