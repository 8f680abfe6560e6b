/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses or ports that were changed after the iCRC had been made, as tools for anonymizing do.
 * The CRC is linear: the same change at the same place always makes the same difference, apart from
 * the octets after it. If packets of different lengths agree on the difference, the rest of them is
 * unchanged.
 */
#include <string.h>

#include "lint_priv.h"
#include "wire_bytes.h"

#define POLYNOMIAL 0xEDB88320u
#define SURE       3u /* agreeing packets, not all of one length */
#define ONE_LENGTH 6u /* agreeing packets, all of one length */
#define FEW_BITS   8  /* an iCRC that differs by no more bits is just wrong */

/* The register before `n` octets of 0 that result in `crc`. */
static uint32_t before_zeros(uint32_t crc, uint32_t n)
{
    for (uint32_t bit = 0; bit < 8 * n; bit++)
        crc = crc >> 31 ? (crc ^ POLYNOMIAL) << 1 | 1u : crc << 1;
    return crc;
}

uint32_t lint_crc_zeros(uint32_t crc, uint32_t n)
{
    static const uint8_t zeros[WIRE_MTU_MAX];
    for (uint32_t now; n; n -= now) {
        now = n < sizeof(zeros) ? n : (uint32_t)sizeof(zeros);
        crc = ~wire_icrc_update(~crc, zeros, now);
    }
    return crc;
}

static struct lint_rewritten *entry(struct lint *l, const struct wire_addr *src,
                                    const struct wire_addr *dst)
{
    uint64_t h = wire_get64(src->b + 8) * 0x9E3779B97F4A7C15ull ^ wire_get64(dst->b + 8);
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9ull;
    return &l->rewritten[h >> 32 & (LINT_REWRITTEN - 1)];
}

static bool is_for(const struct lint_rewritten *r, const struct wire_addr *src,
                   const struct wire_addr *dst)
{
    return r->n && !memcmp(&r->src, src, sizeof(*src)) && !memcmp(&r->dst, dst, sizeof(*dst));
}

/* Is the other direction known to be rewritten? */
static bool other_sure(const struct lint_ctx *c)
{
    const struct lint_rewritten *back = entry(c->l, &c->p.dip, &c->p.sip);
    return back->sure && is_for(back, &c->p.dip, &c->p.sip);
}

bool lint_rewritten(struct lint_ctx *c)
{
    struct lint_rewritten *r = entry(c->l, &c->p.sip, &c->p.dip);
    bool known = is_for(r, &c->p.sip, &c->p.dip);
    if (c->verdict != WIRE_OK || (r->sure && !known))
        return false;
    uint32_t n = c->p.icrc_off - c->p.bth_off;
    uint32_t diff = c->icrc ^ wire_get32le(c->in->data + c->p.icrc_off);
    if (known && lint_crc_zeros(r->by, n) == diff) {
        r->n += r->n < ONE_LENGTH;
        r->lengths = r->lengths || n != r->len;
        int bits = __builtin_popcount(diff);
        bool one_length = r->n >= ONE_LENGTH && bits > FEW_BITS && bits < 32;
        r->sure = r->sure || (r->lengths && r->n >= SURE) || one_length || other_sure(c);
        c->rewritten_perhaps = true;
        return c->rewritten = r->sure;
    }
    if (r->sure)
        return false; /* damage */
    c->rewritten_perhaps = !known;
    c->l->rewritten_any = true;
    *r = (struct lint_rewritten){
        .src = c->p.sip, .dst = c->p.dip, .by = before_zeros(diff, n), .len = n, .n = 1};
    return false;
}

void lint_not_rewritten(struct lint_ctx *c)
{
    struct lint_rewritten *r = entry(c->l, &c->p.sip, &c->p.dip);
    if (is_for(r, &c->p.sip, &c->p.dip))
        r->n = r->sure = 0;
}

bool lint_rewritten_news(struct lint_ctx *c)
{
    struct lint_rewritten *r = entry(c->l, &c->p.sip, &c->p.dip);
    bool news = !r->said;
    r->said = true;
    return news;
}
