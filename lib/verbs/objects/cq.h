/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What plain and extended completion queues have in common.
 */
#ifndef URNIC_VERBS_CQ_H
#define URNIC_VERBS_CQ_H

#include "verbs_priv.h"

#define UV_POLL_MAX     16 /* completions that are fetched at a time */
#define UV_PATIENCE_MIN 4u /* empty polls before the core is given away */
#define UV_PATIENCE_MAX 256u

/* NULL with errno. */
struct uv_cq *uv_cq_new(struct ibv_context *context, int cqe, void *cq_context,
                        struct ibv_comp_channel *channel, int vector);

/* The service level that programs see. */
uint8_t uv_wc_sl(const struct urnic_wc *wc);

/* After an empty poll. */
void uv_cq_idle(struct uv_cq *cq);

#endif
