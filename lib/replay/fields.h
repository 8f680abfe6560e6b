/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What lint finds wrong: in fields that are not compared packet by packet, and in requests that our
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

/* A lint_report: keeps what matters here. `ctx` is a struct fields. */
void fields_keep(void *ctx, const struct lint_finding *f);
/* Once, before the first fields_judge. */
void fields_sort(struct fields *s);
/* Report those of the packets that the end whose place we take has sent, in the role that j->out
 * says. */
void fields_judge(const struct fields *s, const struct direction *d, struct judge *j);
/* Once sorted: the rule that this packet breaks, as far as lint can prove; or NULL. */
const char *fields_rule(const struct fields *s, const struct packet *p);
void fields_free(struct fields *s);

#endif
