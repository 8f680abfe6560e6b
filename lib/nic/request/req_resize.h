/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handler (request_fn) that resizes a shared receive queue. On the context's worker.
 */
#ifndef NIC_REQ_RESIZE_H
#define NIC_REQ_RESIZE_H

#include "request.h"

int req_srq_resize(struct request *r);

#endif
