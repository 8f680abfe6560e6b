/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Address handles and multicast groups.
 */
#include <stdlib.h>
#include <string.h>

#include "ah.h"

#define PORT            1
#define FLOW_LABEL_MASK 0xFFFFFu
#define GIDS_MAX        256
#define NO_VLAN         0xFFFFu

int uv_ah_attr(struct urnic_ah_attr *to, const struct ibv_ah_attr *from)
{
    if (from->is_global == 0 || from->port_num != PORT)
        return -EINVAL;
    *to = (struct urnic_ah_attr){
        .sgid_index = from->grh.sgid_index,
        .tclass = from->grh.traffic_class,
        .hop_limit = from->grh.hop_limit,
        .sl = from->sl,
        .flow_label = from->grh.flow_label & FLOW_LABEL_MASK, /* UCX: all ones */
    };
    memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
    return 0;
}

void uv_ah_attr_back(struct ibv_ah_attr *to, const struct urnic_ah_attr *from)
{
    *to = (struct ibv_ah_attr){
        .grh = {.flow_label = from->flow_label,
                .sgid_index = (uint8_t)from->sgid_index,
                .hop_limit = from->hop_limit,
                .traffic_class = from->tclass},
        .sl = from->sl,
        .is_global = 1,
        .port_num = PORT,
    };
    memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    static _Atomic uint32_t handles;
    struct urnic_ah_attr want;
    struct uv_ah *ah = calloc(1, sizeof(*ah));
    int err = ah == NULL ? -ENOMEM : uv_ah_attr(&want, attr);
    if (err == 0)
        err = urnic_create_ah(uv_pd(pd)->urnic, &want, &ah->urnic);
    if (err < 0) {
        free(ah);
        return uv_null(err);
    }
    ah->ah =
        (struct ibv_ah){.context = pd->context, .pd = pd, .handle = atomic_fetch_add(&handles, 1)};
    atomic_fetch_add(&uv_pd(pd)->uses, 1);
    return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ibah)
{
    struct uv_ah *ah = (struct uv_ah *)ibah;
    int err = urnic_destroy_ah(ah->urnic);
    if (err < 0)
        return uv_status(err);
    atomic_fetch_sub(&uv_pd(ibah->pd)->uses, 1);
    free(ah);
    return 0;
}

void uv_grh_addresses(const struct ibv_grh *grh, struct uv_grh *out)
{
    const uint8_t *h = (const uint8_t *)grh;
    memset(out, 0, sizeof(*out));
    if (h[0] >> 4 == 6) {
        memcpy(out->src, h + 8, 16);
        memcpy(out->dst, h + 24, 16);
        out->tclass = (uint8_t)(h[0] << 4 | h[1] >> 4);
        out->flow_label = (uint32_t)(h[1] & 0xF) << 16 | (uint32_t)h[2] << 8 | h[3];
    } else { /* IPv4: 20 octets unused, then its header */
        out->src[10] = out->src[11] = out->dst[10] = out->dst[11] = 0xFF;
        memcpy(out->src + 12, h + 32, 4);
        memcpy(out->dst + 12, h + 36, 4);
        out->tclass = h[21];
    }
    out->tclass &= (uint8_t)~3u; /* the ECN bits are the network's marks on the way here */
}

/* The index of our address in the table, as RoCE v2. -errno: not found. */
static int gid_index(struct ibv_context *context, const uint8_t gid[16])
{
    struct urnic_gid all[GIDS_MAX];
    int n = urnic_query_gid_table(uv_ctx(context)->urnic, all, GIDS_MAX);
    for (int i = 0; i < n && i < GIDS_MAX; i++)
        if (all[i].type == URNIC_GID_ROCE_V2 && memcmp(all[i].raw, gid, sizeof(all[i].raw)) == 0)
            return (int)all[i].index;
    return n < 0 ? n : -ENOENT;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
                        struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    struct uv_grh h;
    *attr = (struct ibv_ah_attr){.dlid = wc->slid,
                                 .sl = wc->wc_flags & IBV_WC_GRH ? 0 : wc->sl,
                                 .src_path_bits = wc->dlid_path_bits,
                                 .port_num = port};
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    uv_grh_addresses(grh, &h);
    int index = gid_index(context, h.dst);
    if (index < 0 && h.dst[0] != 0xFF && (h.dst[12] & 0xF0) != 0xE0)
        return uv_fail(index);
    /* A datagram to a group names none of our addresses: choose the first one of its family. */
    for (uint32_t i = 0; index < 0 && i < uv_ctx(context)->gid_tbl_len; i++) {
        struct urnic_gid g;
        if (urnic_query_gid(uv_ctx(context)->urnic, i, &g) == 0 && g.type == URNIC_GID_ROCE_V2 &&
            (memcmp(g.raw, h.src, 12) == 0 || h.src[10] != 0xFF))
            index = (int)i;
    }
    if (index < 0)
        return uv_fail(index);
    attr->is_global = 1;
    memcpy(attr->grh.dgid.raw, h.src, sizeof(h.src));
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = 0xFF;
    attr->grh.traffic_class = h.tclass;
    attr->grh.flow_label = h.flow_label;
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port)
{
    struct ibv_ah_attr attr;
    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0)
        return NULL;
    return ibv_create_ah(pd, &attr);
}

UV_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                          uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    struct urnic_port_attr port;
    struct urnic_ah_attr to;
    int err = uv_ah_attr(&to, attr);
    if (err == 0)
        err = urnic_resolve_mac(uv_ctx(context)->urnic, &to, mac);
    if (err == 0 && vid != NULL)
        err = urnic_query_port(uv_ctx(context)->urnic, &port);
    if (err != 0)
        return uv_fail(err);
    if (vid != NULL)
        *vid = port.vlan != 0 ? port.vlan : NO_VLAN;
    return 0;
}

/* ---- multicast ---- */

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return uv_status(urnic_attach_mcast(uv_qp(qp)->urnic, gid->raw));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return uv_status(urnic_detach_mcast(uv_qp(qp)->urnic, gid->raw));
}
