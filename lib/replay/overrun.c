/* SPDX-License-Identifier: BSD-3-Clause
 *
 * READs that ask for more PSNs than the requester goes by: other requests use some of them, too
 * (REQ-06), or it asks for more than any READ may (RSP-15). They are cut where the next request
 * begins, so that what comes behind isn't taken for their responses' place.
 */
#include "evidence.h"

#define READS 64u /* in whose PSNs a request may be */

/* A READ, and where it has been cut; the same for its repetitions. */
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

/* Is this READ a part of that one? */
static bool part_of(const struct direction *d, const struct extent *x, const struct packet *p)
{
    uint64_t off = (uint64_t)((p->psn - x->psn) & WIRE_PSN_MASK) * d->mtu;
    return p->va - x->va < x->len || p->dma_len + off == x->len;
}

/* A READ of this extent, perhaps from its middle: it ends where that was cut. */
static void trim(const struct direction *d, const struct extent *x, struct packet *p)
{
    uint32_t off = (p->psn - x->psn) & WIRE_PSN_MASK;
    if (!packet_asks(d, p) || !(packet_flags(p) & WIRE_F_READ) || off >= x->psns ||
        (off && !part_of(d, x, p)))
        return;
    p->dma_len = (x->psns - off) * d->mtu;
    p->overrun = true;
}

/* Asked for again, it has no more PSNs than it had (RD-12 says what it asks for). */
static void keep_within(const struct direction *d, const struct extent *x, struct packet *p)
{
    uint32_t left = x->psns - ((p->psn - x->psn) & WIRE_PSN_MASK);
    if (packet_psns(d, p) > left)
        p->dma_len = left * d->mtu;
}

/* From here on the READ's PSNs are this request's, and the next ones'. */
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
    for (size_t i = 0; i < d->packets; i++) { /* the last ones */
        struct packet *p = &d->packet[i];
        if (packet_flags(p) & WIRE_F_READ && p->dma_len > WIRE_MSG_MAX && packet_asks(d, p)) {
            p->dma_len = d->mtu;
            p->overrun = true;
        }
    }
}
