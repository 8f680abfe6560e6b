/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers to requests: acknowledgements, NAKs, READ and ATOMIC responses (completer.c).
 */
#ifndef URNIC_COMPLETER_H
#define URNIC_COMPLETER_H

#include "send_queue.h"

struct rx;

/* A response for an RC queue pair that passed VAL-01 steps 1..8. */
void comp_rx(struct rx *rx, struct qp *qp);
/* Does a READ response's length and position fit packet k of w (REQ-29, REQ-30)? */
bool comp_fits_read(const struct qp *qp, const struct swqe *w, uint32_t k, const struct rx *rx);
/* Place packet k of the READ w before its turn. False: not done; the state may be ERR now. */
bool comp_read_early(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t k);
/* Fail the oldest work request after a fatal NAK. */
void comp_refused(struct engine *e, struct qp *qp, uint8_t syndrome);

#endif
