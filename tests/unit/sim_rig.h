/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of whole simulations: make one from a scenario's text, and read its figures.
 */
#ifndef URNIC_SIM_RIG_H
#define URNIC_SIM_RIG_H

#include <string.h>

#include "sim.h"
#include "sim_metric.h"
#include "unit.h"

static struct sim_scenario s;

/* Make the simulation of a scenario's text, and keep the scenario in `s`. `hooks` may be NULL. If
 * the text is wrong the test fails. */
static inline struct sim *make(const char *text, const struct sim_hooks *hooks)
{
    struct sim_error err;
    struct sim *sim;
    sim_scenario_free(&s);
    sim_scenario_init(&s);
    int rc = sim_scenario_parse(&s, text, strlen(text), 0, &err);
    ck_assert_msg(!rc, "%u: %s: %s", err.line, err.field, err.reason);
    rc = sim_create(&s, hooks, &sim, &err);
    ck_assert_msg(!rc, "%u: %s: %s", err.line, err.field, err.reason);
    return sim;
}

static inline double metric(struct sim *sim, const char *name)
{
    double v;
    ck_assert_msg(sim_metric(sim, name, &v), "%s", name);
    return v;
}

#endif
