/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tables of the fields of scenarios.
 */
#include "sim_field.h"

#include <stdio.h>
#include <string.h>

#include "sim_scenario.h"

#define RATE_MAX 1e12
#define OCTETS   0x1p40

#define AT(type, member) offsetof(struct type, member)
#define FIELD(name, kind, unit, type, member, min, max)                                            \
    {                                                                                              \
        name, kind, unit, AT(type, member), min, max, NULL, false                                  \
    }
#define NEED(name, kind, unit, type, member, min, max)                                             \
    {                                                                                              \
        name, kind, unit, AT(type, member), min, max, NULL, true                                   \
    }
#define FIELDS_END                                                                                 \
    {                                                                                              \
        NULL, SIM_F_U32, SIM_COUNT, 0, 0, 0, NULL, false                                           \
    }

#define TOPO_COMMON                                                                                \
    NEED("rate", SIM_F_U64, SIM_RATE, sim_topo, rate, 1e6, RATE_MAX),                              \
        FIELD("core", SIM_F_U64, SIM_RATE, sim_topo, core, 1e6, RATE_MAX),                         \
        FIELD("delay", SIM_F_U64, SIM_TIME, sim_topo, delay, 0, 1e9), FIELDS_END
static const struct sim_field topo_hosts[] = {
    NEED("hosts", SIM_F_U32, SIM_COUNT, sim_topo, hosts, 1, SIM_HOST_MAX), TOPO_COMMON};
static const struct sim_field topo_parking[] = {
    NEED("hops", SIM_F_U32, SIM_COUNT, sim_topo, hops, 1, 64), TOPO_COMMON};
static const struct sim_field topo_leaf[] = {
    NEED("hosts", SIM_F_U32, SIM_COUNT, sim_topo, hosts, 1, 1024),
    NEED("leaves", SIM_F_U32, SIM_COUNT, sim_topo, leaves, 1, 1024),
    FIELD("spines", SIM_F_U32, SIM_COUNT, sim_topo, spines, 0, 256), TOPO_COMMON};
static const struct sim_field topo_fat[] = {NEED("k", SIM_F_U32, SIM_COUNT, sim_topo, k, 2, 16),
                                            TOPO_COMMON};
const struct sim_statement sim_topologies[] = {
    [SIM_DUMBBELL] = {"dumbbell", topo_hosts}, [SIM_PARKING] = {"parking-lot", topo_parking},
    [SIM_INCAST] = {"incast", topo_hosts},     [SIM_LEAF_SPINE] = {"leaf-spine", topo_leaf},
    [SIM_FAT_TREE] = {"fat-tree", topo_fat},   {NULL, NULL},
};

static const char *const agreements[] = {"hello", "agreed", NULL};
const struct sim_field sim_host_fields[] = {
    FIELD("mtu", SIM_F_U32, SIM_COUNT, sim_host_params, mtu, 256, 4096),
    FIELD("window", SIM_F_U32, SIM_COUNT, sim_host_params, window, 16, 1 << 20),
    FIELD("timeout", SIM_F_U8, SIM_COUNT, sim_host_params, timeout, 0, 31),
    FIELD("retries", SIM_F_U8, SIM_COUNT, sim_host_params, retries, 0, 7),
    FIELD("dscp", SIM_F_U8, SIM_COUNT, sim_host_params, dscp, 0, 47),
    {"sr", SIM_F_CHOICE, SIM_COUNT, AT(sim_host_params, sr), 0, 0, agreements, false},
    FIELDS_END,
};

const struct sim_field sim_noise_fields[] = {
    FIELD("loss", SIM_F_DOUBLE, SIM_RATIO, sim_noise_params, loss, 0, 1),
    FIELD("reorder", SIM_F_DOUBLE, SIM_RATIO, sim_noise_params, reorder, 0, 1),
    FIELD("late", SIM_F_U64, SIM_TIME, sim_noise_params, late, 1, SIM_TIME_MAX),
    FIELDS_END,
};

static const char *const balances[] = {"ecmp", "spray", NULL};
const struct sim_field sim_switch_fields[] = {
    FIELD("buffer", SIM_F_U64, SIM_SIZE, sim_switch_params, buffer, 1024, OCTETS),
    FIELD("headroom", SIM_F_U64, SIM_SIZE, sim_switch_params, headroom, 0, OCTETS),
    FIELD("xoff", SIM_F_U64, SIM_SIZE, sim_switch_params, xoff, 0, OCTETS),
    FIELD("xon_gap", SIM_F_U64, SIM_SIZE, sim_switch_params, xon_gap, 0, OCTETS),
    FIELD("queue", SIM_F_U64, SIM_SIZE, sim_switch_params, queue_limit, 0, OCTETS),
    FIELD("alpha", SIM_F_DOUBLE, SIM_RATIO, sim_switch_params, alpha, 1e-4, 1024),
    FIELD("kmin", SIM_F_U64, SIM_SIZE, sim_switch_params, kmin, 0, OCTETS),
    FIELD("kmax", SIM_F_U64, SIM_SIZE, sim_switch_params, kmax, 0, OCTETS),
    FIELD("pmax", SIM_F_DOUBLE, SIM_RATIO, sim_switch_params, pmax, 0, 1),
    FIELD("pfc", SIM_F_FLAG, SIM_COUNT, sim_switch_params, pfc, 0, 0),
    {"balance", SIM_F_CHOICE, SIM_COUNT, AT(sim_switch_params, balance), 0, 0, balances, false},
    FIELDS_END,
};

#define START   FIELD("start", SIM_F_U64, SIM_TIME, sim_load, start, 0, SIM_TIME_MAX)
#define JITTER  FIELD("jitter", SIM_F_U64, SIM_TIME, sim_load, jitter, 0, SIM_TIME_MAX)
#define STOP    FIELD("stop", SIM_F_U64, SIM_TIME, sim_load, stop, 0, SIM_TIME_MAX)
#define MESSAGE FIELD("message", SIM_F_U32, SIM_SIZE, sim_load, message, 1, 1 << 30)
#define CC                                                                                         \
    {                                                                                              \
        "cc", SIM_F_CC, SIM_COUNT, AT(sim_load, cc), 0, 0, NULL, false                             \
    }
#define SIZE NEED("size", SIM_F_U64, SIM_SIZE, sim_load, size, 1, OCTETS)

static const struct sim_field flow_fields[] = {
    NEED("from", SIM_F_U32, SIM_COUNT, sim_load, from, 0, SIM_HOST_MAX),
    NEED("to", SIM_F_U32, SIM_COUNT, sim_load, to, 0, SIM_HOST_MAX),
    NEED("size", SIM_F_UNTIL, SIM_SIZE, sim_load, size, 1, OCTETS),
    FIELD("count", SIM_F_U32, SIM_COUNT, sim_load, count, 1, 10000),
    START,
    JITTER,
    STOP,
    MESSAGE,
    CC,
    FIELDS_END,
};
static const struct sim_field burst_fields[] = {
    NEED("to", SIM_F_U32, SIM_COUNT, sim_load, to, 0, SIM_HOST_MAX),
    SIZE,
    FIELD("senders", SIM_F_U32, SIM_COUNT, sim_load, count, 1, SIM_HOST_MAX),
    FIELD("every", SIM_F_U64, SIM_TIME, sim_load, every, 1, SIM_TIME_MAX),
    FIELD("times", SIM_F_U32, SIM_COUNT, sim_load, times, 1, 100000),
    START,
    JITTER,
    MESSAGE,
    CC,
    FIELDS_END,
};
static const struct sim_field spread_fields[] = {SIZE, START, JITTER, MESSAGE, CC, FIELDS_END};
static const struct sim_field reduce_fields[] = {
    SIZE,
    FIELD("first", SIM_F_U32, SIM_COUNT, sim_load, from, 0, SIM_HOST_MAX),
    FIELD("hosts", SIM_F_U32, SIM_COUNT, sim_load, hosts, 2, SIM_HOST_MAX),
    FIELD("times", SIM_F_U32, SIM_COUNT, sim_load, times, 1, 10000),
    START,
    CC,
    FIELDS_END,
};
static const struct sim_field arrival_fields[] = {
    {"sizes", SIM_F_DIST, SIM_COUNT, AT(sim_load, dist), 0, 0, NULL, true},
    NEED("load", SIM_F_DOUBLE, SIM_RATIO, sim_load, load, 1e-6, 2),
    START,
    STOP,
    MESSAGE,
    CC,
    FIELDS_END,
};

const struct sim_statement sim_loads[] = {
    [SIM_FLOW] = {"flow", flow_fields},
    [SIM_BURST] = {"incast", burst_fields},
    [SIM_PERMUTATION] = {"permutation", spread_fields},
    [SIM_ALL_TO_ALL] = {"all-to-all", spread_fields},
    [SIM_ALL_REDUCE] = {"all-reduce", reduce_fields},
    [SIM_ARRIVALS] = {"arrivals", arrival_fields},
    {NULL, NULL},
};

bool sim_field_value(const struct sim_field *f, const void *base, double *number, char *text,
                     size_t size)
{
    const void *at = (const char *)base + f->off;
    const struct sim_dist *dist;
    double v = 0;
    switch (f->kind) {
    case SIM_F_U8:
        v = *(const uint8_t *)at;
        break;
    case SIM_F_U32:
    case SIM_F_CHOICE:
        v = *(const uint32_t *)at;
        break;
    case SIM_F_U64:
    case SIM_F_UNTIL:
        v = (double)*(const uint64_t *)at;
        break;
    case SIM_F_DOUBLE:
        v = *(const double *)at;
        break;
    case SIM_F_FLAG:
        v = *(const bool *)at;
        break;
    case SIM_F_DIST:
    case SIM_F_CC:
        break;
    }
    if (number)
        *number = v;
    if (f->kind == SIM_F_FLAG) {
        snprintf(text, size, "%s", v ? "on" : "off");
    } else if (f->kind == SIM_F_CHOICE) {
        snprintf(text, size, "%s", f->choices[(unsigned)v]);
    } else if (f->kind == SIM_F_DIST) {
        memcpy(&dist, at, sizeof(dist));
        snprintf(text, size, "%s", dist->name);
    } else if (f->kind == SIM_F_CC) {
        const struct cc_conf *conf = at;
        if (!conf->type)
            return false;
        cc_conf_format(conf, text, size);
    } else if (f->kind == SIM_F_UNTIL && v == 0) {
        snprintf(text, size, "forever");
    } else {
        if (v < f->min || v > f->max)
            return false; /* a value that no scenario can set: it means "not set" */
        sim_value_format(f->unit, v, text, size);
    }
    return true;
}
