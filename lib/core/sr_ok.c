/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariants of selective repeat: its sets of PSNs lie within their windows, and are counted.
 */
#include "sr_ok.h"

#include "qp.h"
#include "sr.h"
#include "srq.h"

#define HOLDS(cond, name, ...)                                                                     \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return invariant_broken(out, qp, name, __VA_ARGS__);                                   \
    } while (0)

/* una <= p <= max? */
static bool in_flight(const struct req *r, psn_t p)
{
    return psn_ahead(p, r->una) <= psn_ahead(r->max, r->una);
}

static unsigned count(const uint64_t *set)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SR_WINDOW / 64; i++)
        n += (unsigned)__builtin_popcountll(set[i]);
    return n;
}

/* How many of the n PSNs from p on are in the set. */
static unsigned count_from(const uint64_t *set, psn_t p, uint32_t n)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < n && i < SR_WINDOW; i++) {
        psn_t q = psn_add(p, i);
        found += set[q.v / 64 % (SR_WINDOW / 64)] >> (q.v % 64) & 1;
    }
    return found;
}

/* The early packets. */
static bool early_ok(const struct qp *qp, bool whole, struct invariant_report *out)
{
    const struct sr *s = qp->sr;
    psn_t epsn = qp->resp.epsn;
    uint32_t n = s->nearly ? psn_ahead(s->top, epsn) : 0, found = 0, all = 0;
    HOLDS(n <= SR_WINDOW, "early-window", "epsn 0x%06x, top 0x%06x", epsn.v, s->top.v);
    for (uint32_t i = 0; i < n; i++)
        found += s->early[psn_add(epsn, i).v % SR_WINDOW].valid;
    HOLDS(found == s->nearly, "early-count", "%u from 0x%06x to 0x%06x, %u counted", found, epsn.v,
          s->top.v, s->nearly);
    for (uint32_t i = 0; whole && i < SR_WINDOW; i++)
        all += s->early[i].valid;
    HOLDS(!whole || all == s->nearly, "early-count", "%u in all, %u counted", all, s->nearly);
    const struct rwqe *w = s->next;
    for (n = 0; s->ahead && w; w = w->next)
        n++;
    HOLDS(n == s->ahead, "early-receives", "%u are taken, %u counted", n, s->ahead);
    return true;
}

/* The sender's side: which of our packets have arrived, and early answers. */
static bool sender_ok(const struct qp *qp, struct invariant_report *out)
{
    const struct sr *s = qp->sr;
    const struct req *r = &qp->req;
    HOLDS(in_flight(r, s->high), "repeat-high", "una 0x%06x, high 0x%06x, max 0x%06x", r->una.v,
          s->high.v, r->max.v);
    HOLDS(!s->recovering || (!psn_eq(s->recover, r->una) && in_flight(r, s->recover)),
          "repeat-recovery", "una 0x%06x, until 0x%06x, max 0x%06x", r->una.v, s->recover.v,
          r->max.v);
    unsigned marked = count(s->marked),
             in = count_from(s->marked, r->una, psn_ahead(s->high, r->una));
    HOLDS(marked == in, "repeat-marked", "%u, of which %u from 0x%06x to 0x%06x", marked, in,
          r->una.v, s->high.v);
    unsigned got = count(s->got);
    in = count_from(s->got, psn_add(r->una, 1), psn_ahead(r->max, r->una));
    HOLDS(got == s->ngot && got == in, "repeat-answers", "%u, after una 0x%06x %u, %u counted", got,
          r->una.v, in, s->ngot);
    return true;
}

bool sr_ok(const struct qp *qp, bool whole, struct invariant_report *out)
{
    const struct sr *s = qp->sr;
    bool receives = qp->state >= QPS_RTR && qp->state != QPS_ERR;
    bool sends = qp->state == QPS_RTS || qp->state == QPS_SQD;
    if (!s)
        return true;
    HOLDS(!s->draining && !s->selective, "repeat-within", "draining %u, selective %u", s->draining,
          s->selective);
    HOLDS(s->sack_tail - s->sack_head <= SR_SACKS, "repeat-naks", "%u of %u",
          s->sack_tail - s->sack_head, SR_SACKS);
    if (receives && !early_ok(qp, whole, out))
        return false;
    return !sends || sender_ok(qp, out);
}
