/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic wire --suite`: tests the device at port B, case by case. Each case loads rules into the
 * bump, has commands make traffic through it, watches the packets, and says of some rules of the
 * catalogue whether the device has kept them.
 */
#ifndef URNIC_SUITE_H
#define URNIC_SUITE_H

#include "bump.h"
#include "suite_trace.h"
#include "wire_capture.h"

#define SUITE_RESULTS 128u /* twice as many as the cases give on any device */
#define SUITE_TEXT    160u

enum suite_verdict { SUITE_PASS, SUITE_FAIL, SUITE_UNTESTED };

struct suite_result {
    const char *test, *rule;
    enum suite_verdict verdict;
    char text[SUITE_TEXT];
    const char *unit; /* unit of value; NULL = no value */
    double value;
};

struct suite_card {
    struct suite_result result[SUITE_RESULTS];
    unsigned n, count[3]; /* by verdict */
    const char *test;     /* the case of the next results */
};

/* The user's settings. Commands are for `sh -c`; NULL = none. */
struct suite_options {
    const char *server[2], *client[2]; /* commands at side A, at side B */
    const char *only;                  /* only cases with this in their name */
    const char *end[2];                /* "SOCKET,IP" of an urnicd: makes the commands */
    char *made[4];                     /* those commands */
    int timeout, retry;                /* the device's value, if no CM message has it; -1 = not
                                        * given */
    uint64_t cnp_interval;             /* ns that the device claims */
    uint64_t settle;                   /* ns to wait for a server without output */
    uint64_t limit;                    /* ns that a case may take */
    uint64_t seed;
    bool list, verbose, quiet;
};

/* The data for the checks of a case. */
struct suite_run {
    const struct suite_options *opt;
    const struct suite_trace *trace;
    struct suite_card *card;
    struct suite_flow flow;
    bool client_ok; /* the client ended with status 0 */
    bool timed_out; /* the suite ended the client */
};

struct suite_case {
    const char *name, *rule, *what; /* `rule`: the main one */
    const char *rules;              /* rules in the language of lib/fault */
    int from;                       /* side of the client: 0 = side A, 1 = side B (the device) */
    const char *op;                 /* OP of its environment */
    unsigned size, messages, qps;
    enum fault_dir dir; /* direction of the judged requests */
    unsigned kinds;     /* WIRE_F_* of these */
    bool until_resent;  /* the rules end when the requester sends something again */
    void (*check)(struct suite_run *r);
};

extern const struct suite_case suite_cases[];
extern const unsigned suite_ncases;

/* The checks of the cases, for `check`: each judges the trace of its case, and reports by
 * suite_say. In suite_requester.c, suite_responder.c and suite_congestion.c. */
void suite_check_lost(struct suite_run *r);
void suite_check_lost_twice(struct suite_run *r);
void suite_check_reordered(struct suite_run *r);
void suite_check_duplicated(struct suite_run *r);
void suite_check_answers_lost(struct suite_run *r);
void suite_check_bad_icrc(struct suite_run *r);
void suite_check_marked(struct suite_run *r);
void suite_check_go_back(struct suite_run *r);
void suite_check_go_back_twice(struct suite_run *r);
void suite_check_acks_lost(struct suite_run *r);
void suite_check_slowed(struct suite_run *r);
void suite_check_rnr(struct suite_run *r);
void suite_check_exhausted(struct suite_run *r);
void suite_check_read_answer(struct suite_run *r);
void suite_check_read_again(struct suite_run *r);

/* Add a result to the card: a sentence about this rule. */
void suite_say(struct suite_card *card, const char *rule, enum suite_verdict verdict,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Set the figure of the last result. */
void suite_measured(struct suite_card *card, double value, const char *unit);

/* The suite's options, for getopt_long; suite_option takes those from SUITE_OPTION_FIRST on.
 * Returns CLI_*. suite_options_done completes and checks them. */
enum {
    SUITE_OPTION_FIRST = 0x100,
    SUITE_END_A = SUITE_OPTION_FIRST,
    SUITE_END_B,
    SUITE_CLIENT_A,
    SUITE_CLIENT_B,
    SUITE_SERVER_A,
    SUITE_SERVER_B,
    SUITE_ONLY,
    SUITE_TIMEOUT,
    SUITE_RETRY,
    SUITE_CNP_INTERVAL,
    SUITE_SETTLE,
    SUITE_LIMIT,
    SUITE_LIST,
    SUITE_VERBOSE = 'v',
};
/* clang-format off */
#define SUITE_OPTIONS                                                                              \
    {"end-a", required_argument, NULL, SUITE_END_A},                                               \
    {"end-b", required_argument, NULL, SUITE_END_B},                                               \
    {"client-a", required_argument, NULL, SUITE_CLIENT_A},                                         \
    {"client-b", required_argument, NULL, SUITE_CLIENT_B},                                         \
    {"server-a", required_argument, NULL, SUITE_SERVER_A},                                         \
    {"server-b", required_argument, NULL, SUITE_SERVER_B},                                         \
    {"only", required_argument, NULL, SUITE_ONLY},                                                 \
    {"timeout", required_argument, NULL, SUITE_TIMEOUT},                                           \
    {"retry", required_argument, NULL, SUITE_RETRY},                                               \
    {"cnp-interval", required_argument, NULL, SUITE_CNP_INTERVAL},                                 \
    {"settle", required_argument, NULL, SUITE_SETTLE},                                             \
    {"limit", required_argument, NULL, SUITE_LIMIT},                                               \
    {"list", no_argument, NULL, SUITE_LIST},                                                       \
    {"verbose", no_argument, NULL, SUITE_VERBOSE}
/* clang-format on */
/* Set the defaults. */
void suite_options_init(struct suite_options *o);
/* Take an option of SUITE_OPTIONS; `arg`, its value, must stay valid. CLI_OK, or CLI_USAGE with a
 * message. */
int suite_option(int c, const char *arg, struct suite_options *o);
/* After all options: make the commands of --end-a and --end-b. CLI_OK, or another CLI_* with a
 * message. */
int suite_options_done(struct suite_options *o);
void suite_options_free(struct suite_options *o);

/* Run the cases over an open bump, print the report card. `capture` gets all frames; NULL = none.
 * Returns CLI_*. */
int suite_run(struct bump *b, const struct suite_options *opt, struct wire_capture *capture,
              bool json);

/* The report card: as text on standard output; as a JSON object, the caller's. */
void suite_report(const struct suite_card *card);
struct json_t *suite_report_json(const struct suite_card *card, const struct bump *b);

#endif
