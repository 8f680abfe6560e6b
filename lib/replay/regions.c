/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory is inferred from the requests that name it, and from their answers.
 */
#include "regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS_MAX 1024u
#define SEARCH      16u /* cost of a search for an answer, in comparisons */

static struct region *region_find(const struct regions *m, uint32_t rkey)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->region[i].rkey == rkey)
            return &m->region[i];
    return NULL;
}

/* Octets of memory that a request packet names; 0 = none. */
static uint32_t reach(const struct packet *p)
{
    const struct wire_opcode_info *info =
        p->selective ? &wire_selective[p->opcode & 31] : &wire_opcodes[p->opcode];
    return info->headers & WIRE_H_RETH ? p->dma_len : info->headers & WIRE_H_ATOMICETH ? 8 : 0;
}

int regions_find(struct regions *m, const struct direction *d)
{
    m->d = d;
    m->region = calloc(REGIONS_MAX, sizeof(*m->region));
    if (!m->region)
        return -ENOMEM;
    for (size_t i = 0; i < d->packets; i++) {
        const struct packet *p = &d->packet[i];
        uint32_t len = packet_asks(d, p) ? reach(p) : 0;
        uint64_t last = p->va + len - 1;
        if (!len || last < p->va || p->lost || p->refused)
            continue;
        unsigned f = packet_flags(p), right = f & WIRE_F_ATOMIC ? MEM_REMOTE_ATOMIC
                                              : f & WIRE_F_READ ? MEM_REMOTE_READ
                                                                : MEM_REMOTE_WRITE;
        struct region *g = region_find(m, p->rkey);
        if (!g) {
            if (m->n == REGIONS_MAX)
                continue;
            g = &m->region[m->n++];
            *g = (struct region){
                .rkey = p->rkey, .first = p->va, .end = last, .memory.held = d->held};
        }
        g->rights |= right;
        g->first = p->va < g->first ? p->va : g->first;
        g->end = last > g->end ? last : g->end;
    }
    for (uint32_t i = 0; i < m->n; i++)
        m->region[i].first &= ~7ull; /* ATOMICs are aligned, so their memory is, too (ATM-03) */
    return 0;
}

void regions_free(struct regions *m)
{
    for (uint32_t i = 0; m->region && i < m->n; i++)
        sparse_free(&m->region[i].memory);
    free(m->region);
}

static int region_register(const struct stage *s, struct region *g)
{
    uint64_t len = g->end - g->first + 1;
    struct mem_seg seg = {g, 0, len};
    int rc = len ? mem_mr_reg(engine_mem(s->e), s->pd, g->first, len, MEM_LOCAL_WRITE | g->rights,
                              &seg, 1, g, &g->lkey, &g->live)
                 : -EINVAL;
    if (rc)
        g->live = 0;
    return rc == -ENOMEM ? rc : 0;
}

int regions_register(struct regions *m, const struct stage *s)
{
    int rc = 0;
    for (uint32_t i = 0; i < m->n && !rc; i++)
        rc = region_register(s, &m->region[i]);
    return rc;
}

void regions_change(struct regions *m, const struct stage *s, const struct packet *p)
{
    unsigned f = packet_flags(p);
    if (reach(p))
        m->addressed = region_find(m, p->rkey);
    struct region *g = m->addressed;
    if (!g || !(f & (WIRE_F_WRITE | WIRE_F_READ | WIRE_F_ATOMIC)))
        return;
    if (!p->refused) {
        if (!g->live && reach(p))
            region_register(s, g);
    } else if (g->live && mem_mr_dereg(engine_mem(s->e), g->lkey) == 0) {
        g->live = 0;
    }
}

uint32_t regions_key(const struct regions *m, const struct packet *p)
{
    const struct region *g = reach(p) ? region_find(m, p->rkey) : NULL;
    return g ? g->live : 0;
}

uint32_t regions_invalidable(struct regions *m, const struct stage *s, const struct packet *p)
{
    struct mem *mem = engine_mem(s->e);
    struct mem_seg seg = {NULL, 0, SPARSE_PAGE};
    if (evidence_refused(m->d, p, WIRE_SYN_NAK_ACCESS) ||
        evidence_refused(m->d, p, WIRE_SYN_NAK_INV) || evidence_refused(m->d, p, WIRE_SYN_NAK_OP))
        return 0;
    if (!m->fr_rkey && mem_fr_alloc(mem, s->pd, 1, &m->fr_lkey, &m->fr_rkey) < 0)
        return 0;
    mem_fr_reg(mem, s->pd, m->fr_rkey, 0x1000, SPARSE_PAGE, MEM_REMOTE_READ, &seg, 1);
    return m->fr_rkey;
}

/* ---- the contents of memory ---- */

/* A READ or ATOMIC and its memory. */
struct asked {
    const struct direction *d;
    const struct packet *p;
    size_t at; /* its place */
    uint32_t psns;
    struct region *g;
    uint64_t off;
};

/* Take the contents of memory from this packet, if it is an answer to PSN k of the request. */
static bool define_by(const struct asked *a, const struct packet *c, uint32_t k)
{
    if (packet_flags(c) & WIRE_F_READ && packet_flags(a->p) & WIRE_F_READ) {
        uint32_t have = packet_payload_have(c);
        uint64_t at = (uint64_t)k * a->d->mtu, most = a->p->dma_len - at;
        have = have < most ? have : (uint32_t)most;
        sparse_write(&a->g->memory, a->off + at, packet_payload(c), have);
        return true;
    }
    if (c->opcode == WIRE_ATOMIC_ACK && packet_flags(a->p) & WIRE_F_ATOMIC) {
        struct wire_pkt w;
        packet_wire(c, &w);
        sparse_write(&a->g->memory, a->off, &w.orig, 8);
        return true;
    }
    return false;
}

/* Look for the answer to each PSN. */
static void define_by_psn(const struct asked *a)
{
    const struct direction *d = a->d;
    for (uint32_t k = 0; k < a->psns; k++) {
        uint32_t psn = (a->p->psn + k) & WIRE_PSN_MASK;
        for (size_t i = packets_data(d, psn, a->at); i < d->brought; i++) {
            const struct packet *c = &d->packet[d->data[i]];
            if (c->psn != psn || d->data[i] - a->at >= AHEAD_MAX || define_by(a, c, k))
                break;
        }
    }
}

/* Look at each of the answers [i, end). */
static void define_by_answer(const struct asked *a, size_t i, size_t end)
{
    const struct direction *d = a->d;
    uint32_t left = a->psns;
    uint8_t *seen = calloc(a->psns / 8 + 1, 1);
    for (; seen && i < end && left; i++) {
        const struct packet *c = &d->packet[d->answer[i]];
        uint32_t k = (c->psn - a->p->psn) & WIRE_PSN_MASK;
        if (k >= a->psns || seen[k / 8] & 1u << k % 8 || !define_by(a, c, k))
            continue;
        seen[k / 8] |= (uint8_t)(1u << k % 8);
        left--;
    }
    free(seen);
}

void regions_define(struct regions *m, size_t at)
{
    const struct direction *d = m->d;
    const struct packet *p = &d->packet[at];
    struct region *g = region_find(m, p->rkey);
    if (!g || p->va < g->first || p->va + reach(p) - 1 > g->end)
        return;
    struct asked a = {d, p, at, packet_psns(d, p), g, p->va - g->first};
    size_t from = answers_after(d, at), end = answers_after(d, at + AHEAD_MAX - 1);
    if (a.psns < (end - from) / SEARCH)
        define_by_psn(&a);
    else
        define_by_answer(&a, from, end);
}

void regions_fetch(const struct mem_piece *from, uint8_t *to)
{
    if (from->obj)
        sparse_read(&((struct region *)from->obj)->memory, from->off, to, from->len);
    else
        memset(to, 0, from->len);
}

void regions_copy(const struct engine_copy *c, uint64_t *orig)
{
    struct region *g = c->dst.obj;
    if (!g)
        return; /* receive buffers are never read */
    if (c->kind == ENGINE_PUT) {
        sparse_write(&g->memory, c->dst.off, c->src, c->len);
        return;
    }
    sparse_read(&g->memory, c->dst.off, orig, 8);
    uint64_t value = engine_copy_value(c, *orig);
    sparse_write(&g->memory, c->dst.off, &value, 8);
}
