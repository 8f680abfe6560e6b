/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An emulated Ethernet link inside the process, and its controls.
 *
 * Ports opened with the same link name are joined: two by a wire, three and more by a learning
 * switch. A port that is alone on its link is up, and its frames are lost; when all others have
 * closed, the last one is down. A frame passes these stages between sender and receiver:
 *
 *     rules (lib/fault)  ->  rule (a callback)  ->  loss, corruption, duplication
 *       ->  where to (wire, MAC table)
 *       ->  queue towards the receiver: limit, ECN mark, serialization at the rate
 *       ->  delay, reordering  ->  receiver's port
 *
 * Specification: mem:LINK[,KEY=VALUE...]; the keys belong to the link, so that the first port sets
 * them and later ports leave them out or agree.
 *
 *     rate=10G            line rate, bit/s; a frame takes its octets + 24 (preamble, FCS, gap).
 *                         Without: instantaneous
 *     delay=5us           propagation
 *     queue=256K          octets (as on the wire) that may wait to be serialized; more is dropped.
 *                         Without: a port is full (tx_reserve gives less) while 64 KiB wait
 *     loss=0.01 dup=0.01 reorder=0.01 corrupt=0.01     probabilities, or "1%"
 *     reorder_gap=3       a reordered frame is held until so many others have overtaken it, or
 *     reorder_hold=20us   for so long when none come
 *     ecn_kmin=5K ecn_kmax=200K ecn_pmax=0.01          CC-02; kmin = kmax is a step
 *     pfc=on xoff=192K xon=128K   senders pause while a receiver's queue is above xoff, until xon
 *     rules=FILE          fault rules (doc/faults.md); a->b: frames that port 0 sends
 *     seed=N              of all dice (default: the opener's, or 1)
 *     frame=9234          largest frame
 *     slots=1024          frame buffers of each port, for frames sent and not yet received
 *     log=N               the latest N drops are remembered, for mem_link_drops (default 0): for
 *                         tests, which compare lost frames with repaired ones
 *
 * Time is only what callers pass as `now`; virtual time must not run backwards. With the same seed
 * and the same calls a link repeats its behaviour: each sending port has dice of its own, so the
 * interleaving of two threads doesn't matter.
 *
 * Threads: each port is used by one thread at a time; everything below by any thread.
 */
#ifndef URNIC_MEM_LINK_H
#define URNIC_MEM_LINK_H

#include "fault.h"
#include "io.h"

#define MEM_LINK_PORTS 64u
#define MEM_LINK_NAME  64u
#define MEM_LINK_HEAD  128u
#define MEM_LINK_ALL   (~0u) /* every port, every direction */

struct mem_link;

/* See io_check(). */
int io_mem_check(const char *args, char *err, size_t err_size);

/* For the checks that io_mem_check() can't make: do the keys of the link's first port make sense
 * together, and do those of another one (or the same) agree with them? Both texts without "mem:";
 * seed as in struct io_open_params. 0, or -EINVAL with a sentence in err. */
int mem_link_check(const char *first, uint64_t seed, const char *args, char *err, size_t err_size);

/* The opener for "mem:" (drivers/io.c). */
int io_mem_open(const char *args, const struct io_open_params *params, struct io_port **out,
                char *err, size_t err_size);

/* The link of that name, which ports must have opened already; NULL if there is none. Take a
 * reference, so that logs can be read after the ports have closed; give it back with put. */
struct mem_link *mem_link_get(const char *name);
void mem_link_put(struct mem_link *link);

/* A port's place on its link: the number of the port, which is also the number of the direction in
 * which it sends. Ports get the lowest free number. */
unsigned mem_link_index(const struct io_port *io);

/* ---- faults ---- */

/* The faults of a direction; the values of the specification string. */
struct mem_link_faults {
    double loss, dup, reorder, corrupt;
    uint32_t reorder_gap;  /* frames */
    uint64_t reorder_hold; /* ns */
    uint64_t delay;        /* ns */
    uint64_t rate;         /* bit/s, 0 = instantaneous */
    uint64_t queue;        /* octets, 0 = no limit: the sender's port is full instead */
    uint64_t ecn_kmin, ecn_kmax;
    double ecn_pmax;
    bool pfc;
    uint64_t xoff, xon;
};

/* Read or replace the faults of direction `dir` (MEM_LINK_ALL: every one, also ports opened later).
 * loss, dup, reorder, corrupt act where port `dir` sends; the others act there on a wire, and on a
 * switch on the queue towards port `dir`. */
void mem_link_faults_get(struct mem_link *link, unsigned dir, struct mem_link_faults *out);
void mem_link_faults_set(struct mem_link *link, unsigned dir, const struct mem_link_faults *faults);

#define MEM_LINK_DROP    0x01u
#define MEM_LINK_DUP     0x02u /* one more copy */
#define MEM_LINK_CORRUPT 0x04u /* frame[corrupt_off] ^= corrupt_xor (0: flip the lowest bit) */
#define MEM_LINK_MARK_CE 0x08u
#define MEM_LINK_REORDER 0x10u /* held until reorder_gap others passed */

/* A rule's decision on a frame; zero = nothing special. */
struct mem_link_verdict {
    uint32_t flags;
    uint32_t corrupt_off;
    uint8_t corrupt_xor;
    uint32_t reorder_gap;  /* 0 = 1 */
    uint64_t delay;        /* ns, added to the link's own */
    uint64_t reorder_hold; /* ns, 0 = the link's reorder_hold */
    uint32_t copies;       /* more copies */
    uint64_t flow;         /* only frames of the same flow count for reorder_gap; 0 = all do */
};

/* Called for each sent frame, before the dice, under the link's lock. It may look and decide, but
 * call no function of this file. */
typedef void (*mem_link_rule)(void *ctx, const uint8_t *frame, uint32_t len, unsigned dir,
                              uint64_t now, struct mem_link_verdict *v);
/* Install (or with NULL remove) the rule of the whole link. */
void mem_link_rule_set(struct mem_link *link, mem_link_rule rule, void *ctx);

/* Replace the fault rules (lib/fault/fault.h); len 0 = none. The frames of port 0 go a->b, all
 * others b->a. Returns 0, or -EINVAL and *err. */
int mem_link_rules_set(struct mem_link *link, const char *text, size_t len,
                       struct fault_error *err);
/* The counters of rule number `rule`; `text` (may be NULL) becomes the rule, cut to size. Returns
 * false if there is no such rule. */
bool mem_link_rules_get(struct mem_link *link, unsigned rule, struct fault_rule_stats *out,
                        char *text, size_t size);

/* Plug or unplug port `index` (MEM_LINK_ALL: all). Frames in flight to or from an unplugged port
 * that have not arrived by `now` are lost and logged. */
void mem_link_up(struct mem_link *link, unsigned index, bool up, uint64_t now);

/* ---- lost frames ---- */

enum mem_link_reason {
    MEM_LINK_R_LOSS,     /* the dice */
    MEM_LINK_R_RULE,     /* the rule */
    MEM_LINK_R_QUEUE,    /* tail drop */
    MEM_LINK_R_DOWN,     /* link or receiver not there */
    MEM_LINK_R_OVERSIZE, /* longer than the receiver takes, or shorter than an Ethernet header */
    MEM_LINK_R_NOBUF,    /* no buffer for the copy that a flooded frame needs */
    MEM_LINK_R_CORRUPT,  /* delivered, but damaged */
    MEM_LINK_REASONS
};
const char *mem_link_reason_name(enum mem_link_reason reason);

struct mem_link_drop {
    uint64_t time;
    uint32_t dir;
    uint32_t len;
    enum mem_link_reason reason;
    uint8_t head[MEM_LINK_HEAD]; /* the first octets, as sent (before any damage) */
};

/* With log=N: copy the drops since number *next (start with 0), at most max, oldest first; *next
 * moves on. The log is a ring: *next jumps over overwritten entries, and *missed (may be NULL)
 * counts that. Returns the number copied. */
size_t mem_link_drops(struct mem_link *link, uint64_t *next, struct mem_link_drop *out, size_t max,
                      uint64_t *missed);

/* Counters of a direction: the frames that port `dir` sent, and their fate. */
struct mem_link_stats {
    uint64_t frames, bytes;          /* handed to the link */
    uint64_t lost[MEM_LINK_REASONS]; /* frames, by reason */
    uint64_t delivered;              /* copies sent to receivers */
    uint64_t duplicated, reordered, delayed, marked, flooded;
    uint64_t injected; /* frames that rules made, in answer to frames of port `dir` */
    uint64_t pauses;   /* times that PFC stopped this sender */
    uint64_t queue;    /* octets queued towards port `dir` (switch) or from it (wire) */
    uint64_t queue_max;
};
/* MEM_LINK_ALL: the sum (queue: the largest). */
void mem_link_stats(struct mem_link *link, unsigned dir, uint64_t now, struct mem_link_stats *out);

#endif
