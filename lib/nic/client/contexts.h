/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All contexts of a worker: their part of a round, and the events of their devices.
 */
#ifndef NIC_CONTEXTS_H
#define NIC_CONTEXTS_H

#include "context_ops.h"

/* For worker_init. */
extern const struct context_ops context_ops;

#endif
