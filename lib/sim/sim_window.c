/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows and turns.
 */
#include "sim_window.h"

#include "sim_port.h"

/* A node that runs in this window: its entry is in no wheel until the window ends. */
#define IN_WINDOW (SIM_LISTED - 1)

static struct sim_node *node_of(struct sim_event *entry)
{
    return SIM_CONTAINER(entry, struct sim_node, agenda.entry);
}

/* ---- a turn ---- */

static void turn_add(struct sim_turn *t, struct sim_event *ev, uint64_t at)
{
    unsigned i = (unsigned)(at - t->begin);
    struct sim_list *l = &t->slot[i];
    if (!(t->used[i / 64] >> i % 64 & 1)) {
        t->used[i / 64] |= 1ull << i % 64;
        l->next = l->prev = sim_list_end(l);
    }
    struct sim_event *next = sim_list_end(l);
    while (next->prev != sim_list_end(l) && next->prev->key > ev->key)
        next = next->prev;
    ev->at = at;
    sim_list_put(ev, next);
}

static void turn_del(struct sim_turn *t, struct sim_event *ev)
{
    unsigned i = (unsigned)(ev->at - t->begin);
    if (sim_list_take(ev))
        t->used[i / 64] &= ~(1ull << i % 64);
}

static void turn(struct sim_world *w, struct sim_node *n)
{
    struct sim_turn *t = &w->turn;
    struct sim_heap *later = &n->agenda.later;
    struct sim_event *ev;
    unsigned words = (unsigned)(t->last - t->begin) / 64 + 1;
    t->node = n;
    while ((ev = sim_heap_pop(later, t->last))) {
        __builtin_prefetch(ev->hint);
        turn_add(t, ev, ev->at);
    }
    for (unsigned i = 0; i < words; i++) {
        while (t->used[i]) {
            ev = t->slot[i * 64 + (unsigned)__builtin_ctzll(t->used[i])].next;
            turn_del(t, ev);
            w->now = ev->at;
            ev->fire(ev, ev->at);
        }
    }
    t->node = NULL;
    n->agenda.entry.where = SIM_NOWHERE;
    if (later->n)
        sim_wheel_add(&w->wheel, &n->agenda.entry, sim_heap_first(later));
}

/* ---- scheduling ---- */

void sim_cancel(struct sim_node *n, struct sim_event *ev)
{
    if (!n->w->lookahead)
        sim_wheel_del(&n->w->wheel, ev);
    else if (ev->where == SIM_LISTED)
        turn_del(&n->w->turn, ev);
    else
        sim_heap_del(&n->agenda.later, ev);
}

void sim_at(struct sim_node *n, struct sim_event *ev, uint64_t at)
{
    struct sim_world *w = n->w;
    struct sim_event *entry = &n->agenda.entry;
    if (!w->lookahead) {
        sim_wheel_add(&w->wheel, ev, at);
        return;
    }
    if (at < w->now)
        at = w->now;
    if (at > SIM_WHEEL_END)
        at = SIM_WHEEL_END;
    if (w->turn.node == n && at <= w->turn.last) {
        sim_cancel(n, ev);
        turn_add(&w->turn, ev, at);
        return;
    }
    if (ev->where == SIM_LISTED)
        turn_del(&w->turn, ev);
    if (!sim_heap_add(&n->agenda.later, ev, at))
        w->failed = true;
    else if (entry->where != IN_WINDOW && (!sim_event_pending(entry) || at < entry->at))
        sim_wheel_add(&w->wheel, entry, at);
}

void sim_call(struct sim_world *w, struct sim_event *ev, uint64_t at)
{
    if (!w->lookahead)
        sim_wheel_add(&w->wheel, ev, at);
    else if (!sim_heap_add(&w->calls, ev, at < w->now ? w->now : at))
        w->failed = true;
}

void sim_call_off(struct sim_world *w, struct sim_event *ev)
{
    if (!w->lookahead)
        sim_wheel_del(&w->wheel, ev);
    else
        sim_heap_del(&w->calls, ev);
}

/* ---- a window ---- */

static bool run_one(struct sim_world *w, struct sim_event *ev)
{
    if (!ev)
        return false;
    w->now = ev->at;
    ev->fire(ev, ev->at);
    return true;
}

/* All nodes that have work, linked by their entries. All other entries of the wheel pass events to
 * nodes. */
static struct sim_event *collect(struct sim_world *w, struct sim_event *ev)
{
    struct sim_event *first = NULL, **tail = &first;
    do {
        if (ev->fire) {
            ev->fire(ev, ev->at);
            continue;
        }
        ev->where = IN_WINDOW;
        *tail = ev;
        tail = &ev->next;
    } while ((ev = sim_wheel_pop(&w->wheel, w->turn.last)));
    *tail = NULL;
    return first;
}

/* With a thousand hosts a node's turn finds little of its data in a near cache: fetch it during the
 * turns before, a step in each, so that every step reads memory that the step before has fetched.
 */
static void fetch(const struct sim_node *n, unsigned step, uint64_t last)
{
    const struct sim_heap *h = &n->agenda.later;
    sim_keep();
    if (step == 0)
        __builtin_prefetch(h->due);
    for (uint32_t i = 0; i < h->n && step; i++) {
        const struct sim_event *ev = h->due[i].ev;
        if (h->due[i].at > last)
            continue;
        if (step == 1) {
            __builtin_prefetch(ev);
        } else if (ev->hint && step == 2) {
            __builtin_prefetch(ev->hint);
            __builtin_prefetch((const char *)ev->hint + 64);
        } else if (ev->hint) {
            __builtin_prefetch(((const struct sim_pkt *)ev->hint)->next);
        }
    }
    if (n->ops->near)
        n->ops->near(n, step);
}

static void look_ahead(struct sim_event *ev, uint64_t last)
{
    for (unsigned step = SIM_NEAR_STEPS; step-- && (ev = ev->next);)
        fetch(node_of(ev), step, last);
}

bool sim_window_run(struct sim_world *w, uint64_t until)
{
    if (!w->lookahead)
        return run_one(w, sim_wheel_pop(&w->wheel, until));
    uint64_t call = sim_heap_first(&w->calls);
    uint64_t limit = call <= until ? call - 1 : until;
    struct sim_event *ev = call ? sim_wheel_pop(&w->wheel, limit) : NULL;
    if (!ev)
        return run_one(w, sim_heap_pop(&w->calls, until));
    w->turn.begin = ev->at;
    w->turn.last = limit - ev->at < w->window ? limit : ev->at + w->window - 1;
    struct sim_event *next;
    for (ev = collect(w, ev); ev; ev = next) {
        next = ev->next;
        if (next)
            look_ahead(ev, w->turn.last);
        turn(w, node_of(ev));
    }
    return true;
}
