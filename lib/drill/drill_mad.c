/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `< cm` and `> cm`: connection management messages. Defaults are the values of Linux's rdma_cm,
 * with the communication ids of the exchange under way.
 */
#include <string.h>

#include "drill_priv.h"

#define MAD_ROOM ((size_t)2 * CM_MAD_LEN) /* scripts send too long ones, too */

static bool begins(unsigned attr)
{
    return attr == CM_REQ || attr == CM_DREQ || attr == CM_SIDR_REQ || attr == CM_LAP;
}

static void ordinary(struct drill_run *run, const struct drill_stmt *st, struct cm_msg *m)
{
    unsigned attr = drill_cm_attr(st);
    const struct drill_object *qp = run->qp;
    *m = (struct cm_msg){.attr = (uint16_t)attr,
                         .local_id = run->peer_id,
                         .remote_id = run->device_id,
                         .remote_qpn = run->device_qpn,
                         .service_id = cm_service_id(CM_PS_TCP, run->listen_port),
                         .ca_guid = 0x020000FFFE000002,
                         .qpn = qp ? qp->peer_qpn : 0x123456,
                         .resp_res = 4,
                         .init_depth = 4,
                         .remote_timeout = 18,
                         .local_timeout = 18,
                         .max_retries = 15,
                         .psn = run->o->psn,
                         .retry_count = 7,
                         .rnr_retry = 7,
                         .pkey = WIRE_PKEY_DEFAULT,
                         .mtu = 3,
                         .local_lid = 0xFFFF,
                         .remote_lid = 0xFFFF,
                         .local_gid = run->peer,
                         .remote_gid = run->local,
                         .hop_limit = WIRE_TTL_DEFAULT,
                         .subnet_local = 1,
                         .ack_timeout = 16,
                         .target_ack_delay = 15,
                         .reason = attr == CM_REJ ? CM_REJ_CONSUMER : 0,
                         .service_timeout = 20};
    if (attr == CM_SIDR_REP)
        m->local_id = run->device_id; /* a SIDR_REP has the request's id here, sent or received */
    if (attr == CM_SIDR_REQ)
        m->service_id = cm_service_id(CM_PS_UDP, run->listen_port);
    if (begins(attr))
        run->tid = run->next_tid++;
    m->tid = run->tid;
}

/* The IP header in front of the consumer's private data (CM-02). */
static bool ip_header(struct drill_run *run, const struct drill_stmt *st, struct cm_msg *m)
{
    struct cm_ip_hdr h = {
        .ip_version = wire_addr_is_v4(&run->local) ? 4 : 6, .src = run->peer, .dst = run->local};
    uint64_t v;
    const struct drill_arg *src = drill_arg(st, MAD_SRC_IP);
    if (src && src->field->type == TYPE_ADDR)
        h.src = src->v.addr;
    if (!drill_number(run, st, MAD_SRC_PORT, 40000, &v))
        return false;
    h.sport = (uint16_t)v;
    cm_ip_hdr_pack(m->priv, &h);
    m->priv_len = CM_IP_HDR_LEN;
    if (!drill_number(run, st, MAD_IP_VERSION, h.ip_version, &v))
        return false;
    m->priv[1] = (uint8_t)(v << 4);
    return true;
}

static const struct drill_arg *mad_arg(const struct drill_stmt *st, const char *name)
{
    const struct drill_arg *found = NULL;
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (!strcmp(a->field->name, name) && drill_field_is_mad(a->field))
            found = a;
    return found;
}

static bool mad_number(struct drill_run *run, const struct drill_stmt *st, const char *name,
                       uint64_t otherwise, uint64_t *out)
{
    const struct drill_arg *a = mad_arg(st, name);
    *out = otherwise;
    return !a || drill_one(run, st, a, out);
}

static bool set_members(struct drill_run *run, const struct drill_stmt *st, struct cm_msg *m)
{
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        const struct drill_field *f = a->field;
        uint64_t v;
        if (!drill_field_is_mad(f) || f->offset == DRILL_NO_MEMBER)
            continue;
        if (f->type == TYPE_ADDR) {
            memcpy((uint8_t *)m + f->offset, &a->v.addr, 16);
            continue;
        }
        if (!drill_one(run, st, a, &v))
            return false;
        drill_put_member(m, f, v);
    }
    return true;
}

bool drill_mad_build(struct drill_run *run, const struct drill_stmt *st, uint8_t *mad,
                     uint32_t *len)
{
    struct cm_msg m;
    unsigned attr = drill_cm_attr(st);
    uint64_t v;
    ordinary(run, st, &m);
    const struct drill_arg *priv = mad_arg(st, "private");
    if (mad_arg(st, "port")) {
        if (!mad_number(run, st, "port", 0, &v))
            return false;
        m.service_id = cm_service_id(attr == CM_SIDR_REQ ? CM_PS_UDP : CM_PS_TCP, (uint16_t)v);
    }
    if ((attr == CM_REQ || attr == CM_SIDR_REQ) && !ip_header(run, st, &m))
        return false;
    if (!set_members(run, st, &m))
        return false;
    if (priv) {
        uint32_t n;
        if (!drill_octets_len(&priv->v.data, &n))
            return drill_end(run, DRILL_WRONG, st, "private: octets with a length of their own");
        if (m.priv_len + n > cm_private_len(attr))
            return drill_end(run, DRILL_WRONG, st, "private: at most %zu octets",
                             cm_private_len(attr) - m.priv_len);
        if (!drill_octets(run, st, &priv->v.data, 0, m.priv + m.priv_len, n))
            return false;
        m.priv_len = (uint16_t)(m.priv_len + n);
    }
    if (begins(attr))
        run->tid = m.tid;
    memset(mad, 0, MAD_ROOM);
    if (cm_msg_pack(mad, &m) < 0)
        return drill_end(run, DRILL_WRONG, st, "this message can't be built");
    static const struct {
        const char *name;
        unsigned octet;
    } headers[] = {{"class", 1}, {"class_version", 2}, {"method", 3}};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (!mad_number(run, st, headers[i].name, mad[headers[i].octet], &v))
            return false;
        mad[headers[i].octet] = (uint8_t)v;
    }
    if (!mad_number(run, st, "mad_len", CM_MAD_LEN, &v))
        return false;
    if (v > MAD_ROOM)
        return drill_end(run, DRILL_WRONG, st, "mad_len: at most %zu", MAD_ROOM);
    *len = (uint32_t)v;
    return true;
}

/* ---- matching ---- */

/* Where the consumer's private data begins. */
static const uint8_t *private_data(const struct cm_msg *m, uint32_t *len)
{
    uint32_t skip = m->attr == CM_REQ || m->attr == CM_SIDR_REQ ? CM_IP_HDR_LEN : 0;
    *len = m->priv_len - skip;
    return m->priv + skip;
}

static bool match_private(struct drill_run *run, const struct drill_stmt *st,
                          const struct drill_arg *a, const struct cm_msg *m, char *why, size_t size)
{
    uint8_t want[CM_PRIVATE_MAX];
    uint32_t have, n;
    const uint8_t *got = private_data(m, &have);
    if (!drill_octets_len(&a->v.data, &n))
        return drill_end(run, DRILL_WRONG, st, "private: octets with a length of their own");
    if (n > have || n > sizeof(want))
        return drill_end(run, DRILL_WRONG, st, "private: at most %u octets", have);
    if (!drill_octets(run, st, &a->v.data, 0, want, n))
        return false;
    drill_octets_differ(why, size, "private", want, got, n);
    return true;
}

struct seen_mad {
    const struct cm_msg *m;
    const struct cm_ip_hdr *ip; /* in front of the consumer's private data, if there is one */
    const uint8_t *mad;
    uint32_t len;
};

static uint64_t number_of(const struct drill_field *f, const struct seen_mad *seen)
{
    if (f->offset != DRILL_NO_MEMBER)
        return drill_get_member(seen->m, f);
    switch (f->id) {
    case MAD_PORT:
        return seen->m->service_id & 0xFFFF;
    case MAD_SRC_PORT:
        return seen->ip->sport;
    case MAD_IP_VERSION:
        return seen->ip->ip_version;
    case MAD_CLASS:
        return seen->mad[1];
    case MAD_CLASS_VERSION:
        return seen->mad[2];
    case MAD_METHOD:
        return seen->mad[3];
    default:
        return seen->len;
    }
}

static bool match_field(struct drill_run *run, const struct drill_stmt *st,
                        const struct drill_arg *a, const struct seen_mad *seen, char *why,
                        size_t size)
{
    const struct drill_field *f = a->field;
    char want[64], text[64], number[DRILL_NUMBER_LEN];
    bool fits;
    if (f->type == TYPE_ADDR) {
        const struct wire_addr *addr = f->offset == DRILL_NO_MEMBER
                                           ? &seen->ip->src
                                           : (const void *)((const uint8_t *)seen->m + f->offset);
        if (memcmp(addr, &a->v.addr, 16) != 0)
            drill_differs(why, size, f->name, wire_addr_str(&a->v.addr, want, sizeof(want)),
                          wire_addr_str(addr, text, sizeof(text)));
        return true;
    }
    uint64_t got = number_of(f, seen);
    if (!drill_fits(run, st, &a->v, f->role, got, UINT64_MAX, &fits))
        return false;
    if (!fits) {
        drill_value_text(run, st, &a->v, f->role, want, sizeof(want));
        drill_differs(why, size, f->name, want, drill_number_text(got, number));
    }
    return true;
}

bool drill_mad_match(struct drill_run *run, const struct drill_stmt *st, const uint8_t *mad,
                     uint32_t len, bool *fits, char *why, size_t size)
{
    struct cm_msg m;
    *fits = false;
    if (cm_msg_unpack(&m, mad, len) < 0) {
        drill_differs(why, size, "message", "one of the connection manager's", "none");
        return true;
    }
    if (m.attr != drill_cm_attr(st)) {
        drill_differs(why, size, "message", cm_attr_name(drill_cm_attr(st)), cm_attr_name(m.attr));
        return true;
    }
    struct cm_ip_hdr ip = {0};
    if (m.attr == CM_REQ || m.attr == CM_SIDR_REQ)
        cm_ip_hdr_unpack(&ip, m.priv);
    const struct seen_mad seen = {&m, &ip, mad, len};
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        if (!drill_field_is_mad(a->field))
            continue;
        if (a->field->type == TYPE_DATA ? !match_private(run, st, a, &m, why, size)
                                        : !match_field(run, st, a, &seen, why, size))
            return false;
    }
    *fits = !*why;
    if (!*fits)
        return true;
    run->tid = m.tid;
    run->device_id = m.local_id;
    if (m.attr == CM_REQ || m.attr == CM_REP)
        run->device_qpn = m.qpn;
    return true;
}
