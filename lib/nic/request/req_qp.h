/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers (request_fn) of requests about queue pairs. On the context's worker.
 */
#ifndef NIC_REQ_QP_H
#define NIC_REQ_QP_H

#include "request.h"

int req_qp_create(struct request *r);
int req_qp_modify(struct request *r);
int req_qp_query(struct request *r);
int req_qp_destroy(struct request *r);
int req_av_resolve(struct request *r);
int req_mcast_attach(struct request *r);
int req_mcast_detach(struct request *r);

#endif
