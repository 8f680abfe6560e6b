/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of doc/conformance.md and the tests of each, as scripts/rules found them at the build
 * of this program.
 */
#ifndef URNIC_RULES_H
#define URNIC_RULES_H

#include <stdbool.h>

struct rule {
    const char *id;
    const char *sentence;
    const char *tests;    /* files below tests/, separated by blanks; "" = none */
    const char *captures; /* files of pcaps/ with expected findings of the rule; "" = none */
    const char *kinds;    /* kinds of both: capture unit vector net drill system */
    const char *untested; /* listed reason for the lack of a test; "" = none */
    bool linted;          /* does `urnic lint` check it? */
};

extern const struct rule rules[];
extern const unsigned rules_n;

#endif
