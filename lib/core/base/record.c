/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool of records, their FIFOs, and the tokens that copies carry. Rules: RSP-24, RSP-25,
 * REQ-18.
 */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "recovery.h"
#include "rx.h"
#include "schedule.h"

int record_pool_init(struct record_pool *p, uint32_t size)
{
    if (size > RECORDS_MAX)
        return -EINVAL;
    p->all = aligned_alloc(64, size * sizeof(*p->all));
    if (!p->all)
        return -ENOMEM;
    p->nfree = size;
    return 0;
}

void record_pool_free(struct record_pool *p)
{
    free(p->all);
    *p = (struct record_pool){0};
}

static struct record_fifo *fifo_of(struct qp *qp, enum record_side side)
{
    return side == REC_RESP ? &qp->resp.recs : &qp->req.recs;
}

bool record_room(const struct engine *e, const struct qp *qp, unsigned n)
{
    return e->records.nfree >= n && qp->nrecords + n <= e->records.nfree;
}

struct record *record_new(struct engine *e, struct qp *qp, enum record_side side)
{
    struct record_pool *p = &e->records;
    struct record *r = p->free;
    uint64_t token;
    if (r) {
        p->free = r->next;
        token = r->token;
    } else {
        token = p->fresh++;
        r = &p->all[token];
    }
    p->nfree--;
    *r = (struct record){
        .qp = qp,
        .token = token,
        .side = (uint8_t)side,
    };
    struct record_fifo *f = fifo_of(qp, side);
    if (f->head)
        f->tail->next = r;
    else
        f->head = r;
    f->tail = r;
    qp->nrecords++;
    return r;
}

void record_hold(struct engine *e, struct record *r, const struct mem_ref *ref)
{
    r->hold = *ref;
    r->held = true;
    mem_hold(e->mem, ref);
}

struct engine_copy *record_copy(struct rx *rx, struct record *r, enum engine_copy_kind kind,
                                const uint8_t *src, const struct mem_piece *dst)
{
    struct engine_copy *c = &rx->copies[rx->ncopies++];
    *c = (struct engine_copy){
        .token = r->token | (uint64_t)rx->pkt.psn << RECORD_PSN_SHIFT,
        .src = src,
        .dst = *dst,
        .frame = rx->frame,
        .len = dst->len,
        .qpn = r->qp->qpn,
        .kind = (uint8_t)kind,
    };
    r->pending++;
    return c;
}

void record_release(struct engine *e, struct record *r)
{
    if (r->held)
        engine_mem_drop(e, &r->hold);
    r->qp->nrecords--;
    r->token += 1ull << RECORD_LIFE_SHIFT;
    r->pending = 0;
    r->next = e->records.free;
    e->records.free = r;
    e->records.nfree++;
}

void record_discard(struct qp *qp)
{
    for (struct record *r = qp->resp.recs.head; r; r = r->next)
        r->stale = true;
    for (struct record *r = qp->req.recs.head; r; r = r->next)
        r->stale = true;
}

/* Of several failures the one of the first packet counts. */
static void copy_failed(struct record *r, const struct engine_result *res)
{
    psn_t p = psn((uint32_t)(res->token >> RECORD_PSN_SHIFT));
    if (r->status && psn_diff(p, r->at) >= 0)
        return;
    r->status = res->status < 0 ? res->status : -EFAULT;
    if (r->side == REC_RESP ||
        !recovery_keeps_early(r->qp)) /* an early answer is counted at its gap */
        r->at = p;
}

struct record *record_result(struct engine *e, const struct engine_result *res)
{
    struct record *r = record_of(&e->records, res->token);
    if (!r || (r->token ^ res->token) >> RECORD_LIFE_SHIFT || !r->pending)
        return NULL; /* of an earlier life */
    if (!r->qp->dead)
        invariant_touch(e, r->qp);
    if (__builtin_expect(res->status, 0))
        copy_failed(r, res);
    if (--r->pending > 0) /* a record of several copies is no atomic's */
        return NULL;
    r->orig = res->orig;
    return fifo_of(r->qp, r->side)->head == r ? r : NULL;
}

bool record_live(struct engine *e, struct record *r)
{
    if (r->qp->dead)
        return false;
    if (r->stale)
        qp_activate(e, r->qp); /* a work request of this life may have waited for it to fail */
    return !r->stale;
}

bool record_idle(struct engine *e, struct qp *qp, enum record_side side)
{
    if (fifo_of(qp, side)->head)
        return false;
    if (!qp->dead)
        return true;
    if (!qp->nrecords)
        qp_reap(e, qp);
    return false;
}
