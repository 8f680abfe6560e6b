/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions out, into the rings of a context's completion queues, and their events. On the
 * worker.
 */
#ifndef NIC_CQRING_H
#define NIC_CQRING_H

#include "context.h"

/* The engine's hook: store a completion. False: the CQ is full (CQ-05). */
bool cqring_push(void *arg, void *cq_arg, const struct engine_wc *wc);
/* An event for `count` completions or after so many microseconds (CQ-10); 0, 0 = for each. */
void cqring_moderate(struct client_cq *cq, uint32_t count, uint32_t period_us);
/* Forget a CQ: no list knows it any more. */
void cqring_forget(struct client_cq *cq);

/* ---- all of a context ---- */

/* Show what was stored, to a client that sees it late (context.late). */
void cqring_show(struct context *c);
/* Look at `arm` of every CQ that was stored into, and send events that moderation doesn't delay. */
void cqring_notify(struct context *c, uint64_t now);
/* When the next delayed event goes out; UINT64_MAX = none waits. */
uint64_t cqring_deadline(const struct context *c);
/* Send some of what is owed on full channels: each try is a system call. */
void cqring_owed(struct context *c);

#endif
