/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of a queue pair, one name each. The sender's and the receiver's windows, the
 * timers, the records, the work queues; and for everything that waits there is an event to end the
 * wait.
 */
#include "qp_ok.h"

#include "engine_priv.h"
#include "limiter.h"
#include "rd_ring.h"
#include "recovery.h"
#include "resp_commit.h"
#include "resp_tx.h"
#include "send_queue.h"
#include "sr_ok.h"
#include "srq.h"

#define LOOK 64u /* list entries that a partial check follows */

struct look {
    const struct engine *e;
    const struct qp *qp;
    bool whole;
    struct invariant_report *out;
    /* found on the way */
    unsigned live[2], stale[2]; /* records of each side; `all_records`: these are all */
    unsigned reads;             /* records that carry out a READ or ATOMIC */
    bool all_records;
    bool sending; /* frames of it are between engine_tx and engine_sent */
};

/* Within a function of a look `l`: the invariant `name` says that `cond` holds. */
#define HOLDS(cond, name, ...)                                                                     \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return invariant_broken(l->out, l->qp, name, __VA_ARGS__);                             \
    } while (0)

/* Does the queue pair's sender work? */
static bool sends(const struct qp *qp)
{
    return qp->state == QPS_RTS || qp->state == QPS_SQD;
}

/* Does its receiver work? */
static bool receives(const struct qp *qp)
{
    return qp->state >= QPS_RTR && qp->state != QPS_ERR;
}

/* Is the queue pair in the round of senders, or will it return there, for instance by its pacing
 * timer? */
static bool comes_back(const struct look *l)
{
    const struct qp *qp = l->qp;
    return qp->is_active || qp->mute || l->sending || (qp->lim && qp->lim->waiting);
}

/* una <= p <= max? With a READ they may be half of all PSNs apart. */
static bool in_flight(const struct req *r, psn_t p)
{
    return psn_ahead(p, r->una) <= psn_ahead(r->max, r->una);
}

/* ---- records ---- */

static bool fifo_ok(struct look *l, enum record_side side)
{
    const struct qp *qp = l->qp;
    const struct record_fifo *f = side == REC_RESP ? &qp->resp.recs : &qp->req.recs;
    const struct record *r = f->head;
    for (unsigned n = 0; r; r = r->next, n++) {
        if (n == LOOK && !l->whole) {
            l->all_records = false;
            return true;
        }
        HOLDS(r->qp == qp && r->side == side, "record-owner", "record %u of side %u is of side %u",
              n, side, r->side);
        HOLDS(r->next || r == f->tail, "record-tail", "record %u of side %u is the last", n, side);
        l->stale[side] += r->stale;
        l->live[side] += !r->stale;
        l->reads += !r->stale && side == REC_RESP && qp_connected(qp) &&
                    (r->action == ACT_READ || r->action == ACT_ATOMIC);
    }
    /* A record without pending copies has been executed. */
    HOLDS(!f->head || f->head->pending, "record-waits", "side %u, psn 0x%06x", side,
          f->head->psn.v);
    return true;
}

static bool records_ok(struct look *l)
{
    l->all_records = true;
    if (!fifo_ok(l, REC_RESP) || !fifo_ok(l, REC_COMP))
        return false;
    unsigned n = l->live[0] + l->live[1] + l->stale[0] + l->stale[1];
    HOLDS(!l->all_records || n == l->qp->nrecords, "record-count", "%u in the lists, %u counted", n,
          l->qp->nrecords);
    return true;
}

/* ---- the sender ---- */

/* head <= cur <= started <= tail <= head + depth. */
static bool send_queue_ok(struct look *l)
{
    const struct req *r = &l->qp->req;
    uint32_t cur = r->cur - r->head, started = r->started - r->head, used = r->tail - r->head;
    uint32_t rd = r->rd_first - r->head;
    HOLDS(cur <= started && started <= used && used <= r->depth, "send-queue-order",
          "head %u, cur +%u, started +%u, tail +%u, depth %u", r->head, cur, started, used,
          r->depth);
    HOLDS(rd <= started, "read-first", "head %u, first READ without answers +%u, started +%u",
          r->head, rd, started);
    return true;
}

/* done <= una <= nxt <= max. */
static bool psn_order_ok(struct look *l)
{
    const struct req *r = &l->qp->req;
    uint32_t nxt = psn_ahead(r->nxt, r->una), max = psn_ahead(r->max, r->una);
    HOLDS(psn_diff(r->una, r->done) >= 0 && nxt <= max && max <= PSN_HALF, "psn-order",
          "done 0x%06x, una 0x%06x, nxt 0x%06x, max 0x%06x", r->done.v, r->una.v, r->nxt.v,
          r->max.v);
    return true;
}

/* nxt is packet pkt of the work request at cur, or after all started ones. */
static bool place_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    if (r->cur == r->started) {
        HOLDS(r->pkt == 0 && psn_eq(r->nxt, r->max), "send-place",
              "all is sent: pkt %u, nxt 0x%06x, max 0x%06x", r->pkt, r->nxt.v, r->max.v);
        return true;
    }
    const struct swqe *w = req_wqe(qp, r->cur);
    HOLDS(w->flags & SWQE_CHECKED, "send-started", "work request %u has no PSN", r->cur);
    HOLDS(r->pkt < w->npsn && psn_eq(psn_add(w->first, r->pkt), r->nxt), "send-place",
          "first 0x%06x, pkt %u of %u, nxt 0x%06x", w->first.v, r->pkt, w->npsn, r->nxt.v);
    return true;
}

/* Work requests that have been started follow each other without a gap in PSNs; READs and ATOMICs
 * among them, and answers that are due, are counted. */
static bool started_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    unsigned rd_out = 0;
    uint32_t due = 0;
    bool open = false;
    if (r->started - r->head > LOOK && !l->whole)
        return true;
    for (uint32_t i = r->head; i != r->started; i++) {
        const struct swqe *w = req_wqe(qp, i);
        psn_t end = psn_add(w->first, w->npsn);
        HOLDS(i + 1 == r->started || psn_eq(req_wqe(qp, i + 1)->first, end), "send-gap",
              "work request %u ends at 0x%06x, the next one begins at 0x%06x", i, end.v,
              req_wqe(qp, i + 1)->first.v);
        if (!swqe_is_rd(w))
            continue;
        rd_out++;
        /* How much of it has been sent and isn't answered. A READ may be half of all PSNs long. */
        uint32_t begin = psn_diff(w->first, r->una) > 0 ? psn_ahead(w->first, r->una) : 0;
        uint32_t gone = begin ? 0 : psn_ahead(r->una, w->first);
        uint32_t stop = begin + (gone < w->npsn ? w->npsn - gone : 0);
        uint32_t sent = psn_ahead(r->max, r->una);
        if (stop > sent)
            stop = sent;
        due += stop > begin ? stop - begin : 0;
        if (!open && gone < w->npsn) {
            open = true;
            HOLDS(r->rd_first == i, "read-first", "READ %u lacks answers, %u is said to be first",
                  i, r->rd_first);
        }
    }
    HOLDS(open || r->rd_first == r->started, "read-first", "none lacks answers, %u is said to be",
          r->rd_first);
    HOLDS(rd_out == r->rd_out, "read-count", "%u are under way, %u are counted", rd_out, r->rd_out);
    HOLDS(due == r->rd_psns, "read-psns", "%u answers are due, %u are counted", due, r->rd_psns);
    return true;
}

/* No more is in flight than the window allows. */
static bool window_ok(struct look *l)
{
    const struct req *r = &l->qp->req;
    uint32_t out = psn_ahead(r->max, r->una), most = l->e->p.window;
    HOLDS(r->window > 0 && r->window <= most, "window-size", "%u of %u", r->window, most);
    HOLDS(r->rd_psns <= out && out - r->rd_psns <= most, "window",
          "una 0x%06x, max 0x%06x, answers due %u, window %u", r->una.v, r->max.v, r->rd_psns,
          most);
    HOLDS(r->rd_out <= l->qp->attr.max_rd_atomic, "read-limit", "%u READs and ATOMICs of %u",
          r->rd_out, l->qp->attr.max_rd_atomic);
    return true;
}

/* Answered requests have completed; `done` waits only for copies. */
static bool retired_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    const struct record *tail = r->recs.head ? r->recs.tail : NULL;
    if (tail && !tail->stale)
        HOLDS(psn_eq(tail->psn, r->una), "done-waits", "una 0x%06x, the last record's psn 0x%06x",
              r->una.v, tail->psn.v);
    else
        HOLDS(psn_eq(r->done, r->una), "done-waits", "no record: done 0x%06x, una 0x%06x",
              r->done.v, r->una.v);
    if (r->head == r->started)
        return true;
    const struct swqe *w = req_wqe(qp, r->head);
    HOLDS(!w->npsn || w->error || psn_ahead(r->done, w->first) < w->npsn, "send-completed",
          "work request %u, first 0x%06x, %u PSNs, done 0x%06x", r->head, w->first.v, w->npsn,
          r->done.v);
    return true;
}

static bool retries_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    HOLDS(r->retry_left <= qp->attr.retry_cnt && r->rnr_left <= qp->attr.rnr_retry, "retries-left",
          "%u of %u, after RNR NAKs %u of %u", r->retry_left, qp->attr.retry_cnt, r->rnr_left,
          qp->attr.rnr_retry);
    HOLDS(in_flight(r, r->again), "sent-again", "una 0x%06x, again 0x%06x, max 0x%06x", r->una.v,
          r->again.v, r->max.v);
    HOLDS(in_flight(r, r->seen), "answers-seen", "una 0x%06x, seen 0x%06x, max 0x%06x", r->una.v,
          r->seen.v, r->max.v);
    HOLDS(!r->fail || r->recs.head, "failure-waits", "status %u waits for no copy", r->fail);
    HOLDS(!r->rtt_at || in_flight(r, r->rtt_psn), "round-trip", "of psn 0x%06x, max 0x%06x",
          r->rtt_psn.v, r->max.v);
    return true;
}

/* ACK-15: at most one packet of one message has been sent without credit. */
static bool credits_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    if (!qp->credits || r->head == r->started)
        return true;
    const struct swqe *w = req_wqe(qp, r->started - 1);
    int32_t excess = psn_diff(psn(r->ssn), psn(r->lsn));
    bool sent = psn_diff(r->max, w->first) > 0;
    HOLDS(excess <= (sent ? 1 : 2), "credits", "ssn %u, lsn %u", r->ssn, r->lsn);
    return true;
}

/* The timers of retransmit.c run when something waits for them, and only then. */
static bool timers_wait_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    HOLDS(r->rnr_wait == (r->rnr_at != TIMER_NEVER), "rnr-timer", "waiting %u, until %llu",
          r->rnr_wait, (unsigned long long)r->rnr_at);
    HOLDS(r->ack_at == TIMER_NEVER || (r->obliged && !r->rnr_wait), "ack-timer",
          "it runs, and nothing is to be answered: obliged %u, waiting after RNR NAK %u",
          r->obliged, r->rnr_wait);
    HOLDS(!r->obliged || (!psn_eq(r->ob_end, r->una) && in_flight(r, r->ob_end)), "ack-obliged",
          "una 0x%06x, to be answered up to 0x%06x, max 0x%06x", r->una.v, r->ob_end.v, r->max.v);
    HOLDS(!r->obliged || r->ack_at != TIMER_NEVER || !qp->t_ack || l->sending || qp->mute ||
              r->fail,
          "ack-timer", "it stands, and una 0x%06x is to be answered", r->una.v);
    return true;
}

/* Each outstanding, retransmitted or posted work request has an event that continues it. */
static bool progress_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    if (r->fail || r->rnr_wait || comes_back(l))
        return true;
    HOLDS(psn_eq(r->una, r->max) || r->obliged, "send-forgotten",
          "una 0x%06x, max 0x%06x: no answer is asked for", r->una.v, r->max.v);
    bool again = !psn_eq(r->nxt, r->max) && (psn_ahead(r->nxt, r->una) < r->window || r->asking);
    HOLDS(!again || (r->cur != r->started && req_wqe(qp, r->cur)->error), "send-forgotten",
          "nxt 0x%06x, max 0x%06x: to be sent again", r->nxt.v, r->max.v);
    HOLDS(qp->state != QPS_RTS || r->head != r->started || r->started == r->tail || r->recs.head,
          "send-forgotten", "work request %u is posted", r->started);
    return true;
}

/* All conditions on the sender of a reliable queue pair. */
static bool sender_ok(struct look *l)
{
    return place_ok(l) && started_ok(l) && window_ok(l) && retired_ok(l) && retries_ok(l) &&
           credits_ok(l) && timers_wait_ok(l) && progress_ok(l);
}

/* ---- the receiver ---- */

/* Work requests that the queue pair has taken: the list is whole, and holds those in use. */
static bool taken_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct resp *r = &qp->resp;
    const struct rq *q = r->rq;
    const struct rwqe *w = r->taken;
    uint32_t n = 0;
    bool found = !r->wqe;
    for (; w && (l->whole || n < LOOK); w = w->next) {
        found = found || w == r->wqe;
        HOLDS(w->next || r->taken_tail == &w->next, "receives-taken", "the end of %u", n + 1);
        n++;
    }
    if (w)
        return true;
    HOLDS(r->taken || r->taken_tail == &r->taken, "receives-taken", "none, and an end");
    HOLDS(found, "receives-taken", "that of the message under way isn't one of %u", n);
    if (qp->srq || qp->xrc)
        return true;
    HOLDS(q->nfree + q->posted + n == q->depth, "receive-queue",
          "%u free, %u posted, %u taken of %u", q->nfree, q->posted, n, q->depth);
    HOLDS(qp->state == QPS_RESET || r->rq_tail - r->rq_head == q->posted + n, "receive-queue",
          "posted %u, completed %u; %u wait, %u are taken", r->rq_tail, r->rq_head, q->posted, n);
    return true;
}

/* Validation is ahead of execution by the packets of the records between. */
static bool frontier_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct resp *r = &qp->resp;
    HOLDS(qp->type != QP_RC || psn_diff(r->epsn, r->done_epsn) >= 0, "receive-order",
          "executed 0x%06x, accepted 0x%06x", r->done_epsn.v, r->epsn.v);
    HOLDS(qp->type != QP_RC || r->fatal || !l->all_records || l->live[REC_RESP] ||
              psn_eq(r->epsn, r->done_epsn),
          "receive-waits", "no record: executed 0x%06x, accepted 0x%06x", r->done_epsn.v,
          r->epsn.v);
    HOLDS(r->in_msg != MSG_WRITE || r->msg_off <= r->msg_len, "receive-message",
          "%u octets of a WRITE of %u", r->msg_off, r->msg_len);
    HOLDS(r->in_msg != MSG_SEND || !r->wqe || r->msg_off <= r->wqe->room, "receive-message",
          "%u octets of a SEND into %llu", r->msg_off,
          r->wqe ? (unsigned long long)r->wqe->room : 0);
    HOLDS(r->in_msg != MSG_SEND || r->wqe || r->fatal, "receive-message",
          "a SEND without a receive");
    HOLDS(r->fatal != FATAL_OWED || (r->nak_owed && r->nak_owed != WIRE_SYN_NAK_SEQ) ||
              qp->type != QP_RC,
          "fatal-nak", "it is owed, and a NAK of kind 0x%02x would be sent", r->nak_owed);
    return true;
}

/* tail - live <= tx <= ready <= tail, and replays are counted. */
static bool reads_ok(struct look *l)
{
    const struct resp *r = &l->qp->resp;
    struct rd_ring *ring = r->rd;
    uint32_t replays = 0, accepted, executed;
    if (!ring)
        return true;
    accepted = ring->tail - ring->tx;
    executed = ring->ready - ring->tx;
    HOLDS(executed <= accepted && accepted <= ring->live && ring->live <= ring->mask + 1,
          "answers-order", "tx %u, ready +%u, tail +%u, live %u of %u", ring->tx, executed,
          accepted, ring->live, ring->mask + 1);
    for (uint32_t i = 1; i <= ring->live; i++) {
        const struct rd_res *res = rd_entry(ring, ring->tail - i);
        bool busy = res->replay || (i <= accepted && i > accepted - executed);
        replays += res->replay;
        HOLDS(!busy ||
                  (res->tx.first <= res->tx.next && res->tx.next < res->tx.end &&
                   res->tx.end <= res->npsn) ||
                  wire_opcodes[res->opcode].flags & WIRE_F_ATOMIC,
              "answer-part", "psn 0x%06x, packets %u..%u of %u, next %u", res->psn.v, res->tx.first,
              res->tx.end, res->npsn, res->tx.next);
    }
    HOLDS(replays == ring->replays, "answers-again", "%u are, %u are counted", replays,
          ring->replays);
    HOLDS(r->reads || (ring->tx == ring->ready && !ring->replays), "answers-known",
          "tx %u, ready %u, again %u", ring->tx, ring->ready, ring->replays);
    HOLDS(r->fatal || !l->all_records || !receives(l->qp) || l->reads == ring->tail - ring->ready,
          "answers-waiting", "%u records, %u in the ring", l->reads, ring->tail - ring->ready);
    return true;
}

/* A responder that owes an answer will get its turn to send it. */
static bool answers_sent_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct resp *r = &qp->resp;
    HOLDS(!resp_tx_ready(qp) || comes_back(l), "answer-forgotten",
          "ACK %u, NAK 0x%02x, answers to READs %u, selective NAK or hello %u", r->ack_owed,
          r->nak_owed, r->rd ? r->rd->ready - r->rd->tx + r->rd->replays : 0,
          recovery_tx_ready(qp));
    return true;
}

static bool receiver_ok(struct look *l)
{
    return frontier_ok(l) && reads_ok(l) && answers_sent_ok(l);
}

/* ---- the whole queue pair ---- */

/* The timer fires for the earliest of all deadlines, or earlier. */
static bool timer_covers(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    uint64_t due = r->ack_at < r->rnr_at ? r->ack_at : r->rnr_at;
    HOLDS(!timer_armed(&qp->timer) || timer_ok(&l->e->wheel, &qp->timer), "timer-place",
          "tick %llu, the wheel's %llu", (unsigned long long)qp->timer.tick,
          (unsigned long long)l->e->wheel.clk);
    if (qp->state == QPS_ERR)
        return true;
    if (r->probe_at < due)
        due = r->probe_at;
    if (qp->lim && qp->lim->waiting && qp->lim->next < due)
        due = qp->lim->next;
    if (recovery_hold_at(qp) < due)
        due = recovery_hold_at(qp);
    if (due == TIMER_NEVER || qp->mute)
        return true;
    uint64_t tick = (due >> TIMER_TICK_SHIFT) + 1;
    if (tick < l->e->wheel.clk)
        tick = l->e->wheel.clk;
    HOLDS(timer_armed(&qp->timer) && qp->timer.tick <= tick, "timer-armed",
          "due at tick %llu, armed %u for %llu", (unsigned long long)tick, timer_armed(&qp->timer),
          (unsigned long long)qp->timer.tick);
    return true;
}

/* Conditions of each state. */
static bool state_ok(struct look *l)
{
    const struct qp *qp = l->qp;
    const struct req *r = &qp->req;
    const struct resp *p = &qp->resp;
    HOLDS(!qp->is_active || *qp->active_at == qp, "active-link", "on the list");
    HOLDS(!qp->mute || !qp->is_active, "mute", "on the list of those that send");
    HOLDS(sends(qp) ||
              (r->ack_at == TIMER_NEVER && r->rnr_at == TIMER_NEVER && r->probe_at == TIMER_NEVER),
          "state-timers", "ACK %llu, RNR %llu, probe %llu", (unsigned long long)r->ack_at,
          (unsigned long long)r->rnr_at, (unsigned long long)r->probe_at);
    HOLDS(qp->state >= QPS_RTS || r->started == r->tail, "state-queue",
          "%u work requests are posted", r->tail - r->started);
    HOLDS((qp->state != QPS_ERR && qp->state != QPS_SQE) || r->recs.head || r->head == r->tail,
          "state-flushed", "%u work requests of the send queue are left", r->tail - r->head);
    HOLDS(qp->state != QPS_ERR || p->recs.head || (p->flushed && !p->taken), "state-flushed",
          "flushed %u, receives taken %u", p->flushed, p->taken != NULL);
    HOLDS(qp->state != QPS_ERR || p->recs.head || qp->srq || !p->rq || !p->rq->posted,
          "state-flushed", "%u receives are left", p->rq ? p->rq->posted : 0);
    HOLDS(qp->state > QPS_INIT || (!recovery_keeps_early(qp) && !p->rd), "state-parts",
          "selective repeat %u, READ ring %u", recovery_keeps_early(qp), p->rd != NULL);
    HOLDS(qp->state != QPS_RESET || (r->head == r->tail && !qp->lim && !p->taken && !qp->is_active),
          "state-reset", "work requests %u, limiter %u, receives %u, to send %u", r->tail - r->head,
          qp->lim != NULL, p->taken != NULL, qp->is_active);
    return true;
}

bool qp_ok(const struct engine *e, const struct qp *qp, bool whole, struct invariant_report *out)
{
    struct look look = {.e = e, .qp = qp, .whole = whole, .out = out}, *l = &look;
    for (unsigned i = 0; i < ENGINE_BURST; i++)
        look.sending = look.sending || e->tx_qp[i] == qp;
    if (!state_ok(l) || !records_ok(l) || !timer_covers(l) || !taken_ok(l))
        return false;
    if (sends(qp) && !(send_queue_ok(l) && psn_order_ok(l)))
        return false;
    if (qp->type == QP_RC && sends(qp) && !sender_ok(l))
        return false;
    if (qp_connected(qp) && receives(qp) && !receiver_ok(l))
        return false;
    return sr_ok(qp, whole, out);
}
