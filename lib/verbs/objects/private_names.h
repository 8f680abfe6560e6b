/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of libibverbs for drivers of vendors, by their effect here: SILENT does nothing,
 * NOTHING is a null pointer, REFUSED is ENOSYS. Besides these, each node has a function that
 * registers a driver, whose name ends in the node's number, and a few functions that programs call,
 * too.
 */
#ifndef URNIC_VERBS_PRIVATE_NAMES_H
#define URNIC_VERBS_PRIVATE_NAMES_H

/* clang-format off */
/* Of rdma-core 34 to 56. */
#define PRIVATE_34(SILENT, NOTHING, REFUSED) \
    REFUSED(__ioctl_final_num_attrs) \
    SILENT(__verbs_log) \
    NOTHING(_verbs_init_and_alloc_context) \
    REFUSED(execute_ioctl) \
    REFUSED(ibv_cmd_advise_mr) \
    REFUSED(ibv_cmd_alloc_dm) \
    REFUSED(ibv_cmd_alloc_mw) \
    REFUSED(ibv_cmd_alloc_pd) \
    REFUSED(ibv_cmd_attach_mcast) \
    REFUSED(ibv_cmd_close_xrcd) \
    REFUSED(ibv_cmd_create_ah) \
    REFUSED(ibv_cmd_create_counters) \
    REFUSED(ibv_cmd_create_cq) \
    REFUSED(ibv_cmd_create_cq_ex) \
    REFUSED(ibv_cmd_create_cq_ex2) \
    REFUSED(ibv_cmd_create_flow) \
    REFUSED(ibv_cmd_create_flow_action_esp) \
    REFUSED(ibv_cmd_create_qp) \
    REFUSED(ibv_cmd_create_qp_ex) \
    REFUSED(ibv_cmd_create_qp_ex2) \
    REFUSED(ibv_cmd_create_rwq_ind_table) \
    REFUSED(ibv_cmd_create_srq) \
    REFUSED(ibv_cmd_create_srq_ex) \
    REFUSED(ibv_cmd_create_wq) \
    REFUSED(ibv_cmd_dealloc_mw) \
    REFUSED(ibv_cmd_dealloc_pd) \
    REFUSED(ibv_cmd_dereg_mr) \
    REFUSED(ibv_cmd_destroy_ah) \
    REFUSED(ibv_cmd_destroy_counters) \
    REFUSED(ibv_cmd_destroy_cq) \
    REFUSED(ibv_cmd_destroy_flow) \
    REFUSED(ibv_cmd_destroy_flow_action) \
    REFUSED(ibv_cmd_destroy_qp) \
    REFUSED(ibv_cmd_destroy_rwq_ind_table) \
    REFUSED(ibv_cmd_destroy_srq) \
    REFUSED(ibv_cmd_destroy_wq) \
    REFUSED(ibv_cmd_detach_mcast) \
    REFUSED(ibv_cmd_free_dm) \
    REFUSED(ibv_cmd_get_context) \
    REFUSED(ibv_cmd_modify_cq) \
    REFUSED(ibv_cmd_modify_flow_action_esp) \
    REFUSED(ibv_cmd_modify_qp) \
    REFUSED(ibv_cmd_modify_qp_ex) \
    REFUSED(ibv_cmd_modify_srq) \
    REFUSED(ibv_cmd_modify_wq) \
    REFUSED(ibv_cmd_open_qp) \
    REFUSED(ibv_cmd_open_xrcd) \
    REFUSED(ibv_cmd_poll_cq) \
    REFUSED(ibv_cmd_post_recv) \
    REFUSED(ibv_cmd_post_send) \
    REFUSED(ibv_cmd_post_srq_recv) \
    REFUSED(ibv_cmd_query_context) \
    REFUSED(ibv_cmd_query_device_any) \
    REFUSED(ibv_cmd_query_mr) \
    REFUSED(ibv_cmd_query_port) \
    REFUSED(ibv_cmd_query_qp) \
    REFUSED(ibv_cmd_query_srq) \
    REFUSED(ibv_cmd_read_counters) \
    REFUSED(ibv_cmd_reg_dm_mr) \
    REFUSED(ibv_cmd_reg_dmabuf_mr) \
    REFUSED(ibv_cmd_reg_mr) \
    REFUSED(ibv_cmd_req_notify_cq) \
    REFUSED(ibv_cmd_rereg_mr) \
    REFUSED(ibv_cmd_resize_cq) \
    REFUSED(verbs_allow_disassociate_destroy) \
    REFUSED(verbs_init_cq) \
    NOTHING(verbs_open_device) \
    REFUSED(verbs_set_ops) \
    REFUSED(verbs_uninit_context)

/* Additional functions of later releases. */
#define PRIVATE_LATER(SILENT, NOTHING, REFUSED) \
    REFUSED(ibv_cmd_alloc_dmah) \
    REFUSED(ibv_cmd_create_comp_cntr) \
    REFUSED(ibv_cmd_destroy_comp_cntr) \
    REFUSED(ibv_cmd_export_dmabuf_fd) \
    REFUSED(ibv_cmd_free_dmah) \
    REFUSED(ibv_cmd_inc_comp_cntr) \
    REFUSED(ibv_cmd_inc_err_comp_cntr) \
    REFUSED(ibv_cmd_qp_attach_comp_cntr) \
    REFUSED(ibv_cmd_query_comp_cntr_caps) \
    REFUSED(ibv_cmd_query_port_speed) \
    REFUSED(ibv_cmd_read_comp_cntr) \
    REFUSED(ibv_cmd_read_err_comp_cntr) \
    REFUSED(ibv_cmd_reg_mr_ex) \
    REFUSED(ibv_cmd_set_comp_cntr) \
    REFUSED(ibv_cmd_set_err_comp_cntr) \
    NOTHING(ibv_dmabuf_heap_alloc) \
    REFUSED(ibv_dmabuf_heap_cc_shared_init) \
    SILENT(ibv_dmabuf_heap_destroy) \
    REFUSED(ibv_dmabuf_heap_free)
/* clang-format on */

#endif
