/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The intake: parse, distinguish damaged from malformed packets, drop packets already captured on
 * another interface, and pass each packet to the tracker of its kind.
 *
 * Damage and malformed packets look alike to a parser; the iCRC tells them apart. It is right for a
 * packet as its sender made it, however wrong the rest may be.
 */
#include "lint.h"

#include <stdlib.h>

#include "lint_priv.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define MAX_FLOWS 65536u
/* Total length of the shortest RoCE packet over IPv4. */
#define IPV4_LEAST (WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN + WIRE_ICRC_LEN)
/* When a flow searches its other direction: at its first packets, then at every PAIR_EVERY-th. */
#define PAIR_FIRST  32u
#define PAIR_EVERY  64u
#define DOUBT_EVERY 16u /* while only PSNs support the pair */
#define ID_NEAR     256 /* largest step between two IP identifications of a counter */
#define VID_MASK    0xFFFu
#define VID_NONE    0x1000u /* no tag */
#define PARSE_FLAGS (WIRE_P_LOOPBACK | WIRE_P_QINQ | WIRE_P_V1 | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC)

const char *lint_kind_name(enum lint_kind k)
{
    static const char *const names[LINT_KINDS] = {
        [LINT_OTHER] = "other", [LINT_BROKEN] = "broken", [LINT_DATA] = "data",
        [LINT_READ] = "read",   [LINT_ATOMIC] = "atomic", [LINT_ATOMIC_ACK] = "atomic-ack",
        [LINT_ACK] = "ack",     [LINT_NAK] = "nak",       [LINT_RNR] = "rnr",
        [LINT_CNP] = "cnp",     [LINT_CM] = "cm",         [LINT_DATAGRAM] = "datagram",
    };
    return (unsigned)k < LINT_KINDS ? names[k] : "unknown";
}

/* Do the last of `len` octets from the IP header on contain the right iCRC? */
static bool icrc_fits(const uint8_t *ip, size_t have, size_t len, size_t bth)
{
    return len <= have && len >= bth + WIRE_BTH_LEN + WIRE_ICRC_LEN &&
           wire_icrc(ip, len, 0, (uint16_t)bth) == wire_get32le(ip + len - WIRE_ICRC_LEN);
}

/* Is the iCRC right for the octets from the IP header to the end that the header gives? For a frame
 * whose parse stopped after the addresses. If the IP length is impossible, try the ends by the UDP
 * length and by the frame. */
static bool made_so(const struct lint_frame *in, const struct wire_pkt *p, enum wire_verdict v)
{
    const uint8_t *ip = in->data + p->ip_off;
    size_t have = in->len - p->ip_off, len, bth;
    if (!p->ip_version)
        return false;
    bool less = v == WIRE_TRUNCATED && p->ip_version == 4 && wire_get16(ip + 2) < IPV4_LEAST;
    if (v == WIRE_IP_OPTIONS || v == WIRE_IP_FRAGMENT || less) {
        size_t header = (size_t)(ip[0] & 15u) * 4; /* the iCRC isn't where it should be */
        return header <= have && wire_csum_add(0, ip, header) == 0xFFFF;
    }
    if (p->ethertype == WIRE_ETHERTYPE_V1) {
        len = WIRE_IPV6_LEN + wire_get16(ip + 4);
        bth = WIRE_IPV6_LEN;
    } else if (p->ip_version == 4) {
        len = wire_get16(ip + 2);
        bth = WIRE_IPV4_LEN + WIRE_UDP_LEN;
    } else {
        len = WIRE_IPV6_LEN + wire_get16(ip + 4);
        bth = WIRE_IPV6_LEN + WIRE_UDP_LEN;
    }
    if (v != WIRE_TRUNCATED)
        return icrc_fits(ip, have, len, bth);
    size_t udp = bth - WIRE_UDP_LEN + (p->udp_off ? wire_get16(in->data + p->udp_off + 4) : 0);
    return icrc_fits(ip, have, udp, bth) || icrc_fits(ip, have, have, bth);
}

/* Only the first fragment of a datagram has the destination port. */
static bool later_fragment(const struct lint_frame *in, const struct wire_pkt *p)
{
    return p->ip_version == 4 && p->ethertype != WIRE_ETHERTYPE_V1 &&
           (wire_get16(in->data + p->ip_off + 6) & 0x1FFFu);
}

/* Is the packet RoCE although its parse stopped early? */
static bool is_roce(const struct lint_frame *in, const struct wire_pkt *p)
{
    if (p->ethertype == WIRE_ETHERTYPE_V1)
        return true;
    return p->udp_off && in->len >= p->udp_off + WIRE_UDP_LEN &&
           wire_get16(in->data + p->udp_off + 2) == WIRE_UDP_PORT;
}

/* A packet captured on one interface often appears on another one a moment later. It appears twice
 * on the same interface when both ends are on the capturing machine: going out, then coming in. It
 * also does when a switch mirrors it twice: as received, then as sent, in another VLAN or in none,
 * or with a lower TTL. */
static bool seen_elsewhere(struct lint_recent *r, const struct lint_ctx *c, uint32_t id)
{
    const struct lint_frame *in = c->in;
    uint16_t vlan = c->p.vlan ? c->p.tci & VID_MASK : VID_NONE;
    uint32_t n = r->n < LINT_RECENT ? r->n : LINT_RECENT;
    for (uint32_t i = 0; i < n; i++) {
        if (r->seen[i].id != id)
            continue;
        bool hop = r->seen[i].ttl != c->p.ttl && in->ns - r->seen[i].ns < HOP_NS;
        if (r->seen[i].interface != in->interface || r->seen[i].sent != in->sent ||
            r->seen[i].vlan != vlan || hop)
            return true;
    }
    uint32_t at = r->n++ % LINT_RECENT;
    r->seen[at].ns = in->ns;
    r->seen[at].ttl = c->p.ttl;
    r->seen[at].id = id;
    r->seen[at].interface = in->interface;
    r->seen[at].sent = in->sent;
    r->seen[at].vlan = vlan;
    return false;
}

/* The same for an unreadable packet, or one with a wrong iCRC: by all its octets after the fields
 * of the IP header that routers change. */
static bool broken_elsewhere(struct lint_ctx *c)
{
    const uint8_t *ip = c->in->data + c->p.ip_off;
    uint32_t from = c->p.ip_version == 6 ? 8 : 12, have = c->in->len - c->p.ip_off;
    if (!c->p.ip_version || from >= have)
        return false;
    uint32_t len = from == 12 ? wire_get16(ip + 2) : WIRE_IPV6_LEN + wire_get16(ip + 4);
    if (len > from && len < have)
        have = len; /* the rest is padding */
    uint32_t id = wire_icrc_update(0, ip + from, have - from);
    if (!seen_elsewhere(&c->l->broken, c, id))
        return false;
    c->view->flags |= LINT_V_AGAIN;
    return true;
}

static enum lint_kind kind_of(const struct wire_opcode_info *op, const struct wire_pkt *p)
{
    if (op->flags & WIRE_F_CNP)
        return LINT_CNP;
    if (op->service == WIRE_UD)
        return p->dqpn == WIRE_QPN_GSI ? LINT_CM : LINT_DATAGRAM;
    if (op->flags & WIRE_F_ACK) {
        enum wire_aeth_kind k = wire_aeth_kind(p->syndrome);
        return k == WIRE_AETH_RNR ? LINT_RNR : k == WIRE_AETH_NAK ? LINT_NAK : LINT_ACK;
    }
    if (op->flags & WIRE_F_ATOMIC)
        return op->flags & WIRE_F_RESPONSE ? LINT_ATOMIC_ACK : LINT_ATOMIC;
    if ((op->flags & WIRE_F_READ) && (op->flags & WIRE_F_REQUEST))
        return LINT_READ;
    return LINT_DATA;
}

static void count(struct lint_ctx *c)
{
    struct lint_flow_info *i = &c->f->info;
    if (i->first_ns == UINT64_MAX) {
        i->first_ns = c->in->ns;
        i->first_number = c->in->number;
    }
    i->last_ns = c->in->ns;
    i->last_number = c->in->number;
    i->packets++;
    i->octets += c->in->wire_len;
    unsigned ecn = c->p.tclass & 3u;
    i->ecn_capable += ecn != 0;
    i->ecn_ce += ecn == 3;
    i->cut += c->cut;
    if (c->f->id.icrc && c->f->id.last == c->p.ip_id && c->f->id.icrc != c->icrc && !c->cut)
        c->f->id.same = true;
    if (i->packets <= 2 || (int16_t)(c->f->id.last - c->f->id.most) > 0)
        c->f->id.most = c->f->id.last;
    int16_t step = (int16_t)(c->p.ip_id - c->f->id.last);
    if (c->f->id.icrc && step) {
        c->f->id.steps++;
        c->f->id.near += step > -ID_NEAR && step < ID_NEAR;
    }
    c->f->id.last = c->p.ip_id;
    c->f->id.icrc = c->icrc;
    if (ecn == 3)
        c->view->flags |= LINT_V_CE;
}

/* The packet's flow. */
static struct lint_flow *flow_of(struct lint_ctx *c)
{
    bool ud = c->op->service == WIRE_UD;
    if (ud && !c->headers)
        return NULL; /* the source QPN is cut off */
    struct lint_flow *f = lint_flow_get(c->l, &c->p, c->p.dqpn, ud ? c->p.sqpn : 0, true);
    if (!f)
        c->l->totals.forgotten++;
    return f;
}

/* The iCRC of a whole packet, in two steps: the register after the headers serves to compare the
 * payloads of two transmissions. */
static bool icrc_good(struct lint_ctx *c)
{
    const uint8_t *d = c->in->data;
    const struct wire_pkt *p = &c->p;
    c->crc_head = wire_icrc_headers(d + p->ip_off, p->payload_off - p->ip_off,
                                    (size_t)p->bth_off - p->ip_off);
    c->icrc = wire_icrc_update(c->crc_head, d + p->payload_off, p->icrc_off - p->payload_off);
    return c->icrc == wire_get32le(d + p->icrc_off);
}

/* Handle a frame of several merged packets, which no device sends. True: it is such a frame. Either
 * its parts are judged, or its contents are unknown. */
static bool is_merged(struct lint_ctx *c)
{
    struct lint_merge m;
    bool whole = !c->in->part && lint_merged(c->in, &m);
    if (c->in->part || (!whole && !lint_looks_merged(c)))
        return false;
    c->view->kind = LINT_BROKEN;
    c->view->flags |= LINT_V_MERGED;
    c->l->totals.merged++;
    if (whole)
        return true;
    c->l->totals.unsplit++;
    c->l->totals.roce++;
    if (c->op && c->op->name && c->op->service != WIRE_UD)
        c->f = lint_flow_get(c->l, &c->p, c->p.dqpn, 0, true);
    if (c->f) {
        c->f->info.unsplit++;
        c->view->flow = c->f->info.id;
    }
    return true;
}

static void corrupted(struct lint_ctx *c)
{
    c->view->kind = LINT_BROKEN;
    c->view->flags |= LINT_V_CORRUPT;
    c->l->totals.corrupt++;
    if (!c->cut && broken_elsewhere(c))
        return;
    lint_flow_unread(c->l, &c->p, c->in->number);
    /* The header itself may be damaged: attribute the packet only to an existing flow. */
    c->f = c->op && c->op->name ? lint_flow_get(c->l, &c->p, c->p.dqpn,
                                                c->op->service == WIRE_UD ? c->p.sqpn : 0, false)
                                : NULL;
    if (c->f) {
        c->f->info.corrupt++;
        c->view->flow = c->f->info.id;
    }
    unsigned broken = 0;
    if (c->verdict == WIRE_OK && !c->cut) {
        c->icrc_run = c->f ? c->f->icrc_run : lint_flow_stranger(c->l, &c->p);
        broken = lint_run(c, LINT_S_ICRC);
        if (broken)
            lint_not_rewritten(c); /* a well-known mistake explains it */
    }
    c->l->icrc_run += !c->rewritten_perhaps || broken;
    if (c->f)
        c->f->icrc_run++;
    lint_request_unread(c, broken ? LINT_R_BROKEN : LINT_R_CORRUPT);
}

/* A packet has another transport service (RC, UC, ...) than its queue pair so far. If packets of
 * the old service follow it, the packet is its sender's mistake. Otherwise the queue pair's number
 * now belongs to another queue pair. */
static bool same_service(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (c->op->service != f->info.service) {
        if (f->other_service.on)
            return lint_renew(c);
        lint_remember(c, &f->other_service);
        lint_request_unread(c, LINT_R_BROKEN);
        return false;
    }
    if (f->other_service.on) {
        c->wait = &f->other_service;
        lint_run(c, LINT_S_SERVICE);
        c->wait = NULL;
        f->other_service.on = false;
    }
    return true;
}

static void dispatch(struct lint_ctx *c)
{
    if (c->op->flags & WIRE_F_CNP) {
        c->f->info.cnps++;
        lint_run(c, LINT_S_CNP);
        return;
    }
    if (c->op->service == WIRE_UD) {
        c->f->info.datagrams++;
        c->f->info.goodput += c->p.payload_len;
        lint_run(c, LINT_S_DATAGRAM);
        if (c->p.dqpn == WIRE_QPN_GSI)
            lint_cm(c);
        return;
    }
    if (c->f->info.service == WIRE_CNP_GROUP) /* only CNPs until now */
        c->f->info.service = c->op->service;
    if (!same_service(c) || lint_strayed(c))
        return;
    uint64_t n = c->f->info.packets;
    if (!c->f->peer && (n < PAIR_FIRST || n % PAIR_EVERY == 0))
        lint_flow_find_peer(c);
    else if (c->f->by_psn && !c->f->info.unsure && (c->op->flags & WIRE_F_RESPONSE) &&
             (n < PAIR_FIRST || n % DOUBT_EVERY == 0))
        lint_flow_doubt_peer(c);
    if (c->op->flags & WIRE_F_RESPONSE)
        lint_response(c);
    else
        lint_request(c);
}

/* Two ends that both use private packets may have agreed on more, for example on selective repeat
 * (LR-02): the rules of this connection aren't known. */
static void private_packet(struct lint_ctx *c)
{
    struct lint_flow *f = lint_flow_get(c->l, &c->p, c->p.dqpn, 0, true);
    if (!f)
        return;
    if (!f->info.packets)
        f->info.service = WIRE_CNP_GROUP; /* the next packet decides */
    f->private = true;
    c->f = f;
    c->view->flow = f->info.id;
    count(c);
}

/* A malformed packet that its sender made so: the iCRC is right. */
static void malformed(struct lint_ctx *c)
{
    c->view->kind = LINT_BROKEN;
    c->l->totals.roce++;
    if (broken_elsewhere(c))
        return;
    lint_flow_unread(c->l, &c->p, c->in->number);
    bool own = c->op && !c->op->name && c->p.opcode >= LINT_PRIVATE;
    if (own)
        c->f = lint_flow_get(c->l, &c->p, c->p.dqpn, 0, false);
    lint_run(c, LINT_S_MALFORMED);
    if (own)
        private_packet(c);
    if (!c->op || !c->op->name)
        return;
    c->f = lint_flow_get(c->l, &c->p, c->p.dqpn, 0, false);
    lint_request_unread(c, LINT_R_BROKEN);
}

/* An iCRC of 0 is no damage: the sender makes none, or the packet was captured before the NIC made
 * it. Report that alone; the rest of the packet is valid. */
static bool icrc_missing(const struct lint_ctx *c)
{
    return wire_get32le(c->in->data + c->p.icrc_off) == 0 && c->icrc != 0;
}

/* A packet that parses: WIRE_OK, or cut by the capture after the BTH. */
static void good(struct lint_ctx *c)
{
    bool good = c->cut || icrc_good(c);
    if (!good && is_merged(c))
        return;
    if (!good && !icrc_missing(c) && !lint_rewritten(c)) {
        corrupted(c);
        return;
    }
    if (c->verdict != WIRE_OK && c->headers) { /* a field is wrong and the iCRC right */
        malformed(c);
        return;
    }
    c->view->kind = kind_of(c->op, &c->p);
    c->l->totals.roce++;
    c->f = flow_of(c);
    if (!c->f)
        return;
    c->f->icrc_run = 0;
    c->l->icrc_run = 0;
    if (good && !c->cut && c->l->rewritten_any)
        lint_not_rewritten(c);
    c->view->flow = c->f->info.id;
    if (!c->cut && seen_elsewhere(&c->f->recent, c, c->icrc)) {
        c->view->flags |= LINT_V_AGAIN;
        c->f->info.again++;
        return;
    }
    count(c);
    c->f->no_icrc.rights += good && !c->cut;
    c->rewritten_news = c->rewritten && lint_rewritten_news(c);
    if (!good && (!c->rewritten || c->rewritten_news))
        lint_run(c, LINT_S_ICRC);
    c->rewritten_news = false;
    lint_run(c, LINT_S_FRAME);
    dispatch(c);
}

void lint_packet(struct lint *l, const struct lint_frame *in, struct lint_view *view)
{
    struct lint_view nobody;
    struct lint_ctx c = {.l = l, .in = in, .view = view ? view : &nobody};
    *c.view = (struct lint_view){.flow = LINT_NO_FLOW};
    if (!l->totals.frames)
        l->totals.first_ns = in->ns;
    l->totals.frames += !in->part;
    l->totals.last_ns = in->ns;

    c.verdict = wire_parse_cut(in->data, in->len, in->wire_len, PARSE_FLAGS, &c.p);
    if (c.verdict == WIRE_NOT_ROCE || later_fragment(in, &c.p) ||
        (c.verdict == WIRE_TRUNCATED && !is_roce(in, &c.p))) {
        l->totals.other++;
        return;
    }
    c.op = c.p.icrc_off ? &wire_opcodes[c.p.opcode] : NULL;
    c.bth = in->data + c.p.bth_off;
    c.headers = c.p.payload_off != 0;
    c.cut = in->len < in->wire_len && (!c.p.icrc_off || c.p.icrc_off + WIRE_ICRC_LEN > in->len);
    c.view->opcode = c.p.opcode;
    c.view->psn = c.p.psn;
    c.view->psns = 1;
    c.view->octets = c.p.payload_len;
    if (c.cut) {
        c.view->flags |= LINT_V_CUT;
        l->totals.cut++;
    }
    l->totals.v1 += c.p.ethertype == WIRE_ETHERTYPE_V1;
    if (lint_looks_merged(&c) && is_merged(&c))
        return;
    if (c.op && c.op->name && (c.headers || (c.cut && c.verdict == WIRE_TRUNCATED))) {
        good(&c);
        return;
    }
    /* Damaged on the way, or malformed by its sender; a truncated packet may be either. */
    bool made = !c.cut && made_so(in, &c.p, c.verdict);
    if (!made && is_merged(&c))
        return;
    if (!made) {
        corrupted(&c);
        return;
    }
    malformed(&c);
}

void lint_end(struct lint *l)
{
    for (uint32_t i = 0; i < l->totals.flows; i++)
        if (!l->flow[i]->detached)
            lint_flow_end(l, l->flow[i]);
    for (uint32_t i = 0; i < l->totals.flows; i++)
        lint_held(l, l->flow[i]);
}

struct lint *lint_new(lint_report report_fn, void *ctx, uint32_t max_flows)
{
    struct lint *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->report = report_fn;
    l->report_ctx = ctx;
    l->max_flows = max_flows ? max_flows : MAX_FLOWS;
    size_t n;
    const struct lint_rule *rules = lint_rules(&n);
    for (unsigned s = 0; s < LINT_STAGES; s++) {
        unsigned at = 0;
        for (size_t i = 0; i < n && at < LINT_RULES_MAX; i++)
            if (rules[i].when & 1u << s)
                l->stage[s][at++] = &rules[i];
    }
    return l;
}

void lint_free(struct lint *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->totals.flows; i++) {
        lint_flow_free(l->flow[i]);
        free(l->flow[i]);
    }
    free(l->flow);
    free(l->bucket);
    free(l->between);
    free(l);
}

void lint_totals(const struct lint *l, struct lint_totals *out)
{
    *out = l->totals;
}

bool lint_flow_info(const struct lint *l, uint32_t id, struct lint_flow_info *out)
{
    if (id >= l->totals.flows)
        return false;
    *out = l->flow[id]->info;
    if (out->first_ns == UINT64_MAX) /* announced by the CM, never used */
        out->first_ns = out->last_ns;
    return true;
}
