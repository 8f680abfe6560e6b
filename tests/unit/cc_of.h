/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control by its text, for tests.
 */
#ifndef URNIC_CC_OF_H
#define URNIC_CC_OF_H

#include "cc.h"
#include "unit.h"

/* The result of cc_conf_parse for the text; the test fails on an error. */
static inline struct cc_conf cc_of(const char *spec)
{
    struct cc_conf conf;
    char err[256] = "";
    ck_assert_msg(!cc_conf_parse(&conf, spec, err, sizeof(err)), "%s", err);
    return conf;
}

#endif
