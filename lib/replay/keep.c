/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kept frames are stored one after the other in chunks of memory, chained flow by flow. A frame's
 * own values before its BTH (lengths, IP identification, traffic class, checksum) are restored when
 * it is read.
 */
#include "keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire_bytes.h"
#include "wire_csum.h"

#define CHUNK       (256u << 10)
#define ALIGN       8u
#define PARSE_FLAGS (WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_QINQ | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC)
#define EXT_MAX     64u /* octets of extension headers, more than any opcode has */

struct keep_chunk {
    struct keep_chunk *next;
    size_t used, size; /* octets of data */
    _Alignas(ALIGN) uint8_t data[];
};

static void *take(struct keep *k, size_t octets, int *rc)
{
    struct keep_chunk *c = k->chunk;
    octets = (octets + ALIGN - 1) / ALIGN * ALIGN;
    if (!c || c->size - c->used < octets) {
        size_t size = octets > CHUNK ? octets : CHUNK;
        *rc = -EFBIG;
        if (!held_take(k->held, sizeof(*c) + size))
            return NULL;
        *rc = -ENOMEM;
        if (!(c = malloc(sizeof(*c) + size)))
            return NULL;
        *c = (struct keep_chunk){.next = k->chunk, .size = size};
        k->chunk = c;
    }
    *rc = 0;
    c->used += octets;
    return c->data + c->used - octets;
}

void keep_free(struct keep *k)
{
    for (struct keep_chunk *c = k->chunk, *next; c; c = next) {
        next = c->next;
        held_give(k->held, sizeof(*c) + c->size);
        free(c);
    }
    held_give(k->held, k->flows * sizeof(*k->flow));
    free(k->flow);
    *k = (struct keep){.held = k->held};
}

static int flow_of(struct keep *k, uint32_t id, struct keep_flow **out)
{
    if (id >= k->flows) {
        uint32_t room = k->flows ? k->flows : 16;
        while (room <= id)
            room *= 2;
        size_t more = (room - k->flows) * sizeof(*k->flow);
        if (!held_take(k->held, more))
            return -EFBIG;
        struct keep_flow *flow = realloc(k->flow, room * sizeof(*flow));
        if (!flow) {
            held_give(k->held, more);
            return -ENOMEM;
        }
        memset(flow + k->flows, 0, more);
        k->flow = flow;
        k->flows = room;
    }
    *out = &k->flow[id];
    return 0;
}

const struct keep_flow *keep_flow(const struct keep *k, uint32_t flow)
{
    return flow < k->flows && k->flow[flow].first ? &k->flow[flow] : NULL;
}

/* The octets up to the BTH without the packet's own values: see finish. */
static void blank(uint8_t *octet, const struct wire_pkt *p)
{
    uint8_t *ip = octet + p->ip_off;
    if (p->ip_version == 4) {
        ip[1] = 0;
        wire_put16(ip + 2, 0);
        wire_put16(ip + 4, 0);
        wire_put16(ip + 10, 0);
    } else {
        ip[0] &= 0xF0;
        ip[1] &= 0x0F;
        wire_put16(ip + 4, 0);
    }
    if (p->udp_off) {
        wire_put16(octet + p->udp_off + 4, 0);
        wire_put16(octet + p->udp_off + 6, 0);
    }
}

/* This frame's head: one of the flow's latest, or a new one. */
static const struct keep_head *head_of(struct keep *k, struct keep_flow *flow,
                                       const struct lint_frame *f, const struct wire_pkt *p,
                                       int *rc)
{
    uint8_t octet[UINT8_MAX];
    uint8_t len = (uint8_t)p->bth_off;
    memcpy(octet, f->data, len);
    blank(octet, p);
    for (unsigned i = 0; i < KEEP_HEADS && flow->head[i]; i++)
        if (flow->head[i]->len == len && !memcmp(flow->head[i]->octet, octet, len))
            return flow->head[i];
    struct keep_head *h = take(k, sizeof(*h) + len, rc);
    if (!h)
        return NULL;
    *h = (struct keep_head){
        .len = len, .ip_off = (uint8_t)p->ip_off, .ip_version = p->ip_version, .udp = p->udp_off};
    memcpy(h->octet, octet, len);
    flow->head[flow->next_head++ % KEEP_HEADS] = h;
    return h;
}

int keep_add(struct keep *k, uint32_t flow, const struct kept *like, const struct lint_frame *f,
             const struct wire_pkt *p)
{
    struct keep_flow *in;
    struct kept made = *like;
    int rc = flow_of(k, flow, &in);
    if (rc)
        return rc;
    if (made.good || made.selective) {
        uint32_t end = p->icrc_off + WIRE_ICRC_LEN;
        uint32_t wire_len = f->wire_len > f->len ? f->wire_len : f->len;
        if (!(made.head = head_of(k, in, f, p, &rc)))
            return rc;
        made.have = (f->len < end ? f->len : end) - p->bth_off;
        made.len = (wire_len < end ? wire_len : end) - p->bth_off;
        made.ip_id = p->ip_id;
        made.tclass = p->tclass;
    }
    struct kept *at = take(k, sizeof(*at) + made.have, &rc);
    if (!at)
        return rc;
    *at = made;
    if (made.have)
        memcpy(at->octet, f->data + p->bth_off, made.have);
    if (in->last)
        in->last->next = at;
    else
        in->first = at;
    in->last = at;
    in->packets++;
    return 0;
}

/* Restore a packet's own values before its BTH. */
static void finish(const struct kept *k, uint8_t *octet)
{
    const struct keep_head *h = k->head;
    uint8_t *ip = octet + h->ip_off;
    uint32_t ip_len = h->len - h->ip_off + k->len;
    if (h->ip_version == 4) {
        ip[1] = k->tclass;
        wire_put16(ip + 2, (uint16_t)ip_len);
        wire_put16(ip + 4, k->ip_id);
        wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
    } else {
        ip[0] |= k->tclass >> 4;
        ip[1] |= (uint8_t)(k->tclass << 4);
        wire_put16(ip + 4, (uint16_t)(ip_len - WIRE_IPV6_LEN));
    }
    if (h->udp)
        wire_put16(octet + h->len - WIRE_UDP_LEN + 4, (uint16_t)(WIRE_UDP_LEN + k->len));
}

size_t kept_frame(const struct kept *k, uint32_t most, uint8_t *buf)
{
    uint32_t n = k->have < most ? k->have : most;
    if (!k->head)
        return 0;
    n = n < KEPT_FRAME_MAX - k->head->len ? n : KEPT_FRAME_MAX - k->head->len;
    memcpy(buf, k->head->octet, k->head->len);
    finish(k, buf);
    memcpy(buf + k->head->len, k->octet, n);
    return k->head->len + n;
}

void kept_parse(const struct kept *k, struct wire_pkt *out)
{
    uint8_t frame[UINT8_MAX + WIRE_BTH_LEN + EXT_MAX];
    *out = (struct wire_pkt){0};
    size_t have = kept_frame(k, WIRE_BTH_LEN + EXT_MAX, frame);
    if (have)
        wire_parse_cut(frame, have, k->head->len + k->len,
                       PARSE_FLAGS | (k->selective ? WIRE_P_SELECTIVE : 0), out);
}
