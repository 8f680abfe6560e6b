/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the fuzz targets of both roles of memif: the input as a script, the port's owner, and a
 * peer's writes into rings.
 */
#ifndef URNIC_TESTS_FUZZ_MEMIF_H
#define URNIC_TESTS_FUZZ_MEMIF_H

#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "memif.h"
#include "memif_proto.h"
#include "memif_sock.h"

#define FRAME_MAX 1514u
#define LOG2      3u
#define SLOTS     (1u << LOG2)
#define BUFFER    512u /* so that frames need chains */

static volatile uint32_t fuzz_memif_sink; /* so that nothing read is optimised away */

struct script {
    const uint8_t *data;
    size_t size, at;
};

struct peer {
    int sock;
    struct memif_ring *ring[2]; /* client to server, server to client */
};

struct owner {
    struct io_port *io;
    uint64_t lent, received, reserved, sent;
    struct io_slot slots[IO_BURST_MAX];
};

static inline uint32_t take(struct script *s, unsigned octets)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < octets && s->at < s->size; i++)
        v |= (uint32_t)s->data[s->at++] << (8 * i);
    return v;
}

static inline void write_slot(const struct peer *c, struct script *s)
{
    unsigned where = take(s, 1);
    struct memif_desc *d = &c->ring[where & 1]->desc[where >> 1 & (SLOTS - 1)];
    d->flags = (uint16_t)take(s, 1);
    d->region = (uint16_t)take(s, 1);
    d->length = take(s, 2) << (where >> 4 & 15);
    d->offset = take(s, 2) << (where >> 4 & 15);
}

static inline void write_index(const struct peer *c, struct script *s)
{
    unsigned where = take(s, 1);
    _Atomic uint16_t *index = where & 2 ? &c->ring[where & 1]->tail : &c->ring[where & 1]->head;

    /* mostly steps forward, else the frames of a script would seldom arrive */
    *index = (uint16_t)(where & 4 ? take(s, 2) : *index + (where >> 3) % (SLOTS + 1));
    c->ring[where & 1]->flags = where >> 7;
}

static inline void receive(struct owner *o, unsigned max)
{
    struct io_frame frames[IO_BURST_MAX];
    unsigned n = o->io->ops->rx_peek(o->io, frames, max, 0);
    FUZZ_CHECK(n <= max);
    for (unsigned i = 0; i < n; i++) {
        FUZZ_CHECK(frames[i].len >= 1 && frames[i].len <= FRAME_MAX);
        for (uint32_t k = 0; k < frames[i].len; k++)
            fuzz_memif_sink += frames[i].data[k];
    }
    o->lent += n;
    o->received += n;
}

static inline void give_back(struct owner *o, unsigned n)
{
    n = n < o->lent ? n : (unsigned)o->lent;
    o->io->ops->rx_release(o->io, n);
    o->lent -= n;
}

static inline void reserve(struct owner *o, unsigned max)
{
    o->reserved = o->io->ops->tx_reserve(o->io, o->slots, max, 0);
    FUZZ_CHECK(o->reserved <= max);
    for (unsigned i = 0; i < o->reserved; i++) {
        FUZZ_CHECK(o->slots[i].len == 0 && o->slots[i].cap == FRAME_MAX);
        memset(o->slots[i].data, (int)i, o->slots[i].cap);
    }
}

static inline void commit(struct owner *o, struct script *s)
{
    for (unsigned i = 0; i < o->reserved; i++) {
        o->slots[i].len = take(s, 2) % (FRAME_MAX + 2);
        o->sent += o->slots[i].len != 0;
    }
    o->io->ops->tx_commit(o->io, o->slots, (unsigned)o->reserved, 0);
    o->reserved = 0;
}

#endif
