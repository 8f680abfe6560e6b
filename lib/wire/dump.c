/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One line of text for a frame.
 *
 *     10.0.0.1 > 10.0.0.2 RC_WRITE_ONLY qp 0xabc psn 0x100 ackreq va 0x7f0010 dma 13 len 13
 *
 * Payload and private data are never printed; keys only on demand (SEC-30).
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "headers.h"

struct line {
    char *buf;
    size_t size;
    size_t len; /* length of the whole line, printed or not */
};

__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t room = l->len < l->size ? l->size - l->len : 0;
    int n = vsnprintf(room ? l->buf + l->len : NULL, room, fmt, ap);
    va_end(ap);
    l->len += n > 0 ? (size_t)n : 0;
}

static void put_ether(struct line *l, const struct wire_pkt *p)
{
    const uint8_t *s = p->smac;
    const uint8_t *d = p->dmac;
    put(l, "%02x:%02x:%02x:%02x:%02x:%02x > %02x:%02x:%02x:%02x:%02x:%02x ", s[0], s[1], s[2], s[3],
        s[4], s[5], d[0], d[1], d[2], d[3], d[4], d[5]);
    if (p->vlan)
        put(l, "vlan %u pcp %u ", p->tci & 0xFFFu, p->tci >> 13);
}

static void put_key(struct line *l, const char *name, uint32_t key, unsigned flags)
{
    if (flags & WIRE_D_KEYS)
        put(l, " %s 0x%x", name, key);
}

static void put_syndrome(struct line *l, uint8_t syndrome)
{
    static const char *const naks[] = {"sequence", "invalid-request", "access", "operation", "rd"};
    switch (wire_aeth_kind(syndrome)) {
    case WIRE_AETH_ACK:
        if (syndrome == WIRE_SYN_ACK)
            put(l, " ack");
        else
            put(l, " ack credits %u", wire_credits(syndrome & 31u));
        break;
    case WIRE_AETH_RNR: {
        unsigned us = (unsigned)(wire_rnr_ns(syndrome & 31u) / 1000u);
        put(l, " rnr-nak %u.%02u ms", us / 1000u, us % 1000u / 10u);
        break;
    }
    case WIRE_AETH_NAK:
        put(l, " nak %s", naks[syndrome & 31u]);
        break;
    case WIRE_AETH_INVALID:
        put(l, " syndrome 0x%02x", syndrome);
        break;
    }
}

static void put_ext(struct line *l, const struct wire_pkt *p, unsigned flags)
{
    const struct wire_opcode_info *info = headers_info(p->opcode, p->selective);
    unsigned h = info->headers;
    if (h & WIRE_H_XRCETH)
        put(l, " srq 0x%x", p->xrc_srqn);
    if (h & WIRE_H_DETH) {
        put(l, " from-qp 0x%x", p->sqpn);
        put_key(l, "qkey", p->qkey, flags);
    }
    if (h & WIRE_H_FETH)
        put(l, " feth 0x%x", p->feth);
    if (h & (WIRE_H_RETH | WIRE_H_ATOMICETH)) {
        put(l, " va 0x%llx", (unsigned long long)p->va);
        put_key(l, "rkey", p->rkey, flags);
    }
    if (h & WIRE_H_RETH)
        put(l, " dma %u", p->dma_len);
    if (h & WIRE_H_AETH) {
        put_syndrome(l, p->syndrome);
        put(l, " msn %u", p->msn);
    }
    if (h & WIRE_H_IMMDT)
        put(l, " imm 0x%08x", ntohl(p->imm));
    if (h & WIRE_H_IETH) {
        put(l, " inv");
        put_key(l, "rkey", p->rkey, flags);
    }
    if (p->selective && info->flags & WIRE_F_ACK)
        put(l, " for-psn 0x%x", p->sel_psn);
    if (p->selective && info->flags & WIRE_F_SEND)
        put(l, " recv %u index %u", p->sel_recv, p->sel_index);
}

/* Everything from the BTH on. */
static void put_transport(struct line *l, const struct wire_pkt *p, unsigned flags)
{
    const struct wire_opcode_info *info = headers_info(p->opcode, p->selective);
    if (info->name)
        put(l, "%s", info->name);
    else
        put(l, "opcode 0x%02x", p->opcode);
    put(l, " qp 0x%x psn 0x%x", p->dqpn, p->psn);
    if (p->pkey != WIRE_PKEY_DEFAULT)
        put(l, " pkey 0x%04x", p->pkey);
    if (p->se)
        put(l, " se");
    if (p->ackreq)
        put(l, " ackreq");
    if (p->fecn)
        put(l, " fecn");
    if (p->becn)
        put(l, " becn");
    if (p->payload_off) { /* set once the extension headers are known to be there */
        put_ext(l, p, flags);
        if (info->flags & WIRE_F_PAYLOAD)
            put(l, " len %u", p->payload_len);
    }
}

int wire_dump_cut(char *buf, size_t size, const uint8_t *frame, size_t have, size_t len,
                  unsigned flags)
{
    struct line l = {.buf = buf, .size = size};
    struct wire_pkt p;
    unsigned parse = WIRE_P_LOOPBACK | WIRE_P_QINQ | WIRE_P_V1;
    if (flags & WIRE_D_SELECTIVE)
        parse |= WIRE_P_SELECTIVE;
    enum wire_verdict v = wire_parse_cut(frame, have, len, parse, &p);
    bool cut = have < len && v == WIRE_TRUNCATED && p.icrc_off;
    if (v != WIRE_OK && !cut)
        put(&l, "%s: ", wire_verdict_name(v));
    if ((flags & WIRE_D_ETHER) && have >= WIRE_ETH_LEN)
        put_ether(&l, &p);
    if (p.ip_version) {
        char s[48];
        char d[48];
        put(&l, "%s > %s", wire_addr_str(&p.sip, s, sizeof(s)),
            wire_addr_str(&p.dip, d, sizeof(d)));
        if (p.ethertype == WIRE_ETHERTYPE_V1)
            put(&l, " v1");
        if ((p.tclass & 3u) == 3u)
            put(&l, " ce");
        put(&l, " ");
    }
    if (p.icrc_off)
        put_transport(&l, &p, flags);
    else
        put(&l, "%zu octets", len);
    if (cut)
        put(&l, " (cut)");
    return (int)l.len;
}

int wire_dump(char *buf, size_t size, const uint8_t *frame, size_t len, unsigned flags)
{
    return wire_dump_cut(buf, size, frame, len, len, flags);
}
