/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports of ICMP, for the flight recorders. Rule: CM-39.
 */
#include <string.h>

#include "engine_priv.h"
#include "recorder.h"

struct icmp {
    struct engine *e;
    const struct wire_addr *to;
    int error;
};

/* A repeated report takes no other event's place: a forger can send it without end. */
static bool icmp_one(void *arg, struct qp *qp)
{
    const struct icmp *i = arg;
    const struct note_event *last =
        &qp->rec.ev[(qp->rec.n + RECORDER_EVENTS - 1) % RECORDER_EVENTS];
    if (qp->state < QPS_RTR || qp->state == QPS_ERR ||
        memcmp(&qp->attr.av.dgid, i->to, sizeof(qp->attr.av.dgid)) != 0)
        return true;
    if (qp->rec.n == 0 || last->what != NOTE_ICMP || last->v != (uint32_t)i->error)
        recorder_note(i->e, qp, NOTE_ICMP, qp->req.una, (uint32_t)i->error);
    return true;
}

uint32_t engine_icmp(struct engine *e, const struct wire_addr *to, int error, uint32_t at,
                     unsigned budget)
{
    struct icmp i = {e, to, error};
    return engine_qp_walk(e, at, budget, icmp_one, &i);
}
