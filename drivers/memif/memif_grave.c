/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of connections that have ended while frames in it were lent to the owner of the port, or
 * slots in it reserved. It stays mapped until they have come back; meanwhile the port works with
 * the next peer. Frames come back oldest first, so those of the oldest connection come first.
 */
#include "memif_port.h"

#include <stdlib.h>
#include <string.h>

struct memif_grave {
    struct memif_grave *next; /* next younger connection */
    unsigned lent;
    uint16_t copied; /* lent frames in side buffers */
    bool reserved;   /* the last tx_reserve used this connection */
    struct memif_region region[MEMIF_REGIONS_MAX];
};

static void grave_free(struct memif_port *p, struct memif_grave *g)
{
    p->side_tail += g->copied;
    for (unsigned i = 0; i < MEMIF_REGIONS_MAX; i++)
        memif_region_free(&g->region[i]);
    free(g);
}

static void graves_tidy(struct memif_port *p)
{
    struct memif_grave **link = &p->graves;
    while (*link) {
        struct memif_grave *g = *link;
        if (g->lent || g->reserved) {
            link = &g->next;
        } else {
            *link = g->next;
            grave_free(p, g);
        }
    }
}

/* Are the reserved slots in the connection that is ending, not in an older one? */
static bool reserved_here(const struct memif_port *p)
{
    for (const struct memif_grave *g = p->graves; g; g = g->next)
        if (g->reserved)
            return false;
    return p->reserved_n != 0;
}

bool memif_grave_dig(struct memif_port *p)
{
    struct memif_conn *c = &p->conn;
    struct memif_grave **link = &p->graves;
    struct memif_grave *g;
    bool reserved = reserved_here(p);
    if (p->lent_head == p->lent_tail && !reserved)
        return true;
    g = calloc(1, sizeof(*g));
    if (!g)
        return false;
    g->lent = (uint16_t)(p->lent_head - p->lent_tail);
    for (uint16_t i = p->lent_tail; i != p->lent_head; i++)
        g->copied += p->lent[i & c->rx.mask].copied;
    g->reserved = reserved;
    for (unsigned i = 0; i < MEMIF_REGIONS_MAX; i++) {
        g->region[i] = c->region[i];
        c->region[i] = (struct memif_region){.fd = -1};
    }
    while (*link)
        link = &(*link)->next;
    *link = g;
    p->lent_head = p->lent_tail = 0;
    return true;
}

unsigned memif_grave_release(struct memif_port *p, unsigned n)
{
    for (struct memif_grave *g = p->graves; g && n; g = g->next) {
        unsigned k = n < g->lent ? n : g->lent;
        g->lent -= k;
        n -= k;
    }
    graves_tidy(p);
    return n;
}

bool memif_grave_unreserve(struct memif_port *p)
{
    bool any = false;
    for (struct memif_grave *g = p->graves; g; g = g->next) {
        any |= g->reserved;
        g->reserved = false;
    }
    graves_tidy(p);
    return any;
}

void memif_grave_free_all(struct memif_port *p)
{
    while (p->graves) {
        struct memif_grave *g = p->graves;
        p->graves = g->next;
        grave_free(p, g);
    }
}
