/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Congestion control: the interface. One const object per algorithm, one file each, and a list of
 * all of them (cc_types). State lives in the queue pair (struct cc), time and packets come in as
 * arguments. Rules: CC-09, CC-24.
 */
#ifndef URNIC_CC_H
#define URNIC_CC_H

#include <stddef.h>
#include <stdint.h>

#define CC_UNLIMITED UINT64_MAX

struct cc;

struct cc_type {
    const char *name;
    /* Start at line_rate bit/s (0 = unknown: unlimited). */
    void (*init)(struct cc *cc, uint64_t line_rate, uint64_t now);
    void (*on_ack)(struct cc *cc, uint64_t rtt_ns, uint32_t packets, uint64_t now);
    void (*on_cnp)(struct cc *cc, uint64_t now);
    void (*on_loss)(struct cc *cc, uint64_t now); /* NAK or timeout */
    void (*on_send)(struct cc *cc, uint32_t octets, uint64_t now);
    uint64_t (*deadline)(const struct cc *cc); /* UINT64_MAX = none */
    void (*expire)(struct cc *cc, uint64_t now);
};

struct cc {
    const struct cc_type *type;
    uint64_t rate;     /* bit/s; CC_UNLIMITED = no pacing */
    uint64_t state[6]; /* the algorithm's own */
};

extern const struct cc_type cc_none; /* never limits */
/* All algorithms, NULL-terminated. */
extern const struct cc_type *const cc_types[];
/* By name; NULL = unknown. */
const struct cc_type *cc_type_find(const char *name);

#endif
