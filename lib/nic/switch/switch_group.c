/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of groups, each with its members. When a round can't serve all, the next datagram begins
 * with the members left out.
 */
#include "switch_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "switch_rx.h"

struct switch_group {
    struct wire_addr addr;
    unsigned n, room;
    unsigned first; /* the member that gets the next copy first */
    struct switch_channel **member;
};

static struct switch_group *group_find(struct nic_switch *s, const struct wire_addr *addr)
{
    for (unsigned i = 0; i < s->ngroups; i++) {
        if (memcmp(s->groups[i].addr.b, addr->b, sizeof(addr->b)) == 0)
            return &s->groups[i];
    }
    return NULL;
}

static struct switch_group *group_new(struct nic_switch *s, const struct wire_addr *addr)
{
    if (!s->groups)
        s->groups = calloc(SWITCH_GROUPS, sizeof(*s->groups));
    if (!s->groups)
        return NULL;
    struct switch_group *g = &s->groups[s->ngroups++];
    *g = (struct switch_group){.addr = *addr};
    return g;
}

/* Remove the group's member i; a group without members is removed. */
static void group_remove(struct nic_switch *s, struct switch_group *g, unsigned i)
{
    g->member[i] = g->member[--g->n];
    if (g->first >= g->n)
        g->first = 0;
    if (g->n > 0)
        return;
    free(g->member);
    *g = s->groups[--s->ngroups];
}

int switch_group_join(struct nic_switch *s, struct switch_channel *c, const struct wire_addr *group)
{
    struct switch_group *g = group_find(s, group);
    for (unsigned i = 0; g && i < g->n; i++) {
        if (g->member[i] == c)
            return 0;
    }
    if (!g && s->ngroups == SWITCH_GROUPS)
        return -ENOSPC;
    if (!g)
        g = group_new(s, group);
    if (!g)
        return -ENOMEM;
    if (g->n == g->room) {
        unsigned room = g->room ? 2 * g->room : 4;
        struct switch_channel **grown = realloc(g->member, room * sizeof(*grown));
        if (!grown) {
            if (g->n == 0)
                s->ngroups--; /* the new group, which is the last one */
            return -ENOMEM;
        }
        g->member = grown;
        g->room = room;
    }
    g->member[g->n++] = c;
    return 0;
}

static void group_leave(struct nic_switch *s, struct switch_group *g,
                        const struct switch_channel *c)
{
    for (unsigned i = 0; i < g->n; i++) {
        if (g->member[i] == c) {
            group_remove(s, g, i);
            return;
        }
    }
}

void switch_group_leave(struct nic_switch *s, struct switch_channel *c,
                        const struct wire_addr *group)
{
    struct switch_group *g = group_find(s, group);
    if (g)
        group_leave(s, g, c);
}

void switch_group_leave_all(struct nic_switch *s, struct switch_channel *c)
{
    for (unsigned i = s->ngroups; i-- > 0;) /* the last group takes the place of a removed one */
        group_leave(s, &s->groups[i], c);
}

void switch_groups_free(struct nic_switch *s)
{
    for (unsigned i = 0; i < s->ngroups; i++)
        free(s->groups[i].member);
    free(s->groups);
}

bool switch_group_get(const struct nic_switch *s, unsigned i, struct wire_addr *group)
{
    if (i < s->ngroups)
        *group = s->groups[i].addr;
    return i < s->ngroups;
}

bool switch_group_has(struct nic_switch *s, const struct wire_addr *group)
{
    return group_find(s, group) != NULL;
}

bool switch_group_copy(struct nic_switch *s, const struct wire_addr *group,
                       const struct io_frame *frame)
{
    struct switch_group *g = group_find(s, group);
    if (!g || g->n == 0)
        return false;
    unsigned n = g->n < s->copies ? g->n : s->copies;
    for (unsigned i = 0; i < n; i++) {
        struct switch_channel *c = g->member[(g->first + i) % g->n];
        s->counters[SWITCH_C_channel_group_copies] += switch_put(s, c, NULL, 0, frame);
    }
    s->counters[SWITCH_C_channel_group_drops] += g->n - n;
    g->first = (g->first + n) % g->n;
    s->copies -= n;
    return true;
}
