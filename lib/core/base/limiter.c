/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pacing by departure times: `next` is when the next packet may go, and each packet moves it on by
 * its own time on the wire at the current rate. A sender that comes late (timers have ticks, and
 * rounds of the worker take time) finds `next` in the past and catches up, by at most the burst.
 *
 * A queue pair that has to wait leaves the list of active ones and comes back by its timer, so the
 * cost of a packet doesn't depend on how many others wait.
 */
#include "limiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "guess.h"
#include "recorder.h"
#include "schedule.h"

#define NS_BITS      8000000000ull /* ns in a second, times bits in an octet */
#define CONF_LISTS   4096u
#define CNP_LEFT_MAX 4096u /* marked packets that may be in flight: those of many windows */

/* ---- parameters ---- */

/* Parameters that no other queue pair shares yet, made to fit the line. */
struct limiter_conf *limiter_conf_new(struct engine *e, const struct cc_conf *conf)
{
    struct limiter_conf *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->conf = *conf;
    cc_conf_fit(&c->conf, e->p.line_rate);
    c->users = 1;
    return c;
}

static bool same_conf(const struct cc_conf *a, const struct cc_conf *b)
{
    return a->type == b->type && !memcmp(a->v, b->v, sizeof(a->v));
}

/* The list for these parameters, by their hash: each queue pair may have its own, so there are many
 * lists. NULL = out of memory. */
static struct limiter_confs *confs_of(struct engine *e, const struct cc_conf *conf)
{
    uint64_t h = 0;
    if (!e->cc_confs)
        e->cc_confs = calloc(CONF_LISTS, sizeof(*e->cc_confs));
    if (!e->cc_confs)
        return NULL;
    for (unsigned i = 0; i < CC_PARAM_MAX; i++) {
        h = (h ^ conf->v[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 32;
    }
    return &e->cc_confs[h % CONF_LISTS];
}

struct limiter_conf *limiter_conf_hold(struct engine *e, const struct cc_conf *conf)
{
    struct cc_conf fit = *conf;
    struct limiter_confs *list;
    struct limiter_conf *c = e->cc_conf;
    cc_conf_fit(&fit, e->p.line_rate);
    if (same_conf(&c->conf, &fit)) {
        c->users++;
        return c;
    }
    list = confs_of(e, &fit);
    if (!list)
        return NULL;
    LIST_FOREACH(c, list, next)
    if (same_conf(&c->conf, &fit)) {
        c->users++;
        return c;
    }
    c = limiter_conf_new(e, &fit);
    if (c) {
        c->listed = true;
        LIST_INSERT_HEAD(list, c, next);
    }
    return c;
}

void limiter_conf_let_go(struct limiter_conf *c)
{
    if (!c || --c->users)
        return;
    if (c->listed)
        LIST_REMOVE(c, next);
    free(c);
}

void limiter_conf_drop(struct qp *qp)
{
    limiter_conf_let_go(qp->cc_conf);
    qp->cc_conf = NULL;
}

/* CC-25: does congestion control work on this queue pair's priority? */
static bool enabled(const struct qp *qp, const struct cc_conf *conf)
{
    return conf->type != &cc_none && conf->v[CC_P_prios] >> (qp->attr.av.sl & 7) & 1;
}

int limiter_begin(struct engine *e, struct qp *qp, uint64_t now)
{
    const struct cc_conf *conf = &qp->cc_conf->conf;
    bool on = enabled(qp, conf);
    if (on && !qp->lim && !(qp->lim = aligned_alloc(64, sizeof(*qp->lim))))
        return -ENOMEM;
    qp->req.probe = qp->type == QP_RC && conf->v[CC_P_probe];
    qp->ect = on && conf->type->reacts ? (uint8_t)conf->v[CC_P_ect] : 0;
    qp->req.window = e->p.window;
    if (!on) {
        limiter_free(qp);
        qp_activate(e, qp); /* it may have waited */
        return 0;
    }
    /* Start with none sent: packets sent before may still be answered. */
    *qp->lim = (struct limiter){.next = now};
    cc_start(&qp->lim->cc, conf, e->p.line_rate, qp_mtu(qp), now);
    if (qp->lim->cc.window < qp->req.window)
        qp->req.window = qp->lim->cc.window;
    qp_activate(e, qp);
    return 0;
}

void limiter_free(struct qp *qp)
{
    free(qp->lim);
    qp->lim = NULL;
}

int engine_qp_set_cc(struct engine *e, struct qp *qp, const struct cc_conf *conf, uint64_t now)
{
    struct limiter_conf *c = limiter_conf_hold(e, conf ? conf : &e->cc_conf->conf);
    if (!c)
        return -ENOMEM;
    now = engine_clock(e, now);
    invariant_begin(e);
    invariant_touch(e, qp);
    struct limiter_conf *before = qp->cc_conf;
    qp->cc_conf = c;
    int err = qp->state == QPS_RESET ? 0 : limiter_begin(e, qp, now);
    if (err) {
        qp->cc_conf = before;
        limiter_conf_let_go(c);
    } else {
        limiter_conf_let_go(before);
        qp->cc_own = conf != NULL;
    }
    invariant_end(e, "set cc");
    return err;
}

const struct cc_conf *engine_cc(const struct engine *e)
{
    return &e->cc_conf->conf;
}

/* ---- pacing ---- */

bool limiter_check(struct engine *e, struct qp *qp, uint64_t now)
{
    struct limiter *l = qp->lim;
    cc_run(&l->cc, now);
    if (l->cc.rate == CC_UNLIMITED || l->next <= now)
        return true;
    l->waiting = true;
    qp_rearm(e, qp);
    return false;
}

/* How far `next` may lie in the past before a packet of `octets` goes: the time of the rest of a
 * burst. */
static uint64_t lag_max(const struct cc *cc, uint32_t octets)
{
    const uint64_t *v = cc->conf->v;
    uint64_t burst = v[CC_P_burst_pkts] * octets;
    if (burst > v[CC_P_burst])
        burst = v[CC_P_burst];
    return burst > octets ? (burst - octets) * NS_BITS / cc->rate : 0;
}

/* Is the burst less than two packets? */
static bool few(const struct cc *cc, uint32_t octets)
{
    const uint64_t *v = cc->conf->v;
    return v[CC_P_burst_pkts] < 2 || v[CC_P_burst] < 2ull * octets;
}

bool limiter_pauses(const struct qp *qp)
{
    const struct cc *cc = &qp->lim->cc;
    uint64_t patience = qp->t_ack / 4, bits = qp_mtu(qp) * NS_BITS;
    return cc->rate != CC_UNLIMITED && patience && cc->rate < bits / patience;
}

void limiter_charge(struct qp *qp, uint32_t octets, uint64_t now)
{
    struct limiter *l = qp->lim;
    struct cc *cc = &l->cc;
    if (cc->rate == CC_UNLIMITED) {
        l->next = now; /* no credit from the time without a limit */
        return;
    }
    uint64_t bits = octets * NS_BITS + (l->rest < cc->rate ? l->rest : 0);
    uint64_t gap = bits / cc->rate;
    l->rest = bits % cc->rate;
    /* Less than a packet late is within any burst of two: no need to work it out. */
    if (l->next + gap < now || (l->next < now && few(cc, octets))) {
        uint64_t lag = lag_max(cc, octets);
        if (now - l->next > lag)
            l->next = now - lag;
    }
    l->next += gap;
    if (cc->conf->type->on_send)
        cc->conf->type->on_send(cc, octets, now);
}

/* ---- signals from the network ---- */

/* If the algorithm has a window, the requester uses it, up to the engine's window. */
static void follow_window(struct engine *e, struct qp *qp)
{
    uint32_t most = qp->lim->cc.window;
    if (most == CC_NO_WINDOW)
        return;
    if (most > e->p.window)
        most = e->p.window;
    if (most > qp->req.window)
        qp_activate(e, qp);
    qp->req.window = most;
}

/* SEC-17: a notification point answers each marked packet by at most one CNP. Packets sent since
 * the last CNP allow as many CNPs; packets sent before it allow as many as may still be on their
 * way. CNPs above that are forged. */
static bool cnp_earned(struct limiter *l, const struct qp *qp)
{
    uint32_t fresh = (uint32_t)qp->stats.tx_packets - l->cnp_sent;
    l->cnp_sent += fresh;
    l->cnp_left =
        fresh < CNP_LEFT_MAX - l->cnp_left ? (uint16_t)(l->cnp_left + fresh) : CNP_LEFT_MAX;
    return l->cnp_left > 0 && l->cnp_left-- > 0;
}

void limiter_on_cnp(struct engine *e, struct qp *qp, uint64_t now)
{
    struct limiter *l = qp->lim;
    if (!l || !l->cc.conf->type->on_cnp) {
        engine_count(e, ENGINE_C_rp_cnp_ignored);
        recorder_note(e, qp, NOTE_CNP_IGNORED, psn(0), 0);
        return;
    }
    engine_count(e, ENGINE_C_rp_cnp_handled);
    if (!cnp_earned(l, qp))
        guess_cnp(e, &qp->attr.av.dgid, now);
    l->cc.conf->type->on_cnp(&l->cc, now);
    recorder_rate(e, qp, NOTE_CNP);
}

void limiter_on_ack(struct engine *e, struct qp *qp, uint32_t packets, uint64_t rtt, uint64_t now)
{
    struct cc *cc = &qp->lim->cc;
    if (!cc->conf->type->on_ack)
        return;
    cc->conf->type->on_ack(cc, rtt, packets, now);
    follow_window(e, qp);
}

void limiter_on_loss(struct engine *e, struct qp *qp, bool timeout, uint64_t now)
{
    struct cc *cc = &qp->lim->cc;
    if (!cc->conf->type->on_loss)
        return;
    if (cc->conf->type->on_loss(cc, timeout, now)) {
        engine_count(e, ENGINE_C_roce_slow_restart);
        recorder_rate(e, qp, NOTE_SLOW_RESTART);
    }
    follow_window(e, qp);
}
