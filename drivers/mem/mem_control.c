/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The controls of an emulated link: faults, rule, plug, drop log, counters. Each takes the link's
 * lock; none is meant for the data path.
 */
#include <string.h>

#include "mem_internal.h"

unsigned mem_link_index(const struct io_port *io)
{
    return ((const struct mem_port *)(const void *)io)->index;
}

void mem_link_faults_get(struct mem_link *link, unsigned dir, struct mem_link_faults *out)
{
    pthread_mutex_lock(&link->lock);
    *out = dir < link->top ? link->sockets[dir]->faults : link->later;
    pthread_mutex_unlock(&link->lock);
}

void mem_link_faults_set(struct mem_link *link, unsigned dir, const struct mem_link_faults *faults)
{
    pthread_mutex_lock(&link->lock);
    if (dir == MEM_LINK_ALL)
        link->later = *faults;
    for (unsigned i = 0; i < link->top; i++)
        if (dir == MEM_LINK_ALL || dir == i)
            link->sockets[i]->faults = *faults;
    pthread_mutex_unlock(&link->lock);
}

void mem_link_rule_set(struct mem_link *link, mem_link_rule rule, void *ctx)
{
    pthread_mutex_lock(&link->lock);
    link->rule = rule;
    link->rule_ctx = ctx;
    pthread_mutex_unlock(&link->lock);
}

void mem_link_up(struct mem_link *link, unsigned index, bool up, uint64_t now)
{
    pthread_mutex_lock(&link->lock);
    if (now > link->last_now)
        link->last_now = now;
    for (unsigned i = 0; i < link->top; i++) {
        if (index != MEM_LINK_ALL && index != i)
            continue;
        link->sockets[i]->plugged = up;
        if (!up)
            mem_socket_flush(link, i, false, now);
    }
    mem_links_update(link);
    pthread_mutex_unlock(&link->lock);
}

size_t mem_link_drops(struct mem_link *link, uint64_t *next, struct mem_link_drop *out, size_t max,
                      uint64_t *missed)
{
    size_t n = 0;
    uint64_t lost = 0;
    pthread_mutex_lock(&link->lock);
    uint64_t oldest = link->drop_n > link->cfg.log ? link->drop_n - link->cfg.log : 0;
    if (*next < oldest) {
        lost = oldest - *next;
        *next = oldest;
    }
    while (n < max && *next < link->drop_n)
        out[n++] = link->drops[(*next)++ % link->cfg.log];
    pthread_mutex_unlock(&link->lock);
    if (missed)
        *missed = lost;
    return n;
}

static void stats_add(struct mem_link_stats *sum, const struct mem_link_stats *s)
{
    sum->frames += s->frames;
    sum->bytes += s->bytes;
    for (unsigned r = 0; r < MEM_LINK_REASONS; r++)
        sum->lost[r] += s->lost[r];
    sum->delivered += s->delivered;
    sum->duplicated += s->duplicated;
    sum->reordered += s->reordered;
    sum->delayed += s->delayed;
    sum->marked += s->marked;
    sum->flooded += s->flooded;
    sum->injected += s->injected;
    sum->pauses += s->pauses;
    if (s->queue > sum->queue)
        sum->queue = s->queue;
    if (s->queue_max > sum->queue_max)
        sum->queue_max = s->queue_max;
}

/* Octets waiting in the queue that direction `dir` is accounted for. */
static uint64_t queue_now(const struct mem_link *link, unsigned dir, uint64_t now)
{
    uint64_t q = 0;
    for (unsigned i = 0; i < link->top; i++) {
        uint64_t waits = mem_socket_backlog(link->sockets[i], link->sockets[dir]->faults.rate, now);
        if ((i == dir) == mem_link_is_switch(link) && waits > q)
            q = waits;
    }
    return q;
}

void mem_link_stats(struct mem_link *link, unsigned dir, uint64_t now, struct mem_link_stats *out)
{
    memset(out, 0, sizeof(*out));
    pthread_mutex_lock(&link->lock);
    for (unsigned i = 0; i < link->top; i++) {
        if (dir != MEM_LINK_ALL && dir != i)
            continue;
        link->sockets[i]->stats.queue = queue_now(link, i, now);
        stats_add(out, &link->sockets[i]->stats);
    }
    pthread_mutex_unlock(&link->lock);
}
