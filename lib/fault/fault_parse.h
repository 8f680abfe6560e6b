/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the two halves of the parser: the state, and tables of words.
 */
#ifndef URNIC_FAULT_PARSE_H
#define URNIC_FAULT_PARSE_H

#include "fault_lex.h"

#define FAULT_SIZE_MOST 65535u /* octets of a frame */

struct fault_parser {
    struct fault_lex lx;
    struct fault_rule *r;
    struct fault_action *a; /* action being read */
};

struct fault_keyword {
    const char *name;
    uint32_t bit; /* bit of a selector that may occur once */
    bool (*read)(struct fault_parser *p);
};

/* The table's entry for a word; NULL = none. The table ends with a NULL name. */
const struct fault_keyword *fault_keyword_find(const struct fault_keyword *table,
                                               struct fault_word w);

/* ACTION { and ACTION } at the beginning of a rule. */
bool fault_parse_actions(struct fault_parser *p);

#endif
