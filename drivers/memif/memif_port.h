/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif port: shared by its receiving, sending and slow-path parts.
 */
#ifndef URNIC_MEMIF_PORT_H
#define URNIC_MEMIF_PORT_H

#include "memif_conn.h"
#include "memif_kick.h"

#define MEMIF_LIKELY(x)   __builtin_expect(!!(x), 1)
#define MEMIF_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A lent frame: where its slots end, and whether it lies in a side buffer. */
struct memif_lent {
    uint16_t end;
    uint16_t copied;
};

/* A reserved frame: its slots, unless none of them could hold it in one piece. */
struct memif_reserved {
    uint16_t slots;
    bool single; /* the frame is in place, in one slot */
};

struct memif_grave;
struct memif_worker;

struct memif_port {
    struct io_port io; /* first member */

    bool up;                 /* frames move; implies conn.state == MEMIF_UP */
    bool armed;              /* the owner sleeps on rx_fd */
    enum memif_reason fault; /* found by the data path; service() ends the connection */
    uint32_t side_stride;
    struct memif_conn conn;

    struct memif_lent *lent; /* ring of 2^MEMIF_LOG2_MAX; indexed by a sequence number and mask */
    uint16_t lent_head, lent_tail;
    uint16_t side_head, side_tail;
    uintptr_t rx_last;   /* place of the last frame, and its distance from the one before: */
    uintptr_t rx_stride; /* a guess of the next one's place, nothing else */
    uint8_t *rx_side;    /* IO_BURST_MAX buffers, made when first needed */

    struct memif_reserved reserved[IO_BURST_MAX];
    unsigned reserved_n;
    uint8_t *tx_side;
    struct memif_kick kick;

    struct memif_grave *graves; /* oldest first; NULL unless a peer died at a bad moment */

    struct io_stats stats;
    struct memif_counters counters;

    struct memif_config cfg;
    uint64_t meet_from; /* earliest time of the next peer */
    unsigned rings;     /* requested cfg.rings */
    int listener;
    int epoll;
    struct io_link link;
    struct memif_worker *worker; /* on a port of several workers: its strands, which carry the
                                  * frames */
};

/* Take the link down because of a fault of the peer; service() does the rest. */
void memif_port_fault(struct memif_port *p, enum memif_reason reason);

/* Add `fd` to the set of rx_fd, or remove it; -1 has no effect. close() alone would not remove it,
 * because the peer holds the same open file. */
void memif_port_watch(const struct memif_port *p, int fd);
void memif_port_unwatch(const struct memif_port *p, int fd);

/* The slow path: control messages, (re)connection, clean-up. */
void memif_port_control(struct memif_port *p, uint64_t now);

/* Free the port and everything in it. */
void memif_port_close(struct memif_port *p);

/* Side buffers for frames that don't lie in one piece. Returns the i-th, or NULL: out of memory. */
uint8_t *memif_port_side(struct memif_port *p, uint8_t **pool, unsigned i);

/* Keep the memory of the ended connection for as long as something in it is lent or reserved.
 * Returns false when that isn't possible now. memif_grave.c. */
bool memif_grave_dig(struct memif_port *p);

/* Take `n` released frames. Returns the number of those that belong to the living connection. */
unsigned memif_grave_release(struct memif_port *p, unsigned n);

/* The last reservation is over. Returns whether it was in the memory of a dead connection. */
bool memif_grave_unreserve(struct memif_port *p);

/* Free dead connections, with everything still in use of them. */
void memif_grave_free_all(struct memif_port *p);

/* io_ops, receiving: memif_rx.c. */
unsigned memif_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max, uint64_t now);
void memif_rx_release(struct io_port *io, unsigned n);
void memif_rx_arm(struct io_port *io, bool on);

/* Lend frames of the ring, and check nothing else. The link must be up. */
unsigned memif_rx_ring(struct memif_port *p, struct io_frame *frames, unsigned max);

/* Read the eventfd of a ring empty, if there is one. */
void memif_rx_drain(int event);

/* Count frames that the peer had sent and we never looked at as rx_drop. */
void memif_rx_abandon(struct memif_port *p);

/* io_ops, sending: memif_tx.c. */
unsigned memif_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max, uint64_t now);
void memif_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n, uint64_t now);

/* The number of frames for which the ring has room, at most `want`. */
unsigned memif_tx_room(struct memif_port *p, unsigned want);

/* Frames have come, and answers will follow: prefetch the descriptor of the next frame to send. */
static inline void memif_tx_warm(const struct memif_port *p)
{
    const struct memif_queue *q = &p->conn.tx;
    __builtin_prefetch(&q->ring->desc[q->cur & q->mask], 1);
}

/* The buffer that a private copy of a descriptor names, or NULL when it isn't inside its region. */
static inline uint8_t *memif_port_buffer(const struct memif_port *p, const struct memif_desc *d)
{
    if (MEMIF_UNLIKELY(d->region >= p->conn.regions))
        return NULL;
    return memif_region_at(&p->conn.region[d->region], d->offset, d->length);
}

#endif
