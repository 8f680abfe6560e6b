/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contract of `urnic trace` and the library. Each process that uses the library has a page, a
 * memfd, which the tool opens by /proc/PID/fd (only the same user and root can). The page tells
 * whether calls are traced, and holds the path of the tool's datagram socket, to which each line
 * goes. $URNIC_TRACE names the socket from the start on.
 */
#ifndef URNIC_VERBS_TRACE_PAGE_H
#define URNIC_VERBS_TRACE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define UV_TRACE_ENV   "URNIC_TRACE"
#define UV_TRACE_PAGE  "urnic-trace" /* the name of the page's memfd */
#define UV_TRACE_MAGIC 0x45434152u
#define UV_TRACE_PATH  108 /* octets of a socket's path */
#define UV_TRACE_LINE  1024

struct uv_trace_page {
    uint32_t magic;
    _Atomic uint32_t on; /* 0 = off; another number: another socket */
    char path[UV_TRACE_PATH];
};

#endif
