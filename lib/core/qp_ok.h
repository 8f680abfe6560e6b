/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of a queue pair (invariant.h).
 */
#ifndef URNIC_QP_OK_H
#define URNIC_QP_OK_H

#include <stdbool.h>

#include "invariant.h"

/* Do all invariants of the queue pair hold? It must not be destroyed. `whole`: check also those
 * that take time in proportion to its queues and lists. False: *out names the broken one. Thread:
 * the engine's; no phase is under way. */
bool qp_ok(const struct engine *e, const struct qp *qp, bool whole, struct invariant_report *out);

#endif
