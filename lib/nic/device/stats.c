/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters of a device, part by part.
 */
#include "stats.h"

#include <assert.h>
#include <string.h>

#include "clock.h"
#include "context_ops.h"
#include "device.h"
#include "device_port.h"
#include "mem_link.h"
#include "neigh.h"
#include "switch.h"
#include "switch_counters.h"
#include "team.h"
#include "worker.h"

void stats_add(struct stats_list *list, const char *name, uint64_t value)
{
    assert(list->n < STATS_MAX); /* the number is fixed by the code */
    list->e[list->n++] = (struct stats_entry){name, value};
}

/* Those of the daemon's engine, and of programs' engines. */
static void stats_engine(struct stats_list *l, struct device *d)
{
    const uint64_t *c = engine_counters(d->engine);
    struct engine_usage u;
    struct mem_usage m;
    static const struct switch_told nothing;
    const struct switch_told *t = d->sw && d->sw->told ? d->sw->told : &nothing;
    for (unsigned i = 1; i < ENGINE_COUNTER_MAX; i++)
        stats_add(l, engine_counter_names[i], c[i] + t->counter[i]);
    engine_usage(d->engine, &u);
    mem_usage(engine_mem(d->engine), &m);
    stats_add(l, "qps", u.qps + t->usage[SWITCH_U_qps]);
    stats_add(l, "cqs", u.cqs + t->usage[SWITCH_U_cqs]);
    stats_add(l, "srqs", u.srqs + t->usage[SWITCH_U_srqs]);
    stats_add(l, "pds", m.pds + t->usage[SWITCH_U_pds]);
    stats_add(l, "mrs", m.mrs + t->usage[SWITCH_U_mrs]);
    stats_add(l, "mws", m.mws + t->usage[SWITCH_U_mws]);
    stats_add(l, "mr_octets", m.octets + t->usage[SWITCH_U_mr_octets]);
}

static void stats_port(struct stats_list *l, struct device *d)
{
    struct io_stats s = {0};
    d->io->ops->stats(d->io, &s);
    stats_add(l, "port_rx_frames", s.rx_frames);
    stats_add(l, "port_rx_bytes", s.rx_bytes);
    stats_add(l, "port_tx_frames", s.tx_frames);
    stats_add(l, "port_tx_bytes", s.tx_bytes);
    stats_add(l, "port_rx_drop", s.rx_drop);
    stats_add(l, "port_rx_oversize", s.rx_oversize);
    stats_add(l, "port_rx_nat", s.rx_nat);
    stats_add(l, "port_tx_drop", s.tx_drop);
    stats_add(l, "port_tx_full", s.tx_full);
    stats_add(l, "kernel_rx", s.kernel_rx);
    stats_add(l, "kernel_drop_full", s.kernel_drop_full);
    stats_add(l, "kernel_down", s.kernel_down);
    stats_add(l, "kernel_tx", s.kernel_tx);
    stats_add(l, "kernel_tx_drop", s.kernel_tx_drop);
    stats_add(l, "port_up", d->link.up);
    stats_add(l, "port_link_changes", d->stats.link_changes);
    stats_add(l, "port_slow_path", d->stats.slow_path);
    stats_add(l, "steer_right", d->stats.steer_right);
    stats_add(l, "steer_moved", d->stats.steer_moved);
    stats_add(l, "steer_lost", d->stats.steer_lost);
    stats_add(l, "port_own_echo", d->stats.own_echo);
    stats_add(l, "port_full", d->stats.port_full);
    stats_add(l, "port_no_link", d->stats.no_link);
    stats_add(l, "copy_fault", d->stats.copy_fault);
    struct claim_counters claims;
    claim_counts(&d->team->claims, &claims);
    stats_add(l, "qp_peer_refused", claims.refused);
    stats_add(l, "qp_peer_displaced", claims.displaced);
    stats_add(l, "qp_peer_shared", claims.shared);
    stats_add(l, "client_bad_index", d->stats.client_bad_index);
    stats_add(l, "client_bad_doorbell", d->stats.client_bad_doorbell);
    stats_add(l, "client_unsealed", d->stats.client_unsealed);
    stats_add(l, "client_over_quota", d->stats.client_over_quota);
    stats_add(l, "client_event_owed", d->stats.client_event_owed);
    for (unsigned i = 0; i < BUDGETS; i++) {
        stats_add(l, budget_visits_names[i],
                  i == BUDGET_follow ? engine_follow_looks(d->engine) : d->stats.job[i].visits);
        stats_add(l, budget_over_names[i], d->stats.job[i].over);
    }
    for (unsigned i = 0; i < SHARE_FIRST_OF_DAEMON; i++)
        stats_add(l, share_counters[i], share_refusals(&d->team->share, i));
}

/* Counters of the switch to engines of programs; 0 while the device has no switch. */
static void stats_switch(struct stats_list *l, struct device *d)
{
    for (unsigned i = 0; i < SWITCH_COUNTER_MAX; i++)
        stats_add(l, switch_counter_names[i], d->sw ? d->sw->counters[i] : 0);
    stats_add(l, "programs", d->sw ? d->sw->nchannels : 0);
    stats_add(l, "programs_silent", d->sw ? d->sw->nsilent : 0);
}

static void stats_worker(struct stats_list *l, struct device *d)
{
    struct worker *w = d->worker;
    stats_add(l, "contexts", w->context_ops->count(d));
    stats_add(l, "async_events_lost", d->stats.async_lost);
    stats_add(l, "cm_events_lost", d->stats.cm_lost);
    stats_add(l, "worker_rounds", atomic_load_explicit(&w->stats.rounds, memory_order_relaxed));
    stats_add(l, "worker_busy_rounds",
              atomic_load_explicit(&w->stats.busy_rounds, memory_order_relaxed));
    stats_add(l, "worker_yields", atomic_load_explicit(&w->stats.yields, memory_order_relaxed));
    stats_add(l, "worker_sleeps", atomic_load_explicit(&w->stats.sleeps, memory_order_relaxed));
    stats_add(l, "worker_kicks", atomic_load_explicit(&w->stats.kicks, memory_order_relaxed));
}

/* The emulated link's counters for frames from this device. */
static void stats_link(struct stats_list *l, struct device *d)
{
    struct mem_link *link = d->member == 0 ? device_link(d) : NULL;
    struct mem_link_stats s;
    if (!link)
        return;
    mem_link_stats(link, mem_link_index(device_lowest(d)), clock_now(), &s);
    mem_link_put(link);
    stats_add(l, "link_lost", s.lost[MEM_LINK_R_LOSS] + s.lost[MEM_LINK_R_RULE]);
    stats_add(l, "link_queue_full", s.lost[MEM_LINK_R_QUEUE]);
    stats_add(l, "link_corrupted", s.lost[MEM_LINK_R_CORRUPT]);
    stats_add(l, "link_duplicated", s.duplicated);
    stats_add(l, "link_reordered", s.reordered);
    stats_add(l, "link_marked", s.marked);
    stats_add(l, "link_injected", s.injected);
}

/* Does the device have this counter once, not once per worker? Member 0's value counts. */
static bool stats_of_device(const char *name)
{
    static const char *const names[] = {"port_up",         "port_link_changes", "port_slow_path",
                                        "qp_peer_refused", "qp_peer_displaced", "qp_peer_shared"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    for (unsigned i = 0; i < SHARE_FIRST_OF_DAEMON; i++) {
        if (strcmp(name, share_counters[i]) == 0)
            return true;
    }
    return strncmp(name, "net_rx", 6) == 0; /* each member gets a copy of a frame that isn't RoCE */
}

void stats_merge(struct stats_entry *to, unsigned n, const struct stats_entry *from, unsigned nfrom)
{
    unsigned at = 0;
    for (unsigned i = 0; i < nfrom; i++) {
        if (stats_of_device(from[i].name))
            continue;
        unsigned looks = 0;
        while (looks < n && strcmp(to[at % n].name, from[i].name) != 0) { /* mostly the next one */
            at++;
            looks++;
        }
        if (looks < n)
            to[at % n].value += from[i].value;
    }
}

unsigned stats_collect(struct device *d, struct stats_entry out[STATS_MAX])
{
    struct stats_list l = {.e = out};
    struct neigh_counter net[NET_COUNTERS];
    stats_engine(&l, d);
    d->gsi->ops->counters(d->gsi, &l);
    neigh_counters(d->neigh, net);
    for (unsigned i = 0; i < NET_COUNTERS; i++)
        stats_add(&l, net[i].name, net[i].value);
    stats_port(&l, d);
    stats_link(&l, d);
    stats_switch(&l, d);
    stats_worker(&l, d);
    return l.n;
}
