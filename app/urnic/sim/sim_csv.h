/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic sim --csv`: a row for each flow of each run.
 */
#ifndef URNIC_SIM_CSV_H
#define URNIC_SIM_CSV_H

#include "sim.h"

struct sim_csv;

/* Add columns for the variables of one run. The first call makes *csv, for a file (the text must
 * stay valid; "-" is stdout). Call it for all runs before sim_csv_open. 0 or -ENOMEM. */
int sim_csv_variables(struct sim_csv **csv, const char *file, const struct sim_scenario *s);
/* Open the file and write the names of the columns. 0; -1 and errno. */
int sim_csv_open(struct sim_csv *csv);
/* Write the flows of run number `point`. */
void sim_csv_add(struct sim_csv *csv, struct sim *sim, uint32_t point);
/* NULL is fine. */
bool sim_csv_is_stdout(const struct sim_csv *csv);
/* Close the file, if there is one, and free. 0, or -errno: the file is incomplete. NULL is fine. */
int sim_csv_close(struct sim_csv *csv);

#endif
