/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arguments of calls as a trace shows them: each function writes text into `buf` and returns it.
 */
#ifndef URNIC_VERBS_TRACE_TEXT_H
#define URNIC_VERBS_TRACE_TEXT_H

#include <stddef.h>

#include "verbs_priv.h"

#define UV_TEXT 512

/* "LOCAL_WRITE|REMOTE_READ", "0". */
const char *uv_text_access(unsigned access, char buf[UV_TEXT]);
/* A state: "INIT". */
const char *uv_text_state(unsigned state);
/* A type: "RC". */
const char *uv_text_type(unsigned type);
/* "{state RTR, path_mtu 1024, dest_qp_num 0x12}": the attributes in the mask. */
const char *uv_text_qp_attr(const struct ibv_qp_attr *a, unsigned mask, char buf[UV_TEXT]);
/* "{wr_id 1 RDMA_WRITE 4096 octets, remote 0x7f00+0x10 SIGNALED} and 3 more". */
const char *uv_text_send(const struct ibv_send_wr *wr, char buf[UV_TEXT]);
const char *uv_text_recv(const struct ibv_recv_wr *wr, char buf[UV_TEXT]);
/* "{wr_id 1 success, 64 octets, qp 0x11}": the first few of n. */
const char *uv_text_wc(const struct ibv_wc *wc, int n, char buf[UV_TEXT]);
/* An address as IPv6, or IPv4. */
const char *uv_text_gid(const uint8_t gid[16], char buf[UV_TEXT]);

#endif
