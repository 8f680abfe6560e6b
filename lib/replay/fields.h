/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Findings of lint: in fields that are not compared packet by packet, and in requests that our
 * engine refuses.
 */
#ifndef URNIC_REPLAY_FIELDS_H
#define URNIC_REPLAY_FIELDS_H

#include "lint.h"
#include "replay_priv.h"

struct fields_found {
    uint64_t number; /* of the packet */
    uint32_t flow;
    const char *rule;
    char expected[LINT_TEXT_MAX];
};

struct fields {
    struct fields_found *found;
    size_t n, room, others;
    struct held *held;
    bool failed; /* out of memory */
};

/* A lint_report: keeps the relevant findings. `ctx` is a struct fields. */
void fields_keep(void *ctx, const struct lint_finding *f);
/* Call this once, before the first fields_judge. */
void fields_sort(struct fields *s);
/* Report the findings about packets of the replaced end, in the role of j->out. */
void fields_judge(const struct fields *s, const struct direction *d, struct judge *j);
/* Once sorted: the rule that this packet provably breaks, or NULL. */
const char *fields_rule(const struct fields *s, const struct packet *p);
void fields_free(struct fields *s);

#endif
