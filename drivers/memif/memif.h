/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memif ports: packet I/O through memory shared with another process (another urnicd, DPDK's
 * net_memif, FD.io VPP), frames in place in the shared ring.
 *
 *     memif:PATH,role=server|client[,KEY=VALUE...]
 *
 *     PATH            socket in the file system, or @NAME in the abstract name space
 *     role            server (also: master) listens; client (slave) connects and owns the memory
 *     id=0            interface number; both ends must agree
 *     rings=N         pairs of rings at most, 1 ... 64. Default: as many as the workers of both
 *                     ends have a use for (memif_worker.h); a device of one worker has one
 *     log2_ring_size=8    client: slots per ring, 2^1 ... 2^14
 *     buffer=N        client: octets per buffer. Default: one largest frame. No more than that: a
 *                     copy in and out of a 4162-octet frame takes 350 cycles with buffers of 4288
 *                     octets, 410 with 8192. 2048 when the server is DPDK, whose newer releases
 *                     write past their mbufs when a descriptor is longer than their `bsize`
 *     secret=TEXT     up to 24 octets, both ends must agree
 *     trust=0         1: accept regions that their owner can truncate (unsealed, or hugetlbfs):
 *                     DPDK's zero-copy=yes, VPP's buffer pools. The peer can then kill this process
 *
 * A peer that dies or misbehaves takes the link down and nothing else; service() brings it up
 * again. Octets that a peer writes to shared memory are checked on a private copy. The frames
 * themselves are lent in place: a hostile peer can change one while it is being read, so look at a
 * header field once.
 *
 * While the port sleeps on rx_fd, that becomes readable for control events too; an rx_peek that
 * finds no frame then also does the work of service().
 */
#ifndef URNIC_MEMIF_H
#define URNIC_MEMIF_H

#include "io.h"

/* Why a connection ended. */
enum memif_reason {
    MEMIF_OK,
    MEMIF_HANGUP,  /* the peer's socket closed */
    MEMIF_GOODBYE, /* the peer sent DISCONNECT */
    MEMIF_MESSAGE, /* malformed, unknown or out of order control message */
    MEMIF_PEER_VERSION,
    MEMIF_PEER_ID,
    MEMIF_PEER_MODE,
    MEMIF_PEER_SECRET,
    MEMIF_REGION,   /* a region without, or with a wrong or too small, memfd */
    MEMIF_UNSEALED, /* a region that its owner could truncate */
    MEMIF_RING,     /* a ring outside its region, misaligned, or without cookie */
    MEMIF_TIMEOUT,  /* the handshake took too long */
    MEMIF_INDEX,    /* ring index out of range */
    MEMIF_DESC,     /* descriptor outside its region */
    MEMIF_CHAIN,    /* a chain of descriptors without end */
    MEMIF_SMALL,    /* all buffers of a ring together can't hold one frame */
    MEMIF_SYSTEM,   /* this side is out of memory or descriptors */
    MEMIF_HOLDER,   /* the peer passed a descriptor that can hold others */
    MEMIF_REASONS
};

struct memif_counters {
    uint64_t connects;               /* times the link came up */
    uint64_t refused;                /* connections turned away: one peer at a time */
    uint64_t chained_rx, chained_tx; /* frames in more than one descriptor */
    uint64_t copied_rx, copied_tx;   /* frames the driver had to copy */
    uint64_t kicks;                  /* eventfd writes */
    uint64_t reason[MEMIF_REASONS];  /* ended connections and refused handshakes, by reason */
    char text[96];                   /* text of the peer's last DISCONNECT, printable */
};

/* Name of a reason, for counters and logs; never NULL. */
const char *memif_reason_name(enum memif_reason reason);

/* See io_check(). */
int io_memif_check(const char *args, char *err, size_t err_size);

/* The io_open_fn of this driver. A server's socket exists when this returns; the link comes up
 * later, by service(). Errors as io_open's; -EADDRINUSE: another process listens on PATH. */
int io_memif_open(const char *args, const struct io_open_params *params, struct io_port **out,
                  char *err, size_t err_size);

/* See io_forked. */
void memif_port_forked(const struct io_port *io);

/* Copies the counters of a port that io_memif_open made. */
void memif_port_counters(struct io_port *io, struct memif_counters *out);

#endif
