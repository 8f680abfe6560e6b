/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first pair of a block makes its table, whose pages take memory when they are used.
 */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>

static struct switch_pairs *table(const struct switch_channel *c, uint32_t qpn)
{
    struct switch_pairs *t = c->pairs;
    while (t && t->block != qpn_block(qpn))
        t = t->next;
    return t;
}

static struct switch_pairs *table_new(struct switch_channel *c, uint32_t qpn)
{
    struct switch_pairs *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->block = qpn_block(qpn);
    t->next = c->pairs;
    c->pairs = t;
    return t;
}

static struct switch_pair **place(struct switch_pairs *t, uint32_t qpn)
{
    return &t->at[qpn & ((1u << QPN_BLOCK_BITS) - 1)];
}

void switch_pairs_free(struct switch_channel *c)
{
    while (c->pairs) {
        struct switch_pairs *next = c->pairs->next;
        free(c->pairs);
        c->pairs = next;
    }
}

int switch_pair_add(struct switch_channel *c, struct switch_pair *p)
{
    if (c->npairs >= SWITCH_PAIRS)
        return -EDQUOT;
    struct switch_pairs *t = table(c, p->qpn);
    if (!t)
        t = table_new(c, p->qpn);
    if (!t)
        return -ENOMEM;
    *place(t, p->qpn) = p;
    c->npairs++;
    return 0;
}

void switch_pair_remove(struct switch_channel *c, const struct switch_pair *p)
{
    if (switch_pair_of(c, p->qpn) != p)
        return;
    *place(table(c, p->qpn), p->qpn) = NULL;
    c->npairs--;
}
