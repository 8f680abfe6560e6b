/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See team.h.
 */
#include "team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "log.h"
#include "quota.h"
#include "worker.h"

#define TEAM_RING 512u /* frames */

static const uint64_t team_limits[SHARE_KINDS] = {
    [SHARE_PD] = LIMIT_PD,       [SHARE_MR] = LIMIT_MR,           [SHARE_MW] = LIMIT_MW,
    [SHARE_CQ] = LIMIT_CQ,       [SHARE_SRQ] = LIMIT_SRQ,         [SHARE_QP] = LIMIT_QP,
    [SHARE_CM_ID] = LIMIT_CM_ID, [SHARE_LISTENER] = LIMIT_LISTEN, [SHARE_GROUP] = LIMIT_MCAST,
    [SHARE_CONN] = LIMIT_CM_ID,  [SHARE_NEIGH] = LIMIT_NEIGH,     [SHARE_EVENT] = LIMIT_EVENT,
};

static bool team_rings(struct team *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        for (unsigned k = 0; k < t->n; k++) {
            if (i != k)
                t->ring[i][k] = frame_ring_new(TEAM_RING, IO_FRAME_MAX);
            if (i != k && !t->ring[i][k])
                return false;
        }
    }
    return true;
}

struct team *team_new(unsigned n)
{
    struct team *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->n = n;
    while (1u << t->bits < n)
        t->bits++;
    memcpy(t->share.limit, team_limits, sizeof(team_limits));
    pthread_mutex_init(&t->share.lock, NULL);
    pthread_mutex_init(&t->lock, NULL);
    if (team_rings(t))
        return t;
    team_free(t);
    return NULL;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < TEAM_MAX; i++) {
        for (unsigned k = 0; k < TEAM_MAX; k++)
            frame_ring_free(t->ring[i][k]);
        frame_ring_free(t->out[i]);
    }
    share_fini(&t->share);
    free(t);
}

struct device *team_choose(const struct team *t)
{
    unsigned best = 0;
    for (unsigned k = 1; k < t->n; k++) {
        if (t->contexts[k] < t->contexts[best])
            best = k;
    }
    return t->member[best];
}

struct device *team_on_worker(const struct team *t, unsigned worker)
{
    for (unsigned k = 0; k < t->n; k++) {
        if (t->member[k]->worker->index == worker)
            return t->member[k];
    }
    return NULL;
}

void team_wake(struct team *t, unsigned k)
{
    worker_kick(t->member[k]->worker);
}

void team_publish(struct device *d)
{
    struct team *t = d->team;
    if (t->n == 1)
        return;
    pthread_mutex_lock(&t->lock);
    t->port.caps = d->io->caps;
    t->port.link = d->link;
    t->port.link.why = NULL;
    snprintf(t->port.why, sizeof(t->port.why), "%s", d->no_link);
    t->port.gids = d->gids;
    pthread_mutex_unlock(&t->lock);
}

void team_icmp_heard(struct team *t, const struct io_icmp *icmp)
{
    pthread_mutex_lock(&t->lock);
    t->icmp[t->nicmp++ % TEAM_ICMP] = *icmp;
    pthread_mutex_unlock(&t->lock);
}

bool team_icmp_next(struct team *t, unsigned *seen, struct io_icmp *out)
{
    pthread_mutex_lock(&t->lock);
    if (t->nicmp - *seen > TEAM_ICMP)
        *seen = t->nicmp - TEAM_ICMP;
    bool is = *seen != t->nicmp;
    if (is)
        *out = t->icmp[(*seen)++ % TEAM_ICMP];
    pthread_mutex_unlock(&t->lock);
    return is;
}

void team_port(struct team *t, struct team_port *out)
{
    pthread_mutex_lock(&t->lock);
    *out = t->port;
    pthread_mutex_unlock(&t->lock);
}

void team_set_groups(struct device *d, const struct io_addr *groups, unsigned n)
{
    struct team *t = d->team;
    pthread_mutex_lock(&t->lock);
    memcpy(t->groups[d->member], groups, n * sizeof(*groups));
    t->ngroups[d->member] = n;
    pthread_mutex_unlock(&t->lock);
    if (n > 0)
        atomic_fetch_or(&t->in_groups, 1u << d->member);
    else
        atomic_fetch_and(&t->in_groups, ~(1u << d->member));
    if (!d->io->caps.kernel_ip)
        return;
    atomic_store_explicit(&t->regroup, true, memory_order_release);
    if (d->member != 0)
        team_wake(t, 0);
}

unsigned team_in_group(struct team *t, const struct wire_addr *group)
{
    unsigned in = 0;
    pthread_mutex_lock(&t->lock);
    for (unsigned k = 0; k < t->n; k++) {
        for (unsigned i = 0; i < t->ngroups[k]; i++) {
            if (memcmp(t->groups[k][i].b, group->b, sizeof(group->b)) == 0)
                in |= 1u << k;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return in;
}

static unsigned team_union(struct team *t, struct io_addr *all)
{
    unsigned n = 0;
    pthread_mutex_lock(&t->lock);
    for (unsigned k = 0; k < t->n; k++) {
        for (unsigned i = 0; i < t->ngroups[k]; i++) {
            unsigned at = 0;
            while (at < n && memcmp(&all[at], &t->groups[k][i], sizeof(*all)) != 0)
                at++;
            if (at == n && n < NET_GROUPS_MAX)
                all[n++] = t->groups[k][i];
        }
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

void team_regroup(struct device *d)
{
    struct io_addr all[NET_GROUPS_MAX];
    if (!atomic_exchange_explicit(&d->team->regroup, false, memory_order_acquire))
        return;
    int rc = d->io->ops->groups(d->io, all, team_union(d->team, all));
    if (rc < 0)
        log_warn("port", "%s: a multicast group could not be joined: %s", d->name, strerror(-rc));
}
