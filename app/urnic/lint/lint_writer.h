/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The writers of `urnic lint`'s results. Each is called for every packet, for every finding, and
 * once at the end.
 */
#ifndef URNIC_LINT_WRITER_H
#define URNIC_LINT_WRITER_H

#include "capread.h"
#include "lint.h"

/* A connection: two flows, or one if the capture doesn't show the other direction. */
struct lint_connection {
    uint32_t number;  /* 1, 2, ... as shown to the user */
    uint32_t flow[2]; /* the second may be LINT_NO_FLOW */
    struct lint_flow_info info[2];
};

/* All results at the end of the capture. */
struct lint_result {
    const char *path;
    struct capread_info capture;
    struct lint_totals totals;
    const struct lint_connection *connection; /* numbered in a row */
    uint32_t connections;
    const uint32_t *number; /* number of its connection, by flow; 0 = none */
    uint32_t flows;
    bool only; /* --connection: all packets of other connections, or of none, are left out */
    const struct lint_finding *finding; /* filtered findings in the order of packet numbers */
    size_t findings;
    uint64_t shown[LINT_VERDICTS]; /* number of findings that pass the filter, kept or not */
    uint64_t hidden;               /* number of these that --max cuts off */
};

struct lint_writer {
    /* One packet has been judged; findings about it may still come. NULL = not wanted. */
    void (*packet)(struct lint_writer *w, const struct lint_frame *f, const struct lint_view *v);
    /* One finding, as it is made; f->number may be of an earlier packet. NULL = not wanted. */
    void (*finding)(struct lint_writer *w, const struct lint_finding *f);
    /* The end. Returns 0 or -errno. */
    int (*end)(struct lint_writer *w, const struct lint_result *r);
};

/* The number of a flow's connection; 0 = none, or one that is left out. */
uint32_t lint_connection_of(const struct lint_result *r, uint32_t flow);

/* bit/s of `octets` of payload, from the flow's first packet to its last; 0 if both have one
 * time. */
double lint_goodput(const struct lint_flow_info *i, uint64_t octets);

/* The report on standard output: text for people, or one JSON object a line. */
void lint_write_text(const struct lint_result *r);
void lint_write_json(const struct lint_result *r);
/* The rules that are checked, the same way. */
void lint_write_rules(bool json);

#endif
