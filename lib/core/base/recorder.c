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

const char *const qp_state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

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
