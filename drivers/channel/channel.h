/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A channel: frames between the daemon's switch and a program that runs the engine itself. Two
 * rings of fixed slots, one for each direction, lie in memory that the daemon makes; each end is a
 * port (io.h). No port specification names a channel: its ends are opened with the descriptors and
 * sizes that the control connection has passed.
 *
 *     daemon                                      program
 *     channel_memory_make
 *                         descriptor, shape  ->   channel_memory_map
 *     channel_memory_seal <-  "mapped"
 *     channel_open(CHANNEL_SWITCH)
 *                         "sealed", eventfd  ->   channel_open(CHANNEL_PROGRAM)
 *
 * A channel grows in the same way: both ends get more memory by channel_grow, first the daemon,
 * then the program. Each direction moves to the new ring on its own, after the last frame in the
 * old ring, so no frame is lost or overtakes another. Then the old memory is freed.
 *
 * The ends don't trust each other, and the daemon's end must not. With any octets written by the
 * other end, an end stays within its memory, reads a descriptor once, and lends no frame longer
 * than its limit. An impossible index ends the channel (channel_fault). A lent frame is in memory
 * that the other end may still change: check a private copy.
 *
 * The switch sleeps on an eventfd, its rx_fd. The program has no descriptor: it sleeps in
 * channel_wait, on a word of the channel, unless the daemon has a bell for it (channel_set_bell).
 * Neither end is woken when a full ring has room again.
 */
#ifndef URNIC_CHANNEL_H
#define URNIC_CHANNEL_H

#include "io.h"

#define CHANNEL_SLOTS_MIN 64u /* in each direction */
#define CHANNEL_SLOTS_MAX 4096u

enum channel_side { CHANNEL_SWITCH, CHANNEL_PROGRAM };

/* The reason why a channel is over. */
enum channel_fault {
    CHANNEL_OK,
    CHANNEL_INDEX, /* the other end has written an impossible index */
};

/* The memory of both rings. */
struct channel_memory {
    uint8_t *base; /* NULL = none */
    size_t size;   /* octets mapped */
    int fd;        /* the memfd, until it is sealed (daemon); -1 = none */
    uint32_t slots, frame_max;
};

struct channel_counters {
    uint64_t wakes;              /* system calls that woke the other end */
    uint64_t wakes_lost;         /* wakes that failed: the program has closed its eventfd */
    uint64_t moved_rx, moved_tx; /* moves to more memory */
};

/* Octets of a memory with `slots` slots in each direction, for frames of at most `frame_max`
 * octets; 0: `slots` isn't a power of two from CHANNEL_SLOTS_MIN to CHANNEL_SLOTS_MAX, or frame_max
 * not in 64..IO_FRAME_MAX. */
size_t channel_memory_size(uint32_t slots, uint32_t frame_max);

/* The daemon: make memory, all zero, of a fixed size. The caller passes m->fd to the program; it
 * stays m's. 0, -EINVAL (channel_memory_size), or the system's error. */
int channel_memory_make(struct channel_memory *m, uint32_t slots, uint32_t frame_max);

/* The program: map the daemon's memory, which has this shape. `fd` stays the caller's, and may be
 * closed then. 0, -EINVAL: the shape is wrong, or the object smaller; or the system's error. */
int channel_memory_map(struct channel_memory *m, int fd, uint32_t slots, uint32_t frame_max);

/* The daemon, once the program has mapped the memory and before it is used. From then on no page
 * can be punched out of it, and no new mapping can be writable; existing mappings stay as they are.
 * Closes m->fd. Waits while the program punches pages out, so workers must not call it. 0, or
 * -EPERM: the program has set other seals. */
int channel_memory_seal(struct channel_memory *m);

/* m->fd, which channel_memory_seal has yet to seal; -1: the seals are there, or it was called. */
int channel_memory_unsealed(const struct channel_memory *m);

/* Unmap and close. No effect if there is no memory. */
void channel_memory_free(struct channel_memory *m);

/* Open an end.
 *
 * side       the end
 * m          its memory, the port's from then on (*m becomes none)
 * event      the eventfd that wakes the switch, non-blocking; the port's from then on. Each end has
 *            a descriptor of its own for it
 * frame_max  octets of the longest frame that this end sends and takes; 0 = the memory's frame_max
 * out        the port
 *
 * A program's end that takes the place of another one goes on where that has stopped.
 * 0; -EINVAL: frame_max isn't in 64..m->frame_max; -ENOMEM; -EBADF: event isn't open. Then m and
 * event stay the caller's. Any thread. */
int channel_open(enum channel_side side, struct channel_memory *m, int event, uint32_t frame_max,
                 struct io_port **out);

/* ---- from here on for the thread that has the port, unless a comment says otherwise ---- */

/* Move to this memory, larger and for the same frames. *m is the port's from then on and becomes
 * none. 0; -EBUSY: the last move is not complete; -EINVAL: it isn't larger, or for other frames;
 * -ENOMEM. */
int channel_grow(struct io_port *io, struct channel_memory *m);
/* Have both directions moved? The old memory is free then. Also true if there was no move. */
bool channel_grown(struct io_port *io);

/* The metadata of the i-th lent frame, as set by the other end; 0 is the oldest frame. The switch
 * sets a frame's flags (IO_RX_*), which are also in the program's io_frame. */
uint32_t channel_rx_meta(const struct io_port *io, unsigned i);
/* Set the metadata of the i-th slot of the last tx_reserve; otherwise it is 0. */
void channel_tx_meta(struct io_port *io, unsigned i, uint32_t meta);

/* The metadata of a packet for another owner that the kernel has given to the program's socket
 * (drivers/direct). All other metadata is a queue pair's number. */
#define CHANNEL_STRAY 0x80000000u

/* For the switch's end, before the program first sleeps: also wake the program by this end of a
 * socket pair. The port's from then on. */
void channel_set_bell(struct io_port *io, int fd);

/* The position after all frames that the other end has sent so far. */
uint64_t channel_rx_mark(const struct io_port *io);
/* Have all frames before that position been given back? Also true when the channel is over. */
bool channel_rx_passed(const struct io_port *io, uint64_t mark);

/* For the switch's end: while `on`, frames don't wake the program. Turning it off wakes the program
 * if it sleeps and a frame has been sent meanwhile. */
void channel_hold_wake(struct io_port *io, bool on);

/* Send one frame of up to caps.frame_max octets to the other end itself, also without a link. No
 * slot is reserved. Returns whether there was room. */
bool channel_put(struct io_port *io, const uint8_t *frame, uint32_t len);

/* Slots in each direction of the current memory. */
uint32_t channel_slots(const struct io_port *io);
/* Frames that the other end hasn't given back yet; at most the slots. */
uint32_t channel_tx_waiting(const struct io_port *io);

/* Set the link state, which is up at first. Without a link nothing is sent; frames that have
 * arrived can still be received. `why` is for io_link.why and must live as long as the port. */
void channel_set_link(struct io_port *io, bool up, const char *why);
/* Why the channel is over. It lends and sends nothing then. */
enum channel_fault channel_fault(const struct io_port *io);
void channel_counters(const struct io_port *io, struct channel_counters *out);

/* A program's end, armed (rx_arm) and found empty since: sleep until a frame comes, channel_nudge,
 * a signal, or for `ns`. It may also return without a reason. */
void channel_wait(struct io_port *io, uint64_t ns);
/* End such a sleep. Any thread, and in a signal handler. The caller publishes its reason before the
 * call; the sleeper checks for it between arming and channel_wait. */
void channel_nudge(struct io_port *io);

#endif
