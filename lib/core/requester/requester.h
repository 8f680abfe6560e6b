/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests become packets. req.h describes the sending half.
 */
#ifndef URNIC_REQUESTER_H
#define URNIC_REQUESTER_H

#include "qp.h"

/* Fill up to n slots. Fewer than n: there is nothing more to send now. */
unsigned req_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                uint64_t now);
/* The payload of one of the requester's slots was gathered. False: that failed, so the queue pair's
 * later slots of the requester are void, too. */
bool req_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now);

#endif
