/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The attributes of a queue pair: which a change of state needs and allows (QP-02, QP-03).
 */
#ifndef URNIC_QP_ATTR_H
#define URNIC_QP_ATTR_H

#include "engine.h"

/* May a queue pair go to state `to`, or stay there, with the attributes of `mask`? 0, -EINVAL (one
 * is missing, not allowed or out of range), -EOPNOTSUPP (path migration). */
int qp_attr_check(struct engine *e, const struct qp *qp, enum qp_state to,
                  const struct engine_qp_attr *a, unsigned mask);
/* Copy the attributes of `mask`, which have been checked. */
void qp_attr_take(struct qp *qp, const struct engine_qp_attr *a, unsigned mask);

#endif
