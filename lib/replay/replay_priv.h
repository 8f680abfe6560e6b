/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of lib/replay share.
 */
#ifndef URNIC_REPLAY_PRIV_H
#define URNIC_REPLAY_PRIV_H

#include "keep.h"
#include "replay.h"
#include "wire.h"

struct fields;

/* A captured packet of the direction that is replayed: what is looked at again and again. All else
 * is in its frame, see packet_wire. Its fields are 0 unless it is good or selective. */
struct packet {
    const struct kept *kept;
    uint64_t va;
    uint32_t flow;
    uint32_t psn, rkey, dma_len, msn;
    uint32_t room;   /* receive buffer that it finds; UINT32_MAX = enough */
    uint32_t starve; /* found no receive work request, says the RNR NAK in this place; + 1, 0 = it
                      * did */
    uint16_t ip_id, pkey, payload_len;
    uint8_t payload_at; /* octets from the BTH on */
    uint8_t opcode, syndrome;
    bool ipv4 : 1;
    bool good : 1;      /* as in its frame */
    bool selective : 1; /* of selective repeat, if that is what both ends mean by it: else not
                         * usable */
    bool usable : 1;    /* good, and from where the capture sees most of this role */
    bool duplicate : 1; /* the network's copy of an earlier packet */
    /* evidence, for one direction at a time */
    bool lost : 1;      /* never reached the other end */
    bool overtaken : 1; /* an answer that later ones have overtaken, as far as that can be told */
    bool doubled : 1;   /* by the network behind the capture: the copy finds one */
    bool refused : 1;   /* with an access error: its key isn't good (any more) */
    bool overrun : 1; /* a READ that asks for PSNs that others use, or too many: dma_len is less */
    bool inside : 1;  /* a request with such a PSN */
    bool spoilt : 1;  /* its data could not be placed by the responder itself */
};

/* Requests go in `flow`, their answers come in `answers`. */
struct direction {
    struct packet *packet; /* of both flows only, in the order of the capture */
    size_t packets;
    uint32_t *answer; /* which of them are usable answers: there may be none for long stretches */
    size_t answered;  /* how many */
    uint32_t *data;   /* places of those among them that bring data, in the order of their PSNs */
    size_t brought;   /* how many */
    uint32_t naks;    /* NAK codes among them: bits by number */
    struct held *held;
    const struct fields *fields; /* what lint has found */
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
    uint16_t pkey, answers_pkey; /* of the requests, and of what answers them */
};

#define AHEAD_MAX  65536u /* packets between a request and its answer */
#define STEP_EVERY 1024u  /* packets from one look at the progress to the next */

/* How far it is: packets that have been gone through, of all that are to be. */
struct watch {
    replay_progress progress; /* or NULL */
    void *ctx;
    uint64_t done, total;
};

struct judge {
    replay_report report;
    bool mute; /* the text of differences isn't needed */
    struct watch *watch;
    void *ctx;
    struct replay_outcome *out;
    unsigned cut;     /* differences of packets that were cut off */
    uint64_t excused; /* answers that our engine doesn't give here, but might: another choice of
                       * what the capture doesn't tell may explain them */
};

#define FULL_MEMBER 0x8000u /* of a partition: the P_Key's first bit */

/* WIRE_F_* */
static inline unsigned packet_flags(const struct packet *p)
{
    return wire_opcodes[p->opcode].flags;
}

/* Did the capture keep only a part of it? */
static inline bool packet_cut(const struct packet *p)
{
    return p->kept->have < p->kept->len;
}

/* Its payload, as far as it was kept: see packet_payload_have. */
static inline const uint8_t *packet_payload(const struct packet *p)
{
    return p->kept->octet + p->payload_at;
}

static inline uint32_t packet_payload_have(const struct packet *p)
{
    uint32_t have = p->kept->have > p->payload_at ? p->kept->have - p->payload_at : 0;
    return have < p->payload_len ? have : p->payload_len;
}

/* All that its headers say. */
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

/* A usable answer to one. */
static inline bool packet_answers(const struct direction *d, const struct packet *p)
{
    return p->usable && p->flow == d->answers.id && packet_flags(p) & WIRE_F_RESPONSE;
}

/* FLUSH and ATOMIC WRITE are options (OPC-07), which are passed over. */
static inline bool packet_optional(const struct packet *p)
{
    uint8_t op = p->opcode & 0x1F;
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
    return !(packet_flags(p) & WIRE_F_ACK) || wire_aeth_kind(p->syndrome) == WIRE_AETH_ACK;
}

/* PSNs that a request packet stands for. */
uint32_t packet_psns(const struct direction *d, const struct packet *p);

/* Make the list of answers, once it is known which packets are usable. 0, -ENOMEM, -EFBIG. */
int packets_index(struct direction *d);
void packets_unindex(struct direction *d);
/* Where in the list the answers behind this packet begin. */
size_t packets_behind(const struct direction *d, size_t at);
/* Where among those that bring data the ones with this PSN begin which stand behind this packet. */
size_t packets_data(const struct direction *d, uint32_t psn, size_t at);

/* Which packets are usable, in this role. Where the end was captured whose place we take, that is:
 * where its packets went out, the capture shows just what came in. Else, if one interface has all
 * that this end sent, what that one shows. Elsewhere each packet counts where it was first seen;
 * also where those of the other end went out, too: a machine with both, and a capture that doesn't
 * name its interfaces. */
void vantage_view(struct direction *d, enum replay_role role);

/* Without interfaces to tell them apart: are most answers there twice, as in captures of two places
 * merged into one? */
bool vantage_doubled(const struct direction *d);

/* RC, as responder: choose what leaves the fewest differences. *explained: that is none at all, and
 * j->out is what as_responder makes of it. 0, or what as_responder returns. */
int choices_find(struct direction *d, struct judge *j, bool *explained);

/* Fill in the MTU. */
void evidence_mtu(struct direction *d);

/* Find READs that ask for more PSNs than the requester goes by, and cut them. */
void overrun_find(struct direction *d);

/* Put answers that stand shortly before what they answer behind it. */
void order_restore(struct direction *d);

/* Fill in what the packets tell about this direction, and mark its packets. */
void evidence_find(struct direction *d);
/* Was the message that begins with this packet refused with this NAK? */
bool evidence_refused(const struct direction *d, const struct packet *p, uint8_t syndrome);

/* What this sequence NAK asks for: is it answered without being sent again? Then it came late,
 * behind what was sent after it. */
bool evidence_late(const struct direction *d, const struct packet *nak);

/* One more packet has been gone through: -EINTR = stop here. */
int judge_step(struct judge *j);

/* Our engine in the responder's place, or the requester's: give it the other end's packets of this
 * direction, and tell the judge what differs. 0, -ENOMEM, -EFBIG, -EINTR. */
int as_responder(struct direction *d, struct judge *j);
int as_requester(struct direction *d, struct judge *j);
/* In the role that j->out says; d->answers is not used. */
int as_datagram(struct direction *d, struct judge *j);
/* Likewise; d->flow and d->answers are those of queue pair 1, of two hosts. */
int as_cm(struct direction *d, struct judge *j);

/* Count and report that a captured packet differs; `ours` = what our engine has instead. */
void judge_differ(struct judge *j, const struct packet *p, const char *rule, const char *field,
                  const char *ours, const char *why);

#endif
