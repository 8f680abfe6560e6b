/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault rules: which frames to drop, delay, change or copy. The emulated link, the simulator and
 * the bump in the wire share one rule language (doc/faults.md).
 *
 *     drop conn 2 psn +4 first-tx
 *     mark and delay 5us..20us  data a->b every 10
 *
 * A `struct fault` holds the rules with their dice and counters, and a table of the connections it
 * has seen. The caller passes it each frame, in order, and carries out the result of fault_apply.
 * Pure code: no I/O, no clock but the caller's `now`, no allocation after fault_parse. The same
 * rules, seed, frames and times give the same faults.
 *
 * Threads: one at a time per struct fault; several are independent.
 */
#ifndef URNIC_FAULT_H
#define URNIC_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES_MAX  1024u
#define FAULT_TEXT_MAX   (1u << 20) /* octets of a rule text */
#define FAULT_CONNS      4096u      /* connections in the table; a new one evicts the idlest */
#define FAULT_COPIES_MAX 64u
#define FAULT_INJECTS    8u   /* frames injected for one frame, at most */
#define FAULT_INJECT_LEN 128u /* the longest of them */

/* A frame's direction through the place where the rules act; the caller says which is which. */
enum fault_dir { FAULT_AB, FAULT_BA };

struct fault;

struct fault_error {
    unsigned line, column; /* from 1; line 0: the text as a whole */
    char text[200];        /* "expected a number, found 'x'" */
};

/* Read a rule text[0..len); it need not end in NUL. `seed` starts the dice. Each rule has its own
 * dice, so adding a rule doesn't change the others' faults. Returns NULL and *err if the text is
 * wrong or memory is short. The text isn't needed afterwards. */
struct fault *fault_parse(const char *text, size_t len, uint64_t seed, struct fault_error *err);
void fault_free(struct fault *f); /* NULL is fine */

/* Start the dice again from another seed; counters and connections stay. */
void fault_seed(struct fault *f, uint64_t seed);

/* Time 0 of `after` and `until`; without this it is the first frame's `now`. */
void fault_start(struct fault *f, uint64_t now);

/* ---- one frame ---- */

/* Orders for the caller about the frame. 0 = send it on unchanged. */
#define FAULT_DROP    0x01u /* don't send the frame; combines with FAULT_INJECT only */
#define FAULT_CHANGED 0x02u /* its octets or its length changed: out->len */
#define FAULT_DAMAGED 0x04u /* its iCRC is meant to be wrong now */
#define FAULT_COPY    0x08u /* send out->copies further copies, at the same time */
#define FAULT_HOLD    0x10u /* send it later: out->delay, out->gap (fault_hold.h keeps it) */
#define FAULT_INJECT  0x20u /* send out->inject[0..ninject), at once, before the frame */

struct fault_inject {
    enum fault_dir dir; /* direction of the injected frame */
    uint32_t len;
    uint8_t data[FAULT_INJECT_LEN]; /* a whole frame without FCS, iCRC in place */
};

struct fault_out {
    uint32_t len; /* length of the frame, always set; never more than before */
    uint32_t copies;
    uint64_t delay;  /* ns to hold it and its copies */
    uint32_t gap;    /* > 0: frames of its direction and flow to wait for */
    uint64_t within; /* ns: longest wait for that gap, on top of `delay` */
    uint64_t flow;   /* the flow that counts for the gap; set for every frame when a rule has
                      * `reorder`, else 0 */
    uint32_t ninject;
    struct fault_inject inject[FAULT_INJECTS];
};

/* Apply the rules to one frame[0..len), from the Ethernet header on, without FCS; may change it in
 * place. Don't pass it frames again that it has injected or delayed. `now` is in ns and must not
 * run backwards. Returns FAULT_* bits and fills the members of *out that these bits name. */
unsigned fault_apply(struct fault *f, enum fault_dir dir, uint8_t *frame, uint32_t len,
                     uint64_t now, struct fault_out *out);

/* The same for a frame of `len` octets of which only the first `have` are there. Octets that are
 * missing are not changed; FAULT_DAMAGED then means that they would have been damaged. */
unsigned fault_apply_cut(struct fault *f, enum fault_dir dir, uint8_t *frame, uint32_t have,
                         uint32_t len, uint64_t now, struct fault_out *out);

/* ---- statistics ---- */

struct fault_rule_stats {
    unsigned line;    /* of the rule text */
    uint64_t matched; /* frames that match all selectors, before nth, prob and count */
    uint64_t done;    /* frames on which the rule acted */
    uint64_t failed;  /* impossible actions among these: the frame has no such field, or the queue
                         pair for a CNP is not known yet */
};

struct fault_stats {
    uint64_t frames, roce;
    bool knows;       /* rules need the table of connections; if not, conns and evicted are 0 */
    uint64_t conns;   /* connections seen, which is also the number of the latest one */
    uint64_t evicted; /* connections forgotten for want of room */
};

/* How many rules there are; the functions below count them from 0. */
unsigned fault_rules(const struct fault *f);
/* The counters of one rule. */
void fault_rule_stats(const struct fault *f, unsigned rule, struct fault_rule_stats *out);
/* Totals of all frames. */
void fault_stats(const struct fault *f, struct fault_stats *out);
/* The rule's text for reports: one blank between words, no comment. Valid as long as f. */
const char *fault_describe(const struct fault *f, unsigned rule);

#endif
