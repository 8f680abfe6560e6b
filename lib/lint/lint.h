/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The judge of captures: follows every queue pair through a stream of frames and says which rule of
 * the catalogue a packet breaks.
 *
 * A capture shows the packets at one point of the network. Packets may have been lost, doubled,
 * reordered and damaged before that point and after it, and the capture itself may have missed
 * some. So a rule is called broken only when no such fault explains the packets; otherwise the
 * finding names the fault that would (an artefact), or says that both are possible.
 *
 * No I/O, no clock; memory grows with the number of flows only, up to a limit. One tracker belongs
 * to one thread at a time.
 */
#ifndef URNIC_LINT_H
#define URNIC_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define LINT_DUMP_MAX 224u
#define LINT_TEXT_MAX 112u
#define LINT_NO_FLOW  UINT32_MAX

struct lint;
struct lint_ctx; /* private */

enum lint_verdict {
    LINT_VIOLATION,   /* the packet's sender broke the rule */
    LINT_UNDECIDABLE, /* it did, or something that the capture doesn't show explains it */
    LINT_ARTEFACT,    /* the capture isn't whole here; no rule is broken */
    LINT_VERDICTS
};
const char *lint_verdict_name(enum lint_verdict v); /* "violation", "undecidable", "artefact" */

struct lint_rule {
    const char *id;                    /* of doc/conformance.md: "ACK-07" */
    const char *sentence;              /* the rule in one sentence */
    unsigned when;                     /* private: the stages at which it is checked */
    bool (*check)(struct lint_ctx *c); /* private */
};
/* The rules that are checked, in the catalogue's order; *n = how many. */
const struct lint_rule *lint_rules(size_t *n);

struct lint_frame {
    uint64_t number; /* as Wireshark counts; grows from call to call */
    uint64_t ns;
    const uint8_t *data; /* an Ethernet frame */
    uint32_t len;        /* octets at `data` */
    uint32_t wire_len;   /* octets it had; > len: the capture cut it */
    uint32_t interface;
    bool no_ether; /* the Ethernet header was made up */
    bool sent;     /* sent by the capturing machine, so checksums may not be final */
    bool part;     /* one of lint_part, of a frame that has been given as a whole */
};

#define LINT_PART_MAX 4352u

/* A frame that holds several packets: see lint_merged. */
struct lint_merge {
    uint32_t n;    /* packets */
    uint32_t size; /* octets after the UDP header of each packet but the last */
    struct wire_pkt p;
};

struct lint_finding {
    const struct lint_rule *rule;
    enum lint_verdict verdict;
    uint64_t number, ns; /* of the packet */
    uint32_t flow;       /* or LINT_NO_FLOW */
    char expected[LINT_TEXT_MAX];
    char seen[LINT_TEXT_MAX];
    char why[LINT_TEXT_MAX]; /* the other explanation; "" for a violation */
    char dump[LINT_DUMP_MAX];
};

/* Called with each finding, from lint_packet and lint_end. It may concern an earlier packet, which
 * only later ones could decide. */
typedef void (*lint_report)(void *ctx, const struct lint_finding *f);

/* The kind of a packet, for plots and ladders. */
enum lint_kind {
    LINT_OTHER,  /* not RoCE */
    LINT_BROKEN, /* RoCE, damaged or malformed: not followed */
    LINT_DATA,   /* SEND, WRITE, READ response */
    LINT_READ,   /* READ request */
    LINT_ATOMIC,
    LINT_ATOMIC_ACK,
    LINT_ACK,
    LINT_NAK,
    LINT_RNR,
    LINT_CNP,
    LINT_DATAGRAM,
    LINT_CM,
    LINT_KINDS
};
/* "other", "broken", "data" ... */
const char *lint_kind_name(enum lint_kind k);

#define LINT_V_RESPONSE   0x01u  /* answers the other direction's request of this PSN */
#define LINT_V_RETRANSMIT 0x02u  /* this PSN again */
#define LINT_V_DUPLICATE  0x04u  /* the very same packet again */
#define LINT_V_REORDERED  0x08u  /* fills a hole that was seen before */
#define LINT_V_GAP        0x10u  /* PSNs before this one have not been seen */
#define LINT_V_CE         0x20u  /* marked by a switch */
#define LINT_V_CUT        0x40u  /* the capture kept only a part */
#define LINT_V_CORRUPT    0x80u  /* bad iCRC or damaged header */
#define LINT_V_TIMEOUT    0x100u /* a retransmission that nothing but a time-out explains */
#define LINT_V_AGAIN      0x200u /* seen before (interface, VLAN, hop ...): not judged twice */
#define LINT_V_MERGED     0x400u /* several packets in one frame: give its parts instead */

/* One packet's description, for writers that show packets one by one. */
struct lint_view {
    uint32_t flow; /* id of its direction of a connection, or LINT_NO_FLOW */
    enum lint_kind kind;
    uint32_t flags; /* LINT_V_* */
    uint8_t opcode;
    uint32_t psn, psns; /* first PSN, and the number of its PSNs (READ requests) */
    uint32_t octets;    /* payload */
};

/* One direction of a connection: the packets of one queue pair to another. */
struct lint_flow_info {
    uint32_t id;
    uint32_t peer;   /* the other direction, or LINT_NO_FLOW */
    bool by_cm;      /* the pair is known from CM messages, not inferred */
    bool unsure;     /* the pair is inferred from PSNs that another connection has, too */
    uint8_t service; /* enum wire_service */
    uint8_t ip_version;
    bool v1;
    struct wire_addr src, dst;
    uint32_t sqpn; /* 0 = not known */
    uint32_t dqpn;
    uint32_t mtu; /* 0 = not known */
    uint64_t first_ns, last_ns, first_number, last_number;
    uint64_t packets, octets; /* octets of whole frames */
    /* as requester */
    uint64_t requests;                                 /* packets seen, all transmissions */
    uint64_t sends, writes, reads, atomics, datagrams; /* operations, each counted once */
    uint64_t flushes, atomic_writes;
    uint64_t goodput; /* payload octets of SENDs and WRITEs, each counted once */
    uint64_t retransmits, duplicates, reordered, gaps, gap_psns, timeouts;
    /* as responder, answering the other direction */
    uint64_t acks; /* packets, as the following: also where the capture has no requests */
    uint64_t acks_placed, acked_psns; /* ACKs of captured requests, and the number of requests that
                                         they newly acknowledged */
    uint32_t ack_max;                 /* most acknowledged by one */
    uint64_t read_packets, read_octets, read_again; /* READ responses; octets counted once */
    uint64_t atomic_acks, naks_seq, naks_fatal, rnrs;
    uint64_t rtt_samples, rtt_sum, rtt_min, rtt_max; /* ns, from a request to its answer, as seen */
    /* either */
    uint64_t cnps, ecn_capable, ecn_ce, corrupt, cut, again;
    uint64_t unsplit; /* frames of several packets, merged by the host and then cut: not followed */
};

struct lint_totals {
    uint64_t frames, roce, other, corrupt, cut, v1, cm;
    uint64_t findings[LINT_VERDICTS];
    uint64_t forgotten; /* packets of flows for which there was no room */
    uint64_t merged;  /* frames in which the capturing host has merged several packets, which count
                         when they are passed as parts */
    uint64_t unsplit; /* merged frames that can't be taken apart */
    uint32_t flows;
    uint64_t first_ns, last_ns;
};

/* A new tracker. `report` may be NULL; `max_flows` 0 = 65536. Packets of further flows are counted
 * as forgotten. NULL: no memory. */
struct lint *lint_new(lint_report report, void *ctx, uint32_t max_flows);
/* NULL is fine. */
void lint_free(struct lint *l);

/* Judge one frame. `view` may be NULL. */
void lint_packet(struct lint *l, const struct lint_frame *f, struct lint_view *view);
/* The number of packets that the capturing host has merged into this frame, for example by GRO. 0:
 * none, or unknown. For frames with LINT_V_MERGED: such a frame isn't judged, and the caller passes
 * its parts one by one. */
uint32_t lint_merged(const struct lint_frame *f, struct lint_merge *m);
/* The i-th of them, 0 .. m->n - 1, as it was on the wire; `buf` has LINT_PART_MAX octets. */
void lint_part(const struct lint_frame *f, const struct lint_merge *m, uint32_t i, uint8_t *buf,
               struct lint_frame *out);
/* The capture has ended: judge the packets that waited for later ones. */
void lint_end(struct lint *l);

/* The counts so far. */
void lint_totals(const struct lint *l, struct lint_totals *out);
/* Flows 0 .. totals.flows - 1, in order of their first packet. False when there is none. */
bool lint_flow_info(const struct lint *l, uint32_t id, struct lint_flow_info *out);

#endif
