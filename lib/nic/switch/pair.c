/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A channel's first pair makes its table, whose pages take memory when they are used.
 */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>

static struct switch_pair **place(const struct switch_channel *c, uint32_t qpn)
{
    return &c->pairs->at[qpn & ((1u << QPN_BLOCK_BITS) - 1)];
}

int switch_pair_add(struct switch_channel *c, struct switch_pair *p)
{
    if (c->npairs >= SWITCH_PAIRS)
        return -EDQUOT;
    if (!c->pairs)
        c->pairs = calloc(1, sizeof(*c->pairs));
    if (!c->pairs)
        return -ENOMEM;
    *place(c, p->qpn) = p;
    c->npairs++;
    return 0;
}

void switch_pair_remove(struct switch_channel *c, const struct switch_pair *p)
{
    if (switch_pair_of(c, p->qpn) != p)
        return;
    *place(c, p->qpn) = NULL;
    c->npairs--;
}
