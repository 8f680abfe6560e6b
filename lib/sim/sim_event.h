/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens when: events of the simulation in the order of their time, and among equal times in
 * the order in which they were scheduled. Nothing is allocated: an event lives inside the object
 * that it is about.
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
#define SIM_WARM_STEPS  4u
#define SIM_AHEAD       16u /* a power of two, two events for each step and the two before */

struct sim_event {
    struct sim_event *next, *prev; /* next NULL = not scheduled */
    uint64_t at;                   /* ns */
    void (*fire)(struct sim_event *ev, uint64_t now);
    void *hint[2]; /* what it will read first: fetched while the events before it run */
};

/* The head of a slot's list. */
struct sim_list {
    struct sim_event *next, *prev;
};

struct sim_wheel {
    uint64_t clk; /* nothing is scheduled before this */
    /* NULL, or called some events before `ev` is fired, with a step of 0 first, to prefetch what it
     * will read: SIM_WARM_STEPS times, so that each step may read what the one before has fetched.
     */
    void (*warm)(struct sim_event *ev, unsigned step);
    struct sim_event *ahead;           /* last event that looking ahead has reached, */
    unsigned ahead_slot;               /* ... and its slot */
    unsigned nseen;                    /* events reached, free running */
    struct sim_event *seen[SIM_AHEAD]; /* ... the last ones; NULL where there was none */
    uint64_t used[SIM_WHEEL_LEVEL][SIM_WHEEL_WORDS];
    struct sim_list slot[SIM_WHEEL_LEVEL][SIM_WHEEL_SLOTS];
};

void sim_wheel_init(struct sim_wheel *w);
/* Schedule `ev`, or move it, to `at` ns; a time that has passed means now. */
void sim_wheel_add(struct sim_wheel *w, struct sim_event *ev, uint64_t at);
/* Not scheduled any more. Legal when it isn't. */
void sim_wheel_del(struct sim_wheel *w, struct sim_event *ev);
static inline bool sim_event_pending(const struct sim_event *ev)
{
    return ev->next;
}
/* Take out the next event that is due at `limit` or before; NULL = none. */
struct sim_event *sim_wheel_pop(struct sim_wheel *w, uint64_t limit);

#endif
