/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots and numbers of queue pairs. An engine of the daemon has few slots and many numbers for
 * each; one of a program has a slot for each number of its blocks. Rules: SEC-08, QP-14.
 */
#include "numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "wire.h"

/* The first size of the table of queue pairs: TABLE_FIRST entries, or 1 / TABLE_PART of all if that
 * is more. So at least that part of all slots is used before a number comes back (SEC-08, CM-26).
 */
#define TABLE_FIRST 16u
#define TABLE_PART  16u
#define BLOCK_SLOTS (1u << QPN_BLOCK_BITS)

/* Read for every packet, so by a member that packets read anyway. */
static bool has_blocks(const struct engine *e)
{
    return e->qpns.free_bits == QPN_BLOCK_BITS;
}

uint32_t number_make(const struct engine *e, uint32_t slot, uint32_t life)
{
    if (!has_blocks(e))
        return qpn_make(&e->qpns, slot, life);
    return qpn_make(&e->block[slot >> QPN_BLOCK_BITS], slot & (BLOCK_SLOTS - 1), 0);
}

uint32_t number_slot(const struct engine *e, uint32_t qpn, unsigned *worker)
{
    uint32_t slot = 0;
    if (!has_blocks(e))
        return qpn_slot(&e->qpns, qpn, worker);
    for (uint32_t i = 0; i < e->nblocks; i++) {
        slot = i << QPN_BLOCK_BITS | qpn_slot(&e->block[i], qpn, worker);
        if (*worker == 0) /* it is of this block */
            break;
    }
    return slot;
}

/* Slots that the engine may use. */
static uint32_t all_slots(const struct engine *e)
{
    return has_blocks(e) ? e->nblocks << QPN_BLOCK_BITS : e->p.max_qp;
}

void number_block(struct engine *e, unsigned block, const uint64_t key[2])
{
    qpn_map_init_block(&e->block[e->nblocks++], key, block, BLOCK_SLOTS);
    e->qpns = e->block[0];
}

/* Copy an array into a larger one. NULL = out of memory, and the old one stays. */
static void *larger(void *old, size_t size, size_t had, size_t n)
{
    void *more = calloc(n, size);
    if (more && old)
        memcpy(more, old, had * size);
    return more;
}

/* The ring of free slots begins at 0 then. */
static void larger_tables(struct engine *e, struct qp **table, uint32_t *life, uint32_t *fifo,
                          uint64_t *freed_at)
{
    const uint32_t had = all_slots(e);
    for (uint32_t i = 0; i < e->nfree; i++)
        fifo[i] = e->free_fifo[(e->free_head + i) % had];
    e->free_head = 0;
    free(e->table);
    free(e->life);
    free(e->free_fifo);
    free(e->freed_at);
    e->table = table;
    e->life = life;
    e->free_fifo = fifo;
    e->freed_at = freed_at;
}

int engine_add_block(struct engine *e, unsigned block, const uint64_t key[2])
{
    const uint32_t had = all_slots(e), n = had + BLOCK_SLOTS;
    if (!has_blocks(e) || e->nblocks == ENGINE_BLOCKS)
        return -ENOSPC;
    struct qp **table = larger(e->table, sizeof(struct qp *), e->table ? had : 0, n);
    uint32_t *life = larger(e->life, sizeof(*life), e->life ? had : 0, n);
    uint32_t *fifo = calloc(n, sizeof(*fifo));
    uint64_t *freed_at = larger(e->freed_at, sizeof(*freed_at), e->freed_at ? had : 0, n);
    if (!table || !life || !fifo || !freed_at) {
        free(table);
        free(life);
        free(fifo);
        free(freed_at);
        return -ENOMEM;
    }
    larger_tables(e, table, life, fifo, freed_at);
    number_block(e, block, key);
    e->wants_block = false;
    return 0;
}

bool engine_wants_block(const struct engine *e)
{
    return e->wants_block;
}

/* When no slot is free, use more of the table. Its arrays have their full size from the start, and
 * only used parts take memory. So nothing is copied, however many queue pairs there are (SHM-12).
 * 0, -ENOMEM, -ENOSPC. */
static int grow_table(struct engine *e)
{
    uint32_t most = all_slots(e), part = most / TABLE_PART;
    if (e->table_size == most)
        return -ENOSPC;
    if (!e->table)
        e->table = calloc(most, sizeof(struct qp *));
    if (!e->life)
        e->life = calloc(most, sizeof(*e->life));
    if (!e->free_fifo)
        e->free_fifo = calloc(most, sizeof(*e->free_fifo));
    if (!e->freed_at && has_blocks(e))
        e->freed_at = calloc(most, sizeof(*e->freed_at));
    if (!e->table || !e->life || !e->free_fifo || (!e->freed_at && has_blocks(e)))
        return -ENOMEM;
    uint32_t size = e->table_size ? e->table_size * 2 : part < TABLE_FIRST ? TABLE_FIRST : part;
    e->table_size = size < most ? size : most;
    return 0;
}

static void give_slot(struct engine *e, uint32_t slot)
{
    e->table[slot] = NULL;
    e->free_fifo[(e->free_head + e->nfree++) % all_slots(e)] = slot;
    if (e->freed_at)
        e->freed_at[slot] = e->now;
}

/* A slot that was never used, or else the oldest free one. */
static uint32_t take_slot(struct engine *e)
{
    if (e->fresh < e->table_size)
        return e->fresh++;
    uint32_t slot = e->free_fifo[e->free_head];
    e->free_head = (e->free_head + 1) % all_slots(e);
    e->nfree--;
    return slot;
}

/* Does the next number come too early? */
static bool is_short_of_numbers(const struct engine *e)
{
    return e->nblocks < ENGINE_BLOCKS && e->fresh == all_slots(e) && e->nfree > 0 &&
           e->now - e->freed_at[e->free_fifo[e->free_head]] < ENGINE_REST_NS;
}

/* By the slot's next life a number returns after all others of that slot; with blocks after all
 * others of all slots. 0, -ENOMEM, -ENOSPC. */
int number_take(struct engine *e, struct qp *qp)
{
    if (qp->type == QP_GSI) {
        qp->qpn = WIRE_QPN_GSI;
        e->gsi = qp;
        return 0;
    }
    const bool more = has_blocks(e) && e->table_size < all_slots(e);
    if (e->fresh == e->table_size && (!e->nfree || more)) {
        int err = grow_table(e);
        if (err)
            return err;
    }
    qp->slot = take_slot(e);
    while (!(qp->qpn = number_make(e, qp->slot, e->life[qp->slot]++))) {
        if (!has_blocks(e))
            continue;
        give_slot(e, qp->slot); /* the only one of its block without a number */
        qp->slot = take_slot(e);
    }
    e->table[qp->slot] = qp;
    e->wants_block = has_blocks(e) && is_short_of_numbers(e);
    return 0;
}

void number_give(struct engine *e, struct qp *qp)
{
    if (qp->type == QP_GSI) {
        e->gsi = NULL;
        return;
    }
    give_slot(e, qp->slot);
}
