/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Public functions of rdma-core releases after 44, whose headers can't be included here. A program
 * that calls one would not start without it. Functions that need more structs of theirs than the
 * one below, or another kind of device, fail with EOPNOTSUPP, and programs continue without them.
 * Their names in C differ from those in the library, so that headers may declare them.
 */
#include "verbs_priv.h"

#define HUNDRED_MBPS  100000000u /* the unit of port speeds */
#define SPEED_UNKNOWN 1000u      /* as width and speed of such a port: 100 Gb/s */

/* The layout in those releases; later ones append members. */
struct uv_mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask; /* mask of the valid members that follow, from bit 0 on */
    uint64_t iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
};
#define HAS_IOVA 0x01u
#define HAS_ADDR 0x02u
#define HAS_ALL  0x3Fu /* further bits: a dma-buf and its offset, a DMA handle, a buffer */

#define EXPORT_AS(name) __asm__(#name) UV_EXPORT

struct ibv_mr *uv_reg_mr_ex(struct ibv_pd *pd, const struct uv_mr_init_attr *attr)
    EXPORT_AS(ibv_reg_mr_ex);

struct ibv_mr *uv_reg_mr_ex(struct ibv_pd *pd, const struct uv_mr_init_attr *attr)
{
    if (attr->comp_mask & ~(uint64_t)(HAS_IOVA | HAS_ADDR))
        return uv_null(attr->comp_mask & ~(uint64_t)HAS_ALL ? -EINVAL : -EOPNOTSUPP);
    if (!(attr->comp_mask & HAS_ADDR))
        return uv_null(-EINVAL);
    uint64_t iova = attr->comp_mask & HAS_IOVA ? attr->iova : (uintptr_t)attr->addr;
    return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned)attr->access);
}

int uv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
    EXPORT_AS(ibv_query_port_speed);

int uv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    struct urnic_port_attr attr;
    int err = port != 1 ? -EINVAL : urnic_query_port(uv_ctx(context)->urnic, &attr);
    if (err < 0)
        return uv_status(err);
    *speed = attr.line_rate != 0 ? attr.line_rate / HUNDRED_MBPS : SPEED_UNKNOWN;
    return 0;
}

/* ---- refused: NULL, or errno's value, or -1 with errno ---- */

#define NULL_OF(name)                                                                              \
    void *uv_##name(void) EXPORT_AS(name);                                                         \
    void *uv_##name(void)                                                                          \
    {                                                                                              \
        return uv_null(-EOPNOTSUPP);                                                               \
    }
#define STATUS_OF(name)                                                                            \
    int uv_##name(void) EXPORT_AS(name);                                                           \
    int uv_##name(void)                                                                            \
    {                                                                                              \
        return uv_status(-EOPNOTSUPP);                                                             \
    }
#define DESCRIPTOR_OF(name)                                                                        \
    int uv_##name(void) EXPORT_AS(name);                                                           \
    int uv_##name(void)                                                                            \
    {                                                                                              \
        return uv_fail(-EOPNOTSUPP);                                                               \
    }

NULL_OF(ibv_alloc_dmah)
STATUS_OF(ibv_dealloc_dmah)
DESCRIPTOR_OF(ibv_dm_export_dmabuf_fd)
NULL_OF(ibv_alloc_buf)
NULL_OF(ibv_reg_buf_mr)
STATUS_OF(ibv_free_buf) /* returns nothing */
DESCRIPTOR_OF(ibv_export_buf_dmabuf_fd)
STATUS_OF(_ibv_query_comp_cntr_caps)
NULL_OF(ibv_create_comp_cntr)
STATUS_OF(ibv_destroy_comp_cntr)
STATUS_OF(ibv_inc_comp_cntr)
STATUS_OF(ibv_inc_err_comp_cntr)
STATUS_OF(ibv_qp_attach_comp_cntr)
STATUS_OF(ibv_read_comp_cntr)
STATUS_OF(ibv_read_err_comp_cntr)
STATUS_OF(ibv_set_comp_cntr)
STATUS_OF(ibv_set_err_comp_cntr)
