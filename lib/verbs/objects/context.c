/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening and closing devices. The inline functions of the public header call through two tables of
 * this file. The first one, context_ops, has 32 slots, and each must have a function. If a slot of
 * the second one, verbs_context, is empty, the header returns EOPNOTSUPP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_fd.h"
#include "trace_calls.h"
#include "verbs_priv.h"
#include "xrc.h"

static void *no_such_call(void)
{
    return uv_null(-EOPNOTSUPP);
}

static int no_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return ibv_query_device(context, attr);
}

static int no_query_port(struct ibv_context *context, uint8_t port,
                         struct _compat_ibv_port_attr *attr)
{
    return ibv_query_port(context, port, attr);
}

static const struct ibv_context_ops context_ops = {
    ._compat_query_device = no_query_device,
    ._compat_query_port = no_query_port,
    ._compat_alloc_pd = no_such_call,
    ._compat_dealloc_pd = no_such_call,
    ._compat_reg_mr = no_such_call,
    ._compat_rereg_mr = no_such_call,
    ._compat_dereg_mr = no_such_call,
    .alloc_mw = uv_traced_alloc_mw,
    .bind_mw = uv_traced_bind_mw,
    .dealloc_mw = uv_traced_dealloc_mw,
    ._compat_create_cq = no_such_call,
    .poll_cq = uv_traced_poll_cq,
    .req_notify_cq = uv_traced_req_notify_cq,
    ._compat_cq_event = no_such_call,
    ._compat_resize_cq = no_such_call,
    ._compat_destroy_cq = no_such_call,
    ._compat_create_srq = no_such_call,
    ._compat_modify_srq = no_such_call,
    ._compat_query_srq = no_such_call,
    ._compat_destroy_srq = no_such_call,
    .post_srq_recv = uv_traced_post_srq_recv,
    ._compat_create_qp = no_such_call,
    ._compat_query_qp = no_such_call,
    ._compat_modify_qp = no_such_call,
    ._compat_destroy_qp = no_such_call,
    .post_send = uv_traced_post_send,
    .post_recv = uv_traced_post_recv,
    ._compat_create_ah = no_such_call,
    ._compat_destroy_ah = no_such_call,
    ._compat_attach_mcast = no_such_call,
    ._compat_detach_mcast = no_such_call,
    ._compat_async_event = no_such_call,
};
_Static_assert(sizeof(context_ops) == 32 * sizeof(void *), "every slot is filled");

static void fill(struct uv_context *ctx, struct ibv_device *dev)
{
    struct verbs_context *v = &ctx->vctx;
    v->query_port = uv_traced_query_port;
    v->modify_cq = uv_traced_modify_cq;
    v->alloc_td = uv_alloc_td;
    v->dealloc_td = uv_dealloc_td;
    v->alloc_parent_domain = uv_traced_alloc_parent_domain;
    v->query_rt_values = uv_traced_query_rt_values;
    v->create_cq_ex = uv_traced_create_cq_ex;
    v->query_device_ex = uv_traced_query_device_ex;
    v->create_qp_ex = uv_traced_create_qp_ex;
    v->create_srq_ex = uv_traced_create_srq_ex;
    v->open_xrcd = uv_traced_open_xrcd;
    v->close_xrcd = uv_traced_close_xrcd;
    v->get_srq_num = uv_traced_get_srq_num;
    v->open_qp = uv_traced_open_qp;
    v->sz = sizeof(*v);
    v->context.device = dev;
    v->context.ops = context_ops;
    /* No command goes over this descriptor, but programs duplicate it and pass it on. */
    v->context.cmd_fd = urnic_async_fd(ctx->urnic);
    v->context.async_fd = urnic_async_fd(ctx->urnic);
    v->context.num_comp_vectors = (int)ctx->attr.num_comp_vectors;
    pthread_mutex_init(&v->context.mutex, NULL);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

/* ---- opening ---- */

static void say_refused(const char *device, int err)
{
    const char *engine = secure_getenv("URNIC_ENGINE"), *crc = secure_getenv("URNIC_CRC");
    const char *why = strerror(-err);
    if (err == -ENODEV) /* no daemon, or no such device: the program says so */
        return;
    if (err == -EINVAL && engine != NULL && crc != NULL) {
        fprintf(stderr,
                "urnic: URNIC_ENGINE=%s (doc/ports.md) or URNIC_CRC=%s (man urnicd) is not "
                "valid\n",
                engine, crc);
        return;
    }
    if (err == -EINVAL && engine != NULL) {
        fprintf(stderr, "urnic: URNIC_ENGINE=%s is not valid (doc/ports.md)\n", engine);
        return;
    }
    if (err == -EINVAL && crc != NULL) {
        fprintf(stderr, "urnic: URNIC_CRC=%s is not valid (man urnicd)\n", crc);
        return;
    }
    if (err == -EDQUOT)
        why = "the user has its share of channels or memory";
    else if (err == -ENOTSUP)
        why = "the daemon is older than this library";
    else if (err == -ENOSYS)
        why = "liburnic-engine.so was not found beside liburnic";
    fprintf(stderr, "urnic: %s can't be opened with the engine in the program: %s\n", device, why);
}

/* The engine runs in the program: it registers memory of its own. */
static int open_urnic(struct uv_context *ctx, const char *name)
{
    struct urnic_port_attr port;
    urnic_set_first_fd(UV_OWN_FROM);
    int err = urnic_open_application(name, &ctx->urnic);
    if (err < 0) {
        say_refused(name, err);
        return err;
    }
    err = urnic_query_device(ctx->urnic, &ctx->attr);
    if (err == 0)
        err = urnic_query_port(ctx->urnic, &port);
    if (err != 0) {
        urnic_close(ctx->urnic);
        return err;
    }
    ctx->gid_tbl_len = port.gid_tbl_len;
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
    struct uv_context *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return uv_null(-ENOMEM);
    int err = open_urnic(ctx, dev->name);
    if (err < 0) {
        free(ctx);
        return uv_null(err);
    }
    fill(ctx, dev);
    uv_device_get((struct uv_device *)dev);
    return &ctx->vctx.context;
}

/* As in the kernel, closing ends all objects of the context. A program may still destroy its halves
 * of them, so the memory for that stays. */
int ibv_close_device(struct ibv_context *context)
{
    struct uv_context *ctx = uv_ctx(context);
    int err = urnic_close(ctx->urnic);
    if (err == -EBUSY) {
        urnic_hang_up(ctx->urnic);
        return 0;
    }
    if (err < 0)
        return uv_fail(err);
    uv_device_put((struct uv_device *)context->device);
    pthread_mutex_destroy(&context->mutex);
    free(ctx);
    return 0;
}
