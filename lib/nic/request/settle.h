/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Order between a program's frames and its requests: a request takes effect after the frames that
 * the client's process had put into its channels before, and so does the end of a client (SHM-13,
 * QP-11). A request of one connection may be about a queue pair of another one (librdmacm). Where
 * some of these frames are still in a ring, the request or the end waits here, for 10 ms at most,
 * and the control thread goes on with other clients.
 *
 * On the control thread.
 */
#ifndef NIC_SETTLE_H
#define NIC_SETTLE_H

#include <stdbool.h>
#include <stddef.h>

struct client;
struct nic;
struct request;

/* May this request be served now? If not, settle_wait. */
bool settle_now(struct request *r);
/* Let the request wait; settle_service serves it. `size` octets of r->in are the message. 0;
 * -EDQUOT: too many of this client wait; -ENOMEM. */
int settle_wait(struct request *r, size_t size);
/* Serve the requests whose turn has come. Returns whether some still wait: call it again within a
 * millisecond. */
bool settle_service(struct nic *n);

/* The client is gone. Returns whether it may end now; else ask again within a millisecond. */
bool settle_ended(struct client *c);
/* A client ends: drop its waiting requests, and the data about its channel. */
void settle_forget(struct client *c);

#endif
