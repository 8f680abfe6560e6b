/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Internals of our libibverbs. Each object of the public ABI is the first member of an object of
 * ours, which also holds liburnic's. Threads: liburnic's calls may be made from any thread; our own
 * state has its guard next to it.
 */
#ifndef URNIC_VERBS_PRIV_H
#define URNIC_VERBS_PRIV_H

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urnic/urnic.h"
#include "verbs_abi.h"

/* ---- errors ---- */

/* liburnic's -errno as verbs' errno: positive. An exhausted share (EDQUOT) becomes ENOMEM. */
static inline int uv_errno(int err)
{
    return err == -EDQUOT ? ENOMEM : err == -ENOTSUP ? EOPNOTSUPP : -err;
}

/* For calls that return an error number. Programs print errno as well, because the calls of other
 * providers end in system calls, which set it. */
static inline int uv_status(int err)
{
    const int is = uv_errno(err);
    if (is != 0)
        errno = is;
    return is;
}

/* For calls that return -1, or NULL, and set errno. */
static inline int uv_fail(int err)
{
    if (err == 0)
        return 0;
    errno = uv_errno(err);
    return -1;
}

static inline void *uv_null(int err)
{
    errno = uv_errno(err);
    return NULL;
}

/* ---- a lock for a few instructions ---- */

struct uv_lock {
    _Atomic uint32_t taken;
};

static inline void uv_lock(struct uv_lock *l)
{
    for (unsigned spins = 0; atomic_exchange_explicit(&l->taken, 1, memory_order_acquire);)
        if (++spins > 64)
            sched_yield(); /* the holder may have been preempted */
}

static inline void uv_unlock(struct uv_lock *l)
{
    atomic_store_explicit(&l->taken, 0, memory_order_release);
}

/* ---- objects ---- */

/* Libraries of vendors look for tables of their own after struct ibv_device: they find zeros. */
#define UV_DEVICE_PADDING 512

struct uv_device {
    struct ibv_device dev;
    uint8_t padding[UV_DEVICE_PADDING];
    struct uv_device *next;
    unsigned users; /* number of lists and contexts that name it */
    struct urnic_device urnic;
};

struct uv_context {
    struct verbs_context vctx;
    struct urnic_context *urnic;
    struct urnic_device_attr attr;
    uint32_t gid_tbl_len;
};

struct uv_pd {
    struct ibv_pd pd;
    struct urnic_pd *urnic;
    struct uv_pd *parent;  /* in a parent domain: the domain for which it stands */
    _Atomic uint32_t uses; /* address handles and parent domains: liburnic counts the others */
};

struct uv_td {
    struct ibv_td td;
    _Atomic uint32_t uses;
};

struct uv_mr {
    struct ibv_mr mr;
    struct urnic_mr *urnic;
    unsigned access;
};

struct uv_mw {
    struct ibv_mw mw;
    struct urnic_mw *urnic;
};

struct uv_ah {
    struct ibv_ah ah;
    struct urnic_ah *urnic;
};

struct uv_channel {
    struct ibv_comp_channel channel;
    struct urnic_channel *urnic;
};

struct uv_cq {
    __extension__ union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    struct urnic_cq *urnic;
    _Atomic uint32_t idle;     /* empty polls since the last completion or yield */
    _Atomic uint32_t patience; /* empty polls before the next yield */
    /* of an extended queue: held from start_poll to end_poll */
    struct uv_lock lock;
    struct urnic_wc wc;
    uint64_t wallclock; /* of the last completion that was asked for it */
};

struct uv_srq {
    struct ibv_srq srq;
    struct urnic_srq *urnic;
};

struct uv_batch;

/* struct ibv_qp_ex of rdma-core 45 and later, which has wr_flush at its end. Programs built for
 * older releases never read wr_flush: they can't ask for a queue pair with FLUSH. */
struct uv_qp_ex_later {
    char older[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void))];
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);
};

struct uv_qp {
    __extension__ union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
        struct uv_qp_ex_later later;
    };
    struct urnic_qp *urnic;
    struct urnic_qp_cap cap;
    bool sig_all;
    struct uv_batch *batch; /* for ibv_wr_*; NULL: made without SEND_OPS_FLAGS */
    /* of a receiving XRC queue pair (xrc.c) */
    struct uv_qp *real; /* the first handle, which has xrcd, handles and next */
    struct ibv_xrcd *xrcd;
    unsigned handles;
    struct uv_qp *next;
};

#define UV_OF(type, member, ptr) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline struct uv_context *uv_ctx(struct ibv_context *c)
{
    return UV_OF(struct uv_context, vctx.context, c);
}

static inline struct uv_pd *uv_pd(struct ibv_pd *pd)
{
    return (struct uv_pd *)pd;
}

static inline struct uv_cq *uv_cq(struct ibv_cq *cq)
{
    return (struct uv_cq *)cq;
}

static inline struct uv_qp *uv_qp(struct ibv_qp *qp)
{
    return (struct uv_qp *)qp;
}

static inline struct uv_srq *uv_srq(struct ibv_srq *srq)
{
    return (struct uv_srq *)srq;
}

/* ---- between files ---- */

/* device.c: one more user of a device, one less. */
void uv_device_get(struct uv_device *dev);
void uv_device_put(struct uv_device *dev);

/* The operations of a context, each in the file of its noun. */
int uv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                  size_t size);
int uv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t size);
int uv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_td *uv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int uv_dealloc_td(struct ibv_td *td);
struct ibv_pd *uv_alloc_parent_domain(struct ibv_context *context,
                                      struct ibv_parent_domain_init_attr *attr);
struct ibv_mw *uv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int uv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int uv_dealloc_mw(struct ibv_mw *mw);
int uv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int uv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int uv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *uv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int uv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_srq *uv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int uv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int uv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_qp *uv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

#endif
