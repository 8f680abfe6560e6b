/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Selective repeat (sr.h): the requester of READs, whose responses come in any order (LR-08).
 */
#ifndef URNIC_SR_READ_H
#define URNIC_SR_READ_H

#include "sr.h"

struct swqe;

/* A response to w, the oldest READ with missing responses. The one for PSN `due` is missing. True:
 * handled. */
bool sr_read_early(struct rx *rx, struct qp *qp, struct swqe *w, psn_t due);
/* The number of early responses from una on; they are forgotten here. */
uint32_t sr_read_due(struct qp *qp);
/* una has moved: is there another gap? */
void sr_read_go_on(struct engine *e, struct qp *qp, uint64_t now);
/* How many packets the READ request at req.nxt is to ask for; 0 = all to the READ's end. */
uint32_t sr_read_part(const struct qp *qp);

#endif
