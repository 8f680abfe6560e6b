/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests in verbs' terms and in liburnic's. Pure: the tests look at each field.
 */
#ifndef URNIC_VERBS_POST_H
#define URNIC_VERBS_POST_H

#include "verbs_priv.h"

/* One request, without its successor; of a queue pair of this type. Segments stay the caller's.
 * -EINVAL: no such opcode here, or a bind without a window. */
int uv_send_from(struct urnic_send_wr *to, const struct ibv_send_wr *wr, enum ibv_qp_type type);

/* The additional part of a request to bind a window. -EINVAL: no window, or a length without a
 * region. */
int uv_bind_from(struct urnic_send_wr *to, const struct ibv_mw *mw, uint32_t rkey,
                 const struct ibv_mw_bind_info *info);

#endif
