/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The second way to post (ibv_wr_*): requests are built one by one and posted all at once.
 */
#ifndef URNIC_VERBS_QP_EX_H
#define URNIC_VERBS_QP_EX_H

#include "verbs_priv.h"

/* May a queue pair of this type have these operations (IBV_QP_EX_WITH_*)? 0 or -EOPNOTSUPP. */
int uv_ops_check(enum ibv_qp_type type, uint64_t ops);
/* Give the queue pair all operations of its type. 0 or -ENOMEM. */
int uv_ops_fill(struct uv_qp *qp);
/* Also for a queue pair without them. */
void uv_ops_free(struct uv_qp *qp);

#endif
