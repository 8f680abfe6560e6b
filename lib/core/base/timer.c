/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hierarchical timing wheel, nine levels of 64 slots: the whole range of the clock. A timer lies on
 * the level of the highest group of six bits in which its tick differs from the clock, so the
 * lowest used slot of the lowest used level is always the next thing to do. Rules: TMR-03, TMR-08.
 */
#include "timer.h"

#include <stddef.h>

#define SLOT_BITS 6
#define TICK_MAX  (UINT64_MAX >> TIMER_TICK_SHIFT)
_Static_assert(64 - TIMER_TICK_SHIFT == TIMER_LEVELS * SLOT_BITS, "every tick has its slot");

void timer_wheel_init(struct timer_wheel *w, uint64_t now)
{
    *w = (struct timer_wheel){.clk = now >> TIMER_TICK_SHIFT};
}

/* The timer's level and slot. */
static unsigned place(const struct timer_wheel *w, const struct timer *t, unsigned *slot)
{
    uint64_t diff = t->tick ^ w->clk;
    unsigned level = diff < TIMER_SLOTS ? 0 : (63u - (unsigned)__builtin_clzll(diff)) / SLOT_BITS;
    *slot = (t->tick >> (level * SLOT_BITS)) & (TIMER_SLOTS - 1);
    return level;
}

static void insert(struct timer_wheel *w, struct timer *t)
{
    unsigned slot, level = place(w, t, &slot);
    struct timer **head = &w->slot[level][slot];
    t->next = *head;
    t->pprev = head;
    if (t->next)
        t->next->pprev = &t->next;
    *head = t;
    w->used[level] |= 1ull << slot;
}

void timer_cancel(struct timer_wheel *w, struct timer *t)
{
    if (!t->pprev)
        return;
    *t->pprev = t->next;
    if (t->next)
        t->next->pprev = t->pprev;
    struct timer **first = &w->slot[0][0], **last = &w->slot[TIMER_LEVELS - 1][TIMER_SLOTS - 1];
    if (!t->next && t->pprev >= first && t->pprev <= last) {
        ptrdiff_t i = t->pprev - first;
        w->used[i / TIMER_SLOTS] &= ~(1ull << (i % TIMER_SLOTS));
    }
    t->pprev = NULL;
}

void timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline)
{
    timer_cancel(w, t);
    /* Rounded up: a timer may be late by a tick, never early. */
    uint64_t tick = deadline >> TIMER_TICK_SHIFT;
    if (deadline & ((1u << TIMER_TICK_SHIFT) - 1))
        tick++;
    if (tick < w->clk)
        tick = w->clk;
    t->tick = tick > TICK_MAX ? TICK_MAX : tick;
    insert(w, t);
}

/* The lowest used level and the first tick of its first used slot. */
static bool first_slot(const struct timer_wheel *w, unsigned *level, unsigned *slot, uint64_t *tick)
{
    for (unsigned l = 0; l < TIMER_LEVELS; l++) {
        if (!w->used[l])
            continue;
        *level = l;
        *slot = (unsigned)__builtin_ctzll(w->used[l]);
        uint64_t upper = w->clk >> ((l + 1) * SLOT_BITS) << ((l + 1) * SLOT_BITS);
        *tick = upper | (uint64_t)*slot << (l * SLOT_BITS);
        return true;
    }
    return false;
}

uint64_t timer_next(const struct timer_wheel *w)
{
    unsigned level, slot;
    uint64_t tick;
    return first_slot(w, &level, &slot, &tick) ? tick << TIMER_TICK_SHIFT : TIMER_NEVER;
}

struct timer *timer_pop(struct timer_wheel *w, uint64_t now)
{
    uint64_t limit = now >> TIMER_TICK_SHIFT;
    unsigned level, slot;
    uint64_t tick;
    while (first_slot(w, &level, &slot, &tick) && tick <= limit) {
        if (tick > w->clk)
            w->clk = tick;
        struct timer *t = w->slot[level][slot];
        if (level == 0) {
            w->slot[0][slot] = t->next;
            if (t->next)
                t->next->pprev = &w->slot[0][slot];
            else
                w->used[0] &= ~(1ull << slot);
            t->pprev = NULL;
            return t;
        }
        w->slot[level][slot] = NULL;
        w->used[level] &= ~(1ull << slot);
        while (t) {
            struct timer *next = t->next;
            insert(w, t);
            t = next;
        }
    }
    if (limit > w->clk)
        w->clk = limit;
    return NULL;
}

/* ---- invariants ---- */

static bool lies_in(const struct timer_wheel *w, const struct timer *t, unsigned level,
                    unsigned slot)
{
    unsigned own;
    return t->tick >= w->clk && place(w, t, &own) == level && own == slot;
}

bool timer_ok(const struct timer_wheel *w, const struct timer *t)
{
    unsigned slot, level = place(w, t, &slot);
    return *t->pprev == t && (!t->next || t->next->pprev == &t->next) &&
           lies_in(w, t, level, slot) && w->used[level] >> slot & 1;
}

bool timer_wheel_ok(const struct timer_wheel *w, uint32_t *n)
{
    *n = 0;
    for (unsigned level = 0; level < TIMER_LEVELS; level++) {
        for (unsigned slot = 0; slot < TIMER_SLOTS; slot++) {
            struct timer *const *at = &w->slot[level][slot];
            if ((*at != NULL) != (w->used[level] >> slot & 1))
                return false;
            for (; *at; at = &(*at)->next, ++*n)
                if ((*at)->pprev != at || !lies_in(w, *at, level, slot))
                    return false;
        }
    }
    return true;
}
