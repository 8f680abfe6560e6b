/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conversions between liburnic's structs and those of the kernel's rdma_ucm ABI.
 */
#include "ucma_abi.h"
#include "ib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define IB_RATE_100_GBPS 16
#define IB_SELECT_EQUAL  2
#define HOP_LIMIT        64
#define PACKET_LIFE_TIME 13 /* 4.096 us * 2^13 */

static const uint8_t v4_mapped[12] = {[10] = 0xFF, [11] = 0xFF};

/* ---- addresses ---- */

int ucma_addr_take(union ucma_addr *to, const void *from, size_t size)
{
    sa_family_t family;
    memset(to, 0, sizeof(*to));
    if (size < sizeof(family))
        return -EINVAL;
    memcpy(&family, from, sizeof(family));
    size_t need = family == AF_INET    ? sizeof(to->in)
                  : family == AF_INET6 ? sizeof(to->in6)
                                       : SIZE_MAX;
    if (size < need)
        return -EINVAL;
    memcpy(to, from, need);
    return 0;
}

size_t ucma_addr_put(const union ucma_addr *from, void *to, size_t size)
{
    size_t len = from->sa.sa_family == AF_INET    ? sizeof(from->in)
                 : from->sa.sa_family == AF_INET6 ? sizeof(from->in6)
                                                  : 0;
    memset(to, 0, size);
    if (len > size)
        len = size;
    memcpy(to, from, len);
    return len;
}

void ucma_addr_from_gid(union ucma_addr *to, const uint8_t gid[16], uint16_t port)
{
    memset(to, 0, sizeof(*to));
    if (memcmp(gid, v4_mapped, sizeof(v4_mapped)) == 0) {
        to->in.sin_family = AF_INET;
        to->in.sin_port = htons(port);
        memcpy(&to->in.sin_addr, gid + 12, 4);
    } else {
        to->in6.sin6_family = AF_INET6;
        to->in6.sin6_port = htons(port);
        memcpy(&to->in6.sin6_addr, gid, 16);
    }
}

void ucma_addr_gid(const union ucma_addr *a, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (a->sa.sa_family == AF_INET) {
        memcpy(gid, v4_mapped, sizeof(v4_mapped));
        memcpy(gid + 12, &a->in.sin_addr, 4);
    } else if (a->sa.sa_family == AF_INET6) {
        memcpy(gid, &a->in6.sin6_addr, 16);
    }
}

uint16_t ucma_addr_port(const union ucma_addr *a)
{
    return a->sa.sa_family == AF_INET    ? ntohs(a->in.sin_port)
           : a->sa.sa_family == AF_INET6 ? ntohs(a->in6.sin6_port)
                                         : 0;
}

void ucma_addr_set_port(union ucma_addr *a, uint16_t port)
{
    if (a->sa.sa_family == AF_INET)
        a->in.sin_port = htons(port);
    else
        a->in6.sin6_port = htons(port);
}

bool ucma_addr_is_zero(const union ucma_addr *a)
{
    if (a->sa.sa_family == AF_INET)
        return a->in.sin_addr.s_addr == 0;
    return a->sa.sa_family != AF_INET6 || IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

bool ucma_addr_is_loopback(const union ucma_addr *a)
{
    if (a->sa.sa_family == AF_INET)
        return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

bool ucma_addr_is_multicast(const union ucma_addr *a)
{
    if (a->sa.sa_family == AF_INET)
        return ntohl(a->in.sin_addr.s_addr) >> 28 == 0xE;
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}

void ucma_addr_loopback(union ucma_addr *to, int family, uint16_t port)
{
    memset(to, 0, sizeof(*to));
    if (family == AF_INET6) {
        to->in6.sin6_family = AF_INET6;
        to->in6.sin6_addr = in6addr_loopback;
    } else {
        to->in.sin_family = AF_INET;
        to->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    ucma_addr_set_port(to, port);
}

unsigned ucma_common_bits(const uint8_t a[16], const uint8_t b[16])
{
    unsigned bits = 0;
    while (bits < 128 && !((a[bits / 8] ^ b[bits / 8]) & (0x80u >> bits % 8)))
        bits++;
    return bits;
}

/* ---- connections ---- */

void ucma_conn_param(struct urnic_conn_param *to, const struct rdma_ucm_conn_param *from,
                     uint8_t tclass)
{
    *to = (struct urnic_conn_param){
        .private_data = from->private_data,
        .private_data_len = from->private_data_len,
        .responder_resources = from->responder_resources,
        .initiator_depth = from->initiator_depth,
        /* The kernel takes three bits of each. */
        .retry_count = from->retry_count & 7,
        .rnr_retry_count = from->rnr_retry_count & 7,
        .retry_counts_set = true,
        .tclass = tclass,
        .qp_num = from->qp_num,
        .qkey = from->qkey,
    };
}

static void ah_attr(struct ib_uverbs_ah_attr *to, const struct urnic_ah_attr *from)
{
    memcpy(to->grh.dgid, from->dgid, sizeof(to->grh.dgid));
    to->grh.flow_label = from->flow_label;
    to->grh.sgid_index = (uint8_t)from->sgid_index;
    to->grh.hop_limit = from->hop_limit;
    to->grh.traffic_class = from->tclass;
    to->sl = from->sl;
    to->is_global = 1;
    to->port_num = 1;
}

void ucma_event_param(struct rdma_ucm_event_resp *to, const struct urnic_cm_event *from,
                      bool datagrams)
{
    uint8_t len = from->private_data_len < RDMA_MAX_PRIVATE_DATA ? (uint8_t)from->private_data_len
                                                                 : RDMA_MAX_PRIVATE_DATA - 1;
    if (datagrams) {
        to->param.ud.qp_num = from->qp_num;
        to->param.ud.qkey = from->qkey;
        ah_attr(&to->param.ud.ah_attr, &from->ah);
        to->param.ud.private_data_len = len;
        memcpy(to->param.ud.private_data, from->private_data, len);
        return;
    }
    to->param.conn.qp_num = from->qp_num;
    to->param.conn.responder_resources = from->responder_resources;
    to->param.conn.initiator_depth = from->initiator_depth;
    to->param.conn.retry_count = from->retry_count;
    to->param.conn.rnr_retry_count = from->rnr_retry_count;
    to->param.conn.private_data_len = len;
    memcpy(to->param.conn.private_data, from->private_data, len);
}

void ucma_group_param(struct rdma_ucm_event_resp *to, const union ucma_addr *group,
                      uint16_t sgid_index)
{
    struct urnic_ah_attr ah = {.sgid_index = sgid_index, .hop_limit = 1};
    ucma_addr_gid(group, ah.dgid);
    to->param.ud.qp_num = UCMA_MULTICAST_QPN;
    to->param.ud.qkey = UCMA_UDP_QKEY;
    ah_attr(&to->param.ud.ah_attr, &ah);
}

void ucma_qp_attr(struct ib_uverbs_qp_attr *to, const struct urnic_qp_attr *from, unsigned mask)
{
    memset(to, 0, sizeof(*to));
    to->qp_attr_mask = mask; /* the same bits */
    to->qp_state = from->qp_state;
    to->cur_qp_state = from->cur_qp_state;
#define X(name, verbs, bit) to->verbs = from->verbs;
    QP_ATTRS(X)
#undef X
    if (mask & URNIC_QP_AV)
        ah_attr(&to->ah_attr, &from->ah_attr);
}

/* ---- paths ---- */

void ucma_path_rec(struct ib_user_path_rec *to, const struct ucma_path *from)
{
    memset(to, 0, sizeof(*to));
    memcpy(to->sgid, from->sgid, 16);
    memcpy(to->dgid, from->dgid, 16);
    to->pkey = htons(UCMA_PKEY);
    if (!from->resolved)
        return;
    to->reversible = 1;
    to->mtu = from->mtu;
    to->hop_limit = HOP_LIMIT;
    to->traffic_class = from->tclass;
    to->numb_path = 1;
    to->mtu_selector = IB_SELECT_EQUAL;
    to->rate_selector = IB_SELECT_EQUAL;
    to->rate = IB_RATE_100_GBPS;
    to->packet_life_time_selector = IB_SELECT_EQUAL;
    to->packet_life_time = PACKET_LIFE_TIME;
}

void ucma_path_sa(uint32_t to[16], const struct ucma_path *from)
{
    uint8_t o[64] = {0};
    memcpy(o + 8, from->dgid, 16);
    memcpy(o + 24, from->sgid, 16);
    o[47] = HOP_LIMIT;
    o[48] = from->tclass;
    o[49] = 0x80 | 1; /* reversible; one path */
    o[50] = UCMA_PKEY >> 8;
    o[51] = UCMA_PKEY & 0xFF;
    o[54] = (uint8_t)(IB_SELECT_EQUAL << 6 | from->mtu);
    o[55] = IB_SELECT_EQUAL << 6 | IB_RATE_100_GBPS;
    o[56] = IB_SELECT_EQUAL << 6 | PACKET_LIFE_TIME;
    memcpy(to, o, sizeof(o));
}
