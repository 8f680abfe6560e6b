/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat of READ responses (LR-08): a response after a gap is placed by its PSN, and a
 * READ request for the gap alone is sent. See sr.h.
 */
#include "sr_read.h"

#include "completer.h"
#include "engine_priv.h"
#include "recorder.h"
#include "retransmit.h"
#include "rx.h"
#include "schedule.h"
#include "send_queue.h"
#include "sr.h"

#define ASKS 2u /* parts asked for within a round trip */

static uint64_t *word(struct sr *s, psn_t p)
{
    return &s->got[p.v / 64 % (SR_WINDOW / 64)];
}

static bool has(struct sr *s, psn_t p)
{
    return *word(s, p) >> (p.v % 64) & 1;
}

/* Request the packets from una to the first one that has come, if allowed now. */
static void ask(struct engine *e, struct qp *qp, uint64_t now)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    if (!psn_eq(r->nxt, r->max) || r->rnr_wait || r->fail)
        return; /* another retransmission is under way: leave it to the time-out */
    if (now - s->asked_at >= rtx_round_trip(qp)) {
        s->asked_at = now;
        s->asks = 0;
    } else if (psn_eq(s->part, r->una) || s->asks == ASKS) {
        return;
    }
    s->asks++;
    s->part_due = 1;
    s->part = s->part_end = r->una;
    while (!has(s, s->part_end))
        s->part_end = psn_add(s->part_end, 1);
    r->rtt_at = 0; /* an answer could be to either transmission */
    recorder_note(e, qp, NOTE_GO_BACK, s->part, s->part_end.v);
    rtx_place(qp, r->una);
    qp_activate(e, qp);
}

bool sr_read_early(struct rx *rx, struct qp *qp, struct swqe *w, psn_t due)
{
    struct sr *s = qp->sr;
    psn_t p = psn(rx->pkt.psn);
    uint32_t k = psn_ahead(p, w->first), ahead = psn_ahead(p, due);
    if (!s->agreed || w->opcode != WR_RDMA_READ || rx->op->flags & WIRE_F_ATOMIC ||
        psn_diff(p, due) <= 0 || ahead >= SR_WINDOW || k >= w->npsn ||
        !comp_fits_read(qp, w, k, rx))
        return false;
    if (!has(s, p)) {
        if (!comp_read_early(rx, qp, w, k))
            return false;
        *word(s, p) |= 1ull << (p.v % 64);
        s->ngot++;
        engine_count(rx->e, ENGINE_C_rx_placed_early);
    }
    ask(rx->e, qp, rx->now);
    return true;
}

uint32_t sr_read_due(struct qp *qp)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    uint32_t n = 0;
    while (s->ngot && has(s, psn_add(r->una, n))) {
        *word(s, psn_add(r->una, n)) &= ~(1ull << ((r->una.v + n) % 64));
        s->ngot--;
        n++;
    }
    return n;
}

void sr_read_go_on(struct engine *e, struct qp *qp, uint64_t now)
{
    if (qp->sr->ngot)
        ask(e, qp, now);
}

uint32_t sr_read_part(const struct qp *qp)
{
    const struct sr *s = qp->sr;
    if (!s->part_due || !psn_eq(s->part, qp->req.nxt))
        return 0;
    return psn(s->part_end.v - s->part.v).v;
}
