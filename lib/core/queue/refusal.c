/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of refusals (appendix B, responder side).
 */
#include "refusal.h"

const struct refusal_info refusals[REFUSE_MAX] = {
#define X(name, syn, status, ev, text) {syn, status, ev, text},
    REFUSALS(X)
#undef X
};
