/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss: go-back-N, the retry counters, waiting after RNR NAK, the ACK timer.
 *
 * The timers of a queue pair's sender, all of them:
 *
 *     ack_at     runs while a packet in flight obliges the peer to answer (TMR-02). req_sent starts
 *                it, when the packet is with the NIC (TMR-09); progress restarts it. It stops when
 *                the last such packet is acknowledged, on going back, and while rnr_at runs.
 *     rnr_at     runs after an RNR NAK (RNR-05); nothing is sent meanwhile.
 *     probe_at   runs beside ack_at when probes are on (LR-12).
 *
 * Rules: RTX, TMR, RNR-05..09, REQ-33.
 */
#include "retransmit.h"

#include "comp_retire.h"
#include "completer.h"
#include "engine_priv.h"
#include "limiter.h"
#include "recorder.h"
#include "recovery.h"
#include "req_recovery.h"
#include "schedule.h"
#include "send_queue.h"
#include "sr_sender.h"

#define ADAPTIVE_MIN       200000u  /* ns (LR-10) */
#define ADAPTIVE_DOUBLES   16u      /* most doublings of that time */
#define ROUND_TRIP_UNKNOWN 1000000u /* ns, without a sample or a time-out */
#define RNR_RETRY_FOREVER  7u       /* RNR-06 */
#define STREAM_RUN         3u       /* READ responses are a stream, not late ones */
#define STREAM_STEP        4u       /* most PSNs from one response of a stream to the next */
#define STREAM_NEAR        16       /* most PSNs missing within a stream */

/* The last started work request that begins at or before PSN p. */
static uint32_t find_wqe(const struct qp *qp, psn_t p)
{
    const struct req *r = &qp->req;
    uint32_t lo = 0, n = r->started - r->head;
    while (n > 1) {
        uint32_t half = n / 2;
        if (psn_diff(req_wqe(qp, r->head + lo + half)->first, p) <= 0) {
            lo += half;
            n -= half;
        } else {
            n = half;
        }
    }
    return r->head + lo;
}

void rtx_place(struct qp *qp, psn_t p)
{
    struct req *r = &qp->req;
    r->nxt = p;
    r->asking = 0;
    r->cur = r->started;
    r->pkt = 0;
    if (r->head == r->started)
        return;
    uint32_t i = find_wqe(qp, p);
    const struct swqe *w = req_wqe(qp, i);
    uint32_t k = psn_ahead(p, w->first);
    if (k < w->npsn) {
        r->cur = i;
        r->pkt = k;
    }
}

void rtx_go_back(struct engine *e, struct qp *qp, psn_t p)
{
    struct req *r = &qp->req;
    recorder_note(e, qp, NOTE_GO_BACK, p, 0);
    rtx_place(qp, p);
    recovery_go_back(qp);
    r->since_ackreq = 0;
    r->obliged = 0;
    r->ack_at = TIMER_NEVER;
    r->rtt_at = 0; /* an answer could be to either transmission */
    qp_activate(e, qp);
}

uint64_t rtx_round_trip(const struct qp *qp)
{
    if (qp->req.srtt)
        return qp->req.srtt;
    return qp->t_ack ? qp->t_ack / 8 : ROUND_TRIP_UNKNOWN;
}

/* Go-back-N retransmits everything in flight for each loss. With cc parameter `shrink`, a path that
 * loses much gets a small window (LR-16). */
static void shrink_window(struct qp *qp)
{
    struct req *r = &qp->req;
    if (!qp->cc_conf->conf.v[CC_P_shrink])
        return;
    r->window = r->window / 2 > REQ_WINDOW_MIN ? r->window / 2 : REQ_WINDOW_MIN;
    r->acked = 0;
}

static void grow_window(const struct engine *e, struct qp *qp, uint32_t n)
{
    struct req *r = &qp->req;
    if (r->window == e->p.window)
        return;
    r->acked += n;
    if (r->acked < r->window)
        return;
    r->acked = 0;
    r->window += r->window / 8 + 1;
    if (r->window > e->p.window)
        r->window = e->p.window;
}

static void start_round(struct engine *e, struct qp *qp, psn_t p, uint64_t now)
{
    struct req *r = &qp->req;
    r->rtx = 1;
    r->rtx_psn = p;
    r->rtx_at = now;
    rtx_go_back(e, qp, p);
    recovery_round(qp);
}

static void go_again(struct engine *e, struct qp *qp, psn_t p, bool timeout, uint64_t now)
{
    shrink_window(qp);
    if (qp->lim)
        limiter_on_loss(e, qp, timeout, now);
    start_round(e, qp, p, now);
}

/* A retry event at PSN p: charge, go back, or fail when exhausted. */
static void retry(struct engine *e, struct qp *qp, psn_t p, bool timeout, const char *why,
                  uint64_t now)
{
    struct req *r = &qp->req;
    if (!recovery_charge(qp, now)) {
        start_round(e, qp, p, now);
        return;
    }
    if (!r->retry_left) { /* TMR-05 */
        engine_count(e, ENGINE_C_retry_exceeded_err);
        comp_fail(e, qp, WC_RETRY_EXC_ERR, why);
        return;
    }
    r->retry_left--;
    go_again(e, qp, p, timeout, now);
}

void rtx_confirm(struct engine *e, struct qp *qp, uint8_t syndrome, uint64_t now)
{
    qp->req.confirm = syndrome;
    start_round(e, qp, qp->req.una, now);
}

void rtx_refute(struct engine *e, struct qp *qp)
{
    if (!qp->req.confirm)
        return;
    qp->req.confirm = 0;
    engine_count(e, ENGINE_C_rx_nak_forged);
}

/* RNR-02, TMR-07, RTX-08. A NAK for a later PSN is a new gap, and comes only once. */
void rtx_nak(struct engine *e, struct qp *qp, psn_t p, uint64_t now)
{
    const struct req *r = &qp->req;
    if (recovery_selective(qp)) {
        sr_lost(e, qp, p);
        return;
    }
    if (r->rnr_wait && psn_eq(r->rnr_psn, p))
        return;
    if (r->rtx && psn_eq(r->rtx_psn, p) && now - r->rtx_at < rtx_round_trip(qp))
        return;
    retry(e, qp, p, false, "ACK-06 sequence error", now);
}

/* Does READ response p show that the response due at una is lost, and has that one not been
 * requested again since?
 *
 * A peer answers requests one after the other. When we repeat a READ request, it first finishes the
 * old answer, then starts the new one near the gap (TMR-07). So `seen` follows one stream of
 * responses. A single response elsewhere is late or a duplicate and proves nothing; STREAM_RUN
 * responses in a row are a new stream. */
static bool stream_lost_it(struct req *r, psn_t p)
{
    int32_t known = psn_diff(r->seen, r->una), step = psn_diff(p, r->seen);
    bool fresh = known <= 0, again = psn_diff(r->again, r->una) > 0;
    if (fresh ? !again || step <= STREAM_NEAR : step >= 0 && step <= STREAM_NEAR) {
        r->seen = p;
        r->astray = 0;
        return fresh;
    }
    unsigned gap = (uint8_t)(p.v - r->stray);
    if (r->astray && gap == 0)
        return false;
    r->astray = r->astray && gap <= STREAM_STEP ? r->astray + 1 : 1;
    r->stray = (uint8_t)p.v;
    if (r->astray < STREAM_RUN && (fresh || step > 0 || known > STREAM_NEAR))
        return false;
    r->seen = p;
    r->astray = 0;
    return fresh || step < 0;
}

/* Did answer p show that an answer before it is lost?
 *
 * Answers to the packets that were in flight when the round started keep arriving, as long as the
 * path's queues are deep. They are all past the gap and prove nothing new (TMR-07). Answers to the
 * round itself start at the gap. So an answer near the gap is new. An ACK that was seen before is
 * new one round trip later; READ responses may just be out of order then. */
static bool answer_lost_it(struct qp *qp, psn_t p, bool ack, uint64_t now)
{
    struct req *r = &qp->req;
    int32_t known = psn_diff(r->seen, r->una), at = psn_diff(p, r->una);
    return known <= 0 || at < known / 2 ||
           (ack && at <= known && now - r->rtx_at >= rtx_round_trip(qp));
}

/* Does this implied NAK cost a retry?
 *
 * The responder answers a duplicate with the PSN it executed last (RSP-20). That PSN may be past a
 * READ whose responses are still on their way, so answers to retransmissions look like implied NAKs
 * while they last. The second implied NAK costs a retry only after a round trip, and each further
 * one after twice the time before (TMR-07). */
static bool implied_costs(struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    unsigned used = (unsigned)qp->attr.retry_cnt - r->retry_left;
    if (used > 0 && used <= qp->attr.retry_cnt &&
        (uint32_t)((uint32_t)now - r->implied_at) < rtx_round_trip(qp) << (used - 1))
        return false;
    r->implied_at = (uint32_t)now;
    return true;
}

void rtx_old_answer(struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    if (!r->rtx || r->ack_at == TIMER_NEVER || recovery_agreed(qp)) /* LR-08 */
        return;
    uint64_t t = recovery_timeout(qp);
    if (now - r->rtx_at < (qp->attr.retry_cnt + 1u) * t)
        r->ack_at = now + t;
}

void rtx_implied(struct engine *e, struct qp *qp, psn_t p, enum rtx_answer kind, uint64_t now)
{
    struct req *r = &qp->req;
    /* Too early for an answer to this round: not new. */
    bool early = r->rtx && psn_eq(r->rtx_psn, r->una) && now - r->rtx_at < r->srtt / 2, lost;
    if (kind == RTX_READ_ON) {
        lost = stream_lost_it(r, p) && !early;
        rtx_old_answer(qp, now);
    } else {
        lost = !early && answer_lost_it(qp, p, kind == RTX_ACK, now);
        if (lost || psn_diff(p, r->seen) > 0)
            r->seen = p;
    }
    if (!lost || (r->rnr_wait && psn_eq(r->rnr_psn, r->una)))
        return;
    engine_count(e, ENGINE_C_implied_nak_seq_err);
    recorder_note(e, qp, NOTE_IMPLIED_NAK, r->una, p.v);
    if (!implied_costs(qp, now)) {
        go_again(e, qp, r->una, false, now);
        return;
    }
    retry(e, qp, r->una, false, "REQ-24 answers to a READ or ATOMIC are lost", now);
}

void rtx_rnr(struct engine *e, struct qp *qp, psn_t p, unsigned code, uint64_t now)
{
    struct req *r = &qp->req;
    engine_count(e, ENGINE_C_rnr_nak_retry_err);
    if (r->rnr_wait && psn_eq(r->rnr_psn, p)) /* RNR-09 */
        return;
    if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) { /* RNR-06 */
        if (!r->rnr_left) {
            engine_count(e, ENGINE_C_retry_rnr_exceeded_err);
            comp_fail(e, qp, WC_RNR_RETRY_EXC_ERR, "RNR-06 the peer posts no receives");
            return;
        }
        r->rnr_left--;
    }
    r->retry_left = qp->attr.retry_cnt; /* losses between two RNR NAKs don't add up */
    r->rtx = 0;
    r->rnr_wait = 1;
    r->rnr_psn = p;
    r->rnr_at = now + wire_rnr_ns(code);
    rtx_go_back(e, qp, p);
    qp_rearm(e, qp);
}

/* The round trip in ns, if this answer ends a sample. */
static uint64_t sample_rtt(struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    if (!r->rtt_at || psn_diff(r->una, r->rtt_psn) <= 0)
        return 0;
    uint64_t rtt = now - r->rtt_at;
    if (rtt > UINT32_MAX)
        rtt = UINT32_MAX;
    if (r->srtt) {
        uint32_t off = rtt > r->srtt ? (uint32_t)rtt - r->srtt : r->srtt - (uint32_t)rtt;
        r->rttvar = (uint32_t)((3ull * r->rttvar + off) / 4);
    } else {
        r->rttvar = (uint32_t)rtt / 2;
    }
    r->srtt = r->srtt ? (uint32_t)((7ull * r->srtt + rtt) / 8) : (uint32_t)rtt;
    if (!r->srtt)
        r->srtt = 1;
    recovery_round_trip(qp, (uint32_t)rtt);
    r->rtt_at = 0;
    return rtt;
}

void rtx_progress(struct engine *e, struct qp *qp, uint32_t n, uint64_t now)
{
    struct req *r = &qp->req;
    grow_window(e, qp, n);
    recovery_progress(qp, n, now);
    r->retry_left = qp->attr.retry_cnt;
    r->adaptive = 0;
    rtx_refute(e, qp);
    if (psn_diff(r->again, r->una) < 0)
        r->again = r->una;
    if (r->rtx && psn_diff(r->una, r->rtx_psn) > 0)
        r->rtx = 0;
    if (psn_diff(r->una, r->seen) > 0)
        r->seen = r->una;
    if (psn_diff(r->una, r->rnr_psn) > 0) {
        r->rnr_left = qp->attr.rnr_retry;
        if (r->rnr_wait) { /* the answer overtook the NAK */
            r->rnr_wait = 0;
            r->rnr_at = TIMER_NEVER;
        }
    }
    uint64_t rtt = sample_rtt(qp, now);
    if (qp->lim)
        limiter_on_ack(e, qp, n, rtt, now);
    if (psn_diff(r->una, r->nxt) > 0) { /* answered while it waited to be sent again */
        rtx_place(qp, r->una);
        recovery_skip(qp);
    }
    if (r->obliged && psn_diff(r->ob_end, r->una) <= 0) {
        r->obliged = 0;
        r->ack_at = TIMER_NEVER;
    } else if (r->ack_at != TIMER_NEVER) {
        uint64_t before = r->ack_at;
        r->ack_at = now + recovery_timeout(qp);
        if (r->ack_at < before) /* first measured round trip, or end of backing off */
            qp_rearm(e, qp);
    }
    if (r->probe)
        rtx_probe_arm(e, qp, true, now);
    if (r->cur != r->tail || !psn_eq(r->nxt, r->una))
        qp_activate(e, qp);
}

uint64_t rtx_adaptive(const struct qp *qp)
{
    const struct req *r = &qp->req;
    uint64_t rto = r->srtt + 4ull * r->rttvar;
    if (rto < ADAPTIVE_MIN)
        rto = ADAPTIVE_MIN;
    rto <<= r->adaptive - 1;
    return r->srtt && rto < qp->t_ack ? rto : qp->t_ack;
}

/* LR-10: count one more time-out without progress. */
static void count_adaptive(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    if (!qp->cc_conf->conf.v[CC_P_adaptive] || !recovery_plain(qp))
        return;
    if (r->adaptive)
        engine_count(e, ENGINE_C_roce_adp_retrans_to);
    engine_count(e, ENGINE_C_roce_adp_retrans);
    if (r->adaptive < ADAPTIVE_DOUBLES)
        r->adaptive++;
}

void rtx_probe_arm(struct engine *e, struct qp *qp, bool progress, uint64_t now)
{
    struct req *r = &qp->req;
    if (progress)
        r->probed = 0;
    r->probe_at = TIMER_NEVER;
    if (r->probed || !r->obliged || !r->srtt || recovery_agreed(qp))
        return;
    r->probe_at = now + 2ull * r->srtt;
    qp_rearm(e, qp);
}

/* LR-12: send the last packet again, if repeating it is cheap. It asks for an answer and costs no
 * retry; the ACK timer runs on. */
static void probe(struct engine *e, struct qp *qp)
{
    struct req *r = &qp->req;
    psn_t last = psn_prev(r->max);
    r->probe_at = TIMER_NEVER;
    r->probed = 1;
    if (r->rnr_wait || psn_eq(r->una, r->max) || !psn_eq(r->nxt, r->max) ||
        !psn_eq(r->ob_end, r->max))
        return;
    const struct swqe *w = req_wqe(qp, find_wqe(qp, last));
    if (swqe_is_rd(w))
        return;
    engine_count(e, ENGINE_C_tx_probe);
    r->rtt_at = 0; /* an answer could be to either transmission */
    rtx_place(qp, last);
    qp_activate(e, qp);
}

void rtx_expire(struct engine *e, struct qp *qp, uint64_t now)
{
    struct req *r = &qp->req;
    if (r->rnr_at <= now) {
        psn_t p = r->rnr_psn;
        r->rnr_at = TIMER_NEVER;
        r->rnr_wait = 0;
        start_round(e, qp, p, now);
    }
    if (r->probe_at <= now)
        probe(e, qp);
    if (r->ack_at <= now) {
        r->ack_at = TIMER_NEVER;
        engine_count(e, ENGINE_C_local_ack_timeout_err);
        qp->stats.timeouts++;
        recovery_timed_out(qp);
        recorder_note(e, qp, NOTE_TIMEOUT, r->una, r->retry_left);
        if (r->confirm) { /* SEC-06: a peer in ERR doesn't repeat its NAK */
            comp_refused(e, qp, r->confirm);
            return;
        }
        count_adaptive(e, qp);
        retry(e, qp, r->una, true, "TMR-05 no answer", now);
    }
}
