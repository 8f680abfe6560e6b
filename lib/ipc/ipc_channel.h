/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control protocol: channels (drivers/channel) for programs that run the engine themselves, on the
 * device of their context.
 *
 *     IPC_ENGINE_OPEN     the daemon makes the rings and passes them; the program maps them
 *     IPC_ENGINE_MAPPED   the daemon seals them, and the channel carries frames from now on; the
 *                         answer is the program's block of queue pair numbers (lib/core/base/qpn.h)
 *
 *     IPC_ENGINE_GROW     the daemon makes larger rings; the program maps them
 *     IPC_ENGINE_MAPPED   again: both sides move to them, each after its last frame in the old ones
 *
 *     IPC_ENGINE_BLOCK    a further block of numbers, for a program that has used up those that it
 *                         has: a number rests for a minute (SEC-08)
 *
 *     IPC_ENGINE_SOCKET   on a port of the kernel's: a socket for one address of the device, by
 *                         which the program sends and receives; other frames use the channel
 *
 *     IPC_ENGINE_PEER     a queue pair is to send to a peer's one: the daemon answers with the MAC,
 *                         and passes on the packets of the connection only to that peer;
 *                         _PART: to none
 *
 *     IPC_ENGINE_JOIN     the daemon is a member of a multicast group for a queue pair; _LEAVE
 *
 * The channel ends with the connection. Objects of such a program (domains, regions, queues) are
 * its own, and the daemon knows none of them; connections are the daemon's, and name a queue pair
 * by its number.
 */
#ifndef URNIC_IPC_CHANNEL_H
#define URNIC_IPC_CHANNEL_H

#include "ipc_verbs.h"

/* The least minor version, of both ends: IPC_ENGINE_PEER. An older library never names a peer, so
 * all frames of its connections would be dropped; an older daemon does not know the request. 21:
 * the ring's senders go back to its first slots (CHANNEL_AGAIN). */
#define IPC_ENGINE_MINOR 21u

#define IPC_ENGINE_QPS       1024u /* queue pairs of such a program */
#define IPC_ENGINE_BLOCKS    4u    /* its blocks of numbers, at most */
#define IPC_ENGINE_ACK_DELAY 16u   /* 268 ms: the program may have to be scheduled first */

/* PEER: -EINVAL: no queue pair of this channel, an invalid address, or `peer` is 0 and it had no
 * peer before; -EHOSTUNREACH; -EADDRINUSE: the peer belongs to a connection of another user;
 * -EDQUOT: the user has its share. PART reads `qpn` only; it is no error if the queue pair has no
 * peer. */
struct ipc_engine_peer {
    struct ipc_hdr hdr;
    uint32_t qpn;
    uint32_t peer; /* the peer's queue pair; 0 = the same one as before */
    struct ipc_av av;
};

/* A queue pair of the channel joins or leaves a group. The program's engine delivers to it, and the
 * daemon is a member for it. -EINVAL: no queue pair of this channel, no group; LEAVE: it was no
 * member. -EDQUOT, -ENOSPC: too many groups. */
struct ipc_engine_group {
    struct ipc_hdr hdr;
    uint32_t qpn, zero;
    uint8_t gid[16];
};

/* -ENOTSUP: the client's minor version is below IPC_ENGINE_MINOR (older daemons: or the device has
 * several workers); -EDQUOT: the user has its share of memory; -EALREADY: the connection has a
 * channel; -EINVAL: slots (channel_memory_size). */
struct ipc_engine_open {
    struct ipc_hdr hdr;
    uint32_t slots; /* each way; 0 = the daemon's choice */
    uint32_t zero;
};

/* IPC_ENGINE_GROW, of a channel that carries frames, has the same message. fd 0: the rings.
 * -EINVAL: slots, or they aren't more; -EBUSY: the channel has not yet moved to its last rings, or
 * they aren't mapped; -EDQUOT. A failed IPC_ENGINE_MAPPED leaves the channel as it was. */

/* fd 0: the rings (channel_memory_map)
 * fd 1: the eventfd that wakes the daemon
 * fd 2: the page of facts (map IPC_FACTS_PAGE octets, shared, read-only) */
struct ipc_engine_opened {
    struct ipc_hdr hdr;
    uint32_t slots, frame_max;
};

/* -EINVAL: nothing was opened; -EPERM: the program has sealed the rings in another way; -EDQUOT:
 * the user has its share of blocks, those of the last 60 s included, or the channel has
 * IPC_ENGINE_BLOCKS; -EAGAIN: no block is free at present. */
struct ipc_engine_block {
    struct ipc_hdr hdr;
    uint32_t block, zero;
    uint64_t key[2]; /* of its numbers, secret */
};

/* After IPC_ENGINE_MAPPED, for index 0 and so on until -ENOENT: there are no more. -EINVAL: no
 * channel; -ENOTSUP: the port is none of the kernel's; -EPERM: neither root nor the daemon's own
 * user; -ENOSPC: too many programs have sockets; -EDQUOT: the user has its share.
 * IPC_ENGINE_NO_SOCKET: the program can't use its sockets, and the daemon takes all of them back.
 */
#define IPC_ENGINE_NO_SOCKET UINT32_MAX
struct ipc_engine_socket {
    struct ipc_hdr hdr;
    uint32_t index, zero;
};

/* fd 0: the socket, bound to the address and port 4791, shared with the daemon's fd 1: with index
 * 0: from now on readable when the daemon has put frames into the channel */
struct ipc_engine_socket_given {
    struct ipc_hdr hdr;
    uint8_t addr[16]; /* an IP address (GID-01) */
    char iface[16];   /* of the port */
    uint32_t trains;  /* may several datagrams leave in one call? */
    uint32_t zero;
};

IPC_SIZE_CHECK(struct ipc_engine_socket, 24);
IPC_SIZE_CHECK(struct ipc_engine_socket_given, 56);
IPC_SIZE_CHECK(struct ipc_engine_open, 24);
IPC_SIZE_CHECK(struct ipc_engine_opened, 24);
IPC_SIZE_CHECK(struct ipc_engine_block, 40);
IPC_SIZE_CHECK(struct ipc_engine_group, 40);
IPC_SIZE_CHECK(struct ipc_engine_peer, 64);

#endif
