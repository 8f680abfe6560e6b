/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An end of a channel: the types shared by its receiving, sending and waking parts.
 */
#ifndef URNIC_CHANNEL_PORT_H
#define URNIC_CHANNEL_PORT_H

#include <sys/types.h>

#include "channel.h"
#include "channel_ring.h"

#define CHANNEL_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* From CHANNEL_SLOTS_MIN to CHANNEL_SLOTS_MAX by doubling. */
#define CHANNEL_GROWTHS 6u
_Static_assert(CHANNEL_SLOTS_MIN << CHANNEL_GROWTHS == CHANNEL_SLOTS_MAX, "growths");

/* From this place on it is worth a slot to go back to place 0. */
#define CHANNEL_BACK 64u

/* A lent frame: the index after its slot and after the slots skipped next to it. */
struct channel_lent {
    uint32_t end, meta;
};

/* One direction, in the memory where it is at present. */
struct channel_ring {
    _Atomic(struct channel_index *) at; /* atomic for channel_nudge */
    uint8_t *slots;
    uint32_t size, stride;
    uint32_t base;  /* the index at place 0 */
    uint32_t cur;   /* next slot to read */
    uint32_t limit; /* slots from cur up to here are ours, as of the last look */
    uint32_t done;  /* receiving: slots before this one are given back */
    uint64_t all;   /* slots given back since the port was opened */
    /* sending: going back to place 0 (channel_tx.c) */
    uint32_t back;    /* not before this place; `size`: never */
    uint32_t back_at; /* the index at which to try */
    uint32_t again;   /* index of the last CHANNEL_AGAIN */
    uint32_t hold;    /* the later index that has the same place: free once that slot is read */
    bool unread;      /* the consumer may not have read the last CHANNEL_AGAIN */
    bool held;        /* a sender needed more slots than were free before `hold` */
};

struct channel_port {
    struct io_port io; /* first member */
    enum channel_side side;
    enum channel_fault fault;
    uint32_t flags_mask; /* bits of the metadata that are a lent frame's flags */
    bool up;
    bool armed;     /* rx_arm */
    bool holds;     /* channel_hold_wake */
    bool wake_owed; /* a frame has been sent meanwhile */

    struct channel_ring rx, tx;
    struct channel_lent *lent; /* an entry for each slot of rx */
    uint32_t lent_head, lent_tail;
    unsigned reserved;
    uint32_t tx_meta[IO_BURST_MAX];

    struct channel_memory memory;
    struct channel_memory next; /* the next one of rx and tx; base NULL = none */
    struct channel_lent *next_lent;
    bool rx_moved, tx_moved;
    void *worn[CHANNEL_GROWTHS]; /* first pages of earlier memory, for late channel_nudge */
    unsigned nworn;

    int bell; /* wakes a program that sleeps on descriptors; -1 = none */
    int event;
    dev_t event_dev; /* the file of `event`: a program may close descriptors of which it */
    ino_t event_ino; /* doesn't know, and open others */
    struct io_stats stats;
    struct channel_counters counters;
    uint64_t link_changes;
    const char *why;
};

/* Start the direction towards the end `to` in this memory, for the end `side`. channel_port.c */
void channel_ring_at(struct channel_ring *r, const struct channel_memory *m, enum channel_side side,
                     enum channel_side to);

/* Free a program's earlier memory, except for its first page, which is *head then. That page is no
 * longer shared: a thread that still has its address may write there. If this fails, nothing
 * changes. channel_memory.c */
void channel_memory_wear(struct channel_memory *m, void **head);

/* There is more memory: send from there, if a slot is free for the mark. channel_tx.c */
void channel_tx_move(struct channel_port *p);
/* The thread that sleeps on this word, if any, no longer would be woken: wake it. channel_wake.c */
void channel_wake_all(struct channel_index *at);

/* The slot with this index. */
static inline struct channel_slot *channel_slot(const struct channel_ring *r, uint32_t index)
{
    const uint32_t place = (index - r->base) & (r->size - 1);
    return (struct channel_slot *)(void *)(r->slots + (size_t)place * r->stride);
}

static inline struct channel_index *channel_index(const struct channel_ring *r)
{
    return atomic_load_explicit(&r->at, memory_order_relaxed);
}

static inline uint8_t *channel_data(struct channel_slot *s)
{
    return (uint8_t *)(s + 1);
}

/* io_ops: channel_rx.c, channel_tx.c, channel_wake.c */
unsigned channel_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now);
void channel_rx_release(struct io_port *io, unsigned n);
unsigned channel_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now);
void channel_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now);
void channel_rx_arm(struct io_port *io, bool on);

/* After publishing in p->tx: wake the other end if it sleeps. */
void channel_wake(struct channel_port *p);

#endif
