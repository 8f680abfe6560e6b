/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turn received octets into copies, one record for each memory range. Rules: RSP-13, RSP-17.
 */
#include "place.h"

#include <errno.h>

#include "engine_priv.h"
#include "rx.h"
#include "send_queue.h"
#include "srq.h"

#define PIECES 2u /* most pieces of one range for a packet: MEM_SEG_MIN is the largest MTU */

static void put_pieces(struct rx *rx, struct record *rec, const uint8_t *src,
                       const struct mem_piece *pieces, int n)
{
    for (int i = 0; i < n; i++) {
        record_copy(rx, rec, ENGINE_PUT, src, &pieces[i]);
        src += pieces[i].len;
    }
}

/* Copies of src[0..len) to octets [off, off + len) of a checked range, in its record. */
static int put(struct rx *rx, struct record *rec, const struct mem_ref *ref, uint64_t off,
               const uint8_t *src, uint32_t len)
{
    struct mem_piece pieces[PIECES];
    int n = mem_pieces(rx->e->mem, ref, off, len, pieces, PIECES);
    if (n < 0)
        return -EACCES;
    put_pieces(rx, rec, src, pieces, n);
    return 0;
}

/* A position in a list of spans. */
struct cursor {
    const struct place_span *s;
    unsigned left; /* spans, the one at s included */
    uint32_t at;   /* octets of it that are done */
};

/* Copies from the cursor to [off, off+len) of a checked range. */
static int put_spans(struct rx *rx, struct record *r, const struct mem_ref *ref, uint64_t off,
                     uint32_t len, struct cursor *c)
{
    while (len > 0) {
        uint32_t n = c->s->len - c->at;
        if (n > len)
            n = len;
        if (put(rx, r, ref, off, c->s->p + c->at, n))
            return -EACCES;
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

/* Check an SGE from its octet `off` on: the `rest` of it, which later packets may use too, or only
 * `len` octets if not all of the rest is ours to write. */
static int check_recv(struct rx *rx, struct qp *qp, const struct engine_sge *sge, uint64_t off,
                      uint64_t rest, uint32_t len, struct mem_ref *ref)
{
    struct mem *mem = rx->e->mem;
    uint32_t pd = resp_recv_pd(qp);
    uint64_t va = sge->va + off;
    if (va < sge->va)
        return -EACCES;
    bool all = !mem_check(mem, pd, qp->qpn, sge->lkey, va, rest, MEM_LOCAL_WRITE, true, ref);
    if (all || !mem_check(mem, pd, qp->qpn, sge->lkey, va, len, MEM_LOCAL_WRITE, true, ref))
        return 0;
    return -EACCES;
}

int place_recv(struct rx *rx, struct qp *qp, const struct rwqe *w, uint64_t off,
               const struct place_span *spans, unsigned n, struct record **last)
{
    uint32_t total = 0;
    *last = NULL;
    if (rx->early)
        return 0;
    struct cursor c = {spans, n, 0};
    for (unsigned i = 0; i < n; i++)
        total += spans[i].len;
    uint64_t begin = 0, end; /* of an SGE, in the message */
    for (unsigned i = 0; total > 0 && i < w->nsge; i++, begin = end) {
        end = begin + w->sge[i].len;
        if (off >= end)
            continue;
        uint64_t rest = end - off;
        uint32_t len = rest < total ? (uint32_t)rest : total;
        struct mem_ref ref;
        if (check_recv(rx, qp, &w->sge[i], off - begin, rest, len, &ref))
            return -EACCES;
        *last = record_new(rx->e, qp, REC_RESP);
        (*last)->psn = (*last)->at = psn(rx->pkt.psn);
        (*last)->va = off;
        record_hold(rx->e, *last, &ref);
        if (put_spans(rx, *last, &ref, 0, len, &c))
            return -EACCES;
        off += len;
        total -= len;
    }
    return 0;
}

int place_write(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint64_t off,
                struct record **last)
{
    uint32_t len = rx->pkt.payload_len;
    struct mem_piece pieces[PIECES];
    *last = NULL;
    if (len == 0 || rx->early)
        return 0;
    int n = mem_pieces(rx->e->mem, ref, off, len, pieces, PIECES);
    if (n < 0) /* RSP-17 */
        return -EACCES;
    /* Those of one message that come together share a record. */
    struct record *rec = rx->op->flags & WIRE_F_START ? NULL : rx_shared(rx, qp, REC_RESP);
    if (!rec) {
        rec = record_new(rx->e, qp, REC_RESP);
        rec->at = psn(rx->pkt.psn);
        record_hold(rx->e, rec, ref);
    }
    put_pieces(rx, rec, rx->payload, pieces, n);
    *last = rec;
    return 0;
}

/* Octets src[0..len) to octet `off` of the work request's list. */
static struct record *scatter(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t off,
                              const uint8_t *src, uint32_t len)
{
    union swqe_sge *s = req_sges(qp, w);
    struct record *rec = NULL;
    uint32_t begin = 0; /* of this range, in the list */
    for (unsigned i = 0; len && i < w->nsge; begin += (uint32_t)s[i++].ref.len) {
        uint64_t end = begin + s[i].ref.len;
        if (off >= end)
            continue;
        uint32_t take = end - off < len ? (uint32_t)(end - off) : len;
        rec = record_new(rx->e, qp, REC_COMP);
        rec->psn = rec->at = qp->req.una; /* an early packet acknowledges nothing yet */
        rec->arg = begin;
        if (!src) { /* an atomic's result lives in its record */
            rec->orig = rx->pkt.orig;
            src = (const uint8_t *)&rec->orig;
        }
        rec->status = put(rx, rec, &s[i].ref, off - begin, src, take);
        if (rec->status)
            return rec;
        record_hold(rx->e, rec, &s[i].ref);
        src += take;
        off += take;
        len -= take;
    }
    return rec;
}

int place_more(struct rx *rx, struct record *rec, uint64_t off)
{
    return put(rx, rec, &rec->hold, off, rx->payload, rx->pkt.payload_len);
}

struct record *place_atomic(struct rx *rx, struct qp *qp, struct swqe *w)
{
    return scatter(rx, qp, w, 0, NULL, 8);
}

struct record *place_read(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t off)
{
    struct record *rec = rx_shared(rx, qp, REC_COMP);
    if (rec && !place_more(rx, rec, off - rec->arg))
        return rec;
    return scatter(rx, qp, w, off, rx->payload, rx->pkt.payload_len);
}
