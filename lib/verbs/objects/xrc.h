/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Extended reliable connections: domains, and queue pairs that receive, of which a program may have
 * several handles. Any thread.
 */
#ifndef URNIC_VERBS_XRC_H
#define URNIC_VERBS_XRC_H

#include <sys/types.h>

#include "verbs_priv.h"

struct uv_xrcd {
    struct ibv_xrcd xrcd;
    struct urnic_pd *urnic;
    unsigned users; /* calls of ibv_open_xrcd that returned it */
    bool by_file;   /* it has a file */
    dev_t dev;
    ino_t ino;
    struct uv_xrcd *next;
};

/* ibv_open_xrcd. EINVAL: not both of fd and oflags, other flags than O_CREAT and O_EXCL, fd -1
 * without O_CREAT; EBADF; EEXIST: O_EXCL, and the process has the file's domain; EOPNOTSUPP: no
 * O_CREAT, and the process has no domain for the file; another process's can't be shared (XRC-03).
 */
struct ibv_xrcd *uv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
/* ibv_close_xrcd. EBUSY: queue pairs or shared receive queues are in it. */
int uv_close_xrcd(struct ibv_xrcd *xrcd);
/* ibv_get_srq_num. EINVAL: the queue is in no domain. */
int uv_get_srq_num(struct ibv_srq *srq, uint32_t *num);
/* ibv_open_qp: one more handle of a queue pair of the domain. EINVAL: there is none. */
struct ibv_qp *uv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* A queue pair that receives has been made in the domain. */
void uv_target_add(struct uv_qp *qp, struct ibv_xrcd *xrcd);
/* Destroy a handle of such a queue pair; the last one takes the queue pair with it. -errno of
 * liburnic: nothing has changed. */
int uv_target_drop(struct uv_qp *qp);

#endif
