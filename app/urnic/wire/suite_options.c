/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of the test suite, and the commands that follow from --end-a and --end-b.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "suite.h"

/* Defaults of the settings. */
#define CNP_INTERVAL_NS 50000u
#define SETTLE_NS       1000000000u
#define LIMIT_NS        10000000000u

void suite_options_init(struct suite_options *o)
{
    *o = (struct suite_options){.timeout = -1,
                                .retry = -1,
                                .cnp_interval = CNP_INTERVAL_NS,
                                .settle = SETTLE_NS,
                                .limit = LIMIT_NS,
                                .seed = 1};
}

void suite_options_free(struct suite_options *o)
{
    for (unsigned i = 0; i < 4; i++)
        free(o->made[i]);
}

static int seconds_or_zero(const char *option, const char *text, uint64_t *ns)
{
    if (!strcmp(text, "0")) {
        *ns = 0;
        return 0;
    }
    return cli_seconds(option, text, ns);
}

int suite_option(int c, const char *arg, struct suite_options *o)
{
    uint64_t v = 0;
    int bad = 0;
    switch (c) {
    case SUITE_END_A:
    case SUITE_END_B:
        o->end[c - SUITE_END_A] = arg;
        break;
    case SUITE_CLIENT_A:
    case SUITE_CLIENT_B:
        o->client[c - SUITE_CLIENT_A] = arg;
        break;
    case SUITE_SERVER_A:
    case SUITE_SERVER_B:
        o->server[c - SUITE_SERVER_A] = arg;
        break;
    case SUITE_ONLY:
        o->only = arg;
        break;
    case SUITE_TIMEOUT:
        bad = cli_number("--timeout", arg, 0, 31, &v);
        o->timeout = (int)v;
        break;
    case SUITE_RETRY:
        bad = cli_number("--retry", arg, 0, 7, &v);
        o->retry = (int)v;
        break;
    case SUITE_CNP_INTERVAL:
        bad = cli_number("--cnp-interval", arg, 0, 1000000, &v);
        o->cnp_interval = v * 1000;
        break;
    case SUITE_SETTLE:
        bad = seconds_or_zero("--settle", arg, &o->settle);
        break;
    case SUITE_LIMIT:
        bad = cli_seconds("--limit", arg, &o->limit);
        break;
    case SUITE_LIST:
        o->list = true;
        break;
    case SUITE_VERBOSE:
        o->verbose = true;
        break;
    }
    return bad ? CLI_USAGE : CLI_OK;
}

/* Can `text` be put between single quotes in a shell's command? */
static bool quotable(const char *text)
{
    return strchr(text, '\'') == NULL;
}

/* The commands of the urnicd at one side's "SOCKET,IP": server, and client of the other side's IP.
 */
static int make_commands(struct suite_options *o, unsigned side, const char *exe)
{
    const char *comma = o->end[side] ? strrchr(o->end[side], ',') : NULL;
    const char *other = o->end[!side] ? strrchr(o->end[!side], ',') : NULL;
    if (!comma || !other || comma == o->end[side] || !comma[1] || !quotable(o->end[side]) ||
        !quotable(exe)) {
        cli_error("--end-%c: want SOCKET,IP of an urnicd, and both ends: '%s'", 'a' + (int)side,
                  o->end[side] ? o->end[side] : "");
        return CLI_USAGE;
    }
    int len = (int)(comma - o->end[side]);
    if (asprintf(&o->made[side], "exec '%s' --socket '%.*s' perf --server --wait event", exe, len,
                 o->end[side]) < 0 ||
        asprintf(&o->made[2 + side],
                 "exec '%s' --socket '%.*s' perf '%s' --op $OP --size $SIZE --count $COUNT --qps "
                 "$QPS --wait event",
                 exe, len, o->end[side], other + 1) < 0) {
        cli_error("out of memory");
        return CLI_FAIL;
    }
    if (!o->server[side])
        o->server[side] = o->made[side];
    if (!o->client[side])
        o->client[side] = o->made[2 + side];
    return CLI_OK;
}

int suite_options_done(struct suite_options *o)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n < 0 ? 0 : n] = 0;
    for (unsigned side = 0; side < 2; side++)
        if (o->end[0] || o->end[1]) {
            int status = make_commands(o, side, exe);
            if (status)
                return status;
        }
    if (o->client[0] || o->client[1])
        return CLI_OK;
    cli_error("--suite: something must make traffic: --end-a and --end-b, or --client-a, "
              "--client-b");
    return CLI_USAGE;
}
