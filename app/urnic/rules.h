/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of doc/conformance.md and what proves each, as scripts/rules found them when this
 * program was built.
 */
#ifndef URNIC_RULES_H
#define URNIC_RULES_H

struct rule {
    const char *id;
    const char *sentence;
    const char *tests;    /* files below tests/, separated by blanks; "" = none */
    const char *kinds;    /* of those: unit vector net drill system */
    const char *untested; /* why there is no test; "" = no reason is listed */
};

extern const struct rule rules[];
extern const unsigned rules_n;

#endif
