/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: the tracker's state of one direction of a connection.
 */
#ifndef URNIC_LINT_FLOW_H
#define URNIC_LINT_FLOW_H

#include "lint.h"

/* ---- 24-bit arithmetic (PSN-02) ---- */

/* The PSN n after a. */
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
    uint32_t crc_head; /* iCRC register after the headers, and at the end: distinguish payloads */
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
#define LINT_RECS_OCTETS (1ull << 30) /* of all flows; above it flows remember fewer requests */
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
    bool blind;                                 /* the capture lacks the RETH */
    bool continued;    /* the latest re-read has been counted as answered in the continued form */
    bool late;         /* captured after later requests */
    bool parts;        /* requested again from the middle */
    bool missed;       /* a response was captured, but none with the PSN before it */
    bool disputed;     /* the ends contradict its length, as reported */
    uint32_t asked;    /* the old n, once other requests have used its PSNs */
    bool perhaps_part; /* a gap before it: perhaps a re-read from the middle */
};

/* A packet whose judgement waits for later packets. */
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
    uint8_t again;    /* repetitions, perhaps the network's copies */
    uint32_t sends;   /* of the request packet at that time */
    uint32_t answers; /* its answers of this kind: at most one for each transmission */
    uint64_t number, ns;
};

#define LINT_JUMP_MAX 65536      /* PSNs: a larger step is no gap, but another queue pair */
#define LINT_SPAN_MAX (1u << 23) /* half of the PSNs: further back nothing is compared */

/* Requests after which all packets from before the capture are answered. */
#define LINT_SETTLED   1024u
#define LINT_ANEW_NS   1000000u /* the shortest silence before a queue pair's new life */
#define LINT_RECENT    32u
#define LINT_STRANGERS 64u
#define LINT_REWRITTEN 1024u
#define HOP_NS         1000000u /* the shortest time between two changes of the path */
#define LINT_SKEW_NS   20000u   /* the longest delay in recording requests */
#define COPY_NS        50000u /* the longest delay of a packet's copy, if no round trip is known */
#define LINT_PRIVATE   0xC0u  /* opcodes from here on are manufacturers' */

/* A candidate for the other direction: successive answers had a PSN that only its requests have. */
struct lint_fits {
    uint32_t id, n;
    uint32_t psn; /* of the latest of these answers */
};

/* Places where recent packets were captured. */
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

/* Findings that wait for the flow's end. They are violations, unless the ends turn out to use their
 * own opcodes. */
struct lint_held {
    struct lint_finding *finding;
    uint32_t n;
    uint32_t order; /* bit per finding: valid only without reordering */
    uint32_t skew;  /* bit per finding: valid only if both directions were captured in one place */
};

/* The UDP source port of a flow's requests. */
struct lint_sport {
    bool seen;
    uint16_t now;
    struct lint_wait changed; /* the first packet with another port */
    uint16_t was, is;
    struct lint_wait idle; /* the latest packet, if its port is new and nothing was in flight */
    uint16_t idle_was;     /* the port before `idle` */
    uint32_t changes;      /* changes with packets in flight */
    bool unsure;           /* perhaps */
};

/* The source port of all packets of a flow, and an answer from another connection's port. */
struct lint_port {
    uint16_t own;
    uint32_t n; /* packets with `own`, up to a few */
    bool varies;
    uint32_t qpn; /* the right destination of the answer */
    struct lint_wait stray;
    bool to_nobody; /* the answer seems to have no receiver, as reported */
};

/* The P_Key of a flow. */
struct lint_pkey {
    uint16_t own, other;       /* the flow's own, and another packet's */
    uint32_t seen;             /* packets with a P_Key, up to 3; */
    struct lint_wait first[2]; /* two that differ: the third packet decides */
    uint64_t last_ns;          /* of the last one */
    bool paused;               /* the second came after a pause, perhaps in a new life */
    uint16_t before;           /* P_Key before the pause; 0 = none */
};

/* The packets that have shown a flow's path MTU. */
struct lint_mtu {
    uint32_t shown;         /* number of these packets, up to 2 */
    struct lint_wait first; /* the first one in either direction */
};

/* IPv4 identifications of a flow. */
struct lint_id {
    uint16_t last;        /* of the latest packet */
    uint32_t icrc;        /* its iCRC */
    uint16_t most;        /* highest counter value before this packet */
    bool same;            /* two packets have had the same value: it proves nothing */
    uint32_t steps, near; /* steps between packets, and the number of short ones */
};

/* The start of the message count: the MSN at the epoch's start is in lo..hi. */
struct lint_base {
    bool on, lo_on; /* hi is known, lo is */
    uint32_t lo, hi;
    uint32_t n;             /* answers that give `hi` */
    bool again;             /* the first of them may answer a retransmission */
    struct lint_wait first; /* the first one */
    bool maybe_on;
    uint32_t maybe, maybe_low; /* the start by one answer, and the messages until then */
    bool shift_on, shift_ack;  /* a wrong answer was found (shift_ack: an ACK) */
    uint32_t shift, shift_psn; /* the start by the wrong answer, and its PSN */
};

/* The highest message number in an answer. */
struct lint_counted {
    bool on, goes_on; /* known; raised by later requests */
    uint32_t msn, epoch;
    uint64_t number;        /* packet with this answer */
    struct lint_head *head; /* first octets of that packet */
    uint32_t stands;        /* number of later requests that haven't raised it */
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

/* READs that were requested again from the middle (RD-10). */
struct lint_reread {
    struct lint_wait continued; /* a re-read answered in the continued form */
    struct lint_wait *held;     /* up to LINT_CONTINUED of them, for the end */
    uint32_t n, restarted;      /* answered in that form; answered as requests of their own */
};

/* One READ or ATOMIC above the agreed limit, if nothing is missing. */
struct lint_over {
    struct lint_wait wait;
    uint32_t psn, n; /* the oldest open one, and the number of open ones */
};

/* The first request has a later PSN than the CM announced: were others before it? */
struct lint_start {
    struct lint_wait wait;
    uint32_t epoch;
};

/* The time of RNR NAKs. */
struct lint_early {
    struct lint_wait wait; /* a packet sent again too early */
    uint64_t after, must;  /* ns: the actual time, and the required one */
    unsigned kept, broken; /* retries with and without the wait */
};

/* The ACK with the highest PSN. */
struct lint_most {
    bool on;
    uint32_t psn, msn;
    uint16_t ip_id;
    uint64_t number, ns;
    struct lint_wait less; /* an ACK sent after it with a lower PSN */
};

/* The responder's state by its latest ACK or NAK: the expected PSN and the MSN. */
struct lint_place {
    bool on;
    uint32_t psn, msn;
    uint64_t number;
};

/* Packets with iCRC 0: the first one, and its right iCRC. */
struct lint_no_icrc {
    struct lint_wait first;
    uint32_t should;
    bool outbound;      /* direction by the capture */
    bool accepted;      /* a request of this flow was answered without a NAK */
    uint64_t n, rights; /* packets with iCRC 0, and with a right one */
};

/* Answers recorded before their requests, as when each direction is captured in a different place:
 * the latest one, and their number. */
struct lint_skew {
    bool on;
    uint32_t psn, n;
    uint64_t ns;
    bool counts, ack; /* an uncaptured message is counted; by an ACK: no SEND or WRITE */
    uint32_t more;    /* answers that count a message more, which came soon after */
};

/* One direction of a connection: its requests, and facts from the answers to them, which arrive on
 * its peer. */
struct lint_flow {
    struct lint_flow *chain; /* hash table */
    struct lint_flow *older; /* hash table by hosts, the newest first */
    struct lint_flow *peer;
    struct lint_flow_info info;
    uint64_t hash;
    bool private;       /* packets with private opcodes have been seen */
    bool by_psn;        /* `peer` was found only by the PSN of a response */
    unsigned misfits;   /* unrequested answers with data */
    uint32_t looked_at; /* flows with lower ids are compared with its requests */
    unsigned ports;     /* number of flows that fitted */
    struct lint_fits fits;
    bool detached;   /* no longer in the table: its queue pair's number was used again */
    bool used_again; /* it has replaced a detached flow */
    struct lint_held held;
    struct lint_recent recent; /* by iCRC */

    /* every packet */
    struct lint_port port;
    struct lint_pkey pkey;
    struct lint_mtu mtu;
    struct lint_id id;
    unsigned csum_bad, icrc_run, cut_broken;
    uint8_t octet_4; /* of the BTH, with reserved bits: was reported */
    struct lint_no_icrc no_icrc;
    bool dmac_seen, migreq_seen, migreq_noted;
    uint8_t dmac[6];
    struct lint_wait other_service; /* one packet of another service */

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
    struct lint_start start;
    struct lint_early early;

    /* facts from the peer's responses about these requests */
    bool ack_on;
    uint32_t acked;           /* highest PSN acknowledged */
    uint64_t progress_number; /* packet that last raised `acked` */
    uint64_t answer_number;   /* packet of the latest answer */
    struct lint_base base;
    struct lint_counted counted;
    struct lint_highest highest;
    struct lint_most most;
    struct lint_place place;
    struct lint_mark nak, rnr, fatal;
    struct lint_wait unseen;  /* an answer whose request was not captured */
    bool unseen_unread;       /* its request may be a packet that can't be read */
    uint64_t unseen_requests; /* number of requests captured before the answer in `unseen` */
    struct lint_skew skew;
    bool unseen_next_on;  /* a request sent after it has been answered */
    uint32_t unseen_next; /* PSN of that request, lower than the answer's */
    struct {
        bool on; /* a NAK has named a PSN from before the capture */
        uint32_t psn;
    } asked_back;
    struct lint_reread reread;
    struct lint_wait ahead;     /* an MSN too large for the captured messages */
    uint64_t ahead_retransmits; /* info.retransmits at that time */
    uint32_t ahead_hi;          /* `hi` at that time, and after READs and ATOMICs since */
    uint32_t ahead_base;        /* the start of the count by that MSN */
    bool ahead_all;             /* it is an ACK, and a SEND or WRITE came next */
    uint32_t ahead_msgs;        /* messages at that time */
    bool rnr_02;                /* has broken RNR-02 */
    unsigned rnr_02_doubts;
    /* overtaken answers: a NAK of an acknowledged PSN, or a lower message number than before */
    unsigned back;
    bool msn_on;
    uint32_t msn_most;
};

/* ---- flow.c, of one flow alone ---- */

/* Make the two flows the directions of one connection. */
void lint_flow_pair(struct lint_flow *a, struct lint_flow *b);
/* Forget the requests; the flow itself stays, for reports. */
void lint_flow_free(struct lint_flow *f);
/* The record of the request with this PSN; NULL = none. */
struct lint_rec *lint_rec_at(const struct lint_flow *f, uint32_t psn);
/* The same, made if need be; NULL = no memory, or too long ago. */
struct lint_rec *lint_rec_make(struct lint_flow *f, uint32_t psn);
/* The READ or ATOMIC with this PSN. */
struct lint_read *lint_read_at(const struct lint_flow *f, uint32_t psn);
/* Is this a PSN of a READ that shares PSNs with other requests? */
bool lint_read_shared(const struct lint_flow *f, uint32_t psn);
/* The MTU of both directions is known now; set the last PSNs of open READs. */
void lint_mtu_learned(struct lint_flow *f, uint32_t mtu);
/* Does the IP identification in this flow distinguish a retransmission from the network's copy? */
bool lint_id_tells(const struct lint_flow *f, const struct wire_pkt *p);
/* Is it also a counter, which shows the order of sending? */
bool lint_id_counts(const struct lint_flow *f, const struct wire_pkt *p);
/* Forget the facts from responses. */
void lint_responder_reset(struct lint_flow *f);

#endif
