/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the checks of the test suite: finding packets, and durations between two of them.
 */
#ifndef URNIC_SUITE_CHECK_H
#define URNIC_SUITE_CHECK_H

#include "suite.h"

#define SUITE_NONE UINT32_MAX

/* Packets are named by their index in the trace; SUITE_NONE = there is none. */
static inline const struct suite_pkt *suite_at(const struct suite_run *r, uint32_t i)
{
    return &r->trace->pkt[i];
}

/* The first request with one of these bits in its fate. */
static inline uint32_t suite_find_fate(const struct suite_run *r, unsigned fate)
{
    for (uint32_t i = 0; i < r->trace->n; i++)
        if (suite_request(&r->flow, suite_at(r, i)) && suite_at(r, i)->fate & fate)
            return i;
    return SUITE_NONE;
}

/* From `i` on: the first request with this relative PSN that gets through. */
static inline uint32_t suite_find_sent(const struct suite_run *r, uint32_t i, int32_t rel)
{
    for (; i < r->trace->n; i++) {
        const struct suite_pkt *p = suite_at(r, i);
        if (suite_request(&r->flow, p) && suite_passed(p) && suite_rel(&r->flow, p->psn) == rel)
            return i;
    }
    return SUITE_NONE;
}

/* From `i` on: the first NAK with this syndrome. */
static inline uint32_t suite_find_nak(const struct suite_run *r, uint32_t i, uint8_t syndrome)
{
    for (; i < r->trace->n; i++)
        if (suite_nak(&r->flow, suite_at(r, i), syndrome))
            return i;
    return SUITE_NONE;
}

/* The device sent `b` after it had sent or received `a`. These are the shortest and longest times
 * that it may have taken: the bump sees a packet only when it polls. They include the time on the
 * cables only if `a` came from the tester. */
struct suite_span {
    uint64_t least, seen, most; /* ns */
};
static inline struct suite_span suite_span(const struct suite_run *r, uint32_t a, uint32_t b)
{
    const struct suite_pkt *p = suite_at(r, a), *q = suite_at(r, b);
    uint64_t seen = q->at - p->at;
    bool own = p->dir == FAULT_BA;
    return (struct suite_span){
        .least = seen > q->waited ? seen - q->waited : 0,
        .seen = seen,
        .most = seen + (own ? p->waited : 0),
    };
}

/* Surely earlier than T; a hundredth is allowed for the way here and back. */
static inline bool suite_early(struct suite_span s, uint64_t t)
{
    return s.most < t - t / 100;
}

/* The device's ACK time-out T in ns; 0 = not known, or switched off. */
static inline uint64_t suite_timeout(const struct suite_run *r)
{
    int t = r->opt->timeout;
    if (t < 0 && r->flow.conn)
        t = (int)r->flow.conn->timeout;
    return t > 0 ? 4096ull << t : 0;
}

static inline int suite_retries(const struct suite_run *r)
{
    if (r->opt->retry < 0 && r->flow.conn)
        return (int)r->flow.conn->retry;
    return r->opt->retry;
}

#endif
