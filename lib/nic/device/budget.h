/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Budgets of a worker's jobs (SHM-12). The work of a job may grow with the clients' queue pairs,
 * ids or handles. A budget bounds how many entries a job handles at a time; later rounds do the
 * rest. So no request and no packet keeps the worker from its other clients. `urnic stat` shows two
 * counters for each job: JOB_visits, the entries it has looked at, and JOB_over_budget, how often
 * some were left over.
 *
 * A new job needs a line here, budget_spend where it looks at an entry, and budget_over where it
 * stops.
 */
#ifndef NIC_BUDGET_H
#define NIC_BUDGET_H

#include <stdint.h>

/* name, entries at a time, the entries */
#define BUDGET_JOBS(X)                                                                             \
    X(neigh, 256u, "queue pairs that are told of a neighbour's new MAC")                           \
    X(waiter, 256u, "ids that wait for a neighbour's MAC, after news of neighbours")               \
    X(follow, 256u, "queue pairs that follow the port's MAC, its MTU, the congestion control")     \
    X(addr, 256u, "queue pairs that follow addresses that come and go")                            \
    X(icmp, 256u, "queue pairs whose flight recorders are told of an ICMP error")                  \
    X(list, 1024u, "queue pairs looked at for one answer of a listing")                            \
    X(teardown, 256u, "handles and peers of queue pairs that a client has left at its end")        \
    X(displace, 64u, "queue pairs that end since the connection manager gave away their peer")

enum budget_job {
#define X(name, budget, what) BUDGET_##name,
    BUDGET_JOBS(X)
#undef X
        BUDGETS
};

struct budget_stats {
    uint64_t visits, over;
};

/* Each job's budget. */
extern const uint32_t budget_of[BUDGETS];
/* Names of a job's two counters. */
extern const char *const budget_visits_names[BUDGETS], *const budget_over_names[BUDGETS];

/* The job has looked at n entries; the job has stopped before its end. */
static inline void budget_spend(struct budget_stats *all, enum budget_job job, uint64_t n)
{
    all[job].visits += n;
}

static inline void budget_over(struct budget_stats *all, enum budget_job job)
{
    all[job].over++;
}

#endif
