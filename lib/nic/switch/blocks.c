/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks are drawn seldom, so a search counts through all of them.
 */
#include "blocks.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "share.h"

void blocks_init(struct blocks *b)
{
    memset(b, 0, sizeof(*b));
    pthread_mutex_init(&b->lock, NULL);
}

static unsigned holder(const struct blocks *b, unsigned i)
{
    return atomic_load_explicit(&b->block[i].worker, memory_order_relaxed);
}

static bool drawable(const struct blocks *b, unsigned i, uint64_t now)
{
    return holder(b, i) == 0 && b->block[i].from <= now;
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

static int draw_locked(struct blocks *b, unsigned worker, struct share *share, uint64_t now,
                       uint32_t random)
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
    atomic_store_explicit(&b->block[i].worker, (uint8_t)(worker + 1), memory_order_relaxed);
    b->block[i].share = share_hold(share);
    return (int)i;
}

int blocks_draw(struct blocks *b, unsigned worker, struct share *share, uint64_t now,
                uint32_t random)
{
    pthread_mutex_lock(&b->lock);
    int block = draw_locked(b, worker, share, now, random);
    pthread_mutex_unlock(&b->lock);
    return block;
}

void blocks_give(struct blocks *b, unsigned block, uint64_t now)
{
    pthread_mutex_lock(&b->lock);
    atomic_store_explicit(&b->block[block].worker, 0, memory_order_relaxed);
    b->block[block].from = now + BLOCKS_REST_NS;
    pthread_mutex_unlock(&b->lock);
}

void blocks_free(struct blocks *b)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++)
        forget(b, i);
}

int blocks_first(const struct blocks *b, unsigned worker)
{
    for (unsigned i = 0; i < QPN_BLOCKS; i++) {
        if (holder(b, i) == worker + 1)
            return (int)i;
    }
    return -1;
}
