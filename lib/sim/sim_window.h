/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of a world's events. No action of a node reaches another node in less than the
 * network's look-ahead, the least delay of a cable. So time is cut into windows not longer than
 * that, and within a window one node after the other has its turn, and runs all its events of the
 * window: its data is fetched once for all of them. A thousand hosts do not fit into the near
 * caches, one does.
 *
 * An event belongs to a node, or is a call. A node's events run in the order of time and, at equal
 * times, of their keys. A call ends a window, so it sees all nodes at its time. The outcome does
 * not depend on the windows, as long as no node affects another one within the look-ahead.
 *
 * A world without look-ahead (0) has no windows: all events run in the order of time and, at one
 * time, of scheduling, and a node may affect another one at once.
 */
#ifndef URNIC_SIM_WINDOW_H
#define URNIC_SIM_WINDOW_H

#include "sim_event.h"

#define SIM_WINDOW_MAX 1024u /* ns */
#define SIM_NEAR_STEPS 4u    /* turns by which prefetching is ahead */

struct sim_node;
struct sim_world;

/* For functions that do nothing but prefetch: GCC finds them without effect, and drops calls of
 * them. */
static inline void sim_keep(void)
{
    __asm__ volatile("");
}

/* The node that runs: its events in this window, a slot for each nanosecond. */
struct sim_turn {
    struct sim_node *node; /* NULL = none */
    uint64_t begin, last;  /* ns: the window */
    uint64_t used[SIM_WINDOW_MAX / 64];
    struct sim_list slot[SIM_WINDOW_MAX];
};

/* A node's events. */
struct sim_agenda {
    struct sim_event entry; /* in the world's wheel, with the time of the first of `later` */
    struct sim_heap later;
};

/* Schedule an event of a node, or move it, to `at` ns; a time that has passed means now. In the
 * turn of another node: not before the end of the window. Out of memory: the world has failed. */
void sim_at(struct sim_node *n, struct sim_event *ev, uint64_t at);
/* Cancel an event. Legal when it isn't scheduled. */
void sim_cancel(struct sim_node *n, struct sim_event *ev);
/* The same for a call. */
void sim_call(struct sim_world *w, struct sim_event *ev, uint64_t at);
void sim_call_off(struct sim_world *w, struct sim_event *ev);
/* Run the next window or call that is due at `until` or before. False: there is none. */
bool sim_window_run(struct sim_world *w, uint64_t until);

#endif
