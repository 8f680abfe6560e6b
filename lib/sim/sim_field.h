/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields NAME=VALUE of a scenario's statements: tables with their names, units, bounds and
 * places in structures. The parser uses them, and so do the reports of the values in force.
 */
#ifndef URNIC_SIM_FIELD_H
#define URNIC_SIM_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "sim_value.h"

#define SIM_TIME_MAX 1e12 /* ns */
#define SIM_HOST_MAX 16383

enum sim_field_kind {
    SIM_F_U8,
    SIM_F_U32,
    SIM_F_U64,
    SIM_F_DOUBLE,
    SIM_F_FLAG,   /* bool: "on", "off" */
    SIM_F_CHOICE, /* unsigned: one of `choices` */
    SIM_F_DIST,   /* const struct sim_dist *: by name */
    SIM_F_UNTIL,  /* uint64_t; 0 = "forever" */
    SIM_F_CC      /* struct cc_conf; without a type it is not set */
};

struct sim_field {
    const char *name; /* NULL = end of the table */
    enum sim_field_kind kind;
    enum sim_unit unit;
    size_t off;
    double min, max;
    const char *const *choices; /* NULL-terminated */
    bool required;
};

/* A statement: its word, and its fields in the structure that it fills in. */
struct sim_statement {
    const char *word; /* NULL = end of the table */
    const struct sim_field *fields;
};

extern const struct sim_statement sim_topologies[]; /* by enum sim_topo_kind; struct sim_topo */
extern const struct sim_statement sim_loads[];      /* by enum sim_load_kind; struct sim_load */
extern const struct sim_field sim_host_fields[];    /* struct sim_host_params */
extern const struct sim_field sim_switch_fields[];  /* struct sim_switch_params */
extern const struct sim_field sim_noise_fields[];   /* struct sim_noise_params */

/* Its value in the structure at `base`, as a number (base units) and as text that means the same
 * number again; number may be NULL, CC_TEXT octets of text are enough. False: the field is not set,
 * and has no text. */
bool sim_field_value(const struct sim_field *f, const void *base, double *number, char *text,
                     size_t size);

#endif
