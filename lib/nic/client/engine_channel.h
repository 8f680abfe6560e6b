/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client that runs the engine itself, at a channel of the device's switch (switch.h). On the
 * control thread, unless a comment says otherwise.
 */
#ifndef NIC_ENGINE_CHANNEL_H
#define NIC_ENGINE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "switch_channel.h"

struct client;
struct io_lent;

/* The parts for the client. The descriptors stay the daemon's. */
struct engine_channel_offer {
    uint32_t slots, frame_max;
    int memory_fd, event_fd, facts_fd;
};

/* Make rings of `slots` slots each way (0 = the daemon's choice), and the device's switch if it has
 * none. 0; -EALREADY: it has a channel; -EINVAL: slots; -EDQUOT: its user has its share; or -errno
 * of a system call. */
int engine_channel_open(struct client *c, uint32_t slots, struct engine_channel_offer *out);
/* Make larger rings for such a channel. The old ones and these count for the user until the channel
 * has moved and grows again, or ends. 0; -EINVAL: slots, not more than it has, or no channel;
 * -EBUSY: the last rings are not mapped, or not all frames have left those before; -EDQUOT; or
 * -errno of a system call. */
int engine_channel_grow(struct client *c, uint32_t slots, struct engine_channel_offer *out);
/* The rings of a client that has mapped them; the descriptor stays the channel's. -1: they are
 * sealed, or were not made. */
int engine_channel_unsealed(const struct client *c);
/* The client has mapped the rings: seal them, and attach the channel, or let it move to them.
 * Receives the client's first block of queue pair numbers and its secret (all 0 after a move). 0;
 * -EINVAL: no rings were made, or they are in use; -EPERM: they can't be sealed; -EDQUOT: the user
 * has its share; -EAGAIN: no block is free; -ENOMEM. */
int engine_channel_attach(struct client *c, uint32_t *block, uint64_t key[2]);

/* One more block for such a channel, and its secret. 0; -EINVAL: no channel; -EDQUOT: the user has
 * its share, or the channel IPC_ENGINE_BLOCKS; -EAGAIN: no block is free; -EIO: no random numbers.
 */
int engine_channel_block(struct client *c, uint32_t *block, uint64_t key[2]);

/* Has the client a channel that carries frames? */
bool engine_channel_sends(const struct client *c);
/* A place in the frames that such a client sends. */
struct engine_place {
    struct client *client;
    struct switch_mark mark;
    bool passed; /* the frames before the place have left */
    bool looked; /* for engine_channel_look */
};
/* Have the frames before these places left? With `here` each place is first set after all frames
 * that its client has sent so far. One visit to each worker, however many places there are. */
void engine_channel_look(struct engine_place *at, unsigned n, bool here);
/* Do two clients belong to one process? One of another namespace has no number here. */
bool engine_channel_same_process(const struct client *a, const struct client *b);

/* The index-th socket of the client's own, if the device's port is the kernel's. *fd and, with
 * index 0, *bell are the caller's. 0; -EINVAL: no channel is attached; -EPERM: neither root nor the
 * daemon's own user; -ENOTSUP: the port isn't the kernel's; or as io_ops.lend.
 * IPC_ENGINE_NO_SOCKET: the client can't use those that it has; out->fd is -1. */
int engine_channel_socket(struct client *c, unsigned index, struct io_lent *out, int *bell);

/* The client ends: it gets no more frames; frames that it has sent still leave. Nothing to do
 * without a channel. */
void engine_channel_end(struct client *c);
/* Close the channel; its blocks rest. Nothing to do without one. */
void engine_channel_free(struct client *c);

/* Is this the number of a queue pair that the client's process may have, in this connection or in
 * another one? On the worker, too. */
bool engine_channel_has(const struct client *c, uint32_t qpn);

/* The channel of this very connection; NULL = it has none that carries frames. On the worker. */
struct switch_channel *engine_channel_at(const struct client *c);

#endif
