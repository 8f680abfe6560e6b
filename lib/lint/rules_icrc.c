/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of the iCRC: well-known mistakes are recognized by their results. Any other wrong iCRC may
 * be damage. The CRC is linear: a change at the front makes the same difference whatever the rest
 * is.
 */
#include <stdio.h>
#include <string.h>

#include "lint_checks.h"
#include "wire_bytes.h"

#define ONES       0xDEBB20E3u /* the register after the 8 octets of ones (ICRC-05) */
#define MASKED     5u          /* fields */
#define TEXT       96u
#define HEADERS    (WIRE_IPV6_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)
#define CRC_32C    0x82F63B78u /* the polynomial with instructions in CPUs */
#define ICRC_HABIT 7u          /* wrong iCRCs in a row, after which the next one is the sender's */
#define GOES_ON    16u         /* requests without retransmission: their answers are accepted */
#define LOOK_MOST  1024u       /* flows between two hosts */
#define SHORT      256u        /* octets: longer ones aren't tried bit by bit */

static uint32_t stored(const struct lint_ctx *c)
{
    return wire_get32le(c->in->data + c->p.icrc_off);
}

/* The number of octets that the iCRC covers from `from` on. */
static uint32_t covered(const struct lint_ctx *c, size_t from)
{
    return (uint32_t)(c->p.icrc_off - from);
}

/* The register after these octets. */
static uint32_t reg_after(uint32_t reg, const uint8_t *octets, size_t n)
{
    return ~wire_icrc_update(~reg, octets, n);
}

/* Was `wrong` in the register instead of the right value, this many octets before the end? */
static bool had(const struct lint_ctx *c, uint32_t reg, uint32_t should, uint32_t before)
{
    return stored(c) == (c->icrc ^ lint_crc_zeros(reg ^ should, before));
}

/* ---- fields that are masked ---- */

/* The fields masked in the iCRC, by the protocol below the BTH: offset from the IP header, or from
 * the BTH (for fields of UDP and the BTH). */
static const struct masked {
    const char *name;
    enum { OF_IP, OF_UDP, OF_BTH } of;
    int8_t off;
    uint8_t ones[4];
} masked_v4[MASKED] = {{"TOS", OF_IP, 1, {0xFF}},
                       {"TTL", OF_IP, 8, {0xFF}},
                       {"header checksum", OF_IP, 10, {0xFF, 0xFF}},
                       {"UDP checksum", OF_UDP, -2, {0xFF, 0xFF}},
                       {"BTH octet 4", OF_BTH, 4, {0xFF}}},
  masked_v6[MASKED] = {{"traffic class and flow label", OF_IP, 0, {0x0F, 0xFF, 0xFF, 0xFF}},
                       {"hop limit", OF_IP, 7, {0xFF}},
                       {"UDP checksum", OF_UDP, -2, {0xFF, 0xFF}},
                       {"BTH octet 4", OF_BTH, 4, {0xFF}}};

static const struct masked *masked_fields(const struct lint_ctx *c)
{
    bool v4 = c->p.ip_version == 4 && c->p.ethertype != WIRE_ETHERTYPE_V1;
    return v4 ? masked_v4 : masked_v6;
}

/* A field's offset from the IP header. */
static size_t masked_at(const struct lint_ctx *c, const struct masked *m)
{
    size_t from = m->of == OF_IP ? 0 : (size_t)(c->p.bth_off - c->p.ip_off);
    return from + m->off;
}

static bool masked_here(const struct lint_ctx *c, const struct masked *m)
{
    return m->name && (m->of != OF_UDP || c->p.ethertype != WIRE_ETHERTYPE_V1);
}

/* The packet's first octets from the IP header on, masked as for the iCRC: at least up to the BTH's
 * end. */
static void mask(const struct lint_ctx *c, uint8_t *octets, size_t n)
{
    const struct masked *m = masked_fields(c);
    memcpy(octets, c->in->data + c->p.ip_off, n);
    for (unsigned i = 0; i < MASKED; i++) {
        for (size_t k = 0; masked_here(c, &m[i]) && k < sizeof(m->ones); k++)
            octets[masked_at(c, &m[i]) + k] |= m[i].ones[k];
    }
}

/* The difference in the iCRC if this field is left unmasked, or is masked with zeroes instead of
 * ones. */
static uint32_t unmasked(const struct lint_ctx *c, const struct masked *m, bool zeroes)
{
    uint8_t octets[HEADERS] = {0};
    const uint8_t *ip = c->in->data + c->p.ip_off;
    size_t at = masked_at(c, m), span = (size_t)(c->p.bth_off - c->p.ip_off) + WIRE_BTH_LEN;
    for (size_t i = 0; i < sizeof(m->ones); i++)
        octets[at + i] = m->ones[i] & (zeroes ? 0xFF : (uint8_t)~ip[at + i]);
    return lint_crc_zeros(reg_after(0, octets, span), covered(c, c->p.ip_off + span));
}

/* Is it right but for the masks of some fields? Names them. */
static bool by_masks(const struct lint_ctx *c, bool zeroes, char text[TEXT])
{
    const struct masked *m = masked_fields(c);
    uint32_t by[MASKED] = {0}, diff = c->icrc ^ stored(c);
    for (unsigned i = 0; i < MASKED; i++)
        by[i] = masked_here(c, &m[i]) ? unmasked(c, &m[i], zeroes) : 0;
    for (unsigned set = 1; set < 1u << MASKED; set++) {
        uint32_t sum = diff;
        for (unsigned i = 0; i < MASKED; i++)
            sum ^= set >> i & 1 ? by[i] : 0;
        if (sum)
            continue;
        int n = snprintf(text, TEXT, zeroes ? "that masks with zeroes" : "that doesn't mask");
        const char *mark = ": ";
        for (unsigned i = 0; i < MASKED; i++) {
            if (set >> i & 1 && by[i]) {
                n += snprintf(text + n, TEXT - (size_t)n, "%s%s", mark, m[i].name);
                mark = ", ";
            }
        }
        return true;
    }
    return false;
}

/* ---- the covered octets, and the polynomial ---- */

static const struct start {
    uint32_t reg; /* the CRC just before the IP header */
    uint8_t rule;
    const char *text;
} starts[] = {{0xFFFFFFFF, 2, "that lacks the octets of ones"},
              {0x9ADD2096, 2, "with octets of zeroes instead of ones"},
              {0x44660075, 1, "that begins with a register of 0"},
              {0, 1, "that begins with a register of 0, without the octets of ones"}};

static const struct gap {
    bool ip, udp;
    const char *text;
} gaps[] = {{true, false, "that doesn't cover the IP header"},
            {false, true, "that doesn't cover the UDP header"},
            {true, true, "that covers neither IP nor UDP header"}};

/* Are headers left out? */
static const char *by_gap(const struct lint_ctx *c)
{
    uint8_t octets[HEADERS];
    size_t bth = (size_t)(c->p.bth_off - c->p.ip_off);
    size_t ip = c->p.ethertype == WIRE_ETHERTYPE_V1 ? bth : bth - WIRE_UDP_LEN;
    mask(c, octets, bth + WIRE_BTH_LEN);
    uint32_t should = reg_after(ONES, octets, bth);
    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
        uint32_t reg = gaps[i].ip ? ONES : reg_after(ONES, octets, ip);
        if (!gaps[i].udp)
            reg = reg_after(reg, octets + ip, bth - ip);
        if (reg != should && had(c, reg, should, covered(c, c->p.bth_off)))
            return gaps[i].text;
    }
    return NULL;
}

/* CRC-32 of the covered octets, starting from this register, without the masks. */
static uint32_t plain(const struct lint_ctx *c, uint32_t reg)
{
    return ~reg_after(reg, c->in->data + c->p.ip_off, covered(c, c->p.ip_off));
}

/* Is it the CRC-32C of the covered octets? */
static bool is_crc32c(const struct lint_ctx *c)
{
    size_t n = covered(c, c->p.ip_off);
    uint8_t octets[8 + SHORT];
    uint32_t reg = 0xFFFFFFFF;
    if (n > SHORT)
        return false;
    memset(octets, 0xFF, 8);
    mask(c, octets + 8, n);
    for (size_t i = 0; i < 8 + n; i++) {
        reg ^= octets[i];
        for (unsigned bit = 0; bit < 8; bit++)
            reg = reg & 1 ? reg >> 1 ^ CRC_32C : reg >> 1;
    }
    return stored(c) == ~reg;
}

/* The number of the ICRC rule that a well-known mistake breaks, and its description; 0 = none. */
static unsigned mistake(const struct lint_ctx *c, char text[TEXT])
{
    if (c->verdict != WIRE_OK || c->cut)
        return 0;
    const unsigned masks = masked_fields(c) == masked_v4 ? 3 : 4;
    const char *gap = by_gap(c);
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        snprintf(text, TEXT, "%s", starts[i].text);
        if (had(c, starts[i].reg, ONES, covered(c, c->p.ip_off)))
            return starts[i].rule;
    }
    snprintf(text, TEXT, "%s", gap ? gap : "of the packet alone");
    if (gap || stored(c) == plain(c, 0xFFFFFFFF))
        return 2;
    snprintf(text, TEXT, "without masks");
    if (stored(c) == plain(c, ONES) || by_masks(c, false, text) || by_masks(c, true, text))
        return masks;
    snprintf(text, TEXT, "that isn't inverted at its end");
    if (stored(c) == ~c->icrc)
        return 1;
    snprintf(text, TEXT, "of another polynomial: CRC-32C");
    if (is_crc32c(c))
        return 1;
    snprintf(text, TEXT, "in the other byte order");
    return stored(c) == __builtin_bswap32(c->icrc) ? 6 : 0;
}

static bool mistaken(struct lint_ctx *c, unsigned rule)
{
    char text[TEXT];
    if (stored(c) == c->icrc || mistake(c, text) != rule)
        return false;
    lint_expected(c, "0x%08x", c->icrc);
    return lint_seen(c, "0x%08x, a CRC %s", stored(c), text);
}

bool lint_icrc_01(struct lint_ctx *c)
{
    return mistaken(c, 1);
}

bool lint_icrc_02(struct lint_ctx *c)
{
    return mistaken(c, 2);
}

bool lint_icrc_03(struct lint_ctx *c)
{
    return mistaken(c, 3);
}

bool lint_icrc_04(struct lint_ctx *c)
{
    return mistaken(c, 4);
}

bool lint_icrc_06(struct lint_ctx *c)
{
    return mistaken(c, 6);
}

/* ---- other wrong iCRCs ---- */

/* Were there enough wrong iCRCs in a row, of one queue pair or of all? */
static bool icrc_habit(struct lint_ctx *c)
{
    const struct lint_flow_info *i = c->f ? &c->f->info : NULL;
    bool own = c->icrc_run == ICRC_HABIT, all = c->l->icrc_run == ICRC_HABIT;
    /* Not if right ones were among those before: then a link damages many packets. */
    bool own_mixed = i && i->packets && i->corrupt > ICRC_HABIT + 1;
    bool all_mixed = c->l->totals.roce && c->l->totals.corrupt > ICRC_HABIT + 1;
    if ((own && !own_mixed) || (all && !all_mixed))
        return true;
    return (own || all) &&
           lint_doubt(c, LINT_UNDECIDABLE, "earlier packets were damaged, between undamaged ones");
}

/* An iCRC of 0: judged at the end. */
static void watch_none(struct lint_ctx *c)
{
    struct lint_no_icrc *none = &c->f->no_icrc;
    if (none->n++)
        return;
    lint_remember(c, &none->first);
    none->should = c->icrc;
    none->outbound = c->in->sent;
}

/* Facts from the flows of one host to another. */
struct shown {
    bool none, right; /* there are packets with an iCRC of 0; with a right one */
    bool accepted;    /* requests are acknowledged */
    bool goes_on;     /* answers seem to be accepted: many requests, none repeated */
};

static struct shown shown_between(const struct lint *l, const struct wire_addr *src,
                                  const struct wire_addr *dst)
{
    struct shown s = {0};
    const struct lint_flow *g = lint_flow_between(l, src, dst);
    for (unsigned looked = 0; g && looked < LOOK_MOST; g = g->older, looked++) {
        const struct lint_flow *peer = g->peer;
        if (memcmp(&g->info.src, src, sizeof(*src)) || memcmp(&g->info.dst, dst, sizeof(*dst)))
            continue;
        s.none = s.none || g->no_icrc.n;
        s.right = s.right || g->no_icrc.rights;
        s.accepted = s.accepted || g->no_icrc.accepted;
        s.goes_on = s.goes_on || (peer && peer->no_icrc.accepted &&
                                  peer->info.requests >= GOES_ON && !peer->info.retransmits);
    }
    return s;
}

/* All packets from one host to another lack the iCRC, those in the other direction have it. A peer
 * that acknowledges some of them may ignore iCRCs. But a host that makes none, with a peer that
 * makes right ones and accepts all, is rare, and captures before the NIC are not. A refusal of some
 * packets proves less: those may have been damaged. */
static bool none_yet(struct lint_ctx *c)
{
    const struct lint_flow *f = c->f;
    const char *why = "captured before the NIC filled it in";
    lint_expected(c, "0x%08x", f->no_icrc.should);
    lint_seen(c, "0; reported once per flow");
    if (f->no_icrc.outbound)
        return lint_doubt(c, LINT_ARTEFACT, "%s", why);
    struct shown to = shown_between(c->l, &f->info.src, &f->info.dst);
    struct shown from = shown_between(c->l, &f->info.dst, &f->info.src);
    if (to.right || from.none || !from.right)
        return true;
    if (to.accepted)
        return lint_doubt(c, LINT_ARTEFACT, "%s: requests without it are acknowledged", why);
    if (to.goes_on)
        return lint_doubt(c, LINT_UNDECIDABLE, "perhaps %s: answers without it are accepted", why);
    return true;
}

/* A sender whose iCRC is never right, or always 0, is judged at the end. So is a responder that
 * acknowledges a damaged packet: but the damage may be between the network and the capture. */
bool lint_icrc_08(struct lint_ctx *c)
{
    char text[TEXT];
    if (c->wait)
        return none_yet(c);
    if (c->req && c->where == LINT_W_KNOWN && (c->op->flags & WIRE_F_ACK) &&
        wire_aeth_kind(c->p.syndrome) == WIRE_AETH_ACK) {
        const struct lint_rec *r = lint_rec_at(c->req, c->p.psn);
        if (!r || (r->flags & LINT_R_SEEN) || !(r->flags & LINT_R_CORRUPT))
            return false;
        lint_expected(c, "no ACK: PSN 0x%x arrived only with a wrong iCRC", c->p.psn);
        lint_seen(c, "it is acknowledged");
        return lint_doubt(c, LINT_UNDECIDABLE, "the capture's copy may be the damaged one");
    }
    if (c->rewritten_news) {
        lint_expected(c, "0x%08x", c->icrc);
        lint_seen(c, "0x%08x; reported once per direction between two hosts", stored(c));
        return lint_doubt(c, LINT_ARTEFACT,
                          "right before addresses or ports were changed (NAT, tcprewrite)");
    }
    if (c->view->kind != LINT_BROKEN && !c->rewritten && !c->req && !c->cut &&
        stored(c) != c->icrc) {
        watch_none(c);
        return false;
    }
    if (c->verdict == WIRE_OK && !c->cut && !c->rewritten && !c->req && c->icrc != stored(c) &&
        !mistake(c, text) && icrc_habit(c)) {
        lint_expected(c, "0x%08x", c->icrc);
        return lint_seen(c, "0x%08x, and %u wrong ones before it in a row", stored(c), ICRC_HABIT);
    }
    return false;
}
