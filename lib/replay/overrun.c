/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READs of more PSNs than the requester counts: other requests use some of these PSNs, too
 * (REQ-06), or the READ is longer than allowed (RSP-15). Such a READ is cut at the start of the
 * next request, so that later packets aren't mistaken for its responses.
 */
#include "evidence.h"

#define READS 64u /* READs whose PSNs are compared with a request's */

/* A READ and its cut, which also applies to its repetitions. */
struct extent {
    uint64_t va;
    size_t first; /* packet */
    uint32_t psn, psns, len;
    bool cut;
};

static struct extent *within(struct extent *e, unsigned n, uint32_t psn)
{
    for (unsigned i = n; i-- > 0 && n - i <= READS;) {
        struct extent *x = &e[i % READS];
        if (((psn - x->psn) & WIRE_PSN_MASK) < x->psns)
            return x;
    }
    return NULL;
}

/* Is this READ a part of the other one? */
static bool part_of(const struct direction *d, const struct extent *x, const struct packet *p)
{
    uint64_t off = (uint64_t)((p->psn - x->psn) & WIRE_PSN_MASK) * d->mtu;
    return p->va - x->va < x->len || p->dma_len + off == x->len;
}

/* A READ of this extent, perhaps from its middle: cut it like the first one. */
static void trim(const struct direction *d, const struct extent *x, struct packet *p)
{
    uint32_t off = (p->psn - x->psn) & WIRE_PSN_MASK;
    if (!packet_asks(d, p) || !(packet_flags(p) & WIRE_F_READ) || off >= x->psns ||
        (off && !part_of(d, x, p)))
        return;
    p->dma_len = (x->psns - off) * d->mtu;
    p->overrun = true;
}

/* A repetition has no more PSNs than the first request (RD-12 checks its length). */
static void keep_within(const struct direction *d, const struct extent *x, struct packet *p)
{
    uint32_t left = x->psns - ((p->psn - x->psn) & WIRE_PSN_MASK);
    if (packet_psns(d, p) > left)
        p->dma_len = left * d->mtu;
}

/* From here on the READ's PSNs belong to this request and the next ones. */
static void cut(struct direction *d, struct extent *x, size_t at)
{
    x->psns = (d->packet[at].psn - x->psn) & WIRE_PSN_MASK;
    x->cut = true;
    trim(d, x, &d->packet[x->first]);
    for (size_t i = at, n = 0; i-- > x->first && n < BACK_MAX; n++)
        trim(d, x, &d->packet[i]);
}

void overrun_find(struct direction *d)
{
    struct extent known[READS] = {0};
    unsigned n = 0;
    for (size_t i = 0; i < d->packets; i++) {
        struct packet *p = &d->packet[i];
        if (!packet_asks(d, p))
            continue;
        bool read = packet_flags(p) & WIRE_F_READ;
        struct extent *x = within(known, n, p->psn);
        if (x && p->psn != x->psn && !(read && part_of(d, x, p))) {
            p->inside = x->len <= WIRE_MSG_MAX;
            cut(d, x, i);
            x = NULL;
        } else if (x && x->cut) {
            trim(d, x, p);
        } else if (x && read) {
            keep_within(d, x, p);
        }
        if (read && !x) {
            known[n++ % READS] = (struct extent){.va = p->va,
                                                 .first = i,
                                                 .psn = p->psn,
                                                 .psns = packet_psns(d, p),
                                                 .len = p->dma_len};
        }
    }
    for (size_t i = 0; i < d->packets; i++) { /* the last READs */
        struct packet *p = &d->packet[i];
        if (packet_flags(p) & WIRE_F_READ && p->dma_len > WIRE_MSG_MAX && packet_asks(d, p)) {
            p->dma_len = d->mtu;
            p->overrun = true;
        }
    }
}
