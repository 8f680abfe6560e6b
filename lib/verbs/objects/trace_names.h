/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that have a trace point. This header renames their definitions, and calls among
 * them. trace_calls.c exports functions of the original names, which trace and call the renamed
 * ones. There is no include guard: verbs_abi.h includes this before libibverbs' header, and again
 * for names that the header makes macros.
 */
#define ibv_get_device_list      uv_real_ibv_get_device_list
#define ibv_open_device          uv_real_ibv_open_device
#define ibv_close_device         uv_real_ibv_close_device
#define ibv_query_device         uv_real_ibv_query_device
#define ibv_query_port           uv_real_ibv_query_port
#define ibv_query_gid            uv_real_ibv_query_gid
#define _ibv_query_gid_ex        uv_real__ibv_query_gid_ex
#define _ibv_query_gid_table     uv_real__ibv_query_gid_table
#define ibv_query_gid_type       uv_real_ibv_query_gid_type
#define ibv_query_pkey           uv_real_ibv_query_pkey
#define ibv_get_pkey_index       uv_real_ibv_get_pkey_index
#define ibv_fork_init            uv_real_ibv_fork_init
#define ibv_alloc_pd             uv_real_ibv_alloc_pd
#define ibv_dealloc_pd           uv_real_ibv_dealloc_pd
#define ibv_reg_mr               uv_real_ibv_reg_mr
#define ibv_reg_mr_iova          uv_real_ibv_reg_mr_iova
#define ibv_reg_mr_iova2         uv_real_ibv_reg_mr_iova2
#define ibv_rereg_mr             uv_real_ibv_rereg_mr
#define ibv_dereg_mr             uv_real_ibv_dereg_mr
#define ibv_create_comp_channel  uv_real_ibv_create_comp_channel
#define ibv_destroy_comp_channel uv_real_ibv_destroy_comp_channel
#define ibv_create_cq            uv_real_ibv_create_cq
#define ibv_resize_cq            uv_real_ibv_resize_cq
#define ibv_destroy_cq           uv_real_ibv_destroy_cq
#define ibv_get_cq_event         uv_real_ibv_get_cq_event
#define ibv_ack_cq_events        uv_real_ibv_ack_cq_events
#define ibv_get_async_event      uv_real_ibv_get_async_event
#define ibv_ack_async_event      uv_real_ibv_ack_async_event
#define ibv_create_srq           uv_real_ibv_create_srq
#define ibv_modify_srq           uv_real_ibv_modify_srq
#define ibv_query_srq            uv_real_ibv_query_srq
#define ibv_destroy_srq          uv_real_ibv_destroy_srq
#define ibv_create_qp            uv_real_ibv_create_qp
#define ibv_modify_qp            uv_real_ibv_modify_qp
#define ibv_query_qp             uv_real_ibv_query_qp
#define ibv_destroy_qp           uv_real_ibv_destroy_qp
#define ibv_create_ah            uv_real_ibv_create_ah
#define ibv_create_ah_from_wc    uv_real_ibv_create_ah_from_wc
#define ibv_destroy_ah           uv_real_ibv_destroy_ah
#define ibv_attach_mcast         uv_real_ibv_attach_mcast
#define ibv_detach_mcast         uv_real_ibv_detach_mcast
