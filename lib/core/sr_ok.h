/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of selective repeat (invariant.h).
 */
#ifndef URNIC_SR_OK_H
#define URNIC_SR_OK_H

#include <stdbool.h>

#include "invariant.h"

/* As qp_ok, for the additions of sr.h to the queue pair; true if it has none. */
bool sr_ok(const struct qp *qp, bool whole, struct invariant_report *out);

#endif
