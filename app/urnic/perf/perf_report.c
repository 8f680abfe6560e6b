/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Results of `urnic perf` as a table or as JSON, one object per line.
 */
#include <inttypes.h>
#include <jansson.h>

#include "perf.h"

void perf_report_head(const struct perf_options *o)
{
    if (o->json)
        return;
    if (o->op == PERF_CONNECT)
        printf("%12s %12s\n", "connections", "per second");
    else if (o->latency)
        printf("%10s %10s %9s %9s %9s %9s %9s %9s   us, %s\n", "octets", "samples", "min", "median",
               "mean", "p99", "p99.9", "max",
               o->op == PERF_WRITE || o->op == PERF_SEND ? "half round trip" : "round trip");
    else
        printf("%10s %12s %12s %14s\n", "octets", "messages", "Mmsg/s", "goodput Gb/s");
}

/* The options in force, for --json. */
static json_t *parameters(const struct perf_options *o)
{
    return json_pack("{s:s*,s:i,s:i,s:i,s:i,s:b,s:b,s:s,s:I,s:s}", "device", o->device, "idle_qps",
                     (int)o->idle_qps, "depth", (int)o->depth, "batch", (int)o->batch,
                     "signal_every", (int)o->signal_every, "inline", o->inline_data, "both",
                     o->both, "wait", perf_wait_names[o->wait], "working_set",
                     (json_int_t)o->working_set, "cc", o->cc);
}

void perf_report(const struct perf_options *o, const struct perf_result *r)
{
    double s = (double)r->ns / 1e9, per_s = s > 0 ? (double)r->messages / s : 0;
    double goodput = per_s * (double)r->size * 8;
    if (!o->json) {
        if (o->op == PERF_CONNECT)
            printf("%12" PRIu64 " %12.0f\n", r->messages, per_s);
        else if (o->latency)
            printf("%10" PRIu64 " %10" PRIu64 " %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", r->size,
                   r->messages, (double)r->min / 1e3, (double)r->p50 / 1e3, r->mean / 1e3,
                   (double)r->p99 / 1e3, (double)r->p999 / 1e3, (double)r->max / 1e3);
        else
            printf("%10" PRIu64 " %12" PRIu64 " %12.3f %14.3f\n", r->size, r->messages, per_s / 1e6,
                   goodput / 1e9);
        fflush(stdout);
        return;
    }
    json_t *j =
        json_pack("{s:s,s:I,s:i,s:I,s:f,s:f,s:f}", "op", perf_op_names[o->op], "size",
                  (json_int_t)r->size, "qps", (int)o->qps, "messages", (json_int_t)r->messages,
                  "seconds", s, "messages_per_s", per_s, "goodput", goodput);
    if (o->latency) {
        json_t *l =
            json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "min", (json_int_t)r->min, "p50",
                      (json_int_t)r->p50, "p90", (json_int_t)r->p90, "p99", (json_int_t)r->p99,
                      "p999", (json_int_t)r->p999, "max", (json_int_t)r->max, "mean", r->mean);
        json_object_set_new(j, "latency_ns", l);
    }
    json_object_set_new(j, "parameters", parameters(o));
    cli_json(j);
}
