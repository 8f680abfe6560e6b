/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every effective parameter of a simulation, given or not.
 */
#ifndef URNIC_SIM_PARAMS_H
#define URNIC_SIM_PARAMS_H

#include <jansson.h>
#include <stdio.h>

#include "sim.h"

/* Write statements of a scenario file that make the same run, each after two spaces. The first line
 * has several, with commas between, and urnic's version. */
void sim_params_text(FILE *f, const struct sim *sim);
/* Make a JSON object with numbers in bit/s, ns, octets and fractions. It belongs to the caller;
 * NULL = out of memory. */
json_t *sim_params_json(const struct sim *sim);

#endif
