/* SPDX-License-Identifier: BSD-3-Clause
 *
 * No congestion control: never limits. The notification point still works, for peers that react.
 */
#include "cc.h"

static void none_start(struct cc *cc, uint64_t now)
{
    (void)cc;
    (void)now;
}

const struct cc_type cc_none = {
    .name = "none",
    .text = "no limit",
    .uses = CC_BITS_ALL,
    .start = none_start,
};
