/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A bump in the wire: two ports, and each frame received at one is sent at the other, in order and
 * unchanged, unless a judge decides otherwise. It has no address, answers nothing and learns
 * nothing: neither end can tell that it is there.
 *
 * A frame is copied once, from the receiving port's room into the sending port's. If the output
 * port is full the frame waits in the input port, so that the bump itself loses nothing; a frame
 * for a port without a link is dropped and counted.
 *
 * One thread. Time is an argument (ns, monotonic); only bump_wait reads a clock.
 */
#ifndef URNIC_BUMP_H
#define URNIC_BUMP_H

#include "bump_queue.h"
#include "io.h"
#include "pace.h"

#define BUMP_QUEUE_DEFAULT 4096u /* most frames kept back in each direction */

#define BUMP_DIRS 2u /* enum fault_dir: by where a frame comes from, port A or port B */

/* Judges a frame, as fault_apply of lib/fault does: returns FAULT_* and fills *out. The frame is in
 * its slot for sending and may be changed. Runs in the middle of a burst: it may call bump_inject,
 * but no other function of this file. */
typedef unsigned (*bump_judge)(void *arg, enum fault_dir dir, uint8_t *frame, uint32_t len,
                               uint64_t now, struct fault_out *out);

/* Counters of one direction. Each received frame is in exactly one of: forwarded, kept now,
 * dropped, no_link, oversize. */
struct bump_counters {
    uint64_t received, octets;      /* taken from the port it came by */
    uint64_t forwarded, out_octets; /* given to the other port, with copies and injected frames */
    uint64_t dropped;               /* by the judge */
    uint64_t copied, injected;      /* additional frames, made here */
    uint64_t changed;               /* changed by the judge: other octets, or fewer */
    uint64_t held;                  /* kept back for a time, or until others have passed */
    uint64_t no_link;               /* the output port is down */
    uint64_t oversize;              /* longer than the output port can send */
    uint64_t no_room;               /* not kept back, since the queue is full */
};

struct bump_half {
    struct io_port *in, *out;
    struct io_frame frame[IO_BURST_MAX]; /* lent by `in` */
    unsigned have, at;                   /* frame[at..have) of these are yet to be moved */
    uint64_t peeked;                     /* time of the last rx_peek on `in`, ns */
    uint64_t since; /* time of the rx_peek before: the lent frames came later */
    bool out_up;
    struct bump_queue queue;
    struct bump_counters count;
};

struct bump {
    struct io_port *port[BUMP_DIRS]; /* A, B */
    struct bump_half half[BUMP_DIRS];
    bump_judge judge; /* NULL = everything passes */
    void *arg;
    uint64_t service_at; /* ns */
    struct pace pace;    /* state of bump_wait; pace.never: it returns at once */
    uint64_t round_at;   /* time of the last call of bump_round */
};

/* Open both ports and join them. `mtu`: octets of IP that must fit, 0 = the ports' choice; `queue`:
 * most frames kept back in each direction. Ports become promiscuous if they can. `err` receives a
 * sentence. Returns 0 or -errno with nothing left open. */
int bump_open(struct bump *b, const char *port_a, const char *port_b, uint32_t mtu, uint32_t queue,
              char *err, size_t err_size);
void bump_close(struct bump *b);

/* Move waiting frames, up to a burst in each direction. Returns the number of frames taken or sent;
 * 0 = no work. */
unsigned bump_round(struct bump *b, uint64_t now);

/* After a round without work: yield the core, or sleep until a frame comes, one is due, or `until`
 * (ns). Returns when there may be work, and early on signals. */
void bump_wait(struct bump *b, uint64_t now, uint64_t until);

/* Send a frame of the caller's own in direction `dir`, at `due` or soon after. Returns false when
 * there is no room for it; both are counted. */
bool bump_inject(struct bump *b, enum fault_dir dir, const uint8_t *frame, uint32_t len,
                 uint64_t due);

/* Frames kept back in both directions. */
static inline uint32_t bump_kept_now(const struct bump *b)
{
    return bump_queue_len(&b->half[FAULT_AB].queue) + bump_queue_len(&b->half[FAULT_BA].queue);
}

/* Are both links up, as far as the last round knows? */
static inline bool bump_up(const struct bump *b)
{
    return b->half[FAULT_AB].out_up && b->half[FAULT_BA].out_up;
}

#endif
