/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of one packet by itself: WIRE, HDR, OPC.
 */
#include <stdio.h>
#include <string.h>

#include "lint_checks.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define CSUM_HABIT 3u /* wrong header checksums in a row that prove a habit */

/* ---- link and IP ---- */

static bool multicast_mac(const uint8_t *mac)
{
    return mac[0] & 1;
}

/* The iCRC doesn't cover MACs: does this one differ from the flow's usual one by a bit or two? */
static bool damaged_mac(struct lint_ctx *c)
{
    int bits = 0;
    for (int i = 0; i < 6; i++)
        bits += __builtin_popcount((unsigned)(c->p.dmac[i] ^ c->f->dmac[i]));
    return c->f->dmac_seen && bits <= 2 &&
           lint_doubt(c, LINT_UNDECIDABLE, "damage: the iCRC doesn't cover it");
}

bool lint_wire_06(struct lint_ctx *c)
{
    const uint8_t *m = c->p.dmac;
    if (c->in->no_ether || !c->f)
        return false;
    if (!multicast_mac(m) || wire_addr_is_multicast(&c->p.dip)) {
        memcpy(c->f->dmac, m, 6);
        c->f->dmac_seen = true;
        return false;
    }
    bool broadcast = (m[0] & m[1] & m[2] & m[3] & m[4] & m[5]) == 0xFF;
    lint_expected(c, "a unicast MAC for a unicast address");
    lint_seen(c, "%s", broadcast ? "the broadcast MAC" : "a multicast MAC");
    return damaged_mac(c) || true;
}

bool lint_wire_08(struct lint_ctx *c)
{
    if (c->verdict != WIRE_IP_OPTIONS)
        return false;
    lint_expected(c, "IHL 5");
    return lint_seen(c, "IHL %u", c->in->data[c->p.ip_off] & 15u);
}

bool lint_wire_09(struct lint_ctx *c)
{
    if (c->verdict != WIRE_TRUNCATED)
        return false;
    const uint8_t *ip = c->in->data + c->p.ip_off;
    uint32_t rest = c->in->len - c->p.ip_off, len = wire_get16(ip + 2);
    if (c->p.ip_version == 6)
        len = WIRE_IPV6_LEN + wire_get16(ip + 4);
    lint_expected(c, "IP lengths that fit the packet");
    if (len > rest)
        return lint_seen(c, "%u octets from the IP header on, in a frame that has %u", len, rest);
    return lint_seen(c, "too short for UDP, BTH and iCRC");
}

bool lint_wire_10(struct lint_ctx *c)
{
    if (c->verdict == WIRE_IP_FRAGMENT) {
        lint_expected(c, "no fragment");
        return lint_seen(c, "MF or a fragment offset");
    }
    if (c->verdict != WIRE_OK || c->p.ethertype == WIRE_ETHERTYPE_V1 || c->p.ip_version != 4 ||
        (c->p.ip_flags & WIRE_IP_DF))
        return false;
    lint_expected(c, "DF 1");
    return lint_seen(c, "DF 0");
}

bool lint_wire_12(struct lint_ctx *c)
{
    const uint8_t *ip = c->in->data + c->p.ip_off;
    if (c->p.ip_version != 4)
        return false;
    if (wire_csum_add(0, ip, WIRE_IPV4_LEN) == 0xFFFF) {
        if (c->f)
            c->f->csum_bad = 0;
        return false;
    }
    lint_expected(c, "a right header checksum");
    lint_seen(c, "0x%04x", wire_get16(ip + 10));
    if (c->in->sent || wire_get16(ip + 10) == 0)
        return lint_doubt(c, LINT_ARTEFACT, "captured before the NIC filled it in");
    /* Damage to the few octets that the iCRC doesn't cover looks the same, but is rarer. */
    if (c->f && ++c->f->csum_bad < CSUM_HABIT)
        return lint_doubt(c, LINT_UNDECIDABLE, "damage to TOS, TTL or the checksum itself");
    return true;
}

bool lint_wire_23(struct lint_ctx *c)
{
    if (c->verdict != WIRE_BAD_UDP)
        return false;
    const uint8_t *ip = c->in->data + c->p.ip_off;
    unsigned ip_len =
        c->p.ip_version == 4 ? wire_get16(ip + 2) - WIRE_IPV4_LEN : wire_get16(ip + 4);
    lint_expected(c, "UDP length %u", ip_len);
    return lint_seen(c, "%u", wire_get16(c->in->data + c->p.udp_off + 4));
}

static bool loopback(const struct wire_addr *a)
{
    return wire_addr_is_v4(a) ? a->b[12] == 127
                              : wire_get64(a->b) == 0 && wire_get64(a->b + 8) == 1;
}

/* Is the source a loopback address, and the destination none? */
static bool loops_back(const struct lint_ctx *c)
{
    return c->verdict == WIRE_OK && loopback(&c->p.sip) && !loopback(&c->p.dip);
}

bool lint_wire_29(struct lint_ctx *c)
{
    char text[48];
    if (c->verdict != WIRE_BAD_ADDR && !loops_back(c))
        return false;
    lint_expected(c, "%s",
                  c->verdict == WIRE_BAD_ADDR ? "unicast addresses of one family"
                                              : "no loopback address towards another host");
    return lint_seen(c, "source %s", wire_addr_str(&c->p.sip, text, sizeof(text)));
}

bool lint_wire_31(struct lint_ctx *c)
{
    uint8_t mac[6];
    if (c->in->no_ether || !wire_addr_is_multicast(&c->p.dip))
        return false;
    wire_mcast_mac(&c->p.dip, mac);
    if (!memcmp(mac, c->p.dmac, 6))
        return false;
    const uint8_t *m = c->p.dmac;
    lint_expected(c, "MAC %02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                  mac[5]);
    return lint_seen(c, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

/* ---- BTH ---- */

bool lint_hdr_01(struct lint_ctx *c)
{
    unsigned low = c->bth[8] & 0x7Fu, high = c->bth[4] & 0x3Fu;
    bool congestion = (c->p.fecn || c->p.becn) && !(c->op->flags & WIRE_F_CNP);
    if (!low && !high && !congestion)
        return false;
    lint_expected(c, "0");
    lint_seen(c, "octet 4 0x%02x%s, octet 8 0x%02x", congestion ? c->bth[4] : high,
              congestion ? " (FECN, BECN)" : "", low);
    if (!low && c->f && c->f->octet_4 == c->bth[4])
        return false; /* reported already */
    if (!low && c->f)
        c->f->octet_4 = c->bth[4];
    if (!low) /* octet 4 isn't covered by the iCRC */
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "changed on the way: the iCRC doesn't cover it; reported once per flow");
    if (c->cut)
        return lint_doubt(c, LINT_UNDECIDABLE, "perhaps damaged: the iCRC was cut off");
    return true;
}

bool lint_hdr_02(struct lint_ctx *c)
{
    if (c->verdict != WIRE_BAD_TVER)
        return false;
    lint_expected(c, "TVer 0");
    return lint_seen(c, "TVer %u", c->p.tver);
}

bool lint_hdr_03(struct lint_ctx *c)
{
    unsigned f = c->op->flags;
    bool may = (f & WIRE_F_END) && ((f & WIRE_F_SEND) || ((f & WIRE_F_WRITE) && (f & WIRE_F_IMM)));
    if (!c->p.se || may || (f & WIRE_F_CNP))
        return false;
    lint_expected(c, "SE 0 on %s", c->op->name);
    return lint_seen(c, "SE 1");
}

/* Migration can't be seen on the wire; but a queue pair that changes from 1 to 0 is not migrated.
 */
bool lint_hdr_04(struct lint_ctx *c)
{
    struct lint_flow *f = c->f;
    if (c->p.migreq) {
        f->migreq_seen = true;
        return false;
    }
    lint_expected(c, "MigReq 1");
    lint_seen(c, "MigReq 0");
    if (f->migreq_seen)
        return true;
    if (f->migreq_noted)
        return false;
    f->migreq_noted = true;
    return lint_doubt(c, LINT_UNDECIDABLE,
                      "right if path migration is armed; reported once per flow");
}

/* The length in a WRITE's RETH gives the length of its last or only packet. */
bool lint_wrong_pad(const struct lint_ctx *c, uint32_t *rest)
{
    uint64_t before = (uint64_t)c->index * c->f->info.mtu;
    if (!c->p.pad || !(c->op->flags & WIRE_F_WRITE) || !(c->op->flags & WIRE_F_END) ||
        c->index == LINT_UNKNOWN || c->dma_len == LINT_UNKNOWN || c->dma_len <= before)
        return false;
    *rest = (uint32_t)(c->dma_len - before);
    return c->p.payload_len != *rest && c->p.payload_len + c->p.pad == ((*rest + 3ull) & ~3ull);
}

/* Is it too long or too short? OPC-05 checks the octets after a CNP's BTH. */
static bool bad_length(const struct lint_ctx *c)
{
    return c->verdict == WIRE_BAD_LENGTH && !(c->op->flags & WIRE_F_CNP);
}

bool lint_hdr_05(struct lint_ctx *c)
{
    if (bad_length(c)) {
        uint32_t rest = c->p.icrc_off - c->p.bth_off - WIRE_BTH_LEN;
        if (!(c->op->flags & WIRE_F_PAYLOAD) || (rest % 4 == 0 && rest < c->op->ext_len))
            return false;
        lint_expected(c, "a multiple of 4 octets, PadCnt within the payload");
        return lint_seen(c, "%u octets, PadCnt %u", rest, c->p.pad);
    }
    uint32_t rest;
    if (c->verdict != WIRE_OK || !lint_wrong_pad(c, &rest))
        return false;
    lint_expected(c, "PadCnt %u", -rest & 3u);
    return lint_seen(c, "PadCnt %u", c->p.pad);
}

bool lint_hdr_06(struct lint_ctx *c)
{
    if (!(c->op->flags & (WIRE_F_FIRST | WIRE_F_MIDDLE)) || !c->p.pad)
        return false;
    lint_expected(c, "PadCnt 0");
    return lint_seen(c, "PadCnt %u", c->p.pad);
}

bool lint_hdr_07(struct lint_ctx *c)
{
    bool multicast = wire_addr_is_multicast(&c->p.dip);
    if (c->verdict != WIRE_BAD_QPN || (c->p.dqpn && c->op->service == WIRE_UD))
        return false;
    lint_expected(c, multicast ? "datagrams to a multicast address" : "a queue pair's number");
    return lint_seen(c, "DestQP 0x%x", c->p.dqpn);
}

bool lint_opc_01(struct lint_ctx *c)
{
    bool private = c->p.opcode >= LINT_PRIVATE;
    if (!(c->verdict == WIRE_BAD_OPCODE || private) || (private && c->f && c->f->private))
        return false;
    lint_expected(c, "an opcode of the table");
    lint_seen(c, "0x%02x", c->p.opcode);
    if (private)
        return lint_doubt(c, LINT_UNDECIDABLE,
                          "a manufacturer's opcode: right if both ends agreed on it");
    return true;
}

bool lint_opc_02(struct lint_ctx *c)
{
    static const char *const names[8] = {"RC", "UC", "RD", "UD", "CNP", "XRC", "?", "?"};
    lint_expected(c, "%s, as before and after", names[c->f->info.service & 7]);
    return lint_seen(c, "%s", wire_opcodes[c->wait->opcode].name);
}

bool lint_opc_03(struct lint_ctx *c)
{
    uint32_t rest = c->p.icrc_off - c->p.bth_off - WIRE_BTH_LEN;
    if (!bad_length(c) || rest % 4 || rest >= c->op->ext_len)
        return false;
    lint_expected(c, "%u octets of headers after the BTH", c->op->ext_len);
    return lint_seen(c, "%u octets", rest);
}

bool lint_opc_04(struct lint_ctx *c)
{
    uint32_t rest = c->p.icrc_off - c->p.bth_off - WIRE_BTH_LEN;
    if (!bad_length(c) || (c->op->flags & WIRE_F_PAYLOAD) ||
        (rest < c->op->ext_len && rest % 4 == 0))
        return false;
    lint_expected(c, "no payload");
    return lint_seen(c, "%d octets", (int)rest - c->op->ext_len);
}

/* A CNP of an unusual length. */
static bool cnp_length(struct lint_ctx *c)
{
    uint32_t rest = c->p.icrc_off - c->p.bth_off - WIRE_BTH_LEN;
    if (c->verdict != WIRE_BAD_LENGTH || !(c->op->flags & WIRE_F_CNP))
        return false;
    lint_expected(c, "PadCnt 0 and %u octets after the BTH", c->op->ext_len);
    return lint_seen(c, "PadCnt %u, %u octets", c->p.pad, rest);
}

bool lint_opc_05(struct lint_ctx *c)
{
    const struct wire_pkt *p = &c->p;
    if (c->view->kind == LINT_BROKEN)
        return cnp_length(c);
    const uint8_t *zero = c->bth + WIRE_BTH_LEN;
    unsigned sum = 0;
    for (unsigned i = 0; c->headers && i < c->op->ext_len; i++)
        sum |= zero[i];
    if (!p->se && !p->migreq && !p->pad && !p->ackreq && !p->fecn && p->becn && !p->psn && !sum)
        return false;
    lint_expected(c, "SE, M, pad, AckReq, FECN, PSN 0; BECN 1; 16 zero octets");
    lint_seen(c, "SE %d M %d pad %d A %d FECN %d BECN %d PSN 0x%x%s", p->se, p->migreq, p->pad,
              p->ackreq, p->fecn, p->becn, p->psn, sum ? ", octets not 0" : "");
    if (!p->se && !p->migreq && !p->pad && !p->ackreq && !p->psn && !sum) /* only FECN or BECN */
        return lint_doubt(c, LINT_UNDECIDABLE, "changed on the way: the iCRC doesn't cover it");
    if (c->cut)
        return lint_doubt(c, LINT_UNDECIDABLE, "perhaps damaged: the iCRC was cut off");
    return true;
}
