/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flight recorder and the figures of one queue pair.
 */
#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine_priv.h"
#include "limiter.h"
#include "recovery.h"
#include "srq.h"

static const char *const note_text[NOTE_MAX] = {
#define X(name, text) [NOTE_##name] = (text),
    NOTES(X)
#undef X
};

#define NO_LIMIT   ((1u << 20) - 1) /* note_event.rate of a queue pair without one */
#define ALPHA_BITS 15               /* fraction bits of note_event.alpha */

static uint32_t megabits(uint64_t rate)
{
    return rate == CC_UNLIMITED ? NO_LIMIT : (uint32_t)(rate / 1000000);
}

void recorder_rate(struct engine *e, struct qp *qp, enum note what)
{
    const struct cc *cc = &qp->lim->cc;
    *recorder_next(&qp->rec) = (struct note_event){
        .at = e->now,
        .why = what,
        .rate = megabits(cc->rate),
        .target = megabits(cc_target(cc)),
        .alpha = cc_alpha(cc) >> (CC_RATIO_BITS - ALPHA_BITS),
    };
    if (__builtin_expect(e->p.hooks.trace != NULL, 0)) {
        e->p.hooks.trace(e->p.hook_arg, qp->qpn, note_text[what], 0, cc->rate);
        e->p.hooks.trace(e->p.hook_arg, qp->qpn, "target", 0, cc_target(cc));
        e->p.hooks.trace(e->p.hook_arg, qp->qpn, "alpha", 0, cc_alpha(cc));
    }
}

void recorder_note(struct engine *e, struct qp *qp, enum note what, psn_t p, uint32_t v)
{
    *recorder_next(&qp->rec) =
        (struct note_event){.at = e->now, .what = what, .psn = p.v & PSN_MASK, .v = v};
    if (__builtin_expect(e->p.hooks.trace != NULL, 0))
        e->p.hooks.trace(e->p.hook_arg, qp->qpn, note_text[what], p.v, v);
}

uint32_t recorder_rule(const char *why)
{
    static const char *const areas[] = {
#define X(name) [RULE_##name] = #name,
        RULE_AREAS(X)
#undef X
    };
    if (!why)
        return 0;
    size_t len = strcspn(why, "-");
    unsigned number = 0;
    for (const char *p = why + len; len && *p && *++p >= '0' && *p <= '9';)
        number = number * 10 + (unsigned)(*p - '0');
    for (uint32_t i = 1; number && i < sizeof(areas) / sizeof(areas[0]); i++)
        if (strlen(areas[i]) == len && !memcmp(areas[i], why, len))
            return i << 16 | number;
    return 0;
}

void recorder_error(struct engine *e, struct qp *qp, const char *fmt, ...)
{
    recorder_note(e, qp, NOTE_ERROR, qp->req.una, 0);
    if (qp->error)
        return;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&qp->error, fmt, ap) < 0)
        qp->error = NULL;
    va_end(ap);
}

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

static const char *icmp_text(uint32_t error)
{
    return error == ECONNREFUSED ? "port 4791 of the peer is closed"
           : error == EMSGSIZE   ? "packets are too big for the way"
                                 : "the peer can't be reached";
}

/* "20000 Mb/s" */
static const char *rate_text(unsigned megabits, char *buf, size_t size)
{
    if (megabits == NO_LIMIT)
        return "no limit";
    snprintf(buf, size, "%u Mb/s", megabits);
    return buf;
}

static int event_line(const struct note_event *ev, char *buf, size_t size)
{
    char what[128], rate[24], target[24];
    if (ev->what == NOTE_CNP || ev->what == NOTE_SLOW_RESTART)
        snprintf(what, sizeof(what), "rate %s target %s alpha %.4f",
                 rate_text((unsigned)ev->rate, rate, sizeof(rate)),
                 rate_text((unsigned)ev->target, target, sizeof(target)),
                 (double)ev->alpha / (1 << ALPHA_BITS));
    else if (ev->what == NOTE_ICMP)
        snprintf(what, sizeof(what), "says that %s (any host can forge that)",
                 icmp_text((uint32_t)ev->v));
    else
        snprintf(what, sizeof(what), "psn 0x%06x (0x%x)", (unsigned)ev->psn, (unsigned)ev->v);
    return snprintf(buf, size, "%" PRIu64 ".%09" PRIu64 " %s %s\n", ev->at / 1000000000,
                    ev->at % 1000000000, note_text[ev->what], what);
}

size_t engine_qp_history(const struct engine *e, const struct qp *qp, char *buf, size_t size)
{
    (void)e;
    size_t used = 0;
    if (size)
        buf[0] = 0;
    uint32_t n = qp->rec.n < RECORDER_EVENTS ? qp->rec.n : RECORDER_EVENTS;
    for (uint32_t i = qp->rec.n - n; i != qp->rec.n && used < size; i++) {
        const struct note_event *ev = &qp->rec.ev[i % RECORDER_EVENTS];
        int k = event_line(ev, buf + used, size - used);
        if (k < 0 || (size_t)k >= size - used) {
            buf[used] = 0; /* whole lines only */
            break;
        }
        used += (size_t)k;
    }
    return used;
}

void engine_qp_info(const struct engine *e, const struct qp *qp, struct engine_qp_info *out)
{
    const struct req *rq = &qp->req;
    *out = (struct engine_qp_info){
        .qpn = qp->qpn,
        .dest_qpn = qp->dest_qpn,
        .type = qp_type_of(qp),
        .state = qp->state,
        .epsn = qp->resp.epsn.v,
        .msn = qp->resp.done_msn,
        .sq_psn = rq->nxt.v,
        .una_psn = rq->una.v,
        .sq_used = rq->tail - rq->head,
        .rq_used = qp->srq || qp->xrc ? 0 : resp_receives(qp),
        .inflight_packets = psn_ahead(rq->max, rq->una),
        .rd_atomic_out = rq->rd_out,
        .tx_packets = qp->stats.tx_packets,
        .rx_packets = qp->stats.rx_packets,
        .tx_bytes = qp->stats.tx_bytes,
        .rx_bytes = qp->stats.rx_bytes,
        .retransmits = qp->stats.retransmits,
        .timeouts = qp->stats.timeouts,
        .naks = qp->stats.naks,
        .rnr_naks = qp->stats.rnr_naks,
        .recovery = recovery_mode(qp),
        .recovery_agreed = recovery_agreed(qp),
        .cc = &qp->cc_conf->conf,
        .cc_rate = CC_UNLIMITED,
        .cc_target = CC_UNLIMITED,
    };
    if (qp->lim) { /* as of now, though nothing has been sent lately */
        struct cc cc = qp->lim->cc;
        cc_run(&cc, e->now);
        out->cc_rate = cc.rate;
        out->cc_target = cc_target(&cc);
        out->cc_alpha = cc_alpha(&cc);
    }
    if (qp->error)
        snprintf(out->error, sizeof(out->error), "%s", qp->error);
}

size_t engine_qp_state_size(void)
{
    return sizeof(struct qp);
}
