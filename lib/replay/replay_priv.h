/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/replay: shared types and functions.
 */
#ifndef URNIC_REPLAY_PRIV_H
#define URNIC_REPLAY_PRIV_H

#include "keep.h"
#include "replay.h"
#include "wire.h"

struct fields;

/* A captured packet of the replayed direction: the fields in frequent use. The frame has all
 * others, see packet_wire. The fields are 0 unless it is good or selective. */
struct packet {
    const struct kept *kept;
    uint64_t va;
    uint32_t flow;
    uint32_t psn, rkey, dma_len, msn;
    uint32_t room;   /* size of the receive buffer that it gets; UINT32_MAX = enough */
    uint32_t starve; /* place + 1 of its RNR NAK; 0 = it found a receive work request */
    uint16_t ip_id, pkey, payload_len;
    uint8_t payload_at; /* octets from the BTH on */
    uint8_t opcode, syndrome;
    bool ipv4 : 1;
    bool good : 1;      /* as in struct kept */
    bool selective : 1; /* of selective repeat, which both ends use; unusable otherwise */
    bool usable : 1;    /* good, and from the interface that shows most of this role */
    bool duplicate : 1; /* the network's copy of an earlier packet */
    /* evidence, for one direction at a time */
    bool lost : 1;      /* never reached the other end */
    bool overtaken : 1; /* an answer known to be overtaken by later ones */
    bool doubled : 1;   /* duplicated by the network after the capture */
    bool refused : 1;   /* refused with an access error: its key isn't valid (any more) */
    bool overrun : 1; /* a READ of too many PSNs, or of other requests' ones: dma_len is reduced */
    bool inside : 1;  /* a request with a PSN of such a READ */
    bool spoilt : 1;  /* its data could not be placed by the responder itself */
};

/* Requests go in `flow`, their answers come in `answers`. */
struct direction {
    struct packet *packet; /* packets of both flows, in the order of the capture */
    size_t packets;
    uint32_t *answer; /* indices of usable answers; long stretches may have none */
    size_t answered;  /* number of `answer` */
    uint32_t *data;   /* places in `answer` of answers with data, in PSN order */
    size_t brought;   /* number of `data` */
    uint32_t naks;    /* NAK codes among the answers: bits by number */
    struct held *held;
    const struct fields *fields; /* fields that lint has found */
    struct lint_flow_info flow, answers;
    uint32_t connection;
    uint32_t mtu;    /* octets */
    uint32_t base;   /* first PSN that is replayed */
    size_t begin;    /* first packet whose requests count: before it the responder waits */
    bool known_base; /* `base` is known */
    bool own_port;   /* captured at the interface that sent the role's packets */
    bool doubled;    /* captured twice: only a counter shows the order of answers */
    bool exact;      /* captured packets reached the role in captured order */
    uint64_t trip;   /* ns from the capture to the responder and back, 0 = not considered: a packet
                        sent less than this before a NAK isn't its cause */
    uint8_t trip_share;          /* trip in eighths of its upper bound; find_choices */
    bool keeps_early;            /* the responder seems to keep early packets of WRITEs */
    bool selective;              /* both ends have announced selective repeat */
    uint8_t rnr_timer;           /* timer code in its RNR NAKs */
    unsigned qp_rights;          /* MEM_REMOTE_* */
    uint16_t pkey, answers_pkey; /* P_Key of the requests, and of their answers */
};

#define AHEAD_MAX  65536u /* packets between a request and its answer */
#define STEP_EVERY 1024u  /* packets between two reports of progress */

/* Progress: packets processed, of all to process. */
struct watch {
    replay_progress progress; /* may be NULL */
    void *ctx;
    uint64_t done, total;
};

struct judge {
    replay_report report;
    bool mute; /* no text of differences is needed */
    struct watch *watch;
    void *ctx;
    struct replay_outcome *out;
    unsigned cut;     /* differences of packets that were cut off */
    uint64_t excused; /* answers that our engine gives only with another choice of the values that
                         the capture doesn't show */
};

#define FULL_MEMBER 0x8000u /* full member of a partition: the P_Key's first bit */

/* WIRE_F_* */
static inline unsigned packet_flags(const struct packet *p)
{
    return wire_opcodes[p->opcode].flags;
}

/* Did the capture keep only a part of the packet? */
static inline bool packet_cut(const struct packet *p)
{
    return p->kept->have < p->kept->len;
}

/* The kept part of its payload: see packet_payload_have. */
static inline const uint8_t *packet_payload(const struct packet *p)
{
    return p->kept->octet + p->payload_at;
}

static inline uint32_t packet_payload_have(const struct packet *p)
{
    uint32_t have = p->kept->have > p->payload_at ? p->kept->have - p->payload_at : 0;
    return have < p->payload_len ? have : p->payload_len;
}

/* All fields of its headers. */
static inline void packet_wire(const struct packet *p, struct wire_pkt *out)
{
    kept_parse(p->kept, out);
}

/* The packets of both flows, in the order of the capture. 0, -ENOMEM, -EFBIG. */
int packets_collect(const struct keep *k, struct direction *d);
void packets_free(struct direction *d);

/* A usable request of this direction. */
static inline bool packet_asks(const struct direction *d, const struct packet *p)
{
    return p->usable && p->flow == d->flow.id && packet_flags(p) & WIRE_F_REQUEST;
}

/* A usable answer to a request of this direction. */
static inline bool packet_answers(const struct direction *d, const struct packet *p)
{
    return p->usable && p->flow == d->answers.id && packet_flags(p) & WIRE_F_RESPONSE;
}

/* FLUSH and ATOMIC WRITE are options (OPC-07), which are skipped. */
static inline bool packet_optional(const struct packet *p)
{
    uint8_t op = p->opcode & 0x1F;
    return op == WIRE_FLUSH || op == WIRE_ATOMIC_WRITE;
}

/* An acknowledgement of selective repeat in this flow: a hello, or a map of the received packets.
 */
static inline bool packet_sack(const struct packet *p, uint32_t flow)
{
    return p->selective && p->flow == flow && packet_flags(p) & WIRE_F_ACK;
}

/* READ response, ATOMIC acknowledge or ACK: not a NAK. */
static inline bool packet_positive(const struct packet *p)
{
    return !(packet_flags(p) & WIRE_F_ACK) || wire_aeth_kind(p->syndrome) == WIRE_AETH_ACK;
}

/* The number of a request packet's PSNs. */
uint32_t packet_psns(const struct direction *d, const struct packet *p);

/* Make the list of answers, once the usable packets are marked. 0, -ENOMEM, -EFBIG. */
int packets_index(struct direction *d);
void packets_unindex(struct direction *d);
/* The index in `answer` of the first one after this packet. */
size_t answers_after(const struct direction *d, size_t at);
/* The index in `data` of the first one with this PSN after this packet. */
size_t packets_data(const struct direction *d, uint32_t psn, size_t at);

/* Mark the usable packets in this role. If the capture has the interface that sent the packets of
 * the replaced end, it shows exactly the packets received there. Otherwise, if one interface shows
 * all packets of this end, the packets of that interface are usable. In all other captures the
 * first copy of each packet is usable, also in a capture of both ends' machine that doesn't name
 * its interfaces. */
void vantage_view(struct direction *d, enum replay_role role);

/* In a capture without interfaces: do most answers occur twice, as in merged captures of two
 * places? */
bool vantage_doubled(const struct direction *d);

/* RC, as responder: choose the values that leave the fewest differences. *explained: there is no
 * difference, and j->out is the result of as_responder. Returns 0, or an error of as_responder. */
int choices_find(struct direction *d, struct judge *j, bool *explained);

/* Fill in the MTU. */
void evidence_mtu(struct direction *d);

/* Find READs that ask for more PSNs than the requester counts, and cut them. */
void overrun_find(struct direction *d);

/* Move answers that were captured shortly before their requests to the place after them. */
void order_restore(struct direction *d);

/* Derive the facts about this direction from its packets, and mark the packets. */
void evidence_find(struct direction *d);
/* Was the message that begins with this packet refused with this NAK? */
bool evidence_refused(const struct direction *d, const struct packet *p, uint8_t syndrome);

/* Is the PSN of this sequence NAK answered without a retransmission? Then the packet arrived late,
 * after packets that were sent later. */
bool evidence_late(const struct direction *d, const struct packet *nak);

/* Count one more packet as processed. -EINTR = stop here. */
int judge_step(struct judge *j);

/* Put our engine in the responder's place, or the requester's: give it the other end's packets of
 * this direction, and report differences to the judge. 0, -ENOMEM, -EFBIG, -EINTR. */
int as_responder(struct direction *d, struct judge *j);
int as_requester(struct direction *d, struct judge *j);
/* The same for datagrams, in the role of j->out; d->answers is not used. */
int as_datagram(struct direction *d, struct judge *j);
/* Likewise; d->flow and d->answers are those of queue pair 1, of two hosts. */
int as_cm(struct direction *d, struct judge *j);

/* Count and report a differing captured packet; `ours` = our engine's packet instead. */
void judge_differ(struct judge *j, const struct packet *p, const char *rule, const char *field,
                  const char *ours, const char *why);

#endif
