/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trace points. The library exports these functions; each calls the function itself
 * (trace_names.h), and writes a line if calls are traced. Operations of a context have trace
 * points, too.
 */
#define UV_TRACE_CALLS
#include "trace_calls.h"

#include "trace.h"
#include "trace_text.h"

/* The function itself. */
#define REAL(name)    uv_real_##name
#define DECLARE(name) __typeof__(name) REAL(name);

/* A trace point: the function, its parameters and arguments, the kind of its result; then a format
 * and its arguments. */
#define POINT(type, name, parameters, arguments, kind, ...)                                        \
    DECLARE(name)                                                                                  \
    type name parameters                                                                           \
    {                                                                                              \
        type result = REAL(name) arguments;                                                        \
        if (uv_tracing())                                                                          \
            uv_trace(#name, kind, (int64_t)result, __VA_ARGS__);                                   \
        return result;                                                                             \
    }

#define QPN(qp)   ((qp)->qp_num)
#define NAME(ctx) ((ctx)->device->name)
#define P(x)      ((const void *)(x))

/* ---- devices ---- */

DECLARE(ibv_fork_init)
int ibv_fork_init(void)
{
    uv_trace_begin();
    int result = REAL(ibv_fork_init)();
    if (uv_tracing())
        uv_trace("ibv_fork_init", UV_STATUS, result, " ");
    return result;
}

DECLARE(ibv_get_device_list)
struct ibv_device **ibv_get_device_list(int *num)
{
    uv_trace_begin();
    struct ibv_device **list = REAL(ibv_get_device_list)(num);
    if (uv_tracing()) {
        int n = 0;
        while (list != NULL && list[n] != NULL)
            n++;
        uv_trace("ibv_get_device_list", UV_POINTER, (intptr_t)list, "%d devices, the first is %s",
                 n, n > 0 ? list[0]->name : "none");
    }
    return list;
}

POINT(struct ibv_context *, ibv_open_device, (struct ibv_device * dev), (dev), UV_POINTER, "%s",
      dev->name)
DECLARE(ibv_close_device)
int ibv_close_device(struct ibv_context *context)
{
    char name[IBV_SYSFS_NAME_MAX];
    if (uv_tracing())
        memcpy(name, NAME(context), sizeof(name));
    else
        name[0] = '\0';
    int result = REAL(ibv_close_device)(context);
    if (uv_tracing())
        uv_trace("ibv_close_device", UV_MINUS, result, "%s", name);
    return result;
}
POINT(int, ibv_query_device, (struct ibv_context * c, struct ibv_device_attr *a), (c, a), UV_STATUS,
      "%s", NAME(c))
POINT(int, ibv_query_port, (struct ibv_context * c, uint8_t port, struct _compat_ibv_port_attr *a),
      (c, port, a), UV_STATUS, "%s, port %u", NAME(c), port)
DECLARE(ibv_query_gid)
int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
    int result = REAL(ibv_query_gid)(c, port, index, gid);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_query_gid", UV_MINUS, result, "%s, port %u, index %d, %s", NAME(c), port,
                 index, result == 0 ? uv_text_gid(gid->raw, text) : "no GID");
    }
    return result;
}
DECLARE(_ibv_query_gid_ex)
int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *e,
                      uint32_t flags, size_t size)
{
    int result = REAL(_ibv_query_gid_ex)(c, port, index, e, flags, size);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("_ibv_query_gid_ex", UV_STATUS, result, "%s, port %u, index %u, %s", NAME(c), port,
                 index, result == 0 ? uv_text_gid(e->gid.raw, text) : "no GID");
    }
    return result;
}
POINT(ssize_t, _ibv_query_gid_table,
      (struct ibv_context * c, struct ibv_gid_entry *e, size_t max, uint32_t flags, size_t size),
      (c, e, max, flags, size), UV_NUMBER, "%s, room for %zu", NAME(c), max)
UV_EXPORT int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned index,
                                 unsigned *type);
POINT(int, ibv_query_gid_type,
      (struct ibv_context * c, uint8_t port, unsigned index, unsigned *type),
      (c, port, index, type), UV_MINUS, "%s, port %u, index %u, %s", NAME(c), port, index,
      result != 0  ? "no type"
      : *type == 0 ? "RoCE v1"
                   : "RoCE v2")
POINT(int, ibv_query_pkey, (struct ibv_context * c, uint8_t port, int index, __be16 *pkey),
      (c, port, index, pkey), UV_MINUS, "%s, port %u, index %d, 0x%x", NAME(c), port, index,
      result == 0 ? __builtin_bswap16(*pkey) : 0)
POINT(int, ibv_get_pkey_index, (struct ibv_context * c, uint8_t port, __be16 pkey), (c, port, pkey),
      UV_MINUS, "%s, port %u, 0x%x", NAME(c), port, __builtin_bswap16(pkey))

/* ---- memory ---- */

POINT(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context * c), (c), UV_POINTER, "%s", NAME(c))
POINT(int, ibv_dealloc_pd, (struct ibv_pd * pd), (pd), UV_STATUS, "pd %p", P(pd))

static struct ibv_mr *registered(const char *name, struct ibv_mr *mr, const void *addr,
                                 size_t length, unsigned access)
{
    char text[UV_TEXT];
    if (uv_tracing())
        uv_trace(name, UV_POINTER, (intptr_t)mr, "%p, %zu octets, %s; lkey 0x%x rkey 0x%x", addr,
                 length, uv_text_access(access, text), mr != NULL ? mr->lkey : 0,
                 mr != NULL ? mr->rkey : 0);
    return mr;
}

DECLARE(ibv_reg_mr)
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return registered("ibv_reg_mr", REAL(ibv_reg_mr)(pd, addr, length, access), addr, length,
                      (unsigned)access);
}

DECLARE(ibv_reg_mr_iova)
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
    return registered("ibv_reg_mr_iova", REAL(ibv_reg_mr_iova)(pd, addr, length, iova, access),
                      addr, length, (unsigned)access);
}

DECLARE(ibv_reg_mr_iova2)
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    return registered("ibv_reg_mr_iova2", REAL(ibv_reg_mr_iova2)(pd, addr, length, iova, access),
                      addr, length, access);
}

POINT(int, ibv_rereg_mr,
      (struct ibv_mr * mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access),
      (mr, flags, pd, addr, length, access), UV_STATUS, "lkey 0x%x, flags 0x%x", mr->lkey,
      (unsigned)flags)
DECLARE(ibv_dereg_mr)
int ibv_dereg_mr(struct ibv_mr *mr)
{
    uint32_t lkey = mr->lkey;
    int result = REAL(ibv_dereg_mr)(mr);
    if (uv_tracing())
        uv_trace("ibv_dereg_mr", UV_STATUS, result, "lkey 0x%x", lkey);
    return result;
}

/* ---- completions and events ---- */

POINT(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context * c), (c), UV_POINTER,
      "%s", NAME(c))
POINT(int, ibv_destroy_comp_channel, (struct ibv_comp_channel * ch), (ch), UV_STATUS, "channel %p",
      P(ch))
POINT(struct ibv_cq *, ibv_create_cq,
      (struct ibv_context * c, int cqe, void *user, struct ibv_comp_channel *ch, int vector),
      (c, cqe, user, ch, vector), UV_POINTER, "%s, %d entries, channel %p", NAME(c), cqe, P(ch))
POINT(int, ibv_resize_cq, (struct ibv_cq * cq, int cqe), (cq, cqe), UV_STATUS, "cq %p, %d entries",
      P(cq), cqe)
POINT(int, ibv_destroy_cq, (struct ibv_cq * cq), (cq), UV_STATUS, "cq %p", P(cq))
POINT(int, ibv_get_cq_event, (struct ibv_comp_channel * ch, struct ibv_cq **cq, void **user),
      (ch, cq, user), UV_MINUS, "channel %p, cq %p", P(ch), result == 0 ? P(*cq) : NULL)

DECLARE(ibv_ack_cq_events)
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    REAL(ibv_ack_cq_events)(cq, n);
    if (uv_tracing())
        uv_trace("ibv_ack_cq_events", UV_NOTHING, 0, "cq %p, %u", P(cq), n);
}

POINT(int, ibv_get_async_event, (struct ibv_context * c, struct ibv_async_event *event), (c, event),
      UV_MINUS, "%s, %s", NAME(c), result == 0 ? ibv_event_type_str(event->event_type) : "no event")

DECLARE(ibv_ack_async_event)
void ibv_ack_async_event(struct ibv_async_event *event)
{
    REAL(ibv_ack_async_event)(event);
    if (uv_tracing())
        uv_trace("ibv_ack_async_event", UV_NOTHING, 0, "%s", ibv_event_type_str(event->event_type));
}

/* ---- queue pairs ---- */

POINT(struct ibv_srq *, ibv_create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr *a), (pd, a),
      UV_POINTER, "pd %p, max_wr %u", P(pd), a->attr.max_wr)
POINT(int, ibv_modify_srq, (struct ibv_srq * srq, struct ibv_srq_attr *a, int mask), (srq, a, mask),
      UV_STATUS, "srq %p, mask 0x%x, max_wr %u, srq_limit %u", P(srq), (unsigned)mask, a->max_wr,
      a->srq_limit)
POINT(int, ibv_query_srq, (struct ibv_srq * srq, struct ibv_srq_attr *a), (srq, a), UV_STATUS,
      "srq %p", P(srq))
POINT(int, ibv_destroy_srq, (struct ibv_srq * srq), (srq), UV_STATUS, "srq %p", P(srq))

POINT(struct ibv_qp *, ibv_create_qp, (struct ibv_pd * pd, struct ibv_qp_init_attr *a), (pd, a),
      UV_POINTER, "{ type %s max_send_wr %u max_recv_wr %u max_inline_data %u } qp 0x%x",
      uv_text_type(a->qp_type), a->cap.max_send_wr, a->cap.max_recv_wr, a->cap.max_inline_data,
      result != NULL ? QPN(result) : 0)
DECLARE(ibv_modify_qp)
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int result = REAL(ibv_modify_qp)(qp, attr, mask);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_modify_qp", UV_STATUS, result, "qp 0x%x, %s", QPN(qp),
                 uv_text_qp_attr(attr, (unsigned)mask, text));
    }
    return result;
}
POINT(int, ibv_query_qp,
      (struct ibv_qp * qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init),
      (qp, a, mask, init), UV_STATUS, "qp 0x%x, state %s", QPN(qp),
      result == 0 ? uv_text_state(a->qp_state) : "unknown")
DECLARE(ibv_destroy_qp)
int ibv_destroy_qp(struct ibv_qp *qp)
{
    uint32_t qpn = QPN(qp);
    int result = REAL(ibv_destroy_qp)(qp);
    if (uv_tracing())
        uv_trace("ibv_destroy_qp", UV_STATUS, result, "qp 0x%x", qpn);
    return result;
}

/* ---- addresses ---- */

DECLARE(ibv_create_ah)
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *result = REAL(ibv_create_ah)(pd, attr);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_create_ah", UV_POINTER, (intptr_t)result, "dgid %s, sgid_index %u",
                 uv_text_gid(attr->grh.dgid.raw, text), attr->grh.sgid_index);
    }
    return result;
}
POINT(struct ibv_ah *, ibv_create_ah_from_wc,
      (struct ibv_pd * pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port),
      (pd, wc, grh, port), UV_POINTER, "src_qp 0x%x", wc->src_qp)
POINT(int, ibv_destroy_ah, (struct ibv_ah * ah), (ah), UV_STATUS, "ah %p", P(ah))

static int group(const char *name, int result, struct ibv_qp *qp, const union ibv_gid *gid)
{
    char text[UV_TEXT];
    if (uv_tracing())
        uv_trace(name, UV_STATUS, result, "qp 0x%x, %s", QPN(qp), uv_text_gid(gid->raw, text));
    return result;
}

DECLARE(ibv_attach_mcast)
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return group("ibv_attach_mcast", REAL(ibv_attach_mcast)(qp, gid, lid), qp, gid);
}

DECLARE(ibv_detach_mcast)
int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return group("ibv_detach_mcast", REAL(ibv_detach_mcast)(qp, gid, lid), qp, gid);
}

/* ---- operations of a context ---- */

int uv_traced_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
                              struct ibv_device_attr_ex *a, size_t size)
{
    int result = uv_query_device_ex(c, input, a, size);
    if (uv_tracing())
        uv_trace("ibv_query_device_ex", UV_STATUS, result, "%s", NAME(c));
    return result;
}

int uv_traced_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a, size_t size)
{
    int result = uv_query_port(c, port, a, size);
    if (uv_tracing())
        uv_trace("ibv_query_port", UV_STATUS, result, "%s, port %u, %s", NAME(c), port,
                 result == 0 ? ibv_port_state_str(a->state) : "no such port");
    return result;
}

int uv_traced_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
    uint32_t wanted = values->comp_mask;
    int result = uv_query_rt_values(c, values);
    if (uv_tracing())
        uv_trace("ibv_query_rt_values_ex", UV_STATUS, result, "%s, comp_mask 0x%x", NAME(c),
                 wanted);
    return result;
}

int uv_traced_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
{
    int result = uv_modify_cq(cq, a);
    if (uv_tracing())
        uv_trace("ibv_modify_cq", UV_STATUS, result, "cq %p, count %u, period %u", P(cq),
                 a->moderate.cq_count, a->moderate.cq_period);
    return result;
}

struct ibv_pd *uv_traced_alloc_parent_domain(struct ibv_context *c,
                                             struct ibv_parent_domain_init_attr *a)
{
    struct ibv_pd *pd = uv_alloc_parent_domain(c, a);
    if (uv_tracing())
        uv_trace("ibv_alloc_parent_domain", UV_POINTER, (intptr_t)pd, "%s, pd %p", NAME(c),
                 P(a->pd));
    return pd;
}

int uv_traced_dealloc_mw(struct ibv_mw *mw)
{
    uint32_t rkey = mw->rkey;
    int result = uv_dealloc_mw(mw);
    if (uv_tracing())
        uv_trace("ibv_dealloc_mw", UV_STATUS, result, "rkey 0x%x", rkey);
    return result;
}

struct ibv_xrcd *uv_traced_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *a)
{
    struct ibv_xrcd *xrcd = uv_open_xrcd(c, a);
    if (uv_tracing())
        uv_trace("ibv_open_xrcd", UV_POINTER, (intptr_t)xrcd, "%s, fd %d, oflags 0x%x", NAME(c),
                 a->fd, (unsigned)a->oflags);
    return xrcd;
}

int uv_traced_close_xrcd(struct ibv_xrcd *xrcd)
{
    int result = uv_close_xrcd(xrcd);
    if (uv_tracing())
        uv_trace("ibv_close_xrcd", UV_STATUS, result, "xrcd %p", P(xrcd));
    return result;
}

int uv_traced_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
    int result = uv_get_srq_num(srq, num);
    if (uv_tracing())
        uv_trace("ibv_get_srq_num", UV_STATUS, result, "srq %p, number 0x%x", P(srq),
                 result == 0 ? *num : 0);
    return result;
}

struct ibv_qp *uv_traced_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *a)
{
    struct ibv_qp *qp = uv_open_qp(c, a);
    if (uv_tracing())
        uv_trace("ibv_open_qp", UV_POINTER, (intptr_t)qp, "%s, qp 0x%x", NAME(c), a->qp_num);
    return qp;
}

int uv_traced_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    int got = uv_poll_cq(cq, n, wc);
    if (uv_tracing() && got != 0) {
        char text[UV_TEXT];
        uv_trace("ibv_poll_cq", UV_NUMBER, got, "cq %p, %d, %s", P(cq), n,
                 uv_text_wc(wc, got, text));
    }
    return got;
}

int uv_traced_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    int result = uv_req_notify_cq(cq, solicited_only);
    if (uv_tracing())
        uv_trace("ibv_req_notify_cq", UV_STATUS, result, "cq %p%s", P(cq),
                 solicited_only ? ", solicited" : "");
    return result;
}

int uv_traced_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    int result = uv_post_send(qp, wr, bad);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_post_send", UV_STATUS, result, "qp 0x%x, %s", QPN(qp),
                 uv_text_send(wr, text));
    }
    return result;
}

int uv_traced_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int result = uv_post_recv(qp, wr, bad);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_post_recv", UV_STATUS, result, "qp 0x%x, %s", QPN(qp),
                 uv_text_recv(wr, text));
    }
    return result;
}

int uv_traced_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int result = uv_post_srq_recv(srq, wr, bad);
    if (uv_tracing()) {
        char text[UV_TEXT];
        uv_trace("ibv_post_srq_recv", UV_STATUS, result, "srq %p, %s", P(srq),
                 uv_text_recv(wr, text));
    }
    return result;
}

struct ibv_qp *uv_traced_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a)
{
    struct ibv_qp *qp = uv_create_qp_ex(c, a);
    if (uv_tracing())
        uv_trace("ibv_create_qp_ex", UV_POINTER, (intptr_t)qp,
                 "{ type %s max_send_wr %u max_recv_wr %u } qp 0x%x", uv_text_type(a->qp_type),
                 a->cap.max_send_wr, a->cap.max_recv_wr, qp != NULL ? QPN(qp) : 0);
    return qp;
}

struct ibv_cq_ex *uv_traced_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a)
{
    struct ibv_cq_ex *cq = uv_create_cq_ex(c, a);
    if (uv_tracing())
        uv_trace("ibv_create_cq_ex", UV_POINTER, (intptr_t)cq, "%s, %u entries, wc_flags 0x%llx",
                 NAME(c), a->cqe, (unsigned long long)a->wc_flags);
    return cq;
}

struct ibv_srq *uv_traced_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a)
{
    struct ibv_srq *srq = uv_create_srq_ex(c, a);
    if (uv_tracing())
        uv_trace("ibv_create_srq_ex", UV_POINTER, (intptr_t)srq, "%s, max_wr %u", NAME(c),
                 a->attr.max_wr);
    return srq;
}

struct ibv_mw *uv_traced_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct ibv_mw *mw = uv_alloc_mw(pd, type);
    if (uv_tracing())
        uv_trace("ibv_alloc_mw", UV_POINTER, (intptr_t)mw, "type %d; rkey 0x%x", (int)type,
                 mw != NULL ? mw->rkey : 0);
    return mw;
}

int uv_traced_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    int result = uv_bind_mw(qp, mw, bind);
    if (uv_tracing())
        uv_trace("ibv_bind_mw", UV_STATUS, result, "qp 0x%x, rkey 0x%x", QPN(qp), mw->rkey);
    return result;
}
