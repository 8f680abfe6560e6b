/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of lib/replay share.
 */
#ifndef URNIC_REPLAY_PRIV_H
#define URNIC_REPLAY_PRIV_H

#include "replay.h"
#include "wire.h"

/* A captured packet of a connected queue pair, or one that is only counted. */
struct packet {
    uint64_t number, ns;
    const uint8_t *frame; /* `have` octets */
    uint32_t have, len;
    uint32_t flow;
    struct wire_pkt pkt;
    uint32_t interface;
    bool good;      /* whole headers, good iCRC */
    bool sent;      /* by the machine with this interface */
    bool again;     /* seen before on another interface */
    bool selective; /* of selective repeat, if that is what both ends mean by it: not usable else */
    bool usable;    /* good, and from where the capture sees most of this role */
    bool duplicate; /* the network's copy of an earlier packet */
    /* evidence, for one direction at a time */
    bool lost;       /* never reached the other end */
    bool overtaken;  /* an answer that later ones have overtaken, as far as that can be told */
    uint64_t starve; /* found no receive work request, says the RNR NAK of this number; or 0 */
    bool doubled;    /* by the network behind the capture: the copy finds one */
    bool refused;    /* with an access error: its key isn't good (any more) */
    bool spoilt;     /* its data could not be placed by the responder itself */
    uint32_t room;   /* receive buffer that it finds; UINT32_MAX = enough */
};

/* Requests go in `flow`, their answers come in `answers`. */
struct direction {
    struct packet *packet; /* of both flows only, in the order of the capture */
    size_t packets;
    struct lint_flow_info flow, answers;
    uint32_t connection;
    uint32_t mtu;    /* octets */
    uint32_t base;   /* first PSN that is replayed */
    size_t begin;    /* packet from which on requests count: before, the responder waits */
    bool known_base; /* there is one */
    bool own_port;   /* captured where the role's own packets went out, */
    bool doubled;    /* all is there twice: nothing but a counter tells the order of answers */
    bool exact;      /* and what came in there reached it, in that order */
    uint64_t trip;   /* ns from the capture to the responder and back, 0 = not considered: what was
                      * sent less than this before a NAK isn't its cause */
    uint8_t trip_share; /* trip = so many eighths of the most it can be; find_choices */
    bool keeps_early;   /* the responder keeps what comes early of WRITEs, as far as can be told */
    bool selective;     /* both ends have said that they do selective repeat */
    uint8_t rnr_timer;  /* as its RNR NAKs say */
    unsigned qp_rights; /* MEM_REMOTE_* */
    uint16_t pkey;
};

#define AHEAD_MAX 65536u /* packets between a request and its answer */

struct judge {
    replay_report report;
    void *ctx;
    struct replay_outcome *out;
    uint64_t excused; /* answers that our engine doesn't give here, but might: another choice of
                       * what the capture doesn't tell may explain them */
};

/* WIRE_F_* */
static inline unsigned packet_flags(const struct packet *p)
{
    return wire_opcodes[p->pkt.opcode].flags;
}

/* A usable request of this direction. */
static inline bool packet_asks(const struct direction *d, const struct packet *p)
{
    return p->usable && p->flow == d->flow.id && packet_flags(p) & WIRE_F_REQUEST;
}

/* A usable answer to one. */
static inline bool packet_answers(const struct direction *d, const struct packet *p)
{
    return p->usable && p->flow == d->answers.id && packet_flags(p) & WIRE_F_RESPONSE;
}

/* FLUSH and ATOMIC WRITE are options that our engine has not (OPC-07). */
static inline bool packet_optional(const struct packet *p)
{
    uint8_t op = p->pkt.opcode & 0x1F;
    return op == WIRE_FLUSH || op == WIRE_ATOMIC_WRITE;
}

/* An acknowledgement of selective repeat in this flow: a hello, or what has come and what not. */
static inline bool packet_sack(const struct packet *p, uint32_t flow)
{
    return p->selective && p->flow == flow && packet_flags(p) & WIRE_F_ACK;
}

/* READ response, ATOMIC acknowledge or ACK: not a NAK. */
static inline bool packet_positive(const struct packet *p)
{
    return !(packet_flags(p) & WIRE_F_ACK) || wire_aeth_kind(p->pkt.syndrome) == WIRE_AETH_ACK;
}

/* PSNs that a request packet stands for. */
uint32_t packet_psns(const struct direction *d, const struct packet *p);

/* Not at the end's own port: has one interface of several seen all that the flow `own` sent, and
 * most of the other one? The others then add nothing but the differences between their clocks. If
 * there are several such, it is the one that has seen least of the other flow: the nearest. */
bool vantage_find(const struct direction *d, uint32_t own, uint32_t *interface);

/* Without interfaces to tell them apart: are most answers there twice, as in captures of two places
 * merged into one? */
bool vantage_doubled(const struct direction *d);

/* Fill in the MTU. */
void evidence_mtu(struct direction *d);

/* Put answers that stand shortly before what they answer behind it. */
void order_restore(struct direction *d);

/* Fill in what the packets tell about this direction, and mark its packets. */
void evidence_find(struct direction *d);
/* Was the message that begins with this packet refused with this NAK? */
bool evidence_refused(const struct direction *d, const struct packet *p, uint8_t syndrome);

/* What this sequence NAK asks for: is it answered without being sent again? Then it came late,
 * behind what was sent after it. */
bool evidence_late(const struct direction *d, const struct packet *nak);

/* 0, -ENOMEM. */
int as_responder(struct direction *d, struct judge *j);
int as_requester(struct direction *d, struct judge *j);
/* In the role that j->out says; d->answers is nobody. */
int as_datagram(struct direction *d, struct judge *j);
/* Likewise; d->flow and d->answers are those of queue pair 1, of two hosts. */
int as_cm(struct direction *d, struct judge *j);

/* Count and report that a captured packet differs; `ours` = what our engine has instead. */
void judge_differ(struct judge *j, const struct packet *p, const char *rule, const char *field,
                  const char *ours, const char *why);

#endif
