/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames in which the capturing host has merged packets. With UDP GRO (or LRO) the kernel joins the
 * payloads of a flow's datagrams after the first one's headers before tcpdump sees them; with GSO
 * it passes several packets to the NIC as one. All but the last have one size. Each has its own BTH
 * and iCRC, and the iCRC proves a guess: it covers the packet's lengths and IP identification on
 * the wire.
 */
#include <string.h>

#include "lint_priv.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define LEAST       (WIRE_BTH_LEN + WIRE_ICRC_LEN)
#define MAD_LEN     256u
#define MTU_LEAST   256u
#define EXT_MAX     64u /* octets of extension headers, more than any opcode has */
#define SEGMENT_MAX (WIRE_BTH_LEN + EXT_MAX + WIRE_MTU_MAX + WIRE_ICRC_LEN)

/* Octets after the UDP header, by the IP header; 0: this isn't RoCEv2. */
static uint32_t udp_payload(const struct lint_frame *f, const struct wire_pkt *p)
{
    if (!p->ip_version || p->ethertype == WIRE_ETHERTYPE_V1 || !p->bth_off ||
        p->bth_off + WIRE_BTH_LEN > f->len)
        return 0;
    const uint8_t *ip = f->data + p->ip_off;
    uint32_t header = (uint32_t)p->bth_off - p->ip_off;
    uint32_t len =
        p->ip_version == 4 ? wire_get16(ip + 2) : WIRE_IPV6_LEN + (uint32_t)wire_get16(ip + 4);
    return len > header && p->ip_off + len <= f->wire_len ? len - header : 0;
}

/* Rebuild the `i`-th packet, which has `size` octets after UDP unless it is the last one, with
 * headers made from the first one's; `id` is added to the IP identification. Returns its length. */
static uint32_t rebuild(const struct lint_frame *f, const struct wire_pkt *p, uint32_t size,
                        uint32_t i, uint32_t id, uint8_t *out)
{
    uint32_t all = udp_payload(f, p), at = i * size, n = all - at < size ? all - at : size;
    uint32_t have = f->len - p->bth_off > at ? f->len - p->bth_off - at : 0;
    memcpy(out, f->data, p->bth_off);
    have = have < n ? have : n;
    memcpy(out + p->bth_off, f->data + p->bth_off + at, have);
    memset(out + p->bth_off + have, 0, n - have);
    uint8_t *ip = out + p->ip_off, *udp = out + p->udp_off;
    if (p->ip_version == 4) {
        wire_put16(ip + 2, (uint16_t)(p->bth_off - p->ip_off + n));
        wire_put16(ip + 4, (uint16_t)(p->ip_id + id));
        wire_put16(ip + 10, 0);
        wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
    } else {
        wire_put16(ip + 4, (uint16_t)(WIRE_UDP_LEN + n));
    }
    wire_put16(udp + 4, (uint16_t)(WIRE_UDP_LEN + n));
    wire_put16(udp + 6, 0); /* the checksum covered all packets, or was left to the hardware */
    return p->bth_off + n;
}

static bool right(const uint8_t *frame, uint32_t len, const struct wire_pkt *p)
{
    return wire_icrc(frame, len, p->ip_off, p->bth_off) ==
           wire_get32le(frame + len - WIRE_ICRC_LEN);
}

/* Is there another BTH of the same queue pair at `b`? */
static bool another_bth(const uint8_t *first, const uint8_t *b)
{
    return b[0] >> 5 == first[0] >> 5 && (b[1] & 15u) == (first[1] & 15u) &&
           !memcmp(b + 5, first + 5, 3);
}

/* Is the `i`-th part a packet, with identifications that count up or that are all the same? */
static bool is_packet(const struct lint_frame *f, const struct wire_pkt *p, uint32_t size,
                      uint32_t i)
{
    uint8_t packet[LINT_PART_MAX];
    uint32_t len = rebuild(f, p, size, i, i, packet);
    return i * size + len <= f->len &&
           (right(packet, len, p) || (i && right(packet, rebuild(f, p, size, i, 0, packet), p)));
}

/* The size of all packets but the last; 0: not found. One of the first two may be damaged. */
static uint32_t segment_size(const struct lint_frame *f, const struct wire_pkt *p, uint32_t all)
{
    const uint8_t *bth = f->data + p->bth_off;
    uint32_t have = f->len - p->bth_off;
    for (uint32_t size = LEAST; size <= SEGMENT_MAX && size + LEAST <= all; size += 4)
        if (size + WIRE_BTH_LEN <= have && another_bth(bth, bth + size) &&
            (is_packet(f, p, size, 0) || is_packet(f, p, size, 1)))
            return size;
    return 0;
}

uint32_t lint_merged(const struct lint_frame *f, struct lint_merge *m)
{
    *m = (struct lint_merge){0};
    if (f->len < f->wire_len)
        return 0;
    struct wire_pkt *p = &m->p;
    wire_parse_cut(f->data, f->len, f->wire_len > f->len ? f->wire_len : f->len,
                   WIRE_P_LOOPBACK | WIRE_P_QINQ | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, p);
    uint32_t all = udp_payload(f, p);
    if (all < 2 * LEAST || p->bth_off + SEGMENT_MAX > LINT_PART_MAX)
        return 0;
    m->size = segment_size(f, p, all);
    m->n = m->size ? (all + m->size - 1) / m->size : 0;
    return m->n;
}

void lint_part(const struct lint_frame *f, const struct lint_merge *m, uint32_t i, uint8_t *buf,
               struct lint_frame *out)
{
    *out = *f;
    out->data = buf;
    out->part = true;
    out->len = out->wire_len = rebuild(f, &m->p, m->size, i, i, buf);
    if (!right(buf, out->len, &m->p))
        rebuild(f, &m->p, m->size, i, 0, buf); /* perhaps all had the same identification */
    uint32_t end = out->len + i * m->size;     /* within the whole frame, which may be cut */
    uint32_t missing = end > f->len ? end - f->len : 0;
    out->len -= missing < out->len - m->p.bth_off ? missing : out->len - m->p.bth_off;
}

/* The maximum of octets after the UDP header in a packet with this opcode; `mtu` 0: any. */
static uint32_t most(const struct lint_ctx *c, uint32_t mtu)
{
    const struct wire_pkt *p = &c->p;
    if (!c->op || !c->op->name)
        return SEGMENT_MAX;
    uint32_t headers = WIRE_BTH_LEN + c->op->ext_len + WIRE_ICRC_LEN, payload = 0;
    if (c->op->flags & WIRE_F_PAYLOAD)
        payload = p->dqpn == WIRE_QPN_GSI ? MAD_LEN : mtu ? mtu : WIRE_MTU_MAX;
    if (c->headers && c->op->headers & WIRE_H_RETH && payload > p->dma_len)
        payload = (p->dma_len + 3) & ~3u;
    return headers + payload;
}

bool lint_looks_merged(const struct lint_ctx *c)
{
    const struct wire_pkt *p = &c->p;
    uint32_t all = udp_payload(c->in, p);
    if (all > SEGMENT_MAX) /* otherwise its sender has made a packet too long */
        return c->cut || !right(c->in->data, p->bth_off + all, p);
    if (!c->cut || !all)
        return false; /* its iCRC tells */
    bool ud = c->op && c->op->service == WIRE_UD;
    const struct lint_flow *f = ud ? NULL : lint_flow_get(c->l, p, p->dqpn, 0, false);
    uint32_t mtu = f ? f->info.mtu : 0;
    bool full = c->op && !ud && c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE);
    if (full && c->headers && p->payload_len > MTU_LEAST && !wire_mtu_enum(p->payload_len))
        return true;
    return all > most(c, mtu) || segment_size(c->in, p, all);
}
