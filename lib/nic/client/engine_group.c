/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of groups, each with the numbers of the queue pairs in it. A channel has few groups, and
 * at most as many queue pairs as a program has: a look through a list is short.
 */
#include "engine_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "device.h"
#include "engine_channel.h"
#include "group.h"
#include "neigh.h"
#include "switch_channel.h"
#include "switch_group.h"
#include "team.h"

struct engine_group {
    struct engine_group *next;
    struct wire_addr addr;
    unsigned n, room;
    uint32_t *qpn;
};

static struct engine_group **group_at(struct client *c, const struct wire_addr *addr)
{
    struct engine_group **at = &c->groups;
    while (*at && memcmp((*at)->addr.b, addr->b, sizeof(addr->b)) != 0)
        at = &(*at)->next;
    return at;
}

static unsigned group_find(const struct engine_group *g, uint32_t qpn)
{
    unsigned i = 0;
    while (i < g->n && g->qpn[i] != qpn)
        i++;
    return i;
}

/* The channel's first queue pair joins the group. */
static int group_enter(struct client *c, const struct wire_addr *addr, uint64_t now)
{
    struct device *d = c->ctx.device;
    int rc = group_join(&d->team->users, c->of_device, addr);
    if (rc < 0)
        return rc;
    rc = switch_group_join(d->sw, engine_channel_at(c), addr);
    if (rc == 0) {
        rc = neigh_groups(d->neigh, now);
        if (rc == 0)
            return 0;
        switch_group_leave(d->sw, engine_channel_at(c), addr);
        neigh_groups(d->neigh, now);
    }
    group_leave(&d->team->users, c->of_device, addr);
    return rc;
}

/* The channel's last queue pair has left. */
static void group_end(struct client *c, struct engine_group **at, uint64_t now)
{
    struct device *d = c->ctx.device;
    struct engine_group *g = *at;
    switch_group_leave(d->sw, engine_channel_at(c), &g->addr);
    group_leave(&d->team->users, c->of_device, &g->addr);
    neigh_groups(d->neigh, now);
    *at = g->next;
    free(g->qpn);
    free(g);
}

static int group_add(struct engine_group *g, uint32_t qpn)
{
    if (group_find(g, qpn) < g->n)
        return 0;
    if (g->n == IPC_ENGINE_QPS)
        return -ENOSPC;
    if (g->n == g->room) {
        unsigned room = g->room ? 2 * g->room : 4;
        uint32_t *grown = realloc(g->qpn, room * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        g->qpn = grown;
        g->room = room;
    }
    g->qpn[g->n++] = qpn;
    return 0;
}

static struct engine_group *group_new(struct client *c, const struct wire_addr *addr, uint64_t now,
                                      int *rc)
{
    struct engine_group *g = calloc(1, sizeof(*g));
    *rc = g ? group_enter(c, addr, now) : -ENOMEM;
    if (*rc < 0) {
        free(g);
        return NULL;
    }
    g->addr = *addr;
    g->next = c->groups;
    c->groups = g;
    return g;
}

int engine_group_join(struct client *c, uint32_t qpn, const struct wire_addr *group, uint64_t now)
{
    const struct nic_switch *s = c->ctx.device->sw;
    struct switch_channel *ch = engine_channel_at(c);
    int rc = 0;
    if (!ch || ch->ending || switch_owner(s, qpn) != ch || !wire_addr_is_multicast(group))
        return -EINVAL;
    struct engine_group *g = *group_at(c, group);
    if (!g)
        g = group_new(c, group, now, &rc);
    if (g)
        rc = group_add(g, qpn);
    if (g && g->n == 0)
        group_end(c, group_at(c, group), now);
    return rc;
}

int engine_group_leave(struct client *c, uint32_t qpn, const struct wire_addr *group, uint64_t now)
{
    struct engine_group **at = group_at(c, group), *g = *at;
    unsigned i = g ? group_find(g, qpn) : 0;
    if (!g || i == g->n)
        return -EINVAL;
    g->qpn[i] = g->qpn[--g->n];
    if (g->n == 0)
        group_end(c, at, now);
    return 0;
}

void engine_group_leave_all(struct client *c, uint64_t now)
{
    while (c->groups)
        group_end(c, &c->groups, now);
}
