/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: what the tracker remembers of one direction of a connection.
 */
#ifndef URNIC_LINT_FLOW_H
#define URNIC_LINT_FLOW_H

#include "lint.h"

/* ---- 24-bit arithmetic (PSN-02) ---- */

/* The PSN n behind a. */
static inline uint32_t lint_add(uint32_t a, uint32_t n)
{
    return (a + n) & WIRE_PSN_MASK;
}

/* Does a request with this opcode end a message? READ, ATOMIC, FLUSH, ATOMIC WRITE do. */
static inline bool lint_ends_message(const struct wire_opcode_info *op)
{
    return (op->flags & WIRE_F_END) || !(op->flags & (WIRE_F_SEND | WIRE_F_WRITE));
}

/* Does it begin one? */
static inline bool lint_begins_message(const struct wire_opcode_info *op)
{
    return (op->flags & WIRE_F_START) || !(op->flags & (WIRE_F_SEND | WIRE_F_WRITE));
}

/* ---- one direction of a connection ---- */

/* A request packet, by PSN. */
struct lint_rec {
    uint64_t number, ns;           /* first transmission */
    uint64_t last_number, last_ns; /* last one */
    uint64_t va;
    uint32_t psn;
    uint32_t dma_len;  /* RETH; handed down from FIRST to LAST */
    uint32_t rkey;     /* RETH, AtomicETH or IETH */
    uint32_t operands; /* of an ATOMIC, or the immediate: hash */
    uint32_t crc_head; /* iCRC register behind the headers, and at the end: tell payloads apart */
    uint32_t crc;
    uint32_t index; /* of the packet in its message; LINT_UNKNOWN */
    uint32_t msgs;  /* messages that this packet completes, it included, since the epoch began */
    uint32_t epoch;
    uint32_t sends; /* transmissions */
    uint32_t len;   /* payload */
    uint16_t ip_id;
    uint8_t opcode;
    uint8_t flags; /* LINT_R_* */
};
#define LINT_R_SEEN    0x01u
#define LINT_R_CORRUPT 0x02u /* seen with a bad iCRC only */
#define LINT_R_BAD     0x04u /* broke a rule: its neighbours aren't judged by it */
#define LINT_R_CUT     0x08u /* the capture kept only a part: no payload, perhaps no headers */
#define LINT_R_ACKREQ  0x10u
#define LINT_R_BROKEN  0x20u /* malformed: it was sent, but nothing else is known */
#define LINT_UNKNOWN   UINT32_MAX

#define LINT_RECS_MIN    64u
#define LINT_RECS_MAX    8192u
#define LINT_RECS_OCTETS (1ull << 30) /* of all flows; with less each remembers fewer requests */
#define LINT_READS       256u

#define LINT_CONTINUED 64u

/* A READ or ATOMIC that was requested. */
struct lint_read {
    uint64_t va, orig, number;
    uint32_t psn, n; /* n = 0: not known yet, since the MTU isn't */
    uint32_t len, rkey;
    uint32_t next;   /* first response PSN not seen yet */
    uint32_t reread; /* PSN of the latest partial re-read; == psn: none */
    uint32_t msgs, epoch;
    uint32_t starts; /* answers seen that begin it */
    uint64_t ns;     /* of the latest response */
    uint64_t reread_ns;
    bool valid, atomic, done, have_orig, again; /* again = requested more than once */
    bool blind;                                 /* the capture has cut the RETH off */
    bool continued;    /* the latest re-read has been counted as answered in the continued form */
    bool late;         /* requests behind it were seen before it */
    bool parts;        /* has been asked for again from the middle */
    bool missed;       /* a response was seen, and none with the PSN before it */
    bool disputed;     /* its ends don't go by its length: that has been said */
    uint32_t asked;    /* n as it was, when other requests have used its PSNs */
    bool perhaps_part; /* what came before wasn't captured: perhaps a re-read from the middle */
};

/* A finding that waits for what follows. */
struct lint_wait {
    bool on;
    uint32_t msn;
    bool nak;
    uint8_t opcode;
    uint32_t psn;
    uint64_t number, ns;
    char dump[LINT_DUMP_MAX];
};

/* The beginning of a packet that may have to be named later. */
struct lint_head {
    uint64_t number, ns;
    uint32_t len, wire_len, psn, msn;
    uint8_t opcode;
    uint8_t octet[128];
};

/* A response that later packets are compared with. */
struct lint_mark {
    bool on;
    uint32_t psn;
    uint16_t ip_id;
    uint8_t syndrome;
    uint8_t again;    /* how often it came again, perhaps as the network's copy */
    uint32_t sends;   /* of the request packet at that time */
    uint32_t answers; /* of this kind to it: one for each time that it was sent, at most */
    uint64_t number, ns;
};

#define LINT_JUMP_MAX 65536      /* PSNs: a larger step is no gap, but another queue pair */
#define LINT_SPAN_MAX (1u << 23) /* half of the PSNs: further back nothing is compared */

/* After so many requests what was sent before a capture's beginning is answered. */
#define LINT_SETTLED   1024u
#define LINT_ANEW_NS   1000000u /* sooner than this no queue pair begins a new life */
#define LINT_RECENT    32u
#define LINT_STRANGERS 64u
#define LINT_REWRITTEN 1024u
#define HOP_NS         1000000u /* sooner than this no other path is taken */
#define LINT_SKEW_NS   20000u   /* so much later requests may be recorded, at most */
#define COPY_NS        50000u   /* in which a copy of a packet comes, when no round trip is known */
#define LINT_PRIVATE   0xC0u    /* opcodes from here on are manufacturers' */

/* A flow that perhaps is the other direction: answers in a row had a PSN that it alone asked with.
 */
struct lint_fits {
    uint32_t id, n;
    uint32_t psn; /* of the latest of them */
};

/* Where packets were seen of late. */
struct lint_recent {
    struct {
        uint64_t ns;
        uint32_t id, interface;
        uint16_t vlan;
        uint8_t ttl;
        bool sent;
    } seen[LINT_RECENT];
    uint32_t n;
};

/* Findings that wait for the flow's end: violations, unless the ends turn out to use opcodes of
 * their own. */
struct lint_held {
    struct lint_finding *finding;
    uint32_t n;
    uint32_t order; /* bit per finding: only if the network hasn't changed the order, */
    uint32_t skew;  /* only if both directions were captured in one place */
};

/* The UDP source port of a flow's requests. */
struct lint_sport {
    bool seen;
    uint16_t now;
    struct lint_wait changed; /* the first packet with another one, */
    uint16_t was, is;
    struct lint_wait idle; /* the latest packet, if it has another one and nothing was in flight, */
    uint16_t idle_was;     /* than this */
    uint32_t changes;      /* while others were in flight, */
    bool unsure;           /* perhaps */
};

/* The one of all its packets, and an answer that came from another connection's. */
struct lint_port {
    uint16_t own;
    uint32_t n; /* packets with it, up to a few */
    bool varies;
    uint32_t qpn; /* to which the answer should have gone */
    struct lint_wait stray;
    bool to_nobody; /* or so it seems, which has been said */
};

/* Its P_Key. */
struct lint_pkey {
    uint16_t own, other;       /* the flow's own, and what another packet had */
    uint32_t seen;             /* packets with a P_Key, up to 3; */
    struct lint_wait first[2]; /* two that differ: the third says which is the flow's own */
    uint64_t last_ns;          /* of the last one */
    bool paused;               /* the second came so late that it may be of another life, */
    uint16_t before;           /* after one with this P_Key; 0 = there was none */
};

/* What has taught its path MTU. */
struct lint_mtu {
    uint32_t shown;         /* packets that have shown it, up to 2, */
    struct lint_wait first; /* and the first one in either direction */
};

/* Its IPv4 identifications. */
struct lint_id {
    uint16_t last;        /* of the latest packet */
    uint32_t icrc;        /* its iCRC */
    uint16_t most;        /* the latest one of a counter before this packet */
    bool same;            /* and another packet has had the same: it tells nothing */
    uint32_t steps, near; /* from one packet to the next, and how many of them were short */
};

/* Where the count of messages began: the MSN at the epoch's beginning lies in lo..hi. */
struct lint_base {
    bool on, lo_on; /* hi is known, lo is */
    uint32_t lo, hi;
    uint32_t n;             /* answers that say hi; */
    bool again;             /* the first one, perhaps to a repetition */
    struct lint_wait first; /* the first one */
    bool maybe_on;
    uint32_t maybe, maybe_low; /* it is this, says an answer after so many messages */
    bool shift_on, shift_ack;  /* an answer has been found wrong (shift_ack: an ACK), */
    uint32_t shift, shift_psn; /* which would say that it is this, and had that PSN */
};

/* The highest message number that an answer has told. */
struct lint_counted {
    bool on, goes_on; /* it is known; later requests have raised it */
    uint32_t msn, epoch;
    uint64_t number;        /* packet that said so, */
    struct lint_head *head; /* and what it was */
    uint32_t stands;        /* so many later requests haven't raised it */
    enum lint_stands { LINT_MOVES, LINT_STANDS_PERHAPS, LINT_STANDS } stands_said;
    uint64_t stands_number; /* packet of the last of them */
};

/* The answer with the highest message number, to any request. */
struct lint_highest {
    bool on;
    uint16_t ip_id;
    uint32_t epoch;
    struct lint_head *head;
};

/* READs that were asked for again from the middle (RD-10). */
struct lint_reread {
    struct lint_wait continued; /* one that was answered in the continued form */
    struct lint_wait *held;     /* LINT_CONTINUED of them, for the end */
    uint32_t n, restarted;      /* answered so, and as requests of their own */
};

/* One READ or ATOMIC more than agreed, it seems. */
struct lint_over {
    struct lint_wait wait;
    uint32_t psn, n; /* the oldest that was open, and how many there were with it */
};

/* The first request has a later PSN than the CM announced: were others before it? */
struct lint_begun {
    struct lint_wait wait;
    uint32_t epoch;
};

/* The time of RNR NAKs. */
struct lint_early {
    struct lint_wait wait; /* sent again before it was over, */
    uint64_t after, must;  /* ns: and after which time, not that */
    unsigned kept, broken; /* how often it has waited, and how often not */
};

/* The ACK that acknowledges most. */
struct lint_most {
    bool on;
    uint32_t psn, msn;
    uint16_t ip_id;
    uint64_t number, ns;
    struct lint_wait less; /* one that was sent after it, and acknowledges less */
};

/* What the latest ACK or NAK has told of the responder: the PSN that it waits for, and the MSN. */
struct lint_place {
    bool on;
    uint32_t psn, msn;
    uint64_t number;
};

/* Packets with iCRC 0: the first one, and its right iCRC. */
struct lint_no_icrc {
    struct lint_wait first;
    uint32_t should;
    bool outbound;      /* as the capture says */
    bool accepted;      /* a request of this flow was answered, by no NAK */
    uint64_t n, rights; /* how many there are, and how many with a right one */
};

/* Answers that were recorded before what they answer, as where each direction is captured in a
 * place of its own: the latest one, and how many. */
struct lint_skew {
    bool on;
    uint32_t psn, n;
    uint64_t ns;
    bool counts,
        ack;       /* or before one more that they count, which for an ACK is no SEND or WRITE; */
    uint32_t more; /* so many, without one behind which none came soon */
};

/* A direction of a connection: the requests that were sent on it, and what answers to them, which
 * come on its peer, have told. */
struct lint_flow {
    struct lint_flow *chain; /* hash table */
    struct lint_flow *older; /* the same of flows by their hosts, the newest first */
    struct lint_flow *peer;
    struct lint_flow_info info;
    uint64_t hash;
    bool private;       /* packets with opcodes of the ends' own have been seen */
    bool by_psn;        /* `peer` was found by the PSN of a response and nothing better */
    unsigned misfits;   /* answers with data that it didn't ask for */
    uint32_t looked_at; /* flows with lower ids have been compared with its requests, */
    unsigned ports;     /* and so many fitted */
    struct lint_fits fits;
    bool detached;   /* no longer in the table: its queue pair's number was used again */
    bool used_again; /* it has taken the place of such a one */
    struct lint_held held;
    struct lint_recent recent; /* by iCRC */

    /* every packet */
    struct lint_port port;
    struct lint_pkey pkey;
    struct lint_mtu mtu;
    struct lint_id id;
    unsigned csum_bad, icrc_run, cut_broken;
    uint8_t octet_4; /* of the BTH, with reserved bits: has been said */
    struct lint_no_icrc no_icrc;
    bool dmac_seen, migreq_seen, migreq_noted;
    uint8_t dmac[6];
    struct lint_wait odd; /* a packet of another service */

    /* requests on this flow */
    bool started;       /* one has been seen */
    bool start_known;   /* `first` is from the CM */
    bool from_start;    /* the first message numbers say that nothing was sent before the capture */
    bool hi_uncertain;  /* a READ of unknown size came last */
    uint32_t first;     /* first PSN */
    uint32_t announced; /* first PSN by the CM */
    uint32_t span;      /* hi - first, saturating */
    uint32_t hi;        /* the next new PSN */
    uint32_t last;      /* PSN of the packet before */
    uint32_t epoch, first_epoch, msgs;
    struct lint_rec *rec;
    uint32_t recs;         /* a power of two, or 0 */
    uint64_t *recs_octets; /* of all flows */
    struct lint_read *read;
    uint32_t reads; /* started so far: the newest is read[(reads - 1) % LINT_READS] */
    uint32_t outstanding;
    uint32_t read_limit, retry; /* from the CM; UINT32_MAX = not known */
    struct lint_sport sport;
    struct lint_over over;
    struct lint_begun begun;
    struct lint_early early;

    /* what the peer's responses have said about these requests */
    bool ack_on;
    uint32_t acked;           /* highest PSN acknowledged */
    uint64_t progress_number; /* when that last moved, */
    uint64_t answer_number;   /* and when any answer came */
    struct lint_base base;
    struct lint_counted counted;
    struct lint_highest highest;
    struct lint_most most;
    struct lint_place place;
    struct lint_mark nak, rnr, fatal;
    struct lint_wait beyond;  /* an answer to what was never seen */
    bool beyond_unread;       /* perhaps it was, in a packet that can't be read */
    uint64_t requests_beyond; /* so many had been seen when `beyond` was */
    struct lint_skew skew;
    bool behind_on;  /* what was sent only then has been answered, */
    uint32_t behind; /* with this PSN, before that of `beyond` */
    struct {
        bool on; /* a NAK has asked for what was sent before the capture: */
        uint32_t psn;
    } asked_back;
    struct lint_reread reread;
    struct lint_wait ahead;     /* an MSN larger than the messages seen explain, */
    uint64_t ahead_retransmits; /* info.retransmits then, */
    uint32_t ahead_hi;          /* `hi`, but for READs and ATOMICs since, */
    uint32_t ahead_base;        /* and where the count would have begun; */
    bool ahead_all;             /* it is an ACK, and no READ or ATOMIC came behind */
    uint32_t ahead_msgs;        /* these messages */
    bool rnr_02;                /* has been found to break it */
    unsigned rnr_02_doubts;
    /* answers that others have overtaken: a NAK asks for what has been acknowledged, or the message
     * number is less than it has been */
    unsigned back;
    bool msn_on;
    uint32_t msn_most;
};

/* ---- flow.c, of one flow alone ---- */

/* The two are the directions of one connection. */
void lint_flow_pair(struct lint_flow *a, struct lint_flow *b);
/* Forget the requests; the flow itself stays, for reports. */
void lint_flow_free(struct lint_flow *f);
/* What is remembered of the request with this PSN; NULL = nothing. */
struct lint_rec *lint_rec_at(const struct lint_flow *f, uint32_t psn);
/* The same, made if need be; NULL = no memory, or too long ago. */
struct lint_rec *lint_rec_make(struct lint_flow *f, uint32_t psn);
/* The READ or ATOMIC with this PSN. */
struct lint_read *lint_read_at(const struct lint_flow *f, uint32_t psn);
/* Is this a PSN of a READ that shares PSNs with other requests? */
bool lint_read_shared(const struct lint_flow *f, uint32_t psn);
/* The MTU of both directions is known now: so is how far open READs reach. */
void lint_mtu_learned(struct lint_flow *f, uint32_t mtu);
/* Does the IP identification of this flow's packets tell a packet sent twice from one that the
 * network has doubled? */
bool lint_id_tells(const struct lint_flow *f, const struct wire_pkt *p);
/* Does it also tell which of two was sent first, since it is a counter? */
bool lint_id_counts(const struct lint_flow *f, const struct wire_pkt *p);
/* Forget what responses have said. */
void lint_responder_reset(struct lint_flow *f);

#endif
