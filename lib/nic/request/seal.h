/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealing slabs that clients have mapped (memory_seal). A request that names a slab, or an object
 * in one, proves that the client has mapped it: clients map a slab before they name it. A small
 * slab is sealed at once. For a large one the request waits: adding a seal takes as long as the
 * client is punching holes, so a thread of the user's does it, and then the control thread serves
 * the request again.
 */
#ifndef NIC_SEAL_H
#define NIC_SEAL_H

#include "context.h"

struct client;
struct request;
struct nic;

/* This request needs the slab mapped and sealed. On the worker or the control thread.
 *
 * `r` is the request. `m` is the slab; NULL is fine.
 *
 * 0: it is sealed. -EINPROGRESS: the handler, which has changed nothing yet, returns this, and is
 * called again when the slab is sealed. -EPERM: the client has made sealing impossible. */
int seal_mapped(struct request *r, struct memory *m);
/* The same for the slab of a place in one; an empty place is fine. */
int seal_mapped_place(struct request *r, const struct slab_place *p);
/* The same for both queues of a queue pair. */
int seal_mapped_qp(struct request *r, const struct client_qp *qp);

/* The handler has returned -EINPROGRESS: let the request wait. The message is the first `size`
 * octets of r->in. On the control thread. 0; -EDQUOT: too many requests of this client wait;
 * -ENOMEM, -EMFILE. */
int seal_wait(struct request *r, size_t size);
/* Serve the requests whose slabs are sealed: n->seals_fd is readable. */
void seal_service(struct nic *n);
/* The client disconnects: drop its waiting requests. */
void seal_forget(const struct client *c);

#endif
