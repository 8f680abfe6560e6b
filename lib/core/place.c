/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turn received octets into copies, one record for each memory range. Rules: RSP-13, RSP-17.
 */
#include "place.h"

#include <errno.h>

#include "engine_priv.h"

/* A position in a list of spans. */
struct cursor {
    const struct place_span *s;
    unsigned left; /* spans, the one at s included */
    uint32_t at;   /* octets of it that are done */
};

/* Copies from the cursor to [off, off+len) of a checked range. */
static int put(struct rx *rx, struct record *r, const struct mem_ref *ref, uint64_t off,
               uint32_t len, struct cursor *c)
{
    while (len > 0) {
        uint32_t n = c->s->len - c->at;
        if (n > len)
            n = len;
        struct mem_piece pieces[2];
        int k = mem_pieces(rx->e->mem, ref, off, n, pieces, 2);
        if (k < 0)
            return -EACCES;
        const uint8_t *src = c->s->p + c->at;
        for (int i = 0; i < k; i++) {
            record_copy(rx, r, ENGINE_PUT, src, &pieces[i]);
            src += pieces[i].len;
        }
        off += n;
        len -= n;
        c->at += n;
        if (c->at == c->s->len && c->left > 1) {
            c->s++;
            c->left--;
            c->at = 0;
        }
    }
    return 0;
}

int place_recv(struct rx *rx, struct qp *qp, const struct rwqe *w, uint64_t off,
               const struct place_span *spans, unsigned n, struct record **last)
{
    uint32_t pd = resp_recv_pd(qp), total = 0;
    *last = NULL;
    if (rx->early)
        return 0;
    struct cursor c = {spans, n, 0};
    for (unsigned i = 0; i < n; i++)
        total += spans[i].len;
    for (unsigned i = 0; total > 0 && i < w->nsge; i++) {
        const struct engine_sge *sge = &w->sge[i];
        if (off >= sge->len) {
            off -= sge->len;
            continue;
        }
        uint32_t len = sge->len - (uint32_t)off;
        if (len > total)
            len = total;
        struct mem_ref ref;
        if (sge->va + off < sge->va || mem_check(rx->e->mem, pd, qp->qpn, sge->lkey, sge->va + off,
                                                 len, MEM_LOCAL_WRITE, true, &ref))
            return -EACCES;
        *last = record_new(rx->e, qp, REC_RESP);
        (*last)->psn = (*last)->at = psn(rx->pkt.psn);
        record_hold(rx->e, *last, &ref);
        if (put(rx, *last, &ref, 0, len, &c))
            return -EACCES;
        total -= len;
        off = 0;
    }
    return 0;
}

int place_write(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint64_t off,
                struct record **last)
{
    const uint8_t *src = rx->payload;
    uint32_t len = rx->pkt.payload_len;
    struct mem_piece pieces[2];
    *last = NULL;
    if (len == 0 || rx->early)
        return 0;
    int n = mem_pieces(rx->e->mem, ref, off, len, pieces, 2);
    if (n < 0) /* RSP-17 */
        return -EACCES;
    /* Those of one message that come together share a record. */
    struct record *rec = rx->op->flags & WIRE_F_START ? NULL : rx_shared(rx, qp);
    if (!rec) {
        rec = record_new(rx->e, qp, REC_RESP);
        rec->at = psn(rx->pkt.psn);
        record_hold(rx->e, rec, ref);
    }
    for (int i = 0; i < n; i++) {
        record_copy(rx, rec, ENGINE_PUT, src, &pieces[i]);
        src += pieces[i].len;
    }
    *last = rec;
    return 0;
}
