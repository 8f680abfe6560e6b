/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table that the build generates.
 */
#include "rules.h"

const struct rule rules[] = {
#include "rules_table.inc"
};
const unsigned rules_n = sizeof(rules) / sizeof(rules[0]);
