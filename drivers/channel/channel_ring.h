/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contents of a channel's memory:
 *
 *     page 0     channel_head: the indices of both directions
 *     then       the slots to the switch, then those to the program; a slot is a channel_slot and
 *                the octets of a frame
 *
 * Indices are free-running 32-bit counters. Each has one writer and a cache line of its own. The
 * producer fills a slot, writes its descriptor, then releases `prod`; the consumer empties the
 * slot, then releases `cons`. The place of a slot is (index - base) & (slots - 1), where `base` is
 * 0 at first.
 *
 * A producer that finds all slots empty may go back to place 0, so that few slots are in use again
 * and again: a descriptor with CHANNEL_AGAIN carries no frame, and the index after it is the base
 * from then on. Until it has been read the producer fills only places before its own. Each end
 * keeps its base, and publishes it for an end that takes its place.
 *
 * A consumer asks for a wake by `sleeping`: it stores 1, fences, looks at the ring once more, and
 * sleeps. The producer releases `prod`, fences, and if `sleeping` is 1 makes it 0 and wakes. A wake
 * follows each change to 0, so a late wake may find the consumer awake, but no wake is lost
 * (SHM-06).
 *
 * A descriptor with CHANNEL_MOVED carries no frame: the producer continues in the next memory, in
 * slot 0 of an unused ring.
 */
#ifndef URNIC_CHANNEL_RING_H
#define URNIC_CHANNEL_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_LINE  64u
#define CHANNEL_PAGE  4096u
#define CHANNEL_MOVED 0x1u
#define CHANNEL_AGAIN 0x2u

struct channel_index {
    _Alignas(CHANNEL_LINE) _Atomic uint32_t prod;     /* producer: slots filled */
    _Atomic uint32_t prod_base;                       /* producer: its base */
    _Alignas(CHANNEL_LINE) _Atomic uint32_t cons;     /* consumer: slots emptied */
    _Atomic uint32_t cons_base;                       /* consumer: its base */
    _Alignas(CHANNEL_LINE) _Atomic uint32_t sleeping; /* consumer: 1 = wake me */
};

struct channel_head {
    struct channel_index to[2]; /* index: enum channel_side of the receiving end */
};

struct channel_slot {
    _Atomic uint64_t word; /* octets of the frame in the lower 32 bits, flags above */
    _Atomic uint32_t meta;
    uint32_t zero;
};

_Static_assert(sizeof(struct channel_index) == 192, "ring layout");
_Static_assert(sizeof(struct channel_head) <= CHANNEL_PAGE, "ring layout");
_Static_assert(sizeof(struct channel_slot) == 16, "ring layout");

/* A private copy of a descriptor. */
struct channel_desc {
    uint32_t len, flags;
    uint32_t meta;
};

/* Octets from slot to slot: not a multiple of two cache lines, so that the first lines of the slots
 * spread over all sets of a cache. */
static inline uint32_t channel_stride(uint32_t frame_max)
{
    uint32_t octets = (uint32_t)sizeof(struct channel_slot) + frame_max;
    return ((octets + CHANNEL_LINE - 1) / CHANNEL_LINE | 1u) * CHANNEL_LINE;
}

/* Read the word once: the other end may be changing it. */
static inline struct channel_desc channel_desc_load(struct channel_slot *s)
{
    uint64_t w = atomic_load_explicit(&s->word, memory_order_relaxed);
    return (struct channel_desc){
        .len = (uint32_t)w,
        .flags = (uint32_t)(w >> 32),
        .meta = atomic_load_explicit(&s->meta, memory_order_relaxed),
    };
}

static inline void channel_desc_store(struct channel_slot *s, struct channel_desc d)
{
    atomic_store_explicit(&s->word, d.len | (uint64_t)d.flags << 32, memory_order_relaxed);
    atomic_store_explicit(&s->meta, d.meta, memory_order_relaxed);
}

/* A full barrier that also holds a store before a later load. ThreadSanitizer doesn't know fences:
 * a locked instruction does the same on the machine. */
static inline void channel_fence(void)
{
#ifdef __SANITIZE_THREAD__
    _Atomic uint32_t dummy = 0;
    atomic_fetch_add_explicit(&dummy, 1, memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
