/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat, the sender: which packets have come, which count as lost, which are sent again.
 * See sr.h.
 */
#include "sr_sender.h"

#include <string.h>

#include "completer.h"
#include "engine_priv.h"
#include "limiter.h"
#include "recorder.h"
#include "req_recovery.h"
#include "retransmit.h"
#include "rx.h"
#include "schedule.h"
#include "sr.h"

#define GAP_UNKNOWN 2u  /* retransmitted more than once, or at an unknown time */
#define BACKOFF_MAX 16u /* doublings of the time-out */
#define DOUBTS      4u  /* packets probably late, in a row: then the last one was late */

/* ---- which PSNs have come ---- */

/* Sets of PSNs from una on, at most SR_WINDOW of them. */
static bool has(const uint64_t *set, psn_t p)
{
    return set[p.v / 64 % (SR_WINDOW / 64)] >> (p.v % 64) & 1;
}

static void put(uint64_t *set, psn_t p)
{
    set[p.v / 64 % (SR_WINDOW / 64)] |= 1ull << (p.v % 64);
}

static void drop(uint64_t *set, psn_t p)
{
    set[p.v / 64 % (SR_WINDOW / 64)] &= ~(1ull << (p.v % 64));
}

/* How many packets sent after p have come, at most. */
static uint32_t overtakers(const struct sr *s, psn_t p)
{
    int32_t n = psn_diff(s->high, p) - 1;
    return n > 0 ? (uint32_t)n : 0;
}

/* LR-15: a packet that was sent once came later than n packets sent after it. */
static void learn(struct qp *qp, uint32_t n)
{
    struct sr *s = qp->sr;
    uint64_t most = qp->cc_conf->conf.v[CC_P_overtake];
    if (most > qp->req.window / 2) /* some must be left to tell of a loss */
        most = qp->req.window / 2;
    if (n > most)
        n = (uint32_t)most;
    if (n > s->overtaken)
        s->overtaken = n;
}

/* A packet is acknowledged `took` ns after its retransmission. Was the original late, not lost? An
 * answer to the retransmission takes at least a round trip. Queues make that time vary, so times
 * close to it must occur several times, with no loss in between. */
static bool was_late(struct sr *s, uint64_t took)
{
    if (s->rtt_min == UINT32_MAX || took >= s->rtt_min - s->rtt_min / 8) {
        s->doubts = 0;
        return false;
    }
    return took < s->rtt_min / 2 || ++s->doubts >= DOUBTS;
}

/* The packet that the peer lacked has been acknowledged. */
static void gap_closed(struct qp *qp, uint64_t now)
{
    struct sr *s = qp->sr;
    if (s->gap_again == 0 || (s->gap_again == 1 && was_late(s, now - s->gap_again_at)))
        learn(qp, s->gap_over);
    s->gap_over = 0;
}

/* LR-04: take the first round trip from a selective NAK. With early losses it would otherwise stay
 * unknown for long, and the time-out would stay T. */
static void first_round_trip(struct engine *e, struct qp *qp, uint32_t rtt, uint64_t now)
{
    struct req *r = &qp->req;
    r->srtt = rtt ? rtt : 1;
    r->rttvar = rtt / 2;
    uint64_t at = now + recovery_timeout(qp);
    if (r->ack_at == TIMER_NEVER || r->ack_at <= at)
        return;
    r->ack_at = at;
    qp_rearm(e, qp);
}

/* A selective NAK says that p has come. */
static void mark(struct engine *e, struct qp *qp, psn_t p, uint64_t now)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    uint32_t out = psn_ahead(r->max, r->una);
    if (!psn_in(p, r->una, out < SR_WINDOW ? out : SR_WINDOW) || has(s->marked, p))
        return;
    put(s->marked, p);
    bool late = psn_diff(p, s->high) < 0 && psn_diff(s->high, r->una) >= 0;
    if (!late)
        s->high = psn_add(p, 1);
    if (has(s->again, p))
        return;
    if (late)
        learn(qp, overtakers(s, p));
    uint32_t rtt = (uint32_t)now - s->sent_at[p.v % SR_WINDOW];
    if (rtt < s->rtt_min)
        s->rtt_min = rtt;
    if (!r->srtt)
        first_round_trip(e, qp, rtt, now);
}

/* The peer lacks p, and reports that as other packets come. */
static void gap_seen(struct sr *s, psn_t p)
{
    if (!psn_eq(s->gap, p)) {
        s->gap = p;
        s->gap_over = 0;
        s->gap_again = has(s->again, p) ? GAP_UNKNOWN : 0;
    }
    if (overtakers(s, p) > s->gap_over)
        s->gap_over = overtakers(s, p);
}

/* ---- retransmission ---- */

void sr_describe(const struct qp *qp, struct wire_var *v, uint32_t rseq, uint32_t index)
{
    const struct wire_opcode_info *op = &wire_opcodes[v->opcode];
    uint32_t off = index << qp->mtu_shift;
    if (!(op->flags & (WIRE_F_SEND | WIRE_F_WRITE)))
        return;
    if (op->flags & WIRE_F_WRITE && op->flags & WIRE_F_START)
        return; /* a standard first packet has a RETH */
    v->selective = true;
    v->sel_recv = rseq;
    v->sel_index = index;
    if (op->flags & WIRE_F_WRITE) {
        v->va += off;
        v->dma_len -= off;
    }
}

void sr_skip(struct qp *qp)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    psn_t p = r->nxt;
    if (psn_eq(p, r->max))
        return;
    while (psn_diff(s->end, p) > 0 && psn_diff(s->high, p) > 0 && has(s->marked, p))
        p = psn_add(p, 1);
    s->scan = p;
    if (psn_diff(s->end, p) <= 0)
        p = r->max;
    if (!psn_eq(p, r->nxt))
        rtx_place(qp, p);
}

void sr_round(struct qp *qp)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    drop(s->marked, r->una); /* at least one packet must be sent */
    s->recovering = 1;
    s->recover = s->end = r->max;
    sr_skip(qp);
}

void sr_sent(struct qp *qp, psn_t p, bool again, uint64_t now)
{
    struct sr *s = qp->sr;
    s->sent_at[p.v % SR_WINDOW] = (uint32_t)now;
    if (!again)
        return;
    if (psn_eq(p, s->gap)) {
        s->gap_again = s->gap_again ? GAP_UNKNOWN : 1;
        s->gap_again_at = now;
    }
    put(s->again, p);
    if (s->part_due && psn_eq(p, s->part)) { /* nothing else is retransmitted with it */
        s->part_due = 0;
        rtx_place(qp, qp->req.max);
        return;
    }
    sr_skip(qp);
}

/* LR-03: a PSN is lost when more packets have overtaken it than ever overtook a late one. */
void sr_lost(struct engine *e, struct qp *qp, psn_t p)
{
    struct sr *s = qp->sr;
    struct req *r = &qp->req;
    if (r->rnr_wait || r->fail)
        return;
    drop(s->marked, p); /* the peer may have dropped it after reporting it */
    gap_seen(s, p);
    psn_t end = psn(s->high.v - 1 - s->overtaken); /* one past the last that counts as lost */
    if (psn_eq(s->trigger, p)) {                   /* the early packet could not be kept */
        psn_t least = psn_diff(s->plain, p) > 0 ? s->plain : psn_add(p, 1);
        if (psn_diff(least, end) > 0)
            end = least;
        s->plain = p; /* all packets from p on go again, and name their place */
    }
    if (psn_diff(end, p) <= 0)
        return;
    if (!s->recovering) {
        s->recovering = 1;
        s->recover = r->max;
        s->scan = p;
        s->end = p;
        r->rtt_at = 0; /* an answer could be to either transmission */
        recorder_note(e, qp, NOTE_GO_BACK, p, end.v);
    }
    if (psn_diff(end, s->end) > 0)
        s->end = end;
    if (psn_diff(s->scan, p) < 0)
        s->scan = p;
    if (psn_eq(r->nxt, r->max) && psn_diff(s->end, s->scan) > 0) {
        rtx_place(qp, s->scan);
        sr_skip(qp);
    }
    if (!psn_eq(r->nxt, r->max))
        qp_activate(e, qp);
}

void sr_progress(struct qp *qp, uint32_t n, uint64_t now)
{
    struct sr *s = qp->sr;
    const struct req *r = &qp->req;
    psn_t before = psn(r->una.v - n);
    if (s->gap_over && psn_in(s->gap, before, n))
        gap_closed(qp, now);
    if (n >= SR_WINDOW) {
        memset(s->marked, 0, sizeof(s->marked));
        memset(s->again, 0, sizeof(s->again));
    } else {
        for (psn_t p = before; !psn_eq(p, r->una); p = psn_add(p, 1)) {
            drop(s->marked, p);
            drop(s->again, p);
        }
    }
    if (psn_diff(r->una, s->high) > 0)
        s->high = r->una;
    if (s->recovering && psn_diff(r->una, s->recover) >= 0)
        s->recovering = 0;
    s->since = now;
    s->backoff = 0;
}

void sr_timed_out(struct qp *qp)
{
    struct sr *s = qp->sr;
    s->overtaken /= 2; /* waiting for packets to overtake may have caused the time-out */
    if (s->backoff < BACKOFF_MAX)
        s->backoff++;
}

uint64_t sr_timeout(const struct qp *qp)
{
    const struct sr *s = qp->sr;
    const struct req *r = &qp->req;
    if (sr_plain(qp))
        return qp->t_ack;
    const uint64_t *v = qp->cc_conf->conf.v;
    bool few = psn_ahead(r->max, r->una) < v[CC_P_rto_few];
    uint64_t least = v[few ? CC_P_rto_low : CC_P_rto_high], rto = (few ? 2ull : 4ull) * r->srtt;
    rto = (rto > least ? rto : least) << s->backoff; /* each time-out is twice as long */
    return rto < qp->t_ack ? rto : qp->t_ack;
}

bool sr_charge(struct qp *qp, uint64_t now)
{
    struct sr *s = qp->sr;
    if (!sr_plain(qp) && now - s->since < qp->t_ack)
        return false;
    s->since = now;
    return true;
}

void sr_sack(struct rx *rx, struct qp *qp)
{
    struct sr *s = qp->sr;
    s->trigger = psn(rx->pkt.sel_psn);
    engine_count(rx->e, ENGINE_C_rx_sack);
    if (psn_diff(s->trigger, psn(rx->pkt.psn)) > 0) /* else: the early packet could not be kept */
        mark(rx->e, qp, s->trigger, rx->now);
    s->selective = 1;
    comp_rx(rx, qp);
    if (qp->sr)
        s->selective = 0;
}
