/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fault rules of an emulated link, for `urnic link`.
 */
#ifndef URNIC_LINK_RULES_H
#define URNIC_LINK_RULES_H

#include <stdbool.h>

/* Install the rules of a file ("" = none; NULL = leave them), then, if `show`, print the counters
 * of each, as JSON if `json`. Returns an exit status, with a message if it isn't CLI_OK. */
int link_rules(const char *device, const char *file, bool show, bool json);

#endif
