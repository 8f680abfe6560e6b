/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measured rates from JSON lines.
 */
#include "sim_points.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int grow(struct sim_points *p, size_t *cap)
{
    if (p->n < *cap)
        return 0;
    size_t more = *cap ? *cap * 2 : 256;
    double *t = realloc(p->t_ms, more * sizeof(*t));
    if (!t)
        return -ENOMEM;
    p->t_ms = t;
    for (unsigned i = 0; i < SIM_POINT_FLOWS; i++) {
        double *g = realloc(p->gbps[i], more * sizeof(*g));
        if (!g)
            return -ENOMEM;
        p->gbps[i] = g;
    }
    *cap = more;
    return 0;
}

/* Take a line. Returns its error; NULL = taken, or not a sample. */
static const char *take(struct sim_points *p, const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    if (!type)
        return "not an object with a type";
    if (strcmp(type, "sample"))
        return NULL;
    const json_t *t = json_object_get(line, "t_us"), *rates = json_object_get(line, "gbps");
    if (!json_is_number(t))
        return "t_us: not a number";
    if (!json_is_array(rates) || json_array_size(rates) > SIM_POINT_FLOWS)
        return "gbps: not an array of at most 16 rates";
    for (unsigned i = 0; i < SIM_POINT_FLOWS; i++) {
        const json_t *v = json_array_get(rates, i);
        p->gbps[i][p->n] = json_is_number(v) ? json_number_value(v) : NAN;
    }
    p->t_ms[p->n++] = json_number_value(t) / 1e3;
    if (json_array_size(rates) > p->flows)
        p->flows = (unsigned)json_array_size(rates);
    return NULL;
}

int sim_points_read(struct sim_points *p, const char *file, char *err, size_t size)
{
    size_t cap = 0, room = 0;
    char *text = NULL;
    int rc = 0;
    *p = (struct sim_points){0};
    FILE *f = fopen(file, "r");
    if (!f) {
        snprintf(err, size, "%s: %s", file, strerror(errno));
        return -EINVAL;
    }
    for (unsigned number = 1; !rc && getline(&text, &room, f) > 0; number++) {
        json_error_t bad;
        json_t *line = json_loads(text, 0, &bad);
        const char *why = line ? NULL : bad.text;
        rc = grow(p, &cap);
        if (!rc && !why)
            why = take(p, line);
        if (!rc && why) {
            snprintf(err, size, "%s:%u: %s", file, number, why);
            rc = -EINVAL;
        }
        json_decref(line);
    }
    if (!rc && !p->n) {
        snprintf(err, size, "%s: no sample", file);
        rc = -EINVAL;
    }
    if (rc == -ENOMEM)
        snprintf(err, size, "%s: out of memory", file);
    free(text);
    fclose(f);
    return rc;
}

void sim_points_free(struct sim_points *p)
{
    free(p->t_ms);
    for (unsigned i = 0; i < SIM_POINT_FLOWS; i++)
        free(p->gbps[i]);
    *p = (struct sim_points){0};
}
