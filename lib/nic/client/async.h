/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events of a context. On the worker.
 */
#ifndef NIC_ASYNC_H
#define NIC_ASYNC_H

#include "context.h"

/* Send the client an asynchronous event. */
void async_event(struct context *c, unsigned event, uint32_t ref);
/* Send the events that were kept because the socket was full. */
void async_service(struct context *c);
/* Drop the events of an object that is destroyed. */
void async_forget(struct context *c, uint32_t ref);
void async_free(struct context *c);

#endif
