/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic wire`: shared by its files. One thread.
 */
#ifndef URNIC_WIRE_CMD_H
#define URNIC_WIRE_CMD_H

#include "bump.h"
#include "fault.h"
#include "suite.h"
#include "wire_capture.h"

struct wire_job {
    const char *port[BUMP_DIRS];
    uint64_t mtu, queue, ns, seed;
    const char *rules_file, *capture_file;
    char *rules; /* rules of --rule, one a line; NULL = none */
    bool poll, json, quiet, check, suite;
    struct suite_options test;
    struct bump bump;
    struct fault *fault; /* NULL = no rules */
    struct wire_capture capture;
    uint64_t start;
};

/* Rates of the last second, on a terminal. */
struct wire_ticker {
    uint64_t at; /* time of the last line, ns */
    uint64_t frames[BUMP_DIRS], octets[BUMP_DIRS];
    bool on, drawn;
};
/* Draw the line anew, once a second at most; nothing while t->on is false. */
void wire_tick(struct wire_ticker *t, const struct wire_job *j, uint64_t now);

/* Print the totals: text on stderr, JSON on stdout. */
void wire_summary(const struct wire_job *j, double seconds);
void wire_json(const struct wire_job *j, double seconds);

#endif
