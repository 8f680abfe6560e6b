/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels of a switch: their life, and which are looked at. One that has sent nothing for a while
 * is armed and sleeps; its program's eventfd brings it back, through nic_switch.epfd. So a round
 * costs what the active ones cost, however many there are.
 */
#ifndef NIC_SWITCH_CHANNEL_H
#define NIC_SWITCH_CHANNEL_H

#include "io.h"
#include "switch.h"

#define SWITCH_IDLE_NS 100000u /* without a frame: then a channel sleeps */
#define SWITCH_LOOK_NS 20000u  /* so often is epfd looked at while the worker is busy */

struct switch_channel {
    struct nic_switch *s;
    struct io_port *io; /* the switch's end */
    void *owner;        /* the caller's */
    struct switch_channel *all_next;
    struct switch_channel *next, *prev; /* of the active ones; NULL = asleep, or over */
    bool asleep;
    bool over;   /* an index was a lie: it isn't looked at any more */
    bool ending; /* its program is gone: nothing is given to it */
    bool held;   /* `frame` has been lent and not been looked at */
    struct io_frame frame;
    uint64_t busy;    /* ns: when it had a frame last */
    uint64_t empties; /* how often there was none */
    uint64_t drops;   /* frames lost because its ring was full */
    uint64_t refused; /* frames of its program that were refused */
};

/* So much of what a program had sent: switch_passed. */
struct switch_mark {
    uint64_t sent, empties;
};

/* A program comes. `io` is the switch's end of its channel, the switch's from then on; `owner` is
 * kept for the caller. NULL: out of memory, or watches; io stays the caller's. */
struct switch_channel *switch_attach(struct nic_switch *s, struct io_port *io, void *owner,
                                     uint64_t now);
/* It goes, at once; the port is closed and its blocks rest. */
void switch_detach(struct nic_switch *s, struct switch_channel *c, uint64_t now);

/* Draw a block of queue pair numbers for it. key: receives the block's secret. Returns the block,
 * -EAGAIN: none is free at present, or -EIO: no random numbers. */
int switch_draw(struct nic_switch *s, struct switch_channel *c, uint64_t now, uint64_t key[2]);

/* Its program has died: nothing is given to the channel any more; what the program had committed
 * still leaves (QP-11). */
void switch_end(struct nic_switch *s, struct switch_channel *c);

/* What its program asks for now takes effect when the frames that it sent before have left, that is
 * when switch_passed says so. A port that is full, or a program that keeps its ring in disorder,
 * can hold that up: the caller limits how long it waits. */
struct switch_mark switch_mark(struct nic_switch *s, struct switch_channel *c);
bool switch_passed(const struct switch_channel *c, const struct switch_mark *mark);

/* ---- which are looked at ---- */

/* The next frames of a channel, at most `max`, which isn't 0; they are lent. Returns how many. */
unsigned switch_take(struct switch_channel *c, struct io_frame *frames, unsigned max);
/* This visit has found `n` frames (all given back since). */
void switch_visited(struct nic_switch *s, struct switch_channel *c, unsigned n, uint64_t now);
/* Is there a channel to look at? */
static inline bool switch_tx_ready(const struct nic_switch *s)
{
    return s->nactive > 0;
}
/* Bring back those that have woken up. Cheap, and does nothing most of the times. Returns how many.
 */
unsigned switch_look(struct nic_switch *s, uint64_t now);
/* Before the worker blocks, on epfd among others: have all channels sleep. True: one of them has
 * something, so don't. */
bool switch_sleep(struct nic_switch *s);

#endif
