/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hierarchical timing wheel with a tick of one nanosecond. An event lies on the level of the
 * highest octet in which its time differs from the clock, so the first used slot of the lowest used
 * level is the next thing to do. A slot of a higher level is dealt out, in order, onto levels that
 * are empty at that moment: equal times keep the order in which they were scheduled.
 */
#include "sim_event.h"

#include <stddef.h>

#define TIME_MAX ((1ull << (SIM_WHEEL_LEVEL * SIM_WHEEL_BITS)) - 1)

static struct sim_event *sentinel(struct sim_list *l)
{
    return (struct sim_event *)(void *)l;
}

void sim_wheel_init(struct sim_wheel *w)
{
    *w = (struct sim_wheel){0};
    for (unsigned l = 0; l < SIM_WHEEL_LEVEL; l++)
        for (unsigned s = 0; s < SIM_WHEEL_SLOTS; s++)
            w->slot[l][s].next = w->slot[l][s].prev = sentinel(&w->slot[l][s]);
}

static void insert(struct sim_wheel *w, struct sim_event *ev)
{
    uint64_t diff = ev->at ^ w->clk;
    unsigned level = diff ? (63u - (unsigned)__builtin_clzll(diff)) / SIM_WHEEL_BITS : 0;
    unsigned slot = (ev->at >> (level * SIM_WHEEL_BITS)) & (SIM_WHEEL_SLOTS - 1);
    struct sim_list *l = &w->slot[level][slot];
    ev->next = sentinel(l);
    ev->prev = l->prev;
    l->prev->next = ev;
    l->prev = ev;
    w->used[level][slot / 64] |= 1ull << (slot % 64);
}

static void unlink_event(struct sim_wheel *w, struct sim_event *ev)
{
    ev->prev->next = ev->next;
    ev->next->prev = ev->prev;
    if (ev->next == ev->prev) { /* both are the slot's head, and it is alone now */
        size_t i = (size_t)((struct sim_list *)(void *)ev->next - &w->slot[0][0]);
        unsigned s = i % SIM_WHEEL_SLOTS;
        w->used[i / SIM_WHEEL_SLOTS][s / 64] &= ~(1ull << (s % 64));
    }
    ev->next = ev->prev = NULL;
    if (ev == w->ahead)
        w->ahead = NULL;
}

void sim_wheel_del(struct sim_wheel *w, struct sim_event *ev)
{
    if (ev->next)
        unlink_event(w, ev);
}

void sim_wheel_add(struct sim_wheel *w, struct sim_event *ev, uint64_t at)
{
    sim_wheel_del(w, ev);
    if (at < w->clk)
        at = w->clk;
    ev->at = at > TIME_MAX ? TIME_MAX : at;
    insert(w, ev);
}

/* The lowest used level and its first used slot. */
static bool first_slot(const struct sim_wheel *w, unsigned *level, unsigned *slot)
{
    for (unsigned l = 0; l < SIM_WHEEL_LEVEL; l++) {
        unsigned now = w->clk >> (l * SIM_WHEEL_BITS) & (SIM_WHEEL_SLOTS - 1);
        for (unsigned i = now / 64; i < SIM_WHEEL_WORDS; i++) { /* before it there is nothing */
            if (w->used[l][i]) {
                *level = l;
                *slot = i * 64 + (unsigned)__builtin_ctzll(w->used[l][i]);
                return true;
            }
        }
    }
    return false;
}

/* The event behind `ev` in slot *slot of the lowest level, or the first of a later slot of that
 * level, which *slot becomes. */
static struct sim_event *after(struct sim_wheel *w, struct sim_event *ev, unsigned *slot)
{
    if (ev->next != sentinel(&w->slot[0][*slot]))
        return ev->next;
    uint64_t later = w->used[0][*slot / 64] & ~1ull << *slot % 64;
    for (unsigned i = *slot / 64;; later = w->used[0][i]) {
        if (later) {
            *slot = i * 64 + (unsigned)__builtin_ctzll(later);
            return w->slot[0][*slot].next;
        }
        if (++i == SIM_WHEEL_WORDS)
            return NULL;
    }
}

/* An event reached so many steps of looking ahead ago; NULL = none. */
static struct sim_event *seen(const struct sim_wheel *w, unsigned ago)
{
    return w->seen[(w->nseen - ago) % SIM_AHEAD];
}

/* With a thousand hosts most of what an event reads is in no near cache. One event further ahead
 * than before: fetch it, then, two events later each, what it hints at, and what only its owner
 * knows. Inlined by force: GCC takes a function that only prefetches for one without effect, and
 * drops the call. */
__attribute__((always_inline)) static inline void look_further(struct sim_wheel *w,
                                                               struct sim_event *from)
{
    struct sim_event *ev = after(w, from, &w->ahead_slot);
    if (ev) {
        __builtin_prefetch(ev);
        w->ahead = ev;
    }
    w->seen[w->nseen++ % SIM_AHEAD] = ev;
    ev = seen(w, 3);
    if (ev) {
        __builtin_prefetch(ev->hint[0]);
        __builtin_prefetch(ev->hint[1]);
    }
    for (unsigned step = 0; step < SIM_WARM_STEPS; step++) {
        ev = seen(w, 5 + 2 * step);
        if (ev)
            w->warm(ev, step);
    }
}

__attribute__((always_inline)) static inline void look_ahead(struct sim_wheel *w,
                                                             struct sim_list *l, unsigned slot)
{
    if (w->ahead) {
        look_further(w, w->ahead);
        return;
    }
    w->ahead_slot = slot; /* it has been caught up with: start over */
    look_further(w, sentinel(l));
    for (unsigned i = 1; i < SIM_AHEAD && w->ahead; i++)
        look_further(w, w->ahead);
}

struct sim_event *sim_wheel_pop(struct sim_wheel *w, uint64_t limit)
{
    unsigned level, slot;
    while (first_slot(w, &level, &slot)) {
        unsigned shift = level * SIM_WHEEL_BITS, above = shift + SIM_WHEEL_BITS;
        uint64_t start = w->clk >> above << above | (uint64_t)slot << shift;
        if (start > limit)
            return NULL;
        w->clk = start;
        struct sim_list *l = &w->slot[level][slot];
        struct sim_event *ev = l->next;
        if (level == 0) {
            unlink_event(w, ev);
            if (w->warm)
                look_ahead(w, l, slot);
            return ev;
        }
        l->next = l->prev = sentinel(l);
        w->used[level][slot / 64] &= ~(1ull << (slot % 64));
        while (ev != sentinel(l)) {
            struct sim_event *next = ev->next;
            insert(w, ev);
            ev = next;
        }
    }
    return NULL;
}
