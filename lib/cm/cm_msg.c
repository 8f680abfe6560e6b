/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The CM message layouts as data, and the two loops that read it. A field is found by octet, first
 * bit counted from the most significant one, and width; that is how the rules tabulate them.
 */
#include "cm_msg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAD_HDR_LEN 24u

struct field {
    uint16_t octet;
    uint8_t bit;
    uint8_t width;   /* bits, at most 64; 128 = a GID */
    uint16_t offset; /* in struct cm_msg */
};

struct layout {
    uint16_t attr;
    const char *name;
    const struct field *fields;
    uint16_t priv_octet, priv_len;
    uint16_t ari_octet; /* 0 = none */
};

#define F(o, b, w, m)                                                                              \
    {                                                                                              \
        o, b, w, offsetof(struct cm_msg, m)                                                        \
    }
#define FIELDS_END                                                                                 \
    {                                                                                              \
        0, 0, 0, 0                                                                                 \
    }

static const struct field req_fields[] = {
    F(0, 0, 32, local_id),
    F(8, 0, 64, service_id),
    F(16, 0, 64, ca_guid),
    F(28, 0, 32, qkey),
    F(32, 0, 24, qpn),
    F(35, 0, 8, resp_res),
    F(36, 0, 24, eecn),
    F(39, 0, 8, init_depth),
    F(43, 0, 5, remote_timeout),
    F(43, 5, 2, transport),
    F(43, 7, 1, flow_control),
    F(44, 0, 24, psn),
    F(47, 0, 5, local_timeout),
    F(47, 5, 3, retry_count),
    F(48, 0, 16, pkey),
    F(50, 0, 4, mtu),
    F(50, 5, 3, rnr_retry),
    F(51, 0, 4, max_retries),
    F(51, 4, 1, srq),
    F(51, 5, 3, ext_transport),
    F(52, 0, 16, local_lid),
    F(54, 0, 16, remote_lid),
    F(56, 0, 128, local_gid),
    F(72, 0, 128, remote_gid),
    F(88, 0, 20, flow_label),
    F(91, 2, 6, packet_rate),
    F(92, 0, 8, tclass),
    F(93, 0, 8, hop_limit),
    F(94, 0, 4, sl),
    F(94, 4, 1, subnet_local),
    F(95, 0, 5, ack_timeout),
    F(96, 0, 16, alt_local_lid),
    F(98, 0, 16, alt_remote_lid),
    F(100, 0, 128, alt_local_gid),
    F(116, 0, 128, alt_remote_gid),
    F(139, 0, 5, alt_ack_timeout),
    FIELDS_END,
};
static const struct field mra_fields[] = {
    F(0, 0, 32, local_id),
    F(4, 0, 32, remote_id),
    F(8, 0, 2, msg_id),
    F(9, 0, 5, service_timeout),
    FIELDS_END,
};
static const struct field rej_fields[] = {
    F(0, 0, 32, local_id), F(4, 0, 32, remote_id), F(8, 0, 2, msg_id),
    F(9, 0, 7, ari_len),   F(10, 0, 16, reason),   FIELDS_END,
};
static const struct field rep_fields[] = {
    F(0, 0, 32, local_id), F(4, 0, 32, remote_id),    F(8, 0, 32, qkey),
    F(12, 0, 24, qpn),     F(16, 0, 24, eecn),        F(20, 0, 24, psn),
    F(24, 0, 8, resp_res), F(25, 0, 8, init_depth),   F(26, 0, 5, target_ack_delay),
    F(26, 5, 2, failover), F(26, 7, 1, flow_control), F(27, 0, 3, rnr_retry),
    F(27, 3, 1, srq),      F(28, 0, 64, ca_guid),     FIELDS_END,
};
static const struct field rtu_fields[] = {
    F(0, 0, 32, local_id),
    F(4, 0, 32, remote_id),
    FIELDS_END,
};
static const struct field dreq_fields[] = {
    F(0, 0, 32, local_id),
    F(4, 0, 32, remote_id),
    F(8, 0, 24, remote_qpn),
    FIELDS_END,
};
static const struct field sidr_req_fields[] = {
    F(0, 0, 32, local_id),
    F(4, 0, 16, pkey),
    F(8, 0, 64, service_id),
    FIELDS_END,
};
static const struct field sidr_rep_fields[] = {
    F(0, 0, 32, local_id),    F(4, 0, 8, status), F(5, 0, 8, ari_len), F(8, 0, 24, qpn),
    F(12, 0, 64, service_id), F(20, 0, 32, qkey), FIELDS_END,
};
static const struct field lap_fields[] = {
    F(0, 0, 32, local_id),        F(4, 0, 32, remote_id),        F(12, 0, 24, remote_qpn),
    F(15, 0, 5, remote_timeout),  F(20, 0, 16, alt_local_lid),   F(22, 0, 16, alt_remote_lid),
    F(24, 0, 128, alt_local_gid), F(40, 0, 128, alt_remote_gid), FIELDS_END,
};
static const struct field apr_fields[] = {
    F(0, 0, 32, local_id),
    F(4, 0, 32, remote_id),
    F(8, 0, 8, ari_len),
    F(9, 0, 8, reason),
    FIELDS_END,
};

static const struct layout layouts[] = {
    {CM_REQ, "REQ", req_fields, 140, 92, 0},
    {CM_MRA, "MRA", mra_fields, 10, 222, 0},
    {CM_REJ, "REJ", rej_fields, 84, 148, 12},
    {CM_REP, "REP", rep_fields, 36, 196, 0},
    {CM_RTU, "RTU", rtu_fields, 8, 224, 0},
    {CM_DREQ, "DREQ", dreq_fields, 12, 220, 0},
    {CM_DREP, "DREP", rtu_fields, 8, 224, 0},
    {CM_SIDR_REQ, "SIDR_REQ", sidr_req_fields, 16, 216, 0},
    {CM_SIDR_REP, "SIDR_REP", sidr_rep_fields, 96, 136, 24},
    {CM_LAP, "LAP", lap_fields, 64, 168, 0},
    {CM_APR, "APR", apr_fields, 84, 148, 12},
};

static const struct layout *layout_of(unsigned attr)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].attr == attr)
            return &layouts[i];
    return NULL;
}

static uint64_t get_be(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | *p++;
    return v;
}

static void put_be(uint8_t *p, size_t n, uint64_t v)
{
    while (n--) {
        p[n] = (uint8_t)v;
        v >>= 8;
    }
}

/* A field that is not whole octets fits in 8 octets together with its neighbours. */
static uint64_t get_bits(const uint8_t *data, const struct field *f)
{
    size_t octets = (f->bit + f->width + 7u) / 8u;
    uint64_t v = get_be(data + f->octet, octets) >> (octets * 8 - f->bit - f->width);
    return f->width == 64 ? v : v & ((1ull << f->width) - 1);
}

static void put_bits(uint8_t *data, const struct field *f, uint64_t v)
{
    size_t octets = (f->bit + f->width + 7u) / 8u;
    unsigned shift = (unsigned)(octets * 8 - f->bit - f->width);
    uint64_t mask = f->width == 64 ? UINT64_MAX : ((1ull << f->width) - 1);
    uint64_t old = get_be(data + f->octet, octets);
    put_be(data + f->octet, octets, (old & ~(mask << shift)) | (v & mask) << shift);
}

/* Members are uint32_t, but for the 64-bit ones and GIDs; the width tells. */
static void unpack_field(struct cm_msg *msg, const uint8_t *data, const struct field *f)
{
    uint8_t *member = (uint8_t *)msg + f->offset;
    if (f->width == 128) {
        memcpy(member, data + f->octet, 16);
    } else if (f->width == 64) {
        uint64_t v = get_bits(data, f);
        memcpy(member, &v, sizeof(v));
    } else {
        uint32_t v = (uint32_t)get_bits(data, f);
        memcpy(member, &v, sizeof(v));
    }
}

static void pack_field(uint8_t *data, const struct cm_msg *msg, const struct field *f)
{
    const uint8_t *member = (const uint8_t *)msg + f->offset;
    if (f->width == 128) {
        memcpy(data + f->octet, member, 16);
    } else if (f->width == 64) {
        uint64_t v;
        memcpy(&v, member, sizeof(v));
        put_bits(data, f, v);
    } else {
        uint32_t v;
        memcpy(&v, member, sizeof(v));
        put_bits(data, f, v);
    }
}

unsigned cm_msg_bits(unsigned attr, size_t offset)
{
    const struct layout *l = layout_of(attr);
    if (offset == offsetof(struct cm_msg, tid))
        return 64;
    if (offset == offsetof(struct cm_msg, attr_mod))
        return 32;
    for (const struct field *f = l ? l->fields : NULL; f && f->width; f++)
        if (f->offset == offset)
            return f->width;
    return 0;
}

size_t cm_private_len(unsigned attr)
{
    const struct layout *l = layout_of(attr);
    return l ? l->priv_len : 0;
}

int cm_msg_pack(uint8_t mad[CM_MAD_LEN], const struct cm_msg *msg)
{
    const struct layout *l = layout_of(msg->attr);
    if (!l || msg->priv_len > l->priv_len)
        return -EINVAL;

    memset(mad, 0, CM_MAD_LEN);
    mad[0] = 1; /* BaseVersion */
    mad[1] = CM_CLASS;
    mad[2] = CM_CLASS_VERSION;
    mad[3] = CM_METHOD_SEND;
    put_be(mad + 8, 8, msg->tid);
    put_be(mad + 16, 2, msg->attr);
    put_be(mad + 20, 4, msg->attr_mod);

    uint8_t *data = mad + MAD_HDR_LEN;
    for (const struct field *f = l->fields; f->width; f++)
        pack_field(data, msg, f);
    if (l->ari_octet)
        memcpy(data + l->ari_octet, msg->ari, CM_ARI_LEN);
    memcpy(data + l->priv_octet, msg->priv, msg->priv_len);
    return 0;
}

int cm_msg_unpack(struct cm_msg *msg, const uint8_t *mad, size_t len)
{
    memset(msg, 0, sizeof(*msg));
    if (len != CM_MAD_LEN)
        return -EMSGSIZE;
    if (mad[0] != 1 || mad[1] != CM_CLASS || mad[3] != CM_METHOD_SEND)
        return -EPROTONOSUPPORT;

    msg->tid = get_be(mad + 8, 8);
    msg->attr = (uint16_t)get_be(mad + 16, 2);
    msg->attr_mod = (uint32_t)get_be(mad + 20, 4);
    const struct layout *l = layout_of(msg->attr);
    if (!l)
        return -ENOMSG;

    const uint8_t *data = mad + MAD_HDR_LEN;
    if (mad[2] != CM_CLASS_VERSION) {
        if (msg->attr == CM_REQ)
            msg->local_id = (uint32_t)get_be(data, 4);
        return -EPROTO;
    }
    for (const struct field *f = l->fields; f->width; f++)
        unpack_field(msg, data, f);
    if (l->ari_octet)
        memcpy(msg->ari, data + l->ari_octet, CM_ARI_LEN);
    memcpy(msg->priv, data + l->priv_octet, l->priv_len);
    msg->priv_len = l->priv_len;
    return 0;
}

struct cm_target cm_msg_target(const uint8_t *mad, size_t len)
{
    struct cm_msg msg;
    int rc = cm_msg_unpack(&msg, mad, len);
    bool service = msg.attr == CM_REQ || msg.attr == CM_SIDR_REQ;
    if (rc < 0)
        return (struct cm_target){.what = CM_FOR_NONE};
    if (service)
        return (struct cm_target){.what = CM_FOR_SERVICE, .service_id = msg.service_id};
    /* The answer to a SIDR_REQ has the request's id in place of the sender's. */
    uint32_t id = msg.attr == CM_SIDR_REP ? msg.local_id : msg.remote_id;
    return (struct cm_target){.what = id                   ? CM_FOR_ID
                                      : msg.attr == CM_REJ ? CM_FOR_PEER
                                                           : CM_FOR_NONE,
                              .id = id};
}

const char *cm_attr_name(unsigned attr)
{
    const struct layout *l = layout_of(attr);
    return l ? l->name : "?";
}

const char *cm_rej_name(unsigned reason)
{
    static const char *const names[] = {
        [1] = "no QP",
        [2] = "no EEC",
        [3] = "no resources",
        [4] = "timeout",
        [5] = "unsupported request",
        [6] = "invalid communication id",
        [7] = "invalid communication instance",
        [8] = "invalid service id (no listener)",
        [9] = "invalid transport service type",
        [10] = "stale connection",
        [11] = "RDC does not exist",
        [12] = "primary GID rejected",
        [13] = "primary LID rejected",
        [14] = "primary SL rejected",
        [15] = "primary traffic class rejected",
        [16] = "primary hop limit rejected",
        [17] = "primary packet rate rejected",
        [18] = "alternate GID rejected",
        [19] = "alternate LID rejected",
        [20] = "alternate SL rejected",
        [21] = "alternate traffic class rejected",
        [22] = "alternate hop limit rejected",
        [23] = "alternate packet rate rejected",
        [24] = "port and CM redirection",
        [25] = "port redirection",
        [26] = "invalid path MTU",
        [27] = "insufficient responder resources",
        [28] = "consumer reject",
        [29] = "RNR retry count rejected",
        [30] = "duplicate local communication id",
        [31] = "invalid class version",
        [32] = "invalid primary flow label",
        [33] = "invalid alternate flow label",
        [35] = "vendor option not supported",
    };
    if (reason < sizeof(names) / sizeof(names[0]) && names[reason])
        return names[reason];
    return "unknown reason";
}

uint32_t cm_rep_qpn(const struct cm_msg *rep, unsigned transport)
{
    return transport == CM_TRANSPORT_XRC ? rep->eecn : rep->qpn;
}

bool cm_transport_is_known(unsigned transport)
{
    return transport == CM_TRANSPORT_RC || transport == CM_TRANSPORT_UC ||
           transport == CM_TRANSPORT_XRC;
}

uint64_t cm_service_id(unsigned ps, uint16_t port)
{
    return (uint64_t)ps << 16 | port;
}

void cm_ip_hdr_pack(uint8_t buf[CM_IP_HDR_LEN], const struct cm_ip_hdr *h)
{
    memset(buf, 0, CM_IP_HDR_LEN);
    buf[1] = (uint8_t)(h->ip_version << 4);
    put_be(buf + 2, 2, h->sport);
    if (h->ip_version == 4) {
        memcpy(buf + 4 + 12, h->src.b + 12, 4);
        memcpy(buf + 20 + 12, h->dst.b + 12, 4);
    } else {
        memcpy(buf + 4, h->src.b, 16);
        memcpy(buf + 20, h->dst.b, 16);
    }
}

int cm_ip_hdr_unpack(struct cm_ip_hdr *h, const uint8_t buf[CM_IP_HDR_LEN])
{
    memset(h, 0, sizeof(*h));
    h->ip_version = buf[1] >> 4;
    if (buf[0] != 0 || (h->ip_version != 4 && h->ip_version != 6))
        return -EPROTO;
    h->sport = (uint16_t)get_be(buf + 2, 2);
    if (h->ip_version == 4) {
        h->src = wire_addr_v4((uint32_t)get_be(buf + 4 + 12, 4));
        h->dst = wire_addr_v4((uint32_t)get_be(buf + 20 + 12, 4));
    } else {
        memcpy(h->src.b, buf + 4, 16);
        memcpy(h->dst.b, buf + 20, 16);
    }
    return 0;
}

unsigned cm_ack_timeout(unsigned lifetime, unsigned delay)
{
    unsigned a = lifetime + 1; /* 2 * lifetime */
    if (a >= delay)
        a += delay + 1 >= a;
    else
        a = delay + (a + 1 >= delay);
    return a > 31 ? 31 : a;
}

int cm_msg_dump(char *buf, size_t size, const struct cm_msg *msg)
{
    int n = snprintf(buf, size, "CM %s id %08x->%08x", cm_attr_name(msg->attr), msg->local_id,
                     msg->remote_id);
    char *at = (size_t)n < size ? buf + n : buf;
    size_t left = (size_t)n < size ? size - (size_t)n : 0;
    switch (msg->attr) {
    case CM_REQ:
        n += snprintf(at, left, " service %016llx qpn %06x psn %06x mtu %u rd %u/%u retry %u/%u",
                      (unsigned long long)msg->service_id, msg->qpn, msg->psn, msg->mtu,
                      msg->resp_res, msg->init_depth, msg->retry_count, msg->rnr_retry);
        break;
    case CM_REP:
        n += snprintf(at, left, " qpn %06x psn %06x rd %u/%u rnr %u", msg->qpn, msg->psn,
                      msg->resp_res, msg->init_depth, msg->rnr_retry);
        break;
    case CM_REJ:
        n += snprintf(at, left, " message %u reason %u (%s)", msg->msg_id, msg->reason,
                      cm_rej_name(msg->reason));
        break;
    case CM_MRA:
        n += snprintf(at, left, " message %u timeout %u", msg->msg_id, msg->service_timeout);
        break;
    case CM_DREQ:
        n += snprintf(at, left, " qpn %06x", msg->remote_qpn);
        break;
    case CM_SIDR_REP:
        n += snprintf(at, left, " status %u qpn %06x", msg->status, msg->qpn);
        break;
    default:
        break;
    }
    return n;
}
