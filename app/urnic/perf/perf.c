/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic perf`: its command line, and one run from connecting to the last size.
 */
#include "perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))
#define ALL_SIZES       24u /* --all-sizes: powers of two, 1 octet to 8 MiB */
#define SIZE_MAX_OCTETS (1u << 31)
#define WORKING_SET_MAX (1ull << 34) /* octets */
#define BUFFER_MIN      4096u
#define BUFFER_MAX      (1ull << 36)

static const char help[] = {
#include "help_perf.inc"
};

const char *const perf_op_names[] = {"write", "read", "send", "atomic", "connect"};
const char *const perf_wait_names[] = {"yield", "spin", "event"};

static int choose(const char *option, const char *text, const char *const *names, unsigned n,
                  unsigned *out)
{
    for (*out = 0; *out < n; ++*out)
        if (strcmp(names[*out], text) == 0)
            return 0;
    char known[128] = "";
    for (unsigned i = 0; i < n; i++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "", names[i]);
    }
    cli_error("%s: '%s' is none of %s", option, text, known);
    return -1;
}

static int sizes(struct perf_options *o, char *list)
{
    o->nsizes = 0;
    for (char *save, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (o->nsizes == PERF_SIZES_MAX) {
            cli_error("--size: more than %u sizes", PERF_SIZES_MAX);
            return -1;
        }
        if (cli_size("--size", word, 0, SIZE_MAX_OCTETS, &o->size[o->nsizes]) < 0)
            return -1;
        o->nsizes++;
    }
    if (!o->nsizes)
        cli_error("--size: '' is not a list of sizes");
    return o->nsizes ? 0 : -1;
}

static uint64_t largest(const struct perf_options *o)
{
    uint64_t max = 0;
    for (unsigned i = 0; i < o->nsizes; i++)
        max = o->size[i] > max ? o->size[i] : max;
    return max;
}

/* Derive the settings that were not given from those that were. Returns 0, or CLI_USAGE with a
 * message. */
static int complete(struct perf_options *o)
{
    if (!o->nsizes)
        o->size[o->nsizes++] = o->latency || o->op == PERF_ATOMIC ? 8 : 65536;
    uint64_t max = largest(o);
    if (!o->depth)
        o->depth = 128;
    if (o->latency && o->depth == 1) /* a pong may be here before its ping's ACK */
        o->depth = 2;
    if (!o->batch)
        o->batch = max >= 65536 ? 1 : 16;
    if (o->batch > o->depth)
        o->batch = o->depth;
    if (!o->signal_every)
        o->signal_every = o->batch;
    if (o->signal_every > o->depth / 2 && o->depth > 1)
        o->signal_every = o->depth / 2;
    if (!o->ns && !o->count)
        o->ns = 2000000000;
    if (o->working_set < max)
        o->working_set = max;
    for (unsigned i = 0; i < o->nsizes; i++) {
        if (o->op == PERF_ATOMIC && o->size[i] != 8) {
            cli_error("--size: atomics have 8 octets, not %llu", (unsigned long long)o->size[i]);
            return CLI_USAGE;
        }
        if (o->latency && o->op == PERF_WRITE && o->size[i] == 0) {
            cli_error("--size: 0 octets arrive without a trace: no latency to measure");
            return CLI_USAGE;
        }
        if (o->inline_data && o->size[i] > 64) {
            cli_error("--inline: messages of up to 64 octets, not %llu",
                      (unsigned long long)o->size[i]);
            return CLI_USAGE;
        }
    }
    if (o->warm_up_ns && (o->count || o->latency || o->op == PERF_CONNECT)) {
        cli_error("--warm-up: only for bandwidth that is measured for a time (--time)");
        return CLI_USAGE;
    }
    if (o->both && (o->op == PERF_SEND || o->op == PERF_CONNECT || o->latency)) {
        cli_error("--both: only for the bandwidth of write, read and atomic");
        return CLI_USAGE;
    }
    if (o->latency && (o->qps > 1 || o->op == PERF_CONNECT)) {
        cli_error("--lat: one queue pair, and not with --op connect");
        return CLI_USAGE;
    }
    return 0;
}

static struct perf_ask ask_for(const struct perf_options *o, unsigned i)
{
    uint64_t span = (o->working_set + 63) & ~63ull;
    return (struct perf_ask){
        .magic = PERF_MAGIC,
        .op = (uint8_t)o->op,
        .latency = o->latency,
        .both = o->both,
        .idle = i >= o->qps,
        .index = i,
        .depth = o->depth,
        .batch = o->batch,
        .size = largest(o),
        .span = span ? span : 64,
    };
}

static int measure(struct perf_end *e, struct perf_qp *q, const struct perf_options *o)
{
    int rc = 0;
    for (unsigned i = 0; i < o->nsizes && rc == 0 && !cli_stop; i++) {
        struct perf_result r = {0};
        rc = o->latency ? perf_latency(e, &q[0], o, o->size[i], &r)
                        : perf_bandwidth(e, q, o, o->size[i], &r);
        if (rc == 0)
            perf_report(o, &r);
    }
    return rc;
}

/* 0 or -errno with a message. */
static int connections(struct perf_end *e, const struct perf_options *o)
{
    struct perf_result r = {0};
    int rc = perf_connections(e, o, &r);
    if (rc == 0) {
        perf_report_head(o);
        perf_report(o, &r);
    }
    return rc;
}

/* Data over `n` queue pairs, in a buffer of `size` octets. As connections. */
static int traffic(struct perf_end *e, const struct perf_options *o, unsigned n, uint64_t size)
{
    uint64_t span = ask_for(o, 0).span;
    struct perf_qp *q = calloc(n, sizeof(*q));
    if (!q) {
        cli_error("%u queue pairs: %s", n, strerror(ENOMEM));
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++) {
        q[i].ask = ask_for(o, i);
        q[i].ask.rkey = e->res.mr->rkey;
        q[i].ask.addr = (uintptr_t)e->res.mem + (o->latency ? span : 0);
        if (o->both)
            q[i].ask.addr += i * span % (size - span + 1);
    }
    int rc = perf_connect_all(e, q, n, o);
    if (rc == 0) {
        perf_report_head(o);
        rc = measure(e, q, o);
        if (rc < 0 && rc != -EIO)
            cli_error("measuring: %s", strerror(-rc));
    }
    for (unsigned i = 0; i < n; i++)
        perf_qp_destroy(&q[i]);
    free(q);
    return rc;
}

static int client(const struct perf_options *o)
{
    uint64_t span = ask_for(o, 0).span;
    /* Queue pairs share the buffer when separate parts would be too large; a pong has a place of
     * its own. */
    uint64_t size = span * (o->latency ? 2 : o->qps);
    if (size > o->buffer)
        size = o->buffer > 2 * span ? o->buffer : 2 * span;
    unsigned cqe = o->qps * (o->depth / o->signal_every + 2) + 64;
    struct perf_end e;
    if (perf_end_init(&e, o->device, size, (int)cqe, o->wait) < 0)
        return CLI_FAIL;
    int rc =
        o->op == PERF_CONNECT ? connections(&e, o) : traffic(&e, o, o->qps + o->idle_qps, size);
    perf_end_free(&e);
    return rc < 0 ? CLI_FAIL : CLI_OK;
}

static int whole(const char *option, const char *text, unsigned min, unsigned max, unsigned *out)
{
    uint64_t v;
    if (cli_number(option, text, min, max, &v) < 0)
        return -1;
    *out = (unsigned)v;
    return 0;
}

/* Take one option about the traffic, and its value. 0; -1 with a message; 1 = another option. */
static int take_traffic(struct perf_options *o, int c, char *value)
{
    unsigned n;
    switch (c) {
    case 'o':
        if (choose("--op", value, perf_op_names, COUNT_OF(perf_op_names), &n) < 0)
            return -1;
        o->op = (enum perf_op)n;
        return 0;
    case 'l':
        o->latency = true;
        return 0;
    case 'b':
        o->both = true;
        return 0;
    case 's':
        return sizes(o, value);
    case 'a':
        for (o->nsizes = 0; o->nsizes < ALL_SIZES; o->nsizes++)
            o->size[o->nsizes] = 1ull << o->nsizes;
        return 0;
    case 'Q':
        return whole("--qps", value, 1, PERF_QPS_MAX, &o->qps);
    case 'I':
        return whole("--idle-qps", value, 0, PERF_QPS_MAX, &o->idle_qps);
    case 'D':
        return whole("--depth", value, 1, PERF_DEPTH_MAX, &o->depth);
    case 'B':
        return whole("--batch", value, 1, PERF_BATCH_MAX, &o->batch);
    case 'e':
        return whole("--signal-every", value, 1, PERF_DEPTH_MAX / 2, &o->signal_every);
    case 'i':
        o->inline_data = true;
        return 0;
    default:
        return 1;
    }
}

/* The rest of our own options. As take_traffic. */
static int take(void *arg, int c, char *value)
{
    struct perf_options *o = arg;
    unsigned n;
    switch (c) {
    case 'Z':
        o->server = true;
        return 0;
    case 'n':
        return cli_number("--count", value, 1, UINT64_MAX >> 1, &o->count);
    case 't':
        return cli_seconds("--time", value, &o->ns);
    case 'u':
        return cli_seconds("--warm-up", value, &o->warm_up_ns);
    case 'w':
        return cli_size("--working-set", value, 1, WORKING_SET_MAX, &o->working_set);
    case 'W':
        if (choose("--wait", value, perf_wait_names, COUNT_OF(perf_wait_names), &n) < 0)
            return -1;
        o->wait = (enum perf_wait)n;
        return 0;
    case 'd':
        o->device = value;
        return 0;
    case 'p':
        return cli_port(value, &o->port);
    case 'U':
        return cli_size("--buffer", value, BUFFER_MIN, BUFFER_MAX, &o->buffer);
    case 'j':
        o->json = true;
        return 0;
    default:
        return take_traffic(o, c, value);
    }
}

/* Get the congestion control of the device, for the report. */
static void ask_cc(struct perf_options *o)
{
    struct admin a;
    if (admin_open(&a) < 0)
        return;
    if (admin_cc(&a, o->device, o->cc, sizeof(o->cc)) < 0)
        o->cc[0] = 0;
    admin_close(&a);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"server", no_argument, NULL, 'Z'},
                                            {"op", required_argument, NULL, 'o'},
                                            {"lat", no_argument, NULL, 'l'},
                                            {"both", no_argument, NULL, 'b'},
                                            {"size", required_argument, NULL, 's'},
                                            {"all-sizes", no_argument, NULL, 'a'},
                                            {"count", required_argument, NULL, 'n'},
                                            {"time", required_argument, NULL, 't'},
                                            {"warm-up", required_argument, NULL, 'u'},
                                            {"working-set", required_argument, NULL, 'w'},
                                            {"qps", required_argument, NULL, 'Q'},
                                            {"idle-qps", required_argument, NULL, 'I'},
                                            {"depth", required_argument, NULL, 'D'},
                                            {"batch", required_argument, NULL, 'B'},
                                            {"signal-every", required_argument, NULL, 'e'},
                                            {"inline", no_argument, NULL, 'i'},
                                            {"wait", required_argument, NULL, 'W'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"buffer", required_argument, NULL, 'U'},
                                            {"json", no_argument, NULL, 'j'},
                                            {0}};
    struct perf_options o = {
        .port = PERF_PORT, .qps = 1, .working_set = 1 << 20, .buffer = 64 << 20};
    char host[128];
    int status =
        cli_options(argc, argv, &cmd_perf, "ho:lbs:an:t:w:Q:D:B:e:iW:d:p:", options, take, &o);
    if (status != CLI_GO_ON)
        return status;
    if (cli_operands(argc, argv, !o.server, !o.server, "the server's address, or --server,") !=
        CLI_OK)
        return CLI_USAGE;
    cli_catch_signals();
    if (o.server) {
        o.signal_every = 1;
        return perf_server(&o);
    }
    if (cli_host(argv[optind], host, sizeof(host), &o.port) < 0)
        return CLI_USAGE;
    o.host = host;
    status = complete(&o);
    if (status)
        return status;
    if (o.json)
        ask_cc(&o);
    return client(&o);
}

const struct cli_command cmd_perf = {"perf", "bandwidth, latency, connections per second", help,
                                     run};
