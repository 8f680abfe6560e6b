/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events, and the two structures that hold them until they are due: a heap for the few events of
 * one node, and a timing wheel for those of any number of nodes. Events need no allocation: each is
 * part of its object.
 */
#ifndef URNIC_SIM_EVENT_H
#define URNIC_SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_NEVER       UINT64_MAX
#define SIM_WHEEL_BITS  8
#define SIM_WHEEL_SLOTS (1u << SIM_WHEEL_BITS)
#define SIM_WHEEL_WORDS (SIM_WHEEL_SLOTS / 64)
#define SIM_WHEEL_LEVEL 6 /* 2^48 ns: 78 hours */
#define SIM_WHEEL_END   ((1ull << (SIM_WHEEL_LEVEL * SIM_WHEEL_BITS)) - 1)

/* Where an event is; otherwise its number in a heap, from 1. */
#define SIM_NOWHERE 0u
#define SIM_LISTED  UINT32_MAX

struct sim_event {
    struct sim_event *next, *prev; /* in a list */
    uint64_t at;                   /* ns */
    void (*fire)(struct sim_event *ev, uint64_t now);
    uint32_t key;   /* order of one node's events at one time: the lower key first */
    uint32_t where; /* SIM_NOWHERE = not scheduled */
    void *hint;     /* its first data, fetched ahead */
};

/* Kinds of events in the order of their keys; `number` distinguishes events of one kind and node.
 */
enum sim_kind { SIM_K_TX, SIM_K_RX, SIM_K_LATE, SIM_K_RESUME, SIM_K_TIMER, SIM_K_FLOW };
static inline uint32_t sim_key(enum sim_kind kind, uint32_t number)
{
    return (uint32_t)kind << 24 | number;
}

static inline bool sim_event_pending(const struct sim_event *ev)
{
    return ev->where != SIM_NOWHERE;
}

/* ---- by time, then key ---- */

struct sim_due {
    uint64_t at;
    struct sim_event *ev;
};

struct sim_heap { /* empty when zeroed */
    struct sim_due *due;
    uint32_t n, cap;
};

/* Schedule `ev`, or move it, to `at` ns. False: out of memory, it isn't scheduled. */
bool sim_heap_add(struct sim_heap *h, struct sim_event *ev, uint64_t at);
/* Cancel `ev`. Legal when it isn't scheduled. */
void sim_heap_del(struct sim_heap *h, struct sim_event *ev);
/* Take out the next event that is due at `limit` or before; NULL = none. */
struct sim_event *sim_heap_pop(struct sim_heap *h, uint64_t limit);
/* The time of the next event; SIM_NEVER = none. */
static inline uint64_t sim_heap_first(const struct sim_heap *h)
{
    return h->n ? h->due[0].at : SIM_NEVER;
}
/* Frees the heap's own memory; events are their owners'. */
void sim_heap_free(struct sim_heap *h);

/* ---- by time, then order of scheduling ---- */

/* The head of a slot's list. */
struct sim_list {
    struct sim_event *next, *prev;
};

static inline struct sim_event *sim_list_end(struct sim_list *l)
{
    return (struct sim_event *)(void *)l;
}

/* Put `ev` into a list before `next`. */
static inline void sim_list_put(struct sim_event *ev, struct sim_event *next)
{
    ev->next = next;
    ev->prev = next->prev;
    next->prev->next = ev;
    next->prev = ev;
    ev->where = SIM_LISTED;
}

/* Take it out. True: the list is empty now. */
static inline bool sim_list_take(struct sim_event *ev)
{
    ev->prev->next = ev->next;
    ev->next->prev = ev->prev;
    ev->where = SIM_NOWHERE;
    return ev->next == ev->prev; /* both are the list's head */
}

struct sim_wheel {
    uint64_t clk; /* nothing is scheduled before this */
    uint64_t used[SIM_WHEEL_LEVEL][SIM_WHEEL_WORDS];
    struct sim_list slot[SIM_WHEEL_LEVEL][SIM_WHEEL_SLOTS];
};

/* Empty, at time 0. */
void sim_wheel_init(struct sim_wheel *w);
/* As for the heap; a time that has passed means now. */
void sim_wheel_add(struct sim_wheel *w, struct sim_event *ev, uint64_t at);
void sim_wheel_del(struct sim_wheel *w, struct sim_event *ev);
struct sim_event *sim_wheel_pop(struct sim_wheel *w, uint64_t limit);

#endif
