/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions and their events: filling the rings of a context's completion queues. On the worker.
 */
#ifndef NIC_CQRING_H
#define NIC_CQRING_H

#include "context.h"

/* The engine's hook: store a completion. False: the CQ is full (CQ-05). */
bool cqring_push(void *arg, void *cq_arg, const struct engine_wc *wc);
/* Set moderation: an event for `count` completions or after `period_us` (CQ-10); 0, 0 = an event
 * for each. */
void cqring_moderate(struct client_cq *cq, uint32_t count, uint32_t period_us);
/* Remove a CQ from all lists. */
void cqring_forget(struct client_cq *cq);

/* ---- all completion queues of a context ---- */

/* Show stored completions to a client that sees them late (context.late). */
void cqring_show(struct context *c);
/* Check `arm` of every CQ that has new completions, and send the events that moderation doesn't
 * delay. */
void cqring_notify(struct context *c, uint64_t now);
/* The time at which the next delayed event is due; UINT64_MAX = none. */
uint64_t cqring_deadline(const struct context *c);
/* Send some of the events owed on full channels: each try is a system call. */
void cqring_owed(struct context *c);

#endif
