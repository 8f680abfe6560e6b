/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters of a device that count dropped frames.
 */
#include <string.h>

#include "engine_counters.h"
#include "stat.h"

/* The rows of ENGINE_COUNTERS about drops, without the first one: frames of other protocols are no
 * loss. */
static bool is_drop(const char *name)
{
    for (unsigned i = ENGINE_C_rx_not_roce + 1; i <= ENGINE_C_ud_drop_too_long; i++)
        if (strcmp(engine_counter_names[i], name) == 0)
            return true;
    return false;
}

uint64_t stat_drops(const struct stat_counters *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->count; i++)
        if (is_drop(c->counter[i].name))
            sum += c->counter[i].value;
    return sum;
}
