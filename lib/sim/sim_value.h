/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers with units, as scenario files write them.
 */
#ifndef URNIC_SIM_VALUE_H
#define URNIC_SIM_VALUE_H

#include <stdbool.h>
#include <stddef.h>

enum sim_unit {
    SIM_COUNT, /* "12" */
    SIM_TIME,  /* ns: "5ns", "1.5us", "20ms", "1s" */
    SIM_RATE,  /* bit/s: "40G", "2.5M": decimal */
    SIM_SIZE,  /* octets: "64K", "1.5M": powers of 1024 */
    SIM_RATIO, /* "0.01", "1%", "1/256" */
};

/* The number, in base units. False: it has another unit, or is negative or above 2^62. */
bool sim_value(enum sim_unit unit, const char *text, double *out);
/* Text that means the same number again, in the largest unit that divides it. */
void sim_value_format(enum sim_unit unit, double v, char *text, size_t size);
/* The form of the unit's numbers, for messages. */
const char *sim_value_like(enum sim_unit unit);

#endif
