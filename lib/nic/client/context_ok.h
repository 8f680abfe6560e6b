/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of a context's rings and lists, which hold between any two rounds, whatever a
 * client writes into its memory. Builds with -Dinvariants=true check them after each round, some
 * queues at a time. A violation is one line on stderr, and the process aborts.
 */
#ifndef NIC_CONTEXT_OK_H
#define NIC_CONTEXT_OK_H

#include <stddef.h>

#include "context.h"

/* Do the invariants of the context's lists hold, and those of `n` of its queues from number `from`
 * on, wrapping at the last? False: `text` says which one doesn't. Thread: the worker's. */
bool context_ok(const struct context *c, uint32_t from, uint32_t n, char *text, size_t size);

/* At the end of a round. */
#ifdef URNIC_INVARIANTS
void context_check(struct context *c);
#else
static inline void context_check(struct context *c)
{
    (void)c;
}
#endif

#endif
