/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers with units, from text and to text: times, rates, sizes, ratios.
 */
#include "sim_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
    const char *text;
    double factor;
};

static const struct suffix none[] = {{"", 1}, {NULL, 0}};
static const struct suffix times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct suffix rates[] = {{"", 1},    {"K", 1e3},  {"M", 1e6},
                                      {"G", 1e9}, {"T", 1e12}, {NULL, 0}};
static const struct suffix sizes[] = {
    {"", 1}, {"K", 1024}, {"M", 1024 * 1024}, {"G", 1024.0 * 1024 * 1024}, {NULL, 0}};
static const struct suffix ratios[] = {{"", 1}, {"%", .01}, {NULL, 0}};

static const struct {
    const struct suffix *suffix;
    const char *like;
} units[] = {
    [SIM_COUNT] = {none, "a number"},
    [SIM_TIME] = {times, "a time (5ns, 1.5us, 20ms, 1s)"},
    [SIM_RATE] = {rates, "a rate in bit/s (40G, 2.5M)"},
    [SIM_SIZE] = {sizes, "a size in octets (4096, 64K, 1M)"},
    [SIM_RATIO] = {ratios, "a ratio (0.01, 1%, 1/256)"},
};

const char *sim_value_like(enum sim_unit unit)
{
    return units[unit].like;
}

bool sim_value(enum sim_unit unit, const char *text, double *out)
{
    char *end;
    if (*text < '0' || *text > '9' || text[1] == 'x' || text[1] == 'X')
        return false;
    double v = strtod(text, &end);
    if (unit == SIM_RATIO && *end == '/') {
        char *second = end;
        double d = end[1] >= '1' && end[1] <= '9' ? strtod(end + 1, &second) : 0;
        if (d <= 0 || *second)
            return false;
        *out = v / d;
        return true;
    }
    for (const struct suffix *s = units[unit].suffix; s->text; s++) {
        if (strcmp(s->text, end))
            continue;
        *out = v * s->factor;
        return *out <= 0x1p62;
    }
    /* 0 is the same in every unit */
    *out = 0;
    return v == 0 && !*end;
}

void sim_value_format(enum sim_unit unit, double v, char *text, size_t size)
{
    const struct suffix *best = units[unit].suffix;
    for (const struct suffix *s = best; s->text && unit != SIM_RATIO; s++)
        if (v >= s->factor && fmod(v, s->factor) == 0)
            best = s;
    v /= best->factor;
    if (v == floor(v))
        snprintf(text, size, "%.0f", v);
    for (int digits = 6; v != floor(v) && digits <= 17; digits++) { /* as few as are exact */
        snprintf(text, size, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t n = strlen(text);
    snprintf(text + n, n < size ? size - n : 0, "%s", best->text);
}
