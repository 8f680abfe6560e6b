/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The frames of a capture, kept flow by flow in little memory: the common octets of a flow's frames
 * up to the BTH are stored once, and a frame that can't be replayed has only an entry. One thread.
 */
#ifndef URNIC_REPLAY_KEEP_H
#define URNIC_REPLAY_KEEP_H

#include <stddef.h>

#include "held.h"
#include "lint.h"
#include "wire.h"

#define KEEP_HEADS 4u /* latest heads of a flow that are compared */

/* Octets up to the BTH; a packet's own values in them are 0. */
struct keep_head {
    uint8_t len, ip_off, ip_version;
    bool udp; /* false: a GRH */
    uint8_t octet[];
};

struct kept {
    const struct kept *next; /* the flow's next frame; NULL = this is the last one */
    const struct keep_head *head;
    uint64_t number, ns;
    uint32_t have, len; /* octets from the BTH up to the iCRC: kept; in the frame */
    uint32_t interface;
    uint16_t ip_id;
    uint8_t tclass;
    bool good : 1;      /* whole headers, good iCRC, a service that can be replayed */
    bool selective : 1; /* of selective repeat, if both ends use that */
    bool sent : 1;      /* sent by the machine with this interface */
    bool again : 1;     /* captured before on another interface */
    bool duplicate : 1; /* the network's copy of an earlier packet */
    uint8_t octet[];    /* `have` octets; none unless good or selective */
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
    struct keep_flow *flow; /* by flow id */
    uint32_t flows;         /* room for this many flows */
};

/* Keep the next frame: `view` is lint's description, with a flow; `like` has the values that aren't
 * in the frame, such as number and flags; `p` is its headers if it is good or selective. 0,
 * -ENOMEM, -EFBIG: above the limit. */
int keep_add(struct keep *k, uint32_t flow, const struct kept *like, const struct lint_frame *f,
             const struct wire_pkt *p);
/* The flow's frames; NULL = none. */
const struct keep_flow *keep_flow(const struct keep *k, uint32_t flow);
void keep_free(struct keep *k);

/* Restore the frame at `buf`, which has KEPT_FRAME_MAX octets, except for a UDP checksum and octets
 * after the iCRC; at most `most` octets from the BTH on. Returns the number of octets. */
#define KEPT_FRAME_MAX (WIRE_FRAME_MAX + 64u)
size_t kept_frame(const struct kept *k, uint32_t most, uint8_t *buf);
/* Parse the frame's headers again. */
void kept_parse(const struct kept *k, struct wire_pkt *out);

#endif
