/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels of a switch: their life, and which are active. A channel that has sent nothing for a
 * while is armed and sleeps; its program's eventfd wakes it through nic_switch.epfd. So only active
 * channels cost a round time.
 */
#ifndef NIC_SWITCH_CHANNEL_H
#define NIC_SWITCH_CHANNEL_H

#include "io.h"
#include "switch.h"

/* A channel sleeps after this time without a frame, and this many looks: the worker may have been
 * off its core. */
#define SWITCH_IDLE_NS    100000u
#define SWITCH_IDLE_LOOKS 32u
#define SWITCH_LOOK_NS    20000u /* interval of checks of epfd while the worker is busy */

struct switch_channel {
    struct nic_switch *s;
    struct io_port *io;  /* the switch's end */
    void *owner;         /* the caller's */
    struct share *share; /* of its user; NULL = of none */
    struct switch_channel *all_next;
    struct switch_channel *next, *prev; /* in the ring of active channels; NULL: not in it */
    bool asleep;
    bool direct; /* its program has sockets of its own, so strays may come from it */
    bool over;   /* an index was wrong: the channel isn't read any more */
    bool ending; /* its program is gone: it gets no frames */
    bool held;   /* `frame` is borrowed and not processed yet */
    struct io_frame frame;
    struct wire_addr hop_of; /* last address asked of nic_switch.next_hop */
    uint8_t hop[6];          /* the answer for hop_of */
    bool hop_known;
    uint64_t hop_round;
    struct switch_pairs *pairs; /* its queue pairs' peers (pair.h); NULL = it has had none */
    unsigned npairs;
    /* waiting frames for it (switch_spill.h) */
    unsigned nspilled;
    uint32_t spill_first, spill_last;
    struct switch_channel *spill_next;
    struct switch_channel *unwoken_next;
    bool unwoken;             /* has frames for which switch_wake wakes its program */
    uint64_t spill_at;        /* ns: time since which none of them has left */
    bool stuck;               /* the program takes no frames: none waits until it does */
    unsigned weight;          /* its turns are that many times as long as with 1 */
    unsigned turn;            /* frames left in its turn; 0: a new turn comes next */
    int32_t credit;           /* octets left in its turn; below 0: it has sent more */
    uint64_t busy;            /* ns: time of its last frame */
    unsigned looks;           /* visits since its last frame */
    uint64_t empties;         /* visits without a frame */
    uint64_t drops;           /* frames lost because its ring was full */
    uint64_t refused;         /* frames of its program that were refused */
    struct switch_told *told; /* its counters (switch_counters.h); NULL: none reported yet */
    uint32_t unasked;         /* octets of counters that it has reported unasked */
    bool silent;              /* it has left a question unanswered */
};

/* A place in a program's frames, for switch_passed. */
struct switch_mark {
    uint64_t sent, empties;
};

/* Add a program's channel. `io` is the switch's end, the switch's from then on; `owner` is kept for
 * the caller. NULL: out of memory, or watches; io stays the caller's. */
struct switch_channel *switch_attach(struct nic_switch *s, struct io_port *io, void *owner,
                                     uint64_t now);
/* Remove a channel at once; its port is closed and its blocks rest. */
void switch_detach(struct nic_switch *s, struct switch_channel *c, uint64_t now);

/* Draw a block of queue pair numbers for a channel. `key` receives the block's secret. Returns the
 * block, -EDQUOT: the user of c->share has its share, -EAGAIN: none is free at present, or -EIO: no
 * random numbers. */
int switch_draw(struct nic_switch *s, struct switch_channel *c, uint64_t now, uint64_t key[2]);

/* Its program has died: the channel gets no more frames. Frames that the program had committed
 * still leave (QP-11). */
void switch_end(struct nic_switch *s, struct switch_channel *c);

/* A request of the program takes effect after its earlier frames have left, which switch_passed
 * reports. A full port, or a program that corrupts its ring, can delay that: the caller limits the
 * wait. */
struct switch_mark switch_mark(struct nic_switch *s, struct switch_channel *c);
bool switch_passed(const struct switch_channel *c, const struct switch_mark *mark);

/* ---- active channels ---- */

/* Borrow the next frames of a channel, at most `max`, which isn't 0. Returns the number of
 * frames. */
unsigned switch_take(struct switch_channel *c, struct io_frame *frames, unsigned max);
/* This visit has found `n` frames (all released since). */
void switch_visited(struct nic_switch *s, struct switch_channel *c, unsigned n, uint64_t now);
/* Is there an active channel? */
static inline bool switch_tx_ready(const struct nic_switch *s)
{
    return s->nactive > 0;
}
/* Activate the channels that have woken. Cheap, and mostly does nothing. Returns the number
 * activated. */
unsigned switch_look(struct nic_switch *s, uint64_t now);
/* Before the worker blocks, on epfd among others: put all channels to sleep. True: one of them has
 * frames, so don't block. */
bool switch_sleep(struct nic_switch *s);

#endif
