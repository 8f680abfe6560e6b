/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Attributes of a device and its port. Callers may know a shorter struct than ours: each answer is
 * made whole, and cut to their size.
 */
#include <string.h>
#include <time.h>

#include "verbs_priv.h"

#define PORT           1u
#define NO_VENDOR      0xFFFFFFu /* as other software devices have it */
#define PAGE_SIZES     0xFFFFF000u
#define CLOCK_KHZ      1000000u /* completions carry nanoseconds */
#define PHYS_LINK_UP   5
#define PHYS_DISABLED  3
#define RATE_UNKNOWN   100000000000ull
#define MODERATION_MAX 0xFFFFu

static void fill_device(const struct uv_context *ctx, struct ibv_device_attr *a)
{
    const struct urnic_device_attr *u = &ctx->attr;
    *a = (struct ibv_device_attr){
        .node_guid = u->dev.guid,
        .sys_image_guid = u->dev.guid,
        .max_mr_size = u->max_mr_size,
        .page_size_cap = PAGE_SIZES,
        .vendor_id = NO_VENDOR,
        .vendor_part_id = 1,
        .hw_ver = 1,
        .max_qp = (int)u->max_qp,
        .max_qp_wr = (int)u->max_qp_wr,
        .device_cap_flags =
            IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_XRC | IBV_DEVICE_BAD_QKEY_CNTR |
            IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
            IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_N_NOTIFY_CQ |
            IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
        .max_sge = (int)(u->max_send_sge < u->max_recv_sge ? u->max_send_sge : u->max_recv_sge),
        .max_sge_rd = (int)u->max_send_sge,
        .max_cq = (int)u->max_cq,
        .max_cqe = (int)u->max_cqe,
        .max_mr = (int)u->max_mr,
        .max_pd = (int)u->max_pd,
        .max_qp_rd_atom = (int)u->max_qp_rd_atom,
        .max_res_rd_atom = (int)(u->max_qp_rd_atom * u->max_qp),
        .max_qp_init_rd_atom = (int)u->max_qp_init_rd_atom,
        .atomic_cap = (enum ibv_atomic_cap)u->atomic_cap,
        .max_mw = (int)u->max_mw,
        .max_mcast_grp = (int)u->max_mcast_grp,
        .max_mcast_qp_attach = (int)u->max_mcast_qp_attach,
        .max_total_mcast_qp_attach = (int)(u->max_mcast_grp * u->max_mcast_qp_attach),
        .max_ah = (int)u->max_ah,
        .max_srq = (int)u->max_srq,
        .max_srq_wr = (int)u->max_srq_wr,
        .max_srq_sge = (int)u->max_srq_sge,
        .max_pkeys = (uint16_t)u->max_pkeys,
        .local_ca_ack_delay = (uint8_t)u->local_ca_ack_delay,
        .phys_port_cnt = 1,
    };
    memcpy(a->fw_ver, u->fw_ver, sizeof(u->fw_ver));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    fill_device(uv_ctx(context), attr);
    return 0;
}

int uv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex a = {
        .completion_timestamp_mask = UINT64_MAX,
        .hca_core_clock = CLOCK_KHZ,
        .cq_mod_caps = {.max_cq_count = MODERATION_MAX, .max_cq_period = MODERATION_MAX},
        .phys_port_cnt_ex = 1,
    };
    if (input != NULL && input->comp_mask != 0)
        return uv_status(-EINVAL);
    if (size < sizeof(a.orig_attr))
        return uv_status(-EINVAL);
    fill_device(uv_ctx(context), &a.orig_attr);
    a.device_cap_flags_ex = a.orig_attr.device_cap_flags | uv_ctx(context)->attr.cap_flags;
    memset(attr, 0, size);
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

int uv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    uint32_t given = 0;
    (void)context;
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock); /* the clock of completions */
        given |= IBV_VALUES_MASK_RAW_CLOCK;
    }
    values->comp_mask = given;
    return 0;
}

/* ---- ports ---- */

/* The width and the lane speed, in verbs' numbers, whose product is nearest below a rate. */
static void width_and_speed(uint64_t bps, struct ibv_port_attr *a)
{
    static const struct {
        uint32_t gbps_x10;
        uint8_t width, speed;
    } known[] = {
        {8000, 4, 128}, {4000, 2, 128}, {2000, 2, 64}, {1000, 2, 32}, {560, 2, 16}, {400, 2, 4},
        {250, 1, 32},   {200, 2, 2},    {100, 1, 4},   {50, 1, 2},    {25, 1, 1},
    };
    size_t i = 0;
    if (bps == 0)
        bps = RATE_UNKNOWN;
    while (i + 1 < sizeof(known) / sizeof(known[0]) && known[i].gbps_x10 * 100000000ull > bps)
        i++;
    a->active_width = known[i].width;
    a->active_speed = known[i].speed;
}

int uv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                  size_t size)
{
    struct urnic_port_attr u;
    if (port != PORT)
        return uv_status(-EINVAL);
    int err = urnic_query_port(uv_ctx(context)->urnic, &u);
    if (err < 0)
        return uv_status(err);
    struct ibv_port_attr a = {
        .state = u.state == URNIC_PORT_ACTIVE ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = (enum ibv_mtu)u.max_mtu,
        .active_mtu = (enum ibv_mtu)u.active_mtu,
        .gid_tbl_len = (int)u.gid_tbl_len,
        .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
        .max_msg_sz = u.max_msg_sz,
        .bad_pkey_cntr = u.bad_pkey_cntr,
        .qkey_viol_cntr = u.qkey_viol_cntr,
        .pkey_tbl_len = (uint16_t)u.pkey_tbl_len,
        .max_vl_num = 1,
        .phys_state = u.state == URNIC_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
        .flags = IBV_QPF_GRH_REQUIRED,
    };
    width_and_speed(u.line_rate, &a);
    memset(attr, 0, size);
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

/* Programs built with the first headers call this symbol; their struct ends before the field
 * port_cap_flags2. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return uv_query_port(context, port, (struct ibv_port_attr *)(void *)attr,
                         offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- tables of the port ---- */

#define GIDS_MAX 256

static uint32_t gid_type(const struct urnic_gid *g)
{
    return g->type == URNIC_GID_ROCE_V2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

static struct ibv_gid_entry gid_entry(const struct urnic_gid *g, uint32_t ifindex)
{
    struct ibv_gid_entry e = {
        .gid_index = g->index, .port_num = PORT, .gid_type = gid_type(g), .ndev_ifindex = ifindex};
    memcpy(e.gid.raw, g->raw, sizeof(e.gid.raw));
    return e;
}

/* The kernel's interface of the port; 0: it has none, or the daemon is gone. */
static uint32_t port_ifindex(struct uv_context *ctx)
{
    struct urnic_port_attr u;
    return urnic_query_port(ctx->urnic, &u) == 0 ? u.ifindex : 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    struct uv_context *ctx = uv_ctx(context);
    struct urnic_gid g;
    if (flags != 0)
        return uv_status(-EOPNOTSUPP);
    if (port != PORT || index >= ctx->gid_tbl_len)
        return uv_status(-EINVAL);
    int err = urnic_query_gid(ctx->urnic, index, &g);
    if (err == -ENOENT)
        return uv_status(-ENODATA);
    if (err < 0)
        return uv_status(err);
    struct ibv_gid_entry e = gid_entry(&g, port_ifindex(ctx));
    memset(entry, 0, size);
    memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
    return 0;
}

/* `size` is that of one entry of the caller's array. */
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
                             uint32_t flags, size_t size)
{
    struct uv_context *ctx = uv_ctx(context);
    struct urnic_gid all[GIDS_MAX];
    if (flags != 0)
        return -EOPNOTSUPP;
    if (entries == NULL || size < sizeof(struct ibv_gid_entry))
        return -EINVAL;
    int n = urnic_query_gid_table(ctx->urnic, all, GIDS_MAX);
    if (n < 0)
        return n;
    if ((size_t)n > max || n > GIDS_MAX)
        return -EINVAL; /* as the kernel: all of them or none */
    uint32_t ifindex = port_ifindex(ctx);
    memset(entries, 0, (size_t)n * size);
    for (int i = 0; i < n; i++) {
        struct ibv_gid_entry e = gid_entry(&all[i], ifindex);
        memcpy((char *)entries + (size_t)i * size, &e, sizeof(e));
    }
    return n;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry e = {.port_num = PORT};
    int err = _ibv_query_gid_ex(context, port, (uint32_t)index, &e, 0, sizeof(e));
    if (err == 0 || err == ENODATA) { /* an empty entry reads as zeros */
        *gid = e.gid;
        return 0;
    }
    errno = err;
    return -1;
}

/* From a private header; ibv_devinfo and others call it nevertheless. 0 is RoCE v1, 1 is v2. */
UV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                                 unsigned int *type);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                       unsigned int *type)
{
    struct ibv_gid_entry e = {.gid_type = IBV_GID_TYPE_ROCE_V1};
    int err = _ibv_query_gid_ex(context, port, index, &e, 0, sizeof(e));
    if (err == 0 || err == ENODATA) {
        *type = err == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
        return 0;
    }
    errno = err;
    return -1;
}

static int pkeys(struct ibv_context *context, uint8_t port, struct urnic_port_attr *u)
{
    return port != PORT ? -EINVAL : urnic_query_port(uv_ctx(context)->urnic, u);
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    struct urnic_port_attr u;
    int err = pkeys(context, port, &u);
    if (err == 0 && (index < 0 || (uint32_t)index >= u.pkey_tbl_len))
        err = -EINVAL;
    if (err == 0)
        *pkey = __builtin_bswap16(u.pkeys[index]);
    return uv_fail(err);
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    struct urnic_port_attr u;
    int err = pkeys(context, port, &u);
    for (uint32_t i = 0; err == 0 && i < u.pkey_tbl_len; i++)
        if (__builtin_bswap16(u.pkeys[i]) == pkey)
            return (int)i;
    return uv_fail(err < 0 ? err : -EINVAL);
}
