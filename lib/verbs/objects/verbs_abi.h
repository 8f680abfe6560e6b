/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libibverbs' public headers; our definitions of their functions are exported. Some of the names
 * are macros, which must not change our definitions.
 */
#ifndef URNIC_VERBS_ABI_H
#define URNIC_VERBS_ABI_H

#ifndef UV_TRACE_CALLS
#include "trace_names.h"
#endif
#pragma GCC visibility push(default)
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list
#ifndef UV_TRACE_CALLS
#include "trace_names.h"
#endif

/* A function that programs call and no public header declares. */
#define UV_EXPORT __attribute__((visibility("default")))

#endif
