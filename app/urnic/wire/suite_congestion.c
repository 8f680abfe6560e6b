/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The device as notification point: packets to it are marked CE, and it sends CNPs.
 */
#include "suite_check.h"

#define CE     3u
#define QPAIRS 64u

/* One queue pair of the device that gets marked packets, and the CNPs that it sends. */
struct point {
    uint32_t to, back; /* QPN of the device's end, of the tester's end; 0 = not known */
    uint32_t marked, cnps;
    uint64_t first_mark, first_cnp;
    const struct suite_pkt *last;
    uint64_t nearest; /* upper bound of the ns between two CNPs: the first may have waited unseen */
};

static struct point *find_point(struct point *table, unsigned *n, const struct suite_trace *t,
                                uint32_t to)
{
    for (unsigned i = 0; i < *n; i++)
        if (table[i].to == to)
            return &table[i];
    if (*n == QPAIRS)
        return NULL;
    struct point *p = &table[(*n)++];
    *p = (struct point){.to = to, .nearest = UINT64_MAX};
    for (unsigned i = 0; i < t->nconn; i++)
        if (t->conn[i].done && t->conn[i].qpn[FAULT_BA] == to)
            p->back = t->conn[i].qpn[FAULT_AB];
    return p;
}

static void on_cnp(struct point *p, const struct suite_pkt *k)
{
    uint64_t since = p->last ? k->at - p->last->at + p->last->waited : UINT64_MAX;
    p->nearest = since < p->nearest ? since : p->nearest;
    if (!p->cnps++)
        p->first_cnp = k->at;
    p->last = k;
}

/* Surely closer together than the device claims; a tenth is allowed for the way here. */
static bool too_near(const struct point *p, uint64_t interval)
{
    return p->nearest < interval - interval / 10;
}

static void check_fields(struct suite_run *r, const struct point *table, unsigned n)
{
    unsigned wrong = 0, lost = 0, ecn = 0, dscp = 0;
    for (uint32_t i = 0; i < r->trace->n; i++) {
        const struct suite_pkt *k = suite_at(r, i);
        if (k->dir != FAULT_BA || !(suite_flags(k) & WIRE_F_CNP))
            continue;
        wrong += !k->plain || !k->becn;
        ecn += (k->tclass & 3) == CE;
        dscp = k->tclass >> 2;
        bool known = false;
        for (unsigned m = 0; m < n; m++)
            known |= !table[m].back || table[m].back == k->dqpn;
        lost += !known;
    }
    suite_say(r->card, "OPC-05", wrong ? SUITE_FAIL : SUITE_PASS,
              "%u CNPs with other fields than a CNP has", wrong);
    suite_say(r->card, "CC-06", lost || ecn ? SUITE_FAIL : SUITE_PASS,
              "%u CNPs to a queue pair that sent nothing marked, %u marked CE; DSCP %u", lost, ecn,
              dscp);
}

/* Report whether each queue pair has an interval of its own, or all share one. */
static void check_scope(struct suite_run *r, const struct point *table, unsigned n,
                        const struct point *all)
{
    uint64_t interval = r->opt->cnp_interval;
    unsigned silent = 0, busy = 0;
    for (unsigned i = 0; i < n; i++) {
        busy += table[i].marked > 16;
        silent += table[i].marked > 16 && !table[i].cnps;
    }
    if (busy < 2) {
        suite_say(r->card, "CC-05", SUITE_UNTESTED, "one queue pair only");
        return;
    }
    bool shared = silent || !too_near(all, interval);
    suite_say(r->card, "CC-05", SUITE_PASS, "%u queue pairs marked, CNPs to %u: %s", busy,
              busy - silent,
              !interval ? "--cnp-interval tells whether they share one"
              : shared  ? "no two closer than the interval, as if they shared it"
                        : "an interval for each");
}

/* Count marked packets, and the CNPs for them, by queue pair and in total. Returns the number of
 * queue pairs. */
static unsigned find_points(const struct suite_run *r, struct point table[QPAIRS],
                            struct point *all)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < r->trace->n; i++) {
        const struct suite_pkt *k = suite_at(r, i);
        if (k->dir == FAULT_AB && suite_passed(k) && (k->tclass & 3) == CE &&
            wire_opcodes[k->opcode].service == WIRE_RC) {
            struct point *p = find_point(table, &n, r->trace, k->dqpn);
            if (p && !p->marked++)
                p->first_mark = k->at;
            if (!all->marked++)
                all->first_mark = k->at;
        } else if (k->dir == FAULT_BA && suite_flags(k) & WIRE_F_CNP) {
            on_cnp(all, k);
            for (unsigned m = 0; m < n; m++)
                if (table[m].back == k->dqpn)
                    on_cnp(&table[m], k);
        }
    }
    return n;
}

/* Report the delay of the first CNP, and the intervals of the next ones. */
static void check_interval(struct suite_run *r, const struct point *table, unsigned n)
{
    uint64_t nearest = UINT64_MAX, latency = UINT64_MAX, interval = r->opt->cnp_interval;
    unsigned fast = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct point *p = &table[i];
        if (!p->cnps)
            continue;
        fast += too_near(p, interval);
        nearest = p->nearest < nearest ? p->nearest : nearest;
        if (p->first_cnp - p->first_mark < latency)
            latency = p->first_cnp - p->first_mark;
    }
    if (latency != UINT64_MAX) {
        suite_say(r->card, "CC-04", SUITE_PASS, "the first CNP %.1f us after the first mark",
                  (double)latency / 1e3);
        suite_measured(r->card, (double)latency, "ns");
    }
    if (nearest == UINT64_MAX)
        suite_say(r->card, "CC-04", SUITE_UNTESTED, "no queue pair was sent two CNPs");
    else
        suite_say(r->card, "CC-04", fast ? SUITE_FAIL : SUITE_PASS,
                  "an interval of %.1f us is %s; closest at most %.1f us", (double)interval / 1e3,
                  fast ? "not kept" : "kept", (double)nearest / 1e3);
}

void suite_check_marked(struct suite_run *r)
{
    struct point table[QPAIRS] = {0}, all = {.nearest = UINT64_MAX};
    unsigned n = find_points(r, table, &all);
    if (!all.marked) {
        suite_say(r->card, "CC-03", SUITE_UNTESTED, "nothing could be marked");
        return;
    }
    if (!all.cnps) {
        suite_say(r->card, "CC-03", SUITE_FAIL, "%u packets marked CE, no CNP", all.marked);
        return;
    }
    suite_say(r->card, "CC-03", all.cnps > all.marked ? SUITE_FAIL : SUITE_PASS,
              "%u packets marked CE, %u CNPs", all.marked, all.cnps);
    suite_measured(r->card, all.cnps, "CNPs");
    check_interval(r, table, n);
    check_fields(r, table, n);
    check_scope(r, table, n, &all);
}
