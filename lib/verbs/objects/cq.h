/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions shared by plain and extended completion queues.
 */
#ifndef URNIC_VERBS_CQ_H
#define URNIC_VERBS_CQ_H

#include "verbs_priv.h"

#define UV_POLL_MAX     16 /* completions fetched at a time */
#define UV_PATIENCE_MIN 4u /* empty polls before the core is yielded */
#define UV_PATIENCE_MAX 256u

/* NULL with errno. */
struct uv_cq *uv_cq_new(struct ibv_context *context, int cqe, void *cq_context,
                        struct ibv_comp_channel *channel, int vector);

/* The service level that programs see. */
uint8_t uv_wc_sl(const struct urnic_wc *wc);

/* Call it after an empty poll: it may yield the core. */
void uv_cq_idle(struct uv_cq *cq);

#endif
