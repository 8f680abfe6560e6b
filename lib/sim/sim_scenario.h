/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scenario files: descriptions of simulations as text (doc/scenarios.md). Reading one is pure: text
 * in, structure or a sentence out. Traffic, watches and expectations are as many as memory holds.
 */
#ifndef URNIC_SIM_SCENARIO_H
#define URNIC_SIM_SCENARIO_H

#include "sim_dist.h"
#include "sim_net.h"
#include "sim_noise.h"
#include "sim_topo.h"

#define SIM_VARS   32u
#define SIM_RULES  32u
#define SIM_TEXT   256u
#define SIM_REASON 1024u /* octets of an error's reason */
#define SIM_POINTS 1000000u

enum sim_load_kind {
    SIM_FLOW,
    SIM_BURST,
    SIM_PERMUTATION,
    SIM_ALL_TO_ALL,
    SIM_ALL_REDUCE,
    SIM_ARRIVALS
};

struct sim_load { /* a line of traffic */
    enum sim_load_kind kind;
    unsigned line;
    uint32_t from, to, count; /* hosts; how many flows or senders */
    uint32_t hosts, times;
    uint64_t size; /* octets, 0 = until `stop` */
    uint64_t start, stop, every;
    uint64_t jitter; /* ns: largest random delay of each flow's start */
    uint32_t message;
    double load; /* part of the hosts' line rate */
    const struct sim_dist *dist;
    struct cc_conf cc; /* of these flows; without a type: as all hosts */
};

struct sim_watch_port { /* a queue to sample */
    uint32_t from, to;  /* nodes */
    unsigned line;
};

enum sim_op { SIM_LE, SIM_GE, SIM_EQ };

struct sim_expect {
    char metric[48];
    enum sim_op op;
    double value, within; /* within: part of value, for SIM_EQ */
    unsigned line;
};

struct sim_var {
    char name[24], value[SIM_TEXT];
    bool swept, given; /* by a sweep; by the caller */
    bool known;        /* the file has a set or sweep of it */
};

enum sim_rule_at {
    SIM_AT_HOSTS, /* the wires out of all hosts; a->b: to a host of a higher number */
    SIM_AT_NODE,  /* all wires of node a; a->b: away from it */
    SIM_AT_CABLE  /* between nodes a and b */
};

struct sim_rule {
    char text[SIM_TEXT];
    unsigned line;
    enum sim_rule_at at;
    uint32_t a, b;
};

struct sim_scenario {
    char title[SIM_TEXT];
    uint64_t seed, duration, sample, measure; /* ns */
    bool skip_payload;
    struct sim_topo topo;
    struct sim_net_params net;
    struct sim_noise_params noise;
    struct sim_load *load;
    struct sim_watch_port *watch;
    struct sim_expect *expect;
    struct sim_var var[SIM_VARS];
    struct sim_rule rule[SIM_RULES]; /* faults, in the language of lib/fault */
    unsigned nloads, nwatches, nexpects, nvars, nrules;
    unsigned topology_line, switch_line; /* for reports; 0 = none */
    uint32_t points;                     /* the product of all sweeps */
};

struct sim_error {
    unsigned line; /* 0 = the scenario as a whole */
    char field[48];
    char reason[SIM_REASON];
};

/* Start with nothing set. Then optionally set variables, whose values win over the file's. False:
 * too many, or too long. */
void sim_scenario_init(struct sim_scenario *s);
/* Free its lists, after sim_scenario_parse has succeeded or failed; before the next
 * sim_scenario_init, and not before the simulation is destroyed. A structure of zeros is fine. */
void sim_scenario_free(struct sim_scenario *s);
bool sim_scenario_set(struct sim_scenario *s, const char *name, const char *value);
/* One more fault rule, on the wires out of all hosts; `line` is for reports. False: no room. */
bool sim_scenario_rule(struct sim_scenario *s, const char *text, unsigned line);
/* Read text[0..len) for the `point`th combination of its sweeps. 0, or -EINVAL, -ENOMEM and *err.
 */
int sim_scenario_parse(struct sim_scenario *s, const char *text, size_t len, uint32_t point,
                       struct sim_error *err);

#endif
