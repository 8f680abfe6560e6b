/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See team.h.
 */
#include "team.h"

#include <errno.h>
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
    [SHARE_BLOCK] = LIMIT_BLOCK,
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
    blocks_init(&t->blocks);
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
    blocks_free(&t->blocks);
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

static bool team_has(const struct io_addr *groups, unsigned n, const struct io_addr *group)
{
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(groups[i].b, group->b, sizeof(group->b)) == 0)
            return true;
    }
    return false;
}

/* True: there are new ones. */
static bool team_note_groups(struct team *t, unsigned k, const struct io_addr *groups, unsigned n)
{
    bool more = false;
    pthread_mutex_lock(&t->lock);
    for (unsigned i = 0; i < n; i++)
        more |= !team_has(t->groups[k], t->ngroups[k], &groups[i]);
    memcpy(t->groups[k], groups, n * sizeof(*groups));
    t->ngroups[k] = n;
    pthread_mutex_unlock(&t->lock);
    return more;
}

struct team_joining {
    struct device *first;
    int rc;
};

/* On the worker of member 0, which waits for no other. */
static void team_join_now(void *arg, uint64_t now)
{
    struct team_joining *j = arg;
    (void)now;
    j->rc = team_regroup(j->first);
}

int team_set_groups(struct device *d, const struct io_addr *groups, unsigned n)
{
    struct team *t = d->team;
    struct team_joining j = {.first = t->member[0]};
    const bool more = team_note_groups(t, d->member, groups, n);
    if (n > 0)
        atomic_fetch_or(&t->in_groups, 1u << d->member);
    else
        atomic_fetch_and(&t->in_groups, ~(1u << d->member));
    if (!d->io->caps.kernel_ip)
        return 0;
    atomic_store_explicit(&t->regroup, true, memory_order_release);
    if (d->member == 0)
        return team_regroup(d);
    if (more)
        worker_call(j.first->worker, team_join_now, &j);
    else
        team_wake(t, 0);
    return j.rc;
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

/* The groups of all members. *rc = -ENOSPC: there are more than fit. */
static unsigned team_union(struct team *t, struct io_addr *all, int *rc)
{
    unsigned n = 0;
    *rc = 0;
    pthread_mutex_lock(&t->lock);
    for (unsigned k = 0; k < t->n; k++) {
        for (unsigned i = 0; i < t->ngroups[k]; i++) {
            if (team_has(all, n, &t->groups[k][i]))
                continue;
            if (n < NET_GROUPS_MAX)
                all[n++] = t->groups[k][i];
            else
                *rc = -ENOSPC;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

int team_regroup(struct device *d)
{
    struct io_addr all[NET_GROUPS_MAX];
    if (!atomic_exchange_explicit(&d->team->regroup, false, memory_order_acquire))
        return 0;
    int full;
    const unsigned n = team_union(d->team, all, &full);
    int rc = d->io->ops->groups(d->io, all, n);
    if (rc == 0)
        rc = full;
    if (rc < 0)
        log_warn("port", "%s: a multicast group could not be joined: %s", d->name, strerror(-rc));
    return rc;
}
