/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks are drawn seldom, so a search counts through all of them.
 */
#include "blocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "share.h"

static bool drawable(const struct blocks *b, unsigned i, uint64_t now)
{
    return !b->block[i].owner && b->block[i].from <= now;
}

/* It counts for its user no longer. */
static void forget(struct blocks *b, unsigned i)
{
    if (!b->block[i].share)
        return;
    share_give(b->block[i].share, SHARE_BLOCK, 1);
    share_leave(b->block[i].share);
    b->block[i].share = NULL;
}

int blocks_draw(struct blocks *b, void *owner, struct share *share, uint64_t now, uint32_t random)
{
    unsigned n = 0, i = 0;
    for (unsigned k = 0; k < QPN_BLOCKS; k++) {
        if (drawable(b, k, now))
            forget(b, k);
    }
    for (unsigned k = 0; k < QPN_BLOCKS; k++)
        n += drawable(b, k, now);
    if (n == 0)
        return -EAGAIN;
    int rc = share_take(share, SHARE_BLOCK, 1);
    if (rc < 0)
        return rc;
    unsigned skip = (unsigned)((uint64_t)random * n >> 32);
    while (!drawable(b, i, now) || skip-- > 0)
        i++;
    b->block[i].owner = owner;
    b->block[i].share = share_hold(share);
    return (int)i;
}

void blocks_give(struct blocks *b, unsigned block, uint64_t now)
{
    b->block[block].owner = NULL;
    b->block[block].from = now + BLOCKS_REST_NS;
}

void blocks_free(struct blocks *b)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++)
        forget(b, i);
}

void blocks_give_all(struct blocks *b, const void *owner, uint64_t now)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        if (b->block[i].owner == owner)
            blocks_give(b, i, now);
    }
}
