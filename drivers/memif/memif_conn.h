/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One connection with a peer: the handshake of both roles, and the regions and rings that come out
 * of it. Moves no frames.
 */
#ifndef URNIC_MEMIF_CONN_H
#define URNIC_MEMIF_CONN_H

#include <sys/types.h>

#include "memif_region.h"

#define MEMIF_REGIONS_MAX 16u
#define MEMIF_WORKERS     8u  /* most workers of one end */
#define MEMIF_PAIRS       64u /* most pairs of rings of a connection: each worker with each */

_Static_assert(MEMIF_PAIRS == MEMIF_WORKERS * MEMIF_WORKERS, "a pair for each two workers");

/* The settings of a port. */
struct memif_config {
    char path[108];
    char secret[MEMIF_SECRET_MAX + 1];
    bool server;
    bool trust;
    uint32_t id;
    unsigned log2_ring;
    uint32_t buffer; /* 0 = chosen when the peer is known */
    uint32_t frame_max;
    unsigned workers; /* workers that have a queue of the port; 1 = the connection has one pair of
                       * rings */
    unsigned rings;   /* most pairs of rings */
};

/* One direction, from the writer of frames to their reader. We advance our own index, the peer the
 * other one. `bias` is the ring's size for the end that owns its head (the client), else 0: so the
 * arithmetic is the same in both directions. */
struct memif_queue {
    struct memif_ring *ring; /* NULL = no ring yet */
    _Atomic uint16_t *own;
    _Atomic uint16_t *peer;
    uint16_t size, mask;
    uint16_t bias;
    uint16_t cur;   /* next slot to look at */
    uint16_t limit; /* slots from cur up to here are ours, as of the last look */
    uint16_t done;  /* receiving: slots before this one are given back */
    int event;      /* eventfd that wakes the reader; -1 = none */
};

struct memif_pair {
    struct memif_queue rx, tx;
};

enum memif_state {
    MEMIF_IDLE,  /* no peer */
    MEMIF_HELLO, /* client: waits for HELLO; server: for INIT */
    MEMIF_SETUP, /* regions and rings are being passed */
    MEMIF_UP,
    MEMIF_DEAD /* socket closed; memory stays until the frames lent from it are back */
};

struct memif_conn {
    enum memif_state state;
    enum memif_reason reason; /* reason for DEAD */
    int sock;
    dev_t sock_dev;                    /* the file of `sock`: a program may close descriptors of */
    ino_t sock_ino;                    /* which it does not know, and open others */
    unsigned step;                     /* client: number of acknowledged messages */
    uint64_t deadline;                 /* end of the time for the handshake */
    uint32_t buffer;                   /* client: octets per buffer */
    uint32_t buffers_c2s, buffers_s2c; /* client: offset of the first buffer of each ring */
    unsigned regions;
    struct memif_region region[MEMIF_REGIONS_MAX];
    struct memif_queue rx, tx; /* the first pair */
    struct memif_pair *more;   /* the other MEMIF_PAIRS - 1 pairs; NULL = the port has one worker */
    unsigned pairs;            /* number of pairs in use */
    unsigned peer_workers;     /* number of the peer's workers, from its name; 1 = the peer has one,
                                * or is another program */
    char text[96];             /* text of the peer's DISCONNECT */
};

/* Make `c` an idle connection. */
void memif_conn_init(struct memif_conn *c);

/* Take over the connected socket `sock` and begin the handshake; `now` in ns starts its clock. */
void memif_conn_start(struct memif_conn *c, const struct memif_config *cfg, int sock, uint64_t now);

/* Handle the waiting messages. Returns whether the state has changed. */
bool memif_conn_service(struct memif_conn *c, const struct memif_config *cfg, uint64_t now);

/* End the connection: tells the peer why unless it is gone, closes the socket. The state is DEAD;
 * the memory stays mapped. If the program has closed the socket, it has closed our other
 * descriptors, too: then none of them is used or closed (SHM-16). */
void memif_conn_end(struct memif_conn *c, enum memif_reason reason);

/* Unmap and close everything. The state is IDLE. */
void memif_conn_free(struct memif_conn *c);

/* Make pair `i` of a connection that is UP a connection without a socket, with mappings of its own.
 * The pair's eventfds become the new connection's. 0, or -ENOMEM. */
int memif_conn_strand(struct memif_conn *c, unsigned i, struct memif_conn *out);

/* Make slot `index` of the client's rings an empty buffer. */
static inline struct memif_desc memif_conn_empty(const struct memif_conn *c, uint32_t first,
                                                 uint16_t slot)
{
    return (struct memif_desc){.length = c->buffer, .offset = first + slot * c->buffer};
}

#endif
