/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The responder's packets: acknowledgements, NAKs, READ and ATOMIC responses, in their order.
 */
#ifndef URNIC_RESP_TX_H
#define URNIC_RESP_TX_H

#include "engine.h"

struct qp;

/* Is there an answer to send: ACK or NAK owed, READ responses, atomic results? */
bool resp_tx_ready(const struct qp *qp);
/* Is the answer to send an ACK and no more? */
bool resp_tx_only_ack(const struct qp *qp);
/* Fill up to n slots; slot->kind = SLOT_RESP or SLOT_READ. In ERR: only answers owed at the
 * transition (QP-11). */
unsigned resp_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                 uint64_t now);
/* After the gather of one slot of this side; slot->status < 0: NAK 0x62 (RD-07). False: void the
 * rest of this queue pair's slots. A fatal NAK moves the queue pair to ERR here. */
bool resp_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot);
/* Is an ACK owed? */
bool resp_owes(const struct qp *qp);

#endif
