/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers of requests about queue pairs (req_qp.c) and the size of shared ones (req_resize.c), and
 * what they share with other queues.
 */
#ifndef URNICD_REQUEST_QP_H
#define URNICD_REQUEST_QP_H

#include "client_qp.h"
#include "request.h"

/* The power of two that holds n entries. */
uint32_t pow2_at_least(uint32_t n);
/* Memory and number of a queue of at least `entries` entries; describes it in *where and adds the
 * slab's descriptor to the answer if the client doesn't have it yet. -ENOMEM, -EDQUOT. */
int queue_create(struct request *r, struct queue *q, enum queue_kind kind, uint32_t entries,
                 uint32_t stride, bool ud, struct ipc_where *where);

/* Handlers (request_fn), on the context's worker. */
int req_qp_create(struct request *r);
int req_qp_modify(struct request *r);
int req_qp_query(struct request *r);
int req_qp_destroy(struct request *r);
int req_av_resolve(struct request *r);
int req_mcast_attach(struct request *r);
int req_mcast_detach(struct request *r);
int req_srq_resize(struct request *r);

#endif
