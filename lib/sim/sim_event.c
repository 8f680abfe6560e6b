/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The heap is a binary one; it keeps the times next to the pointers, so that it rarely reads an
 * event. The wheel is hierarchical with a tick of one nanosecond. An event lies on the level of the
 * highest octet in which its time differs from the clock, so the first used slot of the lowest used
 * level is due next. A slot of a higher level is dealt out, in order, onto levels that are empty at
 * that moment: equal times keep the order in which they were scheduled.
 */
#include "sim_event.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- heap ---- */

static bool before(const struct sim_due *a, const struct sim_due *b)
{
    return a->at < b->at || (a->at == b->at && a->ev->key < b->ev->key);
}

static void put(struct sim_heap *h, uint32_t i, struct sim_due d)
{
    h->due[i] = d;
    d.ev->where = i + 1;
}

static void up(struct sim_heap *h, uint32_t i, struct sim_due d)
{
    while (i && before(&d, &h->due[(i - 1) / 2])) {
        put(h, i, h->due[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(h, i, d);
}

static void down(struct sim_heap *h, uint32_t i, struct sim_due d)
{
    for (uint32_t k; (k = 2 * i + 1) < h->n; i = k) {
        if (k + 1 < h->n && before(&h->due[k + 1], &h->due[k]))
            k++;
        if (!before(&h->due[k], &d))
            break;
        put(h, i, h->due[k]);
    }
    put(h, i, d);
}

void sim_heap_del(struct sim_heap *h, struct sim_event *ev)
{
    if (!sim_event_pending(ev))
        return;
    uint32_t i = ev->where - 1;
    ev->where = SIM_NOWHERE;
    struct sim_due last = h->due[--h->n];
    if (i == h->n)
        return;
    if (before(&last, &h->due[i]))
        up(h, i, last);
    else
        down(h, i, last);
}

static bool grow(struct sim_heap *h)
{
    uint32_t cap = h->cap ? h->cap * 2 : 4;
    struct sim_due *more = realloc(h->due, cap * sizeof(*more));
    if (!more)
        return false;
    h->due = more;
    h->cap = cap;
    return true;
}

bool sim_heap_add(struct sim_heap *h, struct sim_event *ev, uint64_t at)
{
    sim_heap_del(h, ev);
    if (h->n == h->cap && !grow(h))
        return false;
    ev->at = at;
    up(h, h->n++, (struct sim_due){at, ev});
    return true;
}

struct sim_event *sim_heap_pop(struct sim_heap *h, uint64_t limit)
{
    if (!h->n || h->due[0].at > limit)
        return NULL;
    struct sim_event *ev = h->due[0].ev;
    ev->where = SIM_NOWHERE;
    if (--h->n)
        down(h, 0, h->due[h->n]);
    return ev;
}

void sim_heap_free(struct sim_heap *h)
{
    free(h->due);
    *h = (struct sim_heap){0};
}

/* ---- wheel ---- */

void sim_wheel_init(struct sim_wheel *w)
{
    *w = (struct sim_wheel){0};
    for (unsigned l = 0; l < SIM_WHEEL_LEVEL; l++)
        for (unsigned s = 0; s < SIM_WHEEL_SLOTS; s++)
            w->slot[l][s].next = w->slot[l][s].prev = sim_list_end(&w->slot[l][s]);
}

static void insert(struct sim_wheel *w, struct sim_event *ev)
{
    uint64_t diff = ev->at ^ w->clk;
    unsigned level = diff ? (63u - (unsigned)__builtin_clzll(diff)) / SIM_WHEEL_BITS : 0;
    unsigned slot = (ev->at >> (level * SIM_WHEEL_BITS)) & (SIM_WHEEL_SLOTS - 1);
    sim_list_put(ev, sim_list_end(&w->slot[level][slot]));
    w->used[level][slot / 64] |= 1ull << (slot % 64);
}

void sim_wheel_del(struct sim_wheel *w, struct sim_event *ev)
{
    if (!sim_event_pending(ev) || !sim_list_take(ev))
        return;
    size_t i = (size_t)((struct sim_list *)(void *)ev->next - &w->slot[0][0]);
    unsigned s = i % SIM_WHEEL_SLOTS;
    w->used[i / SIM_WHEEL_SLOTS][s / 64] &= ~(1ull << (s % 64));
}

void sim_wheel_add(struct sim_wheel *w, struct sim_event *ev, uint64_t at)
{
    sim_wheel_del(w, ev);
    if (at < w->clk)
        at = w->clk;
    ev->at = at > SIM_WHEEL_END ? SIM_WHEEL_END : at;
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
            sim_wheel_del(w, ev);
            return ev;
        }
        l->next = l->prev = sim_list_end(l);
        w->used[level][slot / 64] &= ~(1ull << (slot % 64));
        while (ev != sim_list_end(l)) {
            struct sim_event *next = ev->next;
            insert(w, ev);
            ev = next;
        }
    }
    return NULL;
}
