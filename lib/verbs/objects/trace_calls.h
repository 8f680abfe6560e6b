/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The operations of a context with their trace points, for its tables.
 */
#ifndef URNIC_VERBS_TRACE_CALLS_H
#define URNIC_VERBS_TRACE_CALLS_H

#include <string.h>

#include "verbs_priv.h"
#include "xrc.h"

__typeof__(uv_poll_cq) uv_traced_poll_cq;
__typeof__(uv_req_notify_cq) uv_traced_req_notify_cq;
__typeof__(uv_post_send) uv_traced_post_send;
__typeof__(uv_post_recv) uv_traced_post_recv;
__typeof__(uv_post_srq_recv) uv_traced_post_srq_recv;
__typeof__(uv_create_qp_ex) uv_traced_create_qp_ex;
__typeof__(uv_create_cq_ex) uv_traced_create_cq_ex;
__typeof__(uv_create_srq_ex) uv_traced_create_srq_ex;
__typeof__(uv_alloc_mw) uv_traced_alloc_mw;
__typeof__(uv_bind_mw) uv_traced_bind_mw;
__typeof__(uv_query_device_ex) uv_traced_query_device_ex;
__typeof__(uv_query_port) uv_traced_query_port;
__typeof__(uv_query_rt_values) uv_traced_query_rt_values;
__typeof__(uv_modify_cq) uv_traced_modify_cq;
__typeof__(uv_alloc_parent_domain) uv_traced_alloc_parent_domain;
__typeof__(uv_dealloc_mw) uv_traced_dealloc_mw;
__typeof__(uv_open_xrcd) uv_traced_open_xrcd;
__typeof__(uv_close_xrcd) uv_traced_close_xrcd;
__typeof__(uv_get_srq_num) uv_traced_get_srq_num;
__typeof__(uv_open_qp) uv_traced_open_qp;

#endif
