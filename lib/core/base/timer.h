/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hierarchical timing wheel: arming, cancelling and finding the next time-out take constant time,
 * and nothing ever fires early (TMR-03, TMR-08). A timer is late by at most one tick of 1.024 us
 * plus the time between two calls.
 */
#ifndef URNIC_TIMER_H
#define URNIC_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER      UINT64_MAX
#define TIMER_TICK_SHIFT 10 /* ns per tick, log2 */
#define TIMER_LEVELS     9  /* of six bits each: all ticks of a 64-bit clock */
#define TIMER_SLOTS      64

struct timer {
    struct timer *next, **pprev; /* pprev NULL = not armed */
    uint64_t tick;               /* first tick at which it may fire */
};

struct timer_wheel {
    uint64_t clk; /* every tick before this has been served */
    uint64_t used[TIMER_LEVELS];
    struct timer *slot[TIMER_LEVELS][TIMER_SLOTS];
};

/* No timers, at `now` ns. */
void timer_wheel_init(struct timer_wheel *w, uint64_t now);
/* (Re)arm for `deadline` ns. A deadline in the past fires at the next timer_pop. */
void timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline);
/* Disarm; legal when it isn't armed. */
void timer_cancel(struct timer_wheel *w, struct timer *t);
static inline bool timer_armed(const struct timer *t)
{
    return t->pprev;
}
/* Not later than the earliest deadline armed; TIMER_NEVER when none is. It may be an earlier time
 * at which timers only move to a finer wheel. */
uint64_t timer_next(const struct timer_wheel *w);
/* Disarm and return one timer with a deadline <= now; NULL when none is left. */
struct timer *timer_pop(struct timer_wheel *w, uint64_t now);

/* Invariants. Does the timer, which is armed, lie where the wheel looks for it? */
bool timer_ok(const struct timer_wheel *w, const struct timer *t);
/* Is timer_ok true of every timer, and are all used slots marked? *n = number of armed timers. */
bool timer_wheel_ok(const struct timer_wheel *w, uint32_t *n);

#endif
