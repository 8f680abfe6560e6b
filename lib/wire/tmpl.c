/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hot path of sending: a template of the headers per queue pair, patched per packet.
 *
 * A template is a frame of no payload with its variable fields 0. Its IPv4 checksum field holds
 * the folded sum of all the other words, so that a packet's checksum is three additions.
 */
#include <string.h>

#include "headers.h"

void wire_tmpl_init(struct wire_tmpl *t, const struct wire_pkt *p)
{
    uint8_t frame[WIRE_HDR_MAX + WIRE_ICRC_LEN];
    struct wire_pkt q = *p;
    q.opcode = WIRE_OPCODE(WIRE_RC, WIRE_SEND_ONLY); /* no extension headers */
    q.selective = false;
    q.tclass = 0;
    q.ttl = p->ttl ? p->ttl : WIRE_TTL_DEFAULT;
    q.ip_id = 0;
    q.ip_flags = WIRE_IP_DF;
    q.udp_csum = 0;
    q.se = q.ackreq = q.fecn = q.becn = false;
    q.tver = 0;
    q.psn = 0;
    q.payload_len = 0;
    wire_build(frame, sizeof(frame), &q);
    memset(t, 0, sizeof(*t));
    t->len = (uint8_t)q.payload_off;
    t->ip_off = (uint8_t)q.ip_off;
    t->bth_off = (uint8_t)q.bth_off;
    t->ip_version = q.ip_version;
    memcpy(t->hdr, frame, t->len);
    if (t->ip_version == 4) {
        uint8_t *ip = t->hdr + t->ip_off;
        wire_put16(ip + 2, 0);
        wire_put16(ip + 10, 0);
        wire_put16(ip + 10, (uint16_t)~headers_csum(headers_ipv4_sum(ip)));
    }
}

void wire_tmpl_set_dmac(struct wire_tmpl *t, const uint8_t dmac[6])
{
    memcpy(t->hdr, dmac, 6);
}

void wire_tmpl_set_smac(struct wire_tmpl *t, const uint8_t smac[6])
{
    memcpy(t->hdr + 6, smac, 6);
}

size_t wire_tmpl_emit(uint8_t *buf, const struct wire_tmpl *t, const struct wire_var *v,
                      uint32_t *frame_len)
{
    const struct wire_opcode_info *info = headers_info(v->opcode, v->selective);
    uint32_t pad = headers_pad(v->payload_len);
    uint32_t udp_len =
        WIRE_UDP_LEN + WIRE_BTH_LEN + info->ext_len + v->payload_len + pad + WIRE_ICRC_LEN;
    _Static_assert(sizeof(t->hdr) <= WIRE_HDR_MAX, "the copy must fit the caller's room");
    memcpy(buf, t->hdr, sizeof(t->hdr)); /* a fixed length: a few vector moves */

    uint8_t *ip = buf + t->ip_off;
    if (t->ip_version == 4) {
        uint32_t total = WIRE_IPV4_LEN + udp_len;
        uint32_t sum = wire_get16(t->hdr + t->ip_off + 10) + (uint32_t)v->tclass + total + v->ip_id;
        ip[1] = v->tclass;
        wire_put16(ip + 2, (uint16_t)total);
        wire_put16(ip + 4, v->ip_id);
        wire_put16(ip + 10, headers_csum(sum));
    } else {
        ip[0] = (uint8_t)(0x60 | v->tclass >> 4);
        ip[1] = (uint8_t)((unsigned)v->tclass << 4 | (t->hdr[t->ip_off + 1] & 15u));
        wire_put16(ip + 4, (uint16_t)udp_len);
    }

    uint8_t *bth = buf + t->bth_off;
    wire_put16(bth - 4, (uint16_t)udp_len);
    bth[0] = (uint8_t)(v->opcode | (v->selective ? WIRE_SELECTIVE : 0));
    bth[1] = (uint8_t)((unsigned)v->se << 7 | (t->hdr[t->bth_off + 1] & 0x40u) | pad << 4);
    wire_put32(bth + 8, (uint32_t)v->ackreq << 31 | (v->psn & WIRE_PSN_MASK));
    if (info->ext_len > 0)
        headers_put_ext(bth, info, v);
    *frame_len = (uint32_t)t->bth_off - WIRE_UDP_LEN + udp_len;
    return (size_t)t->len + info->ext_len;
}

void wire_tmpl_run(struct wire_tmpl *run, const struct wire_tmpl *t, const struct wire_var *v,
                   uint32_t *frame_len)
{
    uint8_t hdr[WIRE_HDR_MAX];
    struct wire_var all = *v;
    all.psn = 0;
    all.ackreq = false;
    all.ip_id = 0;
    *run = *t;
    wire_tmpl_emit(hdr, t, &all, frame_len);
    memcpy(run->hdr, hdr, sizeof(run->hdr));
    if (run->ip_version == 4) {
        uint8_t *csum = run->hdr + run->ip_off + 10;
        wire_put16(csum, (uint16_t)~wire_get16(csum));
    }
}

void wire_tmpl_next(uint8_t *buf, const struct wire_tmpl *run, uint32_t psn, bool ackreq,
                    uint16_t ip_id)
{
    memcpy(buf, run->hdr, sizeof(run->hdr));
    if (run->ip_version == 4) {
        uint8_t *ip = buf + run->ip_off;
        wire_put16(ip + 4, ip_id);
        wire_put16(ip + 10,
                   headers_csum((uint32_t)wire_get16(run->hdr + run->ip_off + 10) + ip_id));
    }
    wire_put32(buf + run->bth_off + 8, (uint32_t)ackreq << 31 | (psn & WIRE_PSN_MASK));
}
