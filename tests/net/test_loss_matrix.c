/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loss matrix: every RC operation, at the sizes where segmentation changes, over a link that
 * loses, duplicates, reorders and damages, on virtual time.
 *
 *     test_loss_matrix [--sample N | --full] [--seed S] [--recovery MODE] [--verbose]
 *     test_loss_matrix --case NAME [--capture FILE]   pcapng: frames as sent, losses as comments
 *     test_loss_matrix --list
 *
 * Each case does several messages of one operation and asks: do the octets agree, did each request
 * complete exactly once and in order (CQ-01, REQ-33), did each atomic happen exactly once (ATM-08,
 * ATM-11), is the memory around the targets untouched? A queue pair may fail only with
 * RETRY_EXC_ERR, and only where the link's drop log shows that its retries really were exhausted
 * (TMR-05). Rules at work: RTX-01, RTX-02, RTX-05, RSP-20, RD-09, RD-12, RD-14, REQ-24, ACK-08.
 *
 * A case's seed follows from --seed and the case's name alone, so that the command printed with a
 * failure repeats it. Without --seed it is the date; --full has a fixed one.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fault_dice.h"
#include "loss_case.h"

#define PROGRESS     100u
#define FAILURES_MAX 20u /* then it ends */

static size_t build(struct test_case *out)
{
    size_t n = 0;
    for (unsigned f = 0; f < FAULTS; f++)
        for (unsigned o = 0; o < OPS; o++)
            for (unsigned s = 0; s < (ops[o].word ? 1 : SIZES); s++)
                for (unsigned m = 0; m < MTUS; m++)
                    for (unsigned v6 = 0; v6 < 2; v6++) {
                        if (out) {
                            struct test_case *tc = &out[n];
                            *tc = (struct test_case){
                                .op = o, .size = s, .mtu = m, .fault = f, .ipv6 = v6};
                            snprintf(tc->name, sizeof(tc->name), "%s/%s/mtu%u/%s/ipv%d",
                                     ops[o].name, ops[o].word ? "8" : size_names[s], mtus[m],
                                     faults[f].name, v6 ? 6 : 4);
                        }
                        n++;
                    }
    return n;
}

static uint64_t seed_of(const char *name, uint64_t seed)
{
    uint64_t h = 0xCBF29CE484222325u ^ seed * 0x9E3779B97F4A7C15u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return h ? h : 1;
}

static const struct recovery *recovery = &recoveries[0]; /* --recovery */
static const char *capture_path;                         /* --capture */

static const struct test_case *current; /* for the signal handler */
static uint64_t current_seed;

static void on_crash(int sig)
{
    static char text[256];
    // NOLINTNEXTLINE(bugprone-signal-handler): it crashes anyway, and glibc formats these in place
    int n = snprintf(text, sizeof(text), "\nsignal %d in case %s --seed %llu\n", sig,
                     current ? current->name : "?", (unsigned long long)current_seed);
    ssize_t w = write(STDERR_FILENO, text, (size_t)n);
    (void)w;
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t seed_of_the_day(void)
{
    time_t t = time(NULL);
    struct tm tm;
    gmtime_r(&t, &tm);
    return (uint64_t)(tm.tm_year + 1900) * 10000 + (uint64_t)(tm.tm_mon + 1) * 100 +
           (uint64_t)tm.tm_mday;
}

struct settings {
    size_t sample; /* number of cases */
    const char *only;
    bool verbose, list, full, seeded;
    uint64_t seed;
};

static int usage(const char *name, bool asked)
{
    fprintf(asked ? stdout : stderr,
            "usage: %s [--sample N | --full] [--seed S] [--recovery NAME] [--verbose]\n"
            "       %s --case NAME [--capture FILE]\n"
            "       %s --list\n"
            "\n"
            "Every RC operation over a link that loses, repeats, reorders and damages: a\n"
            "sample of N cases chosen by seed S (default: the date), all of them, or the\n"
            "case NAME, its frames into a pcapng file. --list names the cases.\n"
            "Exit status: 0 all hold, 1 one does not, 2 wrong usage.\n",
            name, name, name);
    return asked ? 0 : 2;
}

static bool take_number(const char *option, const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end)
        fprintf(stderr, "%s: '%s' is not a number\n", option, text);
    return *text >= '0' && *text <= '9' && !*end;
}

static bool take_recovery(const char *name)
{
    for (recovery = recoveries; recovery < recoveries + RECOVERIES; recovery++)
        if (strcmp(recovery->name, name) == 0)
            return true;
    fprintf(stderr, "--recovery: '%s' is none of", name);
    for (size_t i = 0; i < RECOVERIES; i++)
        fprintf(stderr, " %s", recoveries[i].name);
    fprintf(stderr, "\n");
    return false;
}

/* An exit status, or -1: go on. */
static int take_options(struct settings *t, int argc, char **argv)
{
    static const struct option options[] = {
        {"sample", required_argument, NULL, 'n'},   {"full", no_argument, NULL, 'f'},
        {"capture", required_argument, NULL, 'p'},  {"seed", required_argument, NULL, 's'},
        {"case", required_argument, NULL, 'c'},     {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},           {"verbose", no_argument, NULL, 'v'},
        {"recovery", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0},
    };
    uint64_t n;
    int opt;
    while ((opt = getopt_long(argc, argv, "n:fs:c:p:lvr:h", options, NULL)) != -1) {
        switch (opt) {
        case 'n':
            if (!take_number("--sample", optarg, &n))
                return 2;
            t->sample = n;
            break;
        case 'f':
            t->full = true;
            break;
        case 's':
            if (!take_number("--seed", optarg, &t->seed))
                return 2;
            t->seeded = true;
            break;
        case 'c':
            t->only = optarg;
            break;
        case 'p':
            capture_path = optarg;
            break;
        case 'l':
            t->list = true;
            break;
        case 'r':
            if (!take_recovery(optarg))
                return 2;
            break;
        case 'v':
            t->verbose = true;
            break;
        default:
            return usage(argv[0], opt == 'h');
        }
    }
    if (capture_path && !t->only) {
        fprintf(stderr, "--capture needs --case\n");
        return 2;
    }
    if (t->full && !t->seeded)
        t->seed = 1;
    return -1;
}

/* A sample of n is the head of a shuffle. */
static void shuffle(struct test_case *cases, size_t total, size_t n, uint64_t seed)
{
    uint64_t rng = seed;
    for (size_t i = 0; n < total && i < n; i++) {
        size_t k = i + fault_draw_below(&rng, total - i);
        struct test_case t = cases[i];
        cases[i] = cases[k];
        cases[k] = t;
    }
}

static void run_cases(struct test_case *cases, const struct settings *t, const char *program,
                      struct totals *sum)
{
    for (size_t i = 0; i < t->sample; i++) {
        if (t->only && strcmp(t->only, cases[i].name))
            continue;
        cases[i].seed = seed_of(cases[i].name, t->seed);
        cases[i].recovery = recovery;
        cases[i].capture = capture_path;
        current = &cases[i];
        if (loss_case_run(&cases[i], sum, t->verbose))
            printf("       again: %s --recovery %s --case '%s' --seed %llu\n", program,
                   recovery->name, cases[i].name, (unsigned long long)t->seed);
        if (!t->only && sum->run % PROGRESS == 0)
            printf("%u of %zu cases, %u failed\n", sum->run, t->sample, sum->failed);
        if (sum->failed >= FAILURES_MAX) {
            printf("%u failures: enough\n", sum->failed);
            break;
        }
    }
}

int main(int argc, char **argv)
{
    struct settings t = {.sample = 200, .seed = seed_of_the_day()};
    struct totals sum = {0};
    size_t total = build(NULL);
    int status = take_options(&t, argc, argv);
    if (status >= 0)
        return status;
    if (t.full || t.only || t.sample > total)
        t.sample = total;
    struct test_case *cases = calloc(total, sizeof(*cases));
    if (!cases)
        return 1;
    build(cases);
    shuffle(cases, total, t.sample, t.seed);
    for (size_t i = 0; t.list && i < t.sample; i++)
        printf("%s\n", cases[i].name);
    if (t.list) {
        free(cases);
        return 0;
    }
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    current_seed = t.seed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_cases(cases, &t, argv[0], &sum);
    free(cases);
    printf(
        "loss matrix, %s: %u of %zu cases, seed %llu: %u failed; %u with retries really exhausted; "
        "%llu frames, %llu lost or damaged, %llu sent again, %.1f s of virtual time\n",
        recovery->name, sum.run, total, (unsigned long long)t.seed, sum.failed, sum.exhausted,
        (unsigned long long)sum.frames, (unsigned long long)sum.lost,
        (unsigned long long)sum.retransmitted, (double)sum.virtual_ns / 1e9);
    return sum.failed || !sum.run; /* nothing that ran proves nothing */
}
