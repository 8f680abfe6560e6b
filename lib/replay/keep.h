/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frames of a capture, kept flow by flow, in as little memory as it takes: what the frames of a
 * flow have in common up to the BTH is there once, and of frames that can't be replayed there is
 * only that they were there. One thread.
 */
#ifndef URNIC_REPLAY_KEEP_H
#define URNIC_REPLAY_KEEP_H

#include <stddef.h>

#include "held.h"
#include "lint.h"
#include "wire.h"

#define KEEP_HEADS 4u /* of a flow that are looked at, the latest ones */

/* Octets up to the BTH; what is a packet's own in them is 0. */
struct keep_head {
    uint8_t len, ip_off, ip_version;
    bool udp; /* else a GRH */
    uint8_t octet[];
};

struct kept {
    const struct kept *next; /* of its flow; NULL = the last one */
    const struct keep_head *head;
    uint64_t number, ns;
    uint32_t have, len; /* octets from the BTH on, up to the iCRC: kept; that it had */
    uint32_t interface;
    uint16_t ip_id;
    uint8_t tclass;
    bool good : 1;      /* whole headers, good iCRC, of a service that can be replayed */
    bool selective : 1; /* of selective repeat: good if both ends mean that by it */
    bool sent : 1;      /* by the machine with this interface */
    bool again : 1;     /* seen before on another interface */
    bool duplicate : 1; /* the network's copy of an earlier packet */
    uint8_t octet[];    /* `have`; none unless good or selective */
};

struct keep_flow {
    struct kept *first, *last;
    uint64_t packets;
    const struct keep_head *head[KEEP_HEADS];
    unsigned next_head;
};

struct keep {
    struct held *held;
    struct keep_chunk *chunk;
    struct keep_flow *flow; /* by id */
    uint32_t flows;         /* there is room for */
};

/* Keep the next frame: `view` is what lint says of it, with a flow; `like` has what isn't found in
 * the frame, as number and flags; `p` is its headers if it is good or selective. 0, -ENOMEM,
 * -EFBIG: more than may be held. */
int keep_add(struct keep *k, uint32_t flow, const struct kept *like, const struct lint_frame *f,
             const struct wire_pkt *p);
/* NULL: nothing of this flow. */
const struct keep_flow *keep_flow(const struct keep *k, uint32_t flow);
void keep_free(struct keep *k);

/* The frame as it was, but for a UDP checksum and what stands behind the iCRC: its octets at `buf`,
 * KEPT_FRAME_MAX of room, at most `most` from the BTH on. Returns how many there are. */
#define KEPT_FRAME_MAX (WIRE_FRAME_MAX + 64u)
size_t kept_frame(const struct kept *k, uint32_t most, uint8_t *buf);
/* Its headers, once more. */
void kept_parse(const struct kept *k, struct wire_pkt *out);

#endif
