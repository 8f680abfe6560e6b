/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: the tracker, and the context of the checks.
 *
 * The tracker (lint.c, flow.c, request.c, anew.c, stray.c, response.c, msn.c, cmtrack.c) finds the
 * facts about a packet and decides nothing. The checks (rules_*.c) decide, and change only the few
 * fields of a flow that nothing else uses. struct lint_ctx connects the two. For each packet: find
 * the facts, run the checks of the stage (finding.c), then remember.
 */
#ifndef URNIC_LINT_PRIV_H
#define URNIC_LINT_PRIV_H

#include "cm_msg.h"
#include "lint.h"
#include "lint_flow.h"

/* ---- CM ---- */

#define LINT_CM_CONNS 256u

struct lint_cm {
    bool on, rep, closed;
    uint8_t service;
    struct wire_addr a, b; /* active and passive side */
    uint32_t a_id, b_id, a_qpn, b_qpn, a_psn, b_psn;
    uint64_t tid, dreq_tid[2]; /* of a's and of b's DREQ */
    uint32_t mtu, retry, resp_res;
    uint32_t req_crc, rep_crc;       /* of the whole MAD, and the packet that had it */
    uint64_t req_number, rep_number; /* (0: it broke a rule itself) */
};

/* ---- the tracker ---- */

enum lint_stage {
    LINT_S_MALFORMED = 1u << 0, /* the parse failed, and it isn't damage */
    LINT_S_FRAME = 1u << 1,     /* every good frame */
    LINT_S_REQUEST = 1u << 2,   /* RC, XRC, UC */
    LINT_S_RESPONSE = 1u << 3,
    LINT_S_DATAGRAM = 1u << 4,
    LINT_S_CM = 1u << 5,
    LINT_S_CNP = 1u << 6,
    LINT_S_UNSEEN = 1u << 7,    /* a waiting answer without a captured request can be judged */
    LINT_S_CONTINUED = 1u << 8, /* a waiting re-read can be judged */
    LINT_S_ICRC = 1u << 9,      /* a bad iCRC */
    LINT_S_SERVICE = 1u << 10,  /* one packet of another service among those of the old one */
    LINT_S_OVER = 1u << 11,     /* a READ or ATOMIC was still open when one more came */
    LINT_S_AHEAD = 1u << 12,    /* a larger MSN came before a smaller one */
    LINT_S_EARLY = 1u << 13,    /* at the end; the requester has once not waited */
    LINT_S_PORT = 1u << 14,     /* at the end; the source port has changed */
    LINT_S_PKEY = 1u << 15,     /* one of a flow's first two P_Keys was wrong */
    LINT_S_MTU = 1u << 16,      /* the packet that has shown the MTU was too short */
    LINT_S_START = 1u << 17,    /* the first request's PSN is later than announced */
    LINT_S_BACK = 1u << 18,     /* an ACK with a lower PSN than one before it */
    LINT_S_STRAY = 1u << 19,    /* an answer to a wrong queue pair */
    LINT_S_NO_ICRC = 1u << 20,  /* at the end; a packet's iCRC was 0 */
};
#define LINT_STAGES    21
#define LINT_ALONE     (1u << 21) /* no stage: marks a rule judged without the other direction */
#define LINT_RULES_MAX 96u        /* of a stage */

/* The outcome for a packet that waited. */
enum lint_outcome {
    LINT_NEVER_SENT,   /* the responder later behaves as if the packet hadn't arrived */
    LINT_NOT_CAPTURED, /* the requester continues as if it had sent the packet */
    LINT_OPEN,         /* undecided when the capture ends */
    LINT_CONFIRMED,
};

/* The position of a response's PSN among the requests. */
enum lint_where { LINT_W_NONE, LINT_W_BEFORE, LINT_W_KNOWN, LINT_W_AFTER };

/* The difference between the iCRCs from one host to another and the right ones: see rewritten.c. */
struct lint_rewritten {
    struct wire_addr src, dst;
    uint32_t by;  /* the effect of a change before the BTH on the register there */
    uint32_t len; /* octets from there to the iCRC, of the first packet */
    uint32_t n;   /* packets in a row that agree on it, up to a few */
    bool lengths; /* these packets have different lengths */
    bool sure;    /* proven: only addresses or ports were changed */
    bool said;    /* it has been reported */
};

struct lint_ctx {
    struct lint *l;
    const struct lint_frame *in;
    struct lint_view *view;
    struct wire_pkt p;
    const struct wire_opcode_info *op;
    const uint8_t *bth; /* 12 octets at least are there */
    enum wire_verdict verdict;
    bool cut, headers; /* cut by the capture; the extension headers are there */
    uint32_t crc_head;
    uint32_t icrc;                          /* the right iCRC */
    bool rewritten;                         /* the iCRC is right but for addresses changed later */
    bool rewritten_perhaps, rewritten_news; /* perhaps rewritten; to be reported now */
    unsigned icrc_run;                      /* its queue pair's bad iCRCs before it */
    struct lint_flow *f;                    /* the packet's own */
    struct lint_flow *req;                  /* requests that this response answers: f->peer */
    /* a request */
    const struct lint_rec *old;         /* the earlier request with this PSN */
    const struct lint_rec *prev, *next; /* neighbours by PSN, if seen and good */
    struct lint_read *read;             /* the READ that covers this PSN (of a response: in req) */
    bool same;                          /* equal to `old`, payload included */
    bool same_payload;
    uint32_t index, dma_len; /* place in its message; length in its RETH */
    uint32_t gap;
    /* a response */
    enum lint_where where;
    const struct lint_rec *rec; /* the request with this PSN */
    bool msn_known;             /* the range is known, and the MSN outside of it */
    bool msn_perhaps;           /* unless it answers only repetitions */
    bool msn_differs;           /* it differs from an earlier answer of the same place */
    bool psn_stands;            /* that answer was sent before this one's request */
    bool msn_crossed;           /* or an answer to a copy has overtaken it */
    uint32_t msn_lo, msn_hi;    /* the range of the MSN */
    uint64_t msn_after;         /* number of the earlier packet that sets the range, or 0 */
    uint32_t msn_before;        /* the MSN of that packet */
    /* CM */
    const struct cm_msg *cm;
    int cm_rc;
    const uint8_t *mad;
    size_t mad_len;
    uint32_t mad_crc;
    struct lint_cm *conn;
    bool from_active, repeat;
    /* a packet that waited */
    const struct lint_wait *wait;
    enum lint_outcome outcome;
    /* the check's result */
    enum lint_verdict judged;
    bool order_matters; /* it relies on the captured order of answers */
    bool skew_matters;  /* it relies on the order of a request and an answer */
    char expected[LINT_TEXT_MAX], seen[LINT_TEXT_MAX], why[LINT_TEXT_MAX];
};

struct lint {
    lint_report report;
    void *report_ctx;
    struct lint_totals totals;
    struct lint_flow **flow; /* by id */
    uint64_t recs_octets;    /* octets of all records of requests */
    uint32_t room, max_flows;
    struct lint_flow **bucket;
    struct lint_flow **between; /* by hosts */
    uint32_t buckets;           /* of each */
    struct lint_cm cm[LINT_CM_CONNS];
    uint32_t cms;
    uint64_t icrc_run; /* bad iCRCs since the last good one */
    struct {           /* the same for queue pairs without a good packet, by a hash */
        uint64_t id;
        unsigned run;
    } stranger[LINT_STRANGERS];
    struct lint_rewritten rewritten[LINT_REWRITTEN]; /* by a hash */
    bool rewritten_any;                              /* an entry is used */
    struct { /* the latest unreadable packets by destination host, by a hash */
        uint64_t host;
        uint64_t number;
    } unread[LINT_STRANGERS];
    struct lint_recent broken; /* packets without a flow, by their contents */
    const struct lint_rule *stage[LINT_STAGES][LINT_RULES_MAX + 1]; /* each ends with NULL */
};

/* finding.c */
/* Run the checks of a stage. Returns how many rules are called broken (not merely in doubt). */
unsigned lint_run(struct lint_ctx *c, enum lint_stage stage);
/* Report the findings that waited for the flow's end. */
void lint_held(struct lint *l, struct lint_flow *f);
/* Forget the waiting findings that need more than the packet itself. */
void lint_held_forget(struct lint_flow *f);
/* Has the network changed the order of packets of this connection? */
bool lint_disorder(const struct lint_flow *f);
/* Were answers recorded before their requests more than once? */
bool lint_skewed(const struct lint_flow *q);
/* Keep the packet for a later judgement. */
void lint_remember(struct lint_ctx *c, struct lint_wait *w);
/* The texts of a check. Each function returns true, so that a check can end with the call. */
bool lint_expected(struct lint_ctx *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool lint_seen(struct lint_ctx *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool lint_doubt(struct lint_ctx *c, enum lint_verdict v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* flow.c */
/* The flow of a packet; NULL when there is no room. */
struct lint_flow *lint_flow_get(struct lint *l, const struct wire_pkt *p, uint32_t dqpn,
                                uint32_t sqpn, bool make);
/* The number of packets with bad iCRCs before this one to its queue pair, which has no flow. */
unsigned lint_flow_stranger(struct lint *l, const struct wire_pkt *p);
/* This packet can't be read. */
void lint_flow_unread(struct lint *l, const struct wire_pkt *p, uint64_t number);
/* Was a packet to the flow's destination unreadable since packet `since`? */
bool lint_flow_any_unread(const struct lint *l, const struct lint_flow *f, uint64_t since);
/* A fresh flow in place of one with a reused queue pair number. */
struct lint_flow *lint_flow_renew(struct lint *l, struct lint_flow *f);
/* The newest flow from one host to another; `older` leads to earlier flows. Flows of other hosts
 * may be among them. */
struct lint_flow *lint_flow_between(const struct lint *l, const struct wire_addr *src,
                                    const struct wire_addr *dst);
/* Find the other direction of `f` by source port or, for a response, by PSN. */
void lint_flow_find_peer(struct lint_ctx *c);
/* The peer was found by the PSN of a response: do another flow's requests match this response, too?
 */
void lint_flow_doubt_peer(struct lint_ctx *c);
/* The peer was found by the PSN of a response: does this response fit the request? */
void lint_flow_misfit(struct lint_ctx *c);
/* A FIRST or MIDDLE packet shows the MTU. If this one is longer than the only one before it, that
 * one was too short: report it, and forget the conclusions from it. */
void lint_mtu_watch(struct lint_ctx *c);
/* Begin a new flow for the packet: the queue pair's number is used by a new connection. */
bool lint_renew(struct lint_ctx *c);

/* rewritten.c */
/* A CRC's register after `n` octets of 0. */
uint32_t lint_crc_zeros(uint32_t crc, uint32_t n);
/* Is the iCRC right but for addresses or ports that were changed after it was made? */
bool lint_rewritten(struct lint_ctx *c);
/* The packet has a right iCRC, or one that is wrong for another reason. */
void lint_not_rewritten(struct lint_ctx *c);
/* Is the report about these hosts still due? */
bool lint_rewritten_news(struct lint_ctx *c);

/* merged.c */
/* Is the frame longer than any packet can be? Or, for a frame that was cut off and so has no iCRC:
 * longer than its packet can be? */
bool lint_looks_merged(const struct lint_ctx *c);

/* msn.c */
/* Set the allowed range if a response's MSN is outside of it: c->msn_known and the members after
 * it. */
void lint_msn_range(struct lint_ctx *c);
/* This answer is right: remember the responder's state. */
void lint_msn_place(struct lint_ctx *c);
/* Judge an answer that may have counted too much before this request (LINT_S_AHEAD). */
void lint_msn_sent(struct lint_ctx *c);

/* stray.c */
/* Is this an answer for another queue pair, as its source port tells? The flow's next packet
 * decides (LINT_S_STRAY). True: don't track the packet. Call this for each packet. */
bool lint_strayed(struct lint_ctx *c);
/* Does another connection between the same hosts wait for this answer? */
bool lint_perhaps_stray(const struct lint_ctx *c);

/* anew.c */
/* Does this packet start a new life of the queue pair rather than continue the old one? It does if
 * it starts a message after some silence, and is no retransmission: that would repeat an
 * unacknowledged request, in the same or a similar packet. If all ACKs of an old life were lost
 * after the capture point, a retransmission looks like a new life, which blames no device. Lives
 * that the CM announces need no guess. */
bool lint_begins_anew(const struct lint_ctx *c);

/* request.c, response.c, cmtrack.c */
/* The number of fields in which the context's request differs from the record. The payload counts
 * as one field. */
unsigned lint_differs(const struct lint_ctx *c, const struct lint_rec *r);
/* May a request with opcode `asked` be answered with `given`, which is no ACK? */
bool lint_answers(uint8_t asked, uint8_t given);
/* An untracked request: damaged (LINT_R_CORRUPT) or malformed (LINT_R_BROKEN). */
void lint_request_unread(struct lint_ctx *c, unsigned flag);
/* A good packet of each kind. */
void lint_request(struct lint_ctx *c);
void lint_response(struct lint_ctx *c);
void lint_cm(struct lint_ctx *c);
/* The capture ends: judge the packets that still wait on this flow as open. */
void lint_flow_end(struct lint *l, struct lint_flow *f);
/* The waiting re-read of this flow was answered in the continued form alone. */
void lint_continued(struct lint *l, struct lint_flow *req, bool end);

#endif
