/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulation: a scenario becomes a network with traffic, which runs until some time; then its
 * figures can be read. Deterministic: the same scenario and seed give the same frames at the same
 * times. No I/O, no clock; one thread at a time per simulation, several are independent.
 */
#ifndef URNIC_SIM_H
#define URNIC_SIM_H

#include "sim_fault.h"
#include "sim_flow.h"
#include "sim_scenario.h"

#define SIM_SERIES_FLOWS 64u /* flows with a series of their own */

struct sim_point {
    uint64_t t; /* ns */
    double v;
};

struct sim_series {
    char name[40]; /* "flow 3", "switch0>switch1" */
    struct sim_point *point;
    uint32_t n, cap;
};

struct sim {
    const struct sim_scenario *s;
    struct sim_world w;
    struct sim_noise noise;
    struct sim_net net;
    struct sim_flows flows;
    struct sim_event sample, measure, drain;
    struct sim_series *rate;          /* Gb/s placed per flow, nrates of them */
    struct sim_series *limit, *alpha; /* per flow, of congestion control; NAN = not running */
    struct sim_series *queue;         /* octets, nqueues of them */
    struct sim_series total;          /* Gb/s of all flows */
    struct sim_series fair;           /* fairness index of the flows that run; NAN = none */
    struct sim_series again, pauses;  /* packets retransmitted, XOFF frames sent: totals */
    struct sim_port **watched;
    uint32_t nrates, nqueues;
    uint64_t measured_from; /* ns; SIM_NEVER = not yet */
    uint64_t *before;       /* per flow: octets placed before measured_from */
    uint64_t drain_from;    /* ns: time of the last arrival; SIM_NEVER = not yet, or none */
    uint64_t drain_placed;  /* octets placed by all flows before drain_from */
};

/* Build it. *s must outlive it; hooks may be NULL. 0, or -ENOMEM, -EINVAL, -ENOSPC and *err. */
int sim_create(const struct sim_scenario *s, const struct sim_hooks *hooks, struct sim **out,
               struct sim_error *err);
/* NULL is fine. */
void sim_destroy(struct sim *sim);

/* Run up to `until` ns, or the end of the last flow. True: work is left. */
bool sim_run(struct sim *sim, uint64_t until);
/* Run one window (sim_window.h), or the work between two. False: there is none before the end. */
bool sim_step(struct sim *sim);
/* The time at which the run ends at the latest. */
static inline uint64_t sim_end(const struct sim *sim)
{
    return sim->s->duration;
}

#endif
