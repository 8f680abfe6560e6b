/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events of a context. On the worker.
 */
#ifndef NIC_ASYNC_H
#define NIC_ASYNC_H

#include "context.h"

/* An asynchronous event for the client. */
void async_event(struct context *c, unsigned event, uint32_t ref);
/* Send those that are kept because the socket was full. */
void async_service(struct context *c);
/* Drop those of an object that goes. */
void async_forget(struct context *c, uint32_t ref);
void async_free(struct context *c);

#endif
