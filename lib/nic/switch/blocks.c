/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks are drawn seldom, so they are simply counted through.
 */
#include "blocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool drawable(const struct blocks *b, unsigned i, uint64_t now)
{
    return !b->block[i].owner && b->block[i].from <= now;
}

int blocks_draw(struct blocks *b, void *owner, uint64_t now, uint32_t random)
{
    unsigned n = 0, i = 0;
    for (unsigned k = 0; k < QPN_BLOCKS; k++)
        n += drawable(b, k, now);
    if (n == 0)
        return -EAGAIN;
    unsigned skip = (unsigned)((uint64_t)random * n >> 32);
    while (!drawable(b, i, now) || skip-- > 0)
        i++;
    b->block[i].owner = owner;
    return (int)i;
}

void blocks_give(struct blocks *b, unsigned block, uint64_t now)
{
    b->block[block].owner = NULL;
    b->block[block].from = now + BLOCKS_REST_NS;
}

void blocks_give_all(struct blocks *b, const void *owner, uint64_t now)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        if (b->block[i].owner == owner)
            blocks_give(b, i, now);
    }
}
