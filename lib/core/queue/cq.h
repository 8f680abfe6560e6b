/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues as the engine sees them: the caller stores the entries.
 */
#ifndef URNIC_CQ_H
#define URNIC_CQ_H

#include "engine.h"
#include <stdbool.h>
#include <stdint.h>

struct cq {
    void *arg;
    uint32_t users;           /* queue pairs that complete into it */
    bool error;               /* CQ-05 */
    struct cq *next, **pprev; /* all of the engine */
};

/* Push a completion; on overflow the CQ and the queue pair go to error (CQ-05) and false
 * comes back. Fills in qpn and qp_arg. */
bool cq_push(struct engine *e, struct qp *qp, struct cq *cq, struct engine_wc *wc);
/* A flushed work request (QP-12). */
void cq_flush(struct engine *e, struct qp *qp, struct cq *cq, uint64_t wr_id, unsigned opcode);

#endif
