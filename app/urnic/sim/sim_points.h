/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measured rates to draw over simulated ones: the "sample" lines of
 * `urnic sim -o`, which scripts/live writes too.
 */
#ifndef URNIC_SIM_POINTS_H
#define URNIC_SIM_POINTS_H

#include <stddef.h>

#define SIM_POINT_FLOWS 16u

struct sim_points {
    size_t n; /* samples */
    double *t_ms;
    double *gbps[SIM_POINT_FLOWS]; /* NAN = none for this flow */
    unsigned flows;
};

/* Read a file of JSON lines; other lines than samples are passed over. 0, -EINVAL with a sentence
 * in err (file, line, reason), -ENOMEM. Give it back with sim_points_free, also after an error. */
int sim_points_read(struct sim_points *p, const char *file, char *err, size_t size);
void sim_points_free(struct sim_points *p);

#endif
