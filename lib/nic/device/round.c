/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A round: jobs, frames in, doorbells, timers, frames out, notifications.
 */
#include "round.h"

#include <sched.h>

#include "clock.h"
#include "context_ops.h"
#include "datapath.h"
#include "device.h"
#include "device_switch.h"
#include "uplink.h"
#include "worker.h"

#define ROUND_SERVICE_NS (5 * CLOCK_MS)   /* period of slow upkeep, awake */
#define ROUND_CHECKS     100u             /* parts of the time; one is for looks at descriptors */
#define ROUND_CHECK_MAX  (50 * CLOCK_MS)  /* longest pause between them, awake */
#define ROUND_GUARD_NS   (100 * CLOCK_MS) /* period of putting the fault handler in front */
#define ROUND_NAP_MAX_NS (100 * CLOCK_MS) /* period of slow upkeep, asleep, if no event is owed */
#define ROUND_NAP_FAR_NS (4 * CLOCK_SEC)  /* the same for a program on a channel */
#define ROUND_FULL_NS    (1 * CLOCK_MS)   /* longest wait of completions for their ACKs to leave */
#define ROUND_LET_IN     3u /* turns given to applications: several may share our core */
#define ROUND_LET_IN_GAP (1 * CLOCK_MS) /* pause after turns in vain */

/* In a program: does the worker still have its descriptors? A look is a system call for each of
 * them. Where these are slow, it looks less often, so that looks take at most a hundredth of the
 * time. */
static bool worker_is_whole(struct worker *w, uint64_t now)
{
    if (!w->frame || now < w->check_at)
        return true;
    const uint64_t began = clock_now();
    const bool whole = worker_check_all(w);
    const uint64_t pause = ROUND_CHECKS * (clock_now() - began);
    w->check_at = now + (pause < ROUND_CHECK_MAX ? pause : ROUND_CHECK_MAX);
    return whole;
}

static void worker_service(struct worker *w, uint64_t now)
{
    if (!worker_is_whole(w, now))
        return;
    for (unsigned i = 0; i < w->ndevice; i++)
        device_service(w->device[i], now);
    w->context_ops->service(w);
    w->service_at = now + ROUND_SERVICE_NS;
}

/* Receive frames of a device. Returns their number. */
static unsigned worker_rx(struct worker *w, struct device *d, uint64_t now)
{
    unsigned n = device_peek(d, now);
    if (n == 0)
        return 0;
    /* A receive posted before one of these frames was sent must be known before the frame is
     * processed (UC-05, UD-06). */
    w->context_ops->doorbells(w, now);
    w->news |= device_take(d, now);
    return n;
}

/* Receive all frames of a late device, up to a bound: an answer may stand after many other frames.
 */
static unsigned worker_rx_all(struct worker *w, struct device *d, uint64_t now)
{
    unsigned n = 0, got = DATAPATH_RX_BURST;
    bool late = device_is_late(d, now);
    for (unsigned i = 0; i < DATAPATH_CATCH_UP && got >= DATAPATH_RX_BURST; i++) {
        got = worker_rx(w, d, now);
        n += got;
    }
    if (late)
        device_caught_up(d);
    return n;
}

unsigned worker_before_job(struct worker *w, uint64_t now)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->ndevice; i++) {
        unsigned got = w->device[i]->uplink ? DATAPATH_RX_BURST : 0;
        for (unsigned k = 0; k < DATAPATH_CATCH_UP && got >= DATAPATH_RX_BURST; k++) {
            got = worker_rx(w, w->device[i], now);
            n += got;
        }
    }
    return n;
}

/* Yield the core, and record how long other threads keep it. Returns the time. */
uint64_t worker_yield(struct worker *w)
{
    uint64_t before = clock_now(), after;
    sched_yield();
    after = clock_now();
    pace_yielded(&w->pace, before, after);
    worker_stat_add(&w->stats.yields, 1);
    return after;
}

bool worker_let_in(struct worker *w, bool (*helped)(void *arg), void *arg)
{
    uint64_t now = clock_now(), before;
    if (w->pace.never || w->pace.keeps || now < w->let_in_from)
        return false;
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (w->device[i]->sw)
            device_switch_wake(w->device[i], false);
    }
    for (unsigned i = 0; i < ROUND_LET_IN && pace_may_yield(&w->pace, now); i++) {
        before = now;
        w->context_ops->notify(w, now);
        now = worker_yield(w);
        if (helped(arg))
            return true;
        if (now - before < w->pace.turn_ns)
            break; /* no other thread wants this core */
    }
    w->let_in_from = now + ROUND_LET_IN_GAP;
    return false;
}

/* A few frames have come after a pause. The application sees them before the worker spends time on
 * acknowledging them, and its own answer, if it is a WRITE, leaves before the ACK. (Not in a
 * program that shares its daemon's port: a yield there is the daemon's turn.) Returns whether the
 * application was let in; *now is then updated. */
static bool worker_pass_on(struct worker *w, unsigned frames, uint64_t *now)
{
    if (frames == 0 || frames > DATAPATH_FEW || *now < w->pace.pause_over ||
        !pace_may_yield(&w->pace, *now))
        return false;
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (w->device[i]->uplink || !device_can_wait(w->device[i]))
            return false;
    }
    w->context_ops->notify(w, *now);
    *now = worker_yield(w);
    return true;
}

/* This worker may have been off the processor for longer than an answer takes. Frames that came to
 * its ports meanwhile are processed before anything counts as unanswered (TMR-02). They are also
 * answered, because the device that has to answer may be one of this worker, too. */
static unsigned worker_catch_up(struct worker *w, uint64_t now)
{
    unsigned n = 0;
    bool late = false;
    for (unsigned i = 0; i < w->ndevice; i++)
        late |= device_is_late(w->device[i], now);
    if (!late)
        return 0;
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx_all(w, w->device[i], now);
    for (unsigned i = 0; i < w->ndevice; i++)
        n += device_tx(w->device[i], now);
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx_all(w, w->device[i], now);
    return n;
}

/* Have all frames that the round owes its peers gone to the ports? If a port stays full, because
 * its peer reads nothing, the answer becomes true after a while. */
static bool worker_is_settled(struct worker *w, uint64_t now)
{
    bool full = false;
    for (unsigned i = 0; i < w->ndevice; i++)
        full |= w->device[i]->tx_blocked && w->device[i]->link.up;
    if (!full)
        w->full_since = 0;
    else if (w->full_since == 0)
        w->full_since = now;
    return !full || now - w->full_since >= ROUND_FULL_NS;
}

/* The program may have installed handlers of its own. */
static void worker_guard(struct worker *w, uint64_t now)
{
    (void)guard_signal_on_top();
    w->guard_at = now + ROUND_GUARD_NS;
}

/* Has the daemon changed its device, which carries a program's device of this worker? */
static bool worker_is_told(const struct worker *w)
{
    for (unsigned i = 0; i < w->ndevice; i++) {
        const struct uplink *b = w->device[i]->uplink;
        if (__builtin_expect(b && uplink_differs(b), 0))
            return true;
    }
    return false;
}

unsigned worker_round(struct worker *w, uint64_t now)
{
    w->now = now;
    if (worker_lost(w))
        return jobs_run(&w->jobs, now); /* added before: their threads wait */
    atomic_store_explicit(&w->round_at, now, memory_order_relaxed);
    if (__builtin_expect(w->frame && now >= w->guard_at, 0))
        worker_guard(w, now);
    unsigned frames = jobs_any(&w->jobs) ? worker_before_job(w, now) : 0;
    unsigned work = jobs_run(&w->jobs, now);

    for (unsigned i = 0; i < w->ndevice; i++)
        frames += worker_rx(w, w->device[i], now);
    work += frames;
    bool news = w->context_ops->news(w) || w->news; /* includes news of the end of the last round */
    w->news = false;
    if (news || frames > 0)
        pace_heard(&w->pace, !news);
    bool passed_on = news && worker_pass_on(w, frames, &now);
    unsigned posted = w->context_ops->round(w, now);
    if (posted > 0)
        pace_posted(&w->pace, now);
    work += posted + worker_catch_up(w, now);
    for (unsigned i = 0; i < w->ndevice; i++) {
        if (passed_on)
            work += device_tx_first(w->device[i], now);
        work += device_timers(w->device[i], now);
        work += device_tx(w->device[i], now);
    }
    w->settled = worker_is_settled(w, now);
    w->context_ops->notify(w, now);
    w->settled = false;
    if (now >= w->service_at || worker_is_told(w))
        worker_service(w, now);
    return work;
}

/* ---- before blocking ---- */

/* A program's worker has next to no upkeep, and there may be a thousand programs. */
static uint64_t worker_nap_max(const struct worker *w)
{
    return w->ndevice == 1 && w->device[0]->uplink ? ROUND_NAP_FAR_NS : ROUND_NAP_MAX_NS;
}

uint64_t worker_deadline(struct worker *w, uint64_t now)
{
    uint64_t at = now + worker_nap_max(w);
    for (unsigned i = 0; i < w->ndevice; i++) {
        uint64_t d = device_deadline(w->device[i], now);
        if (d < at)
            at = d;
        if (w->device[i]->gsi->ops->owes(w->device[i]->gsi) && w->service_at < at)
            at = w->service_at;
    }
    if (w->context_ops->owes(w) && w->service_at < at)
        at = w->service_at;
    uint64_t event = w->context_ops->deadline(w);
    return event < at ? event : at;
}

bool worker_anything(struct worker *w, uint64_t now)
{
    if (jobs_any(&w->jobs) || atomic_load_explicit(&w->stop, memory_order_relaxed))
        return true;
    if (worker_lost(w))
        return false;
    if (w->context_ops->ready(w))
        return true;
    unsigned n = 0;
    w->now = now;
    for (unsigned i = 0; i < w->ndevice; i++)
        n += worker_rx(w, w->device[i], now) + device_switch_sleep(w->device[i]);
    return n > 0;
}
