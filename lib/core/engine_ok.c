/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of the state that queue pairs share: the list of active queue pairs, numbers,
 * users of queues, the pool of records, the timing wheel.
 */
#include "engine_ok.h"

#include "cnp.h"
#include "cq.h"
#include "engine_priv.h"
#include "qp_ok.h"
#include "recovery.h"
#include "srq.h"

#define HOLDS(cond, name, ...)                                                                     \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return invariant_broken(out, NULL, name, __VA_ARGS__);                                 \
    } while (0)

/* Conditions on all queue pairs together. */
struct sums {
    uint32_t qps, active, timers, sr, records;
    uint64_t cqs, srqs;
};

static void add_qp(struct sums *s, const struct qp *qp)
{
    s->qps++;
    s->active += qp->is_active;
    s->timers += timer_armed(&qp->timer);
    s->sr += recovery_mode(qp) == RECOVER_SR;
    s->records += qp->nrecords;
    s->cqs += (qp->send_cq != NULL) + (qp->recv_cq != NULL);
    s->srqs += qp->srq != NULL;
    for (const struct rwqe *w = qp->resp.taken; w; w = w->next)
        s->srqs += w->srq != NULL;
}

static bool qps_ok(const struct engine *e, struct sums *s, struct invariant_report *out)
{
    uint32_t used = 0;
    for (uint32_t slot = 0; slot < e->fresh; slot++) {
        const struct qp *qp = e->table[slot];
        if (!qp)
            continue;
        used++;
        HOLDS(qp->slot == slot && !qp->dead, "number-place", "slot %u has queue pair 0x%06x of %u",
              slot, qp->qpn, qp->slot);
        if (!qp_ok(e, qp, true, out))
            return false;
        add_qp(s, qp);
    }
    HOLDS(used + e->nfree == e->fresh && e->fresh <= e->table_size, "number-count",
          "%u used, %u free, %u ever used of %u", used, e->nfree, e->fresh, e->table_size);
    if (e->gsi) {
        if (!qp_ok(e, e->gsi, true, out))
            return false;
        add_qp(s, e->gsi);
    }
    HOLDS(s->qps == e->nqps, "number-count", "%u queue pairs, %u counted", s->qps, e->nqps);
    HOLDS(s->sr == e->nsr, "repeat-count", "%u may do selective repeat, %u are counted", s->sr,
          e->nsr);
    return true;
}

static bool active_ok(const struct engine *e, const struct sums *s, struct invariant_report *out)
{
    uint32_t n = 0;
    struct qp *const *at = &e->active;
    for (; *at; at = &(*at)->active_next, n++)
        HOLDS((*at)->is_active && (*at)->active_at == at && n < s->active, "active-list",
              "place %u: queue pair 0x%06x, on the list %u", n, (*at)->qpn, (*at)->is_active);
    HOLDS(at == e->active_tail, "active-list", "its tail isn't the last of %u", n);
    HOLDS(n == s->active, "active-list", "%u are on it, %u say so", n, s->active);
    HOLDS(e->quantum_left <= ENGINE_QUANTUM && (e->active || !e->quantum_left), "active-quantum",
          "%u are left", e->quantum_left);
    return true;
}

/* Each record is either free or in the list of a queue pair. */
static bool pool_ok(const struct engine *e, const struct sums *s, struct invariant_report *out)
{
    const struct record_pool *p = &e->records;
    uint32_t n = 0, lingering = 0, records = s->records;
    for (const struct record *r = p->free; r; r = r->next, n++)
        HOLDS(n < p->nfree && r >= p->all && r < p->all + p->fresh && !r->pending, "record-free",
              "place %u, %u are free, %u were ever used", n, p->nfree, p->fresh);
    HOLDS(n + e->p.records - p->fresh == p->nfree, "record-free",
          "%u used before, %u never used, %u counted", n, e->p.records - p->fresh, p->nfree);
    struct qp *const *at = &e->linger;
    for (; *at; at = &(*at)->active_next, lingering++) {
        HOLDS((*at)->dead && (*at)->nrecords && (*at)->active_at == at && lingering < e->nlinger,
              "linger", "place %u: queue pair 0x%06x, dead %u, %u records", lingering, (*at)->qpn,
              (*at)->dead, (*at)->nrecords);
        records += (*at)->nrecords;
    }
    HOLDS(lingering == e->nlinger, "linger", "%u, %u are counted", lingering, e->nlinger);
    HOLDS(records + p->nfree == e->p.records, "record-owned", "%u in use, %u free of %u", records,
          p->nfree, e->p.records);
    return true;
}

static bool rq_ok(const struct rq *q, struct invariant_report *out)
{
    uint32_t posted = 0, nfree = 0;
    struct rwqe *const *at = &q->head;
    for (; *at && posted <= q->depth; at = &(*at)->next)
        posted++;
    HOLDS(posted == q->posted && at == q->tail, "shared-queue", "%u are posted, %u counted", posted,
          q->posted);
    for (const struct rwqe *w = q->free; w && nfree <= q->depth; w = w->next)
        nfree++;
    HOLDS(nfree == q->nfree && nfree + posted <= q->depth, "shared-queue",
          "%u are free, %u counted, %u posted of %u", nfree, q->nfree, posted, q->depth);
    return true;
}

/* Completion queues and shared receive queues count their users correctly. */
static bool queues_ok(const struct engine *e, const struct sums *s, struct invariant_report *out)
{
    uint64_t cqs = s->cqs, users = 0;
    uint32_t n = 0;
    for (const struct srq *q = e->srqs; q; q = q->next, n++) {
        if (!rq_ok(&q->rq, out))
            return false;
        users += q->users;
        cqs += q->cq != NULL;
        HOLDS(q->limit <= q->rq.depth, "shared-limit", "%u of %u", q->limit, q->rq.depth);
    }
    HOLDS(n == e->nsrqs, "queue-count", "%u shared receive queues, %u counted", n, e->nsrqs);
    HOLDS(users == s->srqs, "queue-users", "of shared receive queues: %llu, %llu counted",
          (unsigned long long)s->srqs, (unsigned long long)users);
    users = 0;
    n = 0;
    for (const struct cq *q = e->cqs; q; q = q->next, n++)
        users += q->users;
    HOLDS(n == e->ncqs, "queue-count", "%u completion queues, %u counted", n, e->ncqs);
    HOLDS(users == cqs, "queue-users", "of completion queues: %llu, %llu counted",
          (unsigned long long)cqs, (unsigned long long)users);
    return true;
}

bool engine_ok(const struct engine *e, struct invariant_report *out)
{
    struct sums sums = {0};
    uint32_t timers;
    if (!qps_ok(e, &sums, out) || !active_ok(e, &sums, out) || !pool_ok(e, &sums, out) ||
        !queues_ok(e, &sums, out))
        return false;
    HOLDS(timer_wheel_ok(&e->wheel, &timers), "timer-wheel", "tick %llu",
          (unsigned long long)e->wheel.clk);
    HOLDS(timers == sums.timers, "timer-wheel", "%u timers, %u are armed", timers, sums.timers);
    HOLDS(e->cnps == e->cnp->tail - e->cnp->head && e->cnps <= CNP_QUEUE, "cnp-queue",
          "head %u, tail %u, %u counted", e->cnp->head, e->cnp->tail, e->cnps);
    return true;
}
