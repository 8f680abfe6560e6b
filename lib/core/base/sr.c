/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat: life, and agreement with the peer. See sr.h.
 */
#include "sr.h"

#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "limiter.h"
#include "schedule.h"

#define HELLOS_MAX   8u
#define HELLOS_PLAIN 3u      /* hellos without an answer after which the peer is plain */
#define HELLO_WAIT   100000u /* ns until the second hello, then four times as long each */

/* ---- life ---- */

int sr_start(struct engine *e, struct qp *qp)
{
    unsigned mode = qp->attr.recovery;
    if (mode == RECOVER_DEFAULT)
        mode = (unsigned)qp->cc_conf->conf.v[CC_P_recovery];
    sr_free(e, qp);
    if (qp->type != QP_RC || qp->xrc || mode <= RECOVER_GBN)
        return 0;
    qp->sr = calloc(1, sizeof(*qp->sr));
    if (!qp->sr)
        return -ENOMEM;
    qp->sr->mode = (uint8_t)mode;
    qp->sr->agreed = mode == RECOVER_SR && qp->attr.recovery_agreed;
    qp->sr->hold_at = TIMER_NEVER;
    e->nsr += mode == RECOVER_SR;
    return 0;
}

void sr_begin(struct qp *qp, psn_t sq_psn)
{
    struct sr *s = qp->sr;
    s->high = s->scan = s->end = s->recover = s->gap = s->plain = sq_psn;
    s->rtt_min = UINT32_MAX;
}

void sr_stop(struct qp *qp)
{
    struct sr *s = qp->sr;
    s->sack_head = s->sack_tail;
    s->hold_at = TIMER_NEVER;
    s->hello_owed = 0;
}

void sr_free(struct engine *e, struct qp *qp)
{
    if (!qp->sr)
        return;
    e->nsr -= qp->sr->mode == RECOVER_SR;
    free(qp->sr);
    qp->sr = NULL;
}

/* ---- agreement ---- */

void sr_hello(struct engine *e, struct qp *qp, uint64_t now)
{
    struct sr *s = qp->sr;
    if (s->mode != RECOVER_SR || s->agreed || s->hellos >= HELLOS_MAX || now < s->hello_at)
        return;
    s->hello_at = now + ((uint64_t)HELLO_WAIT << 2 * s->hellos);
    s->hellos++;
    s->hello_owed = 1;
    qp_activate(e, qp);
}

bool sr_hello_due(const struct qp *qp)
{
    return qp->sr->hello_owed;
}

bool sr_plain(const struct qp *qp)
{
    const struct sr *s = qp->sr;
    return s->mode != RECOVER_SR || (!s->agreed && s->hellos >= HELLOS_PLAIN);
}

bool sr_tx_ready(const struct qp *qp)
{
    const struct sr *s = qp->sr;
    return s->hello_owed || (s->sack_head != s->sack_tail && s->hold_at == TIMER_NEVER);
}
