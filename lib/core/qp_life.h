/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a queue pair.
 */
#ifndef URNIC_QP_LIFE_H
#define URNIC_QP_LIFE_H

struct engine;
struct qp;

/* Take the queue pair apart; its struct stays until its records are gone. */
void qp_free(struct engine *e, struct qp *qp);

#endif
