/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of the state that queue pairs share (invariant.h).
 */
#ifndef URNIC_ENGINE_OK_H
#define URNIC_ENGINE_OK_H

#include <stdbool.h>

#include "invariant.h"

/* Do all invariants of the engine hold, those of all its queue pairs included? Takes time in
 * proportion to all objects of the engine. Otherwise as qp_ok. */
bool engine_ok(const struct engine *e, struct invariant_report *out);

#endif
