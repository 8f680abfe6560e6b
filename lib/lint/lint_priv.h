/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to lib/lint: the tracker, and what a check may look at.
 *
 * The tracker (lint.c, flow.c, request.c, anew.c, stray.c, response.c, msn.c, cmtrack.c) finds the
 * facts about a packet and decides nothing. The checks (rules_*.c) decide, and change nothing but
 * the few fields of a flow that only they use. In between stands struct lint_ctx. For each packet:
 * find the facts, run the checks of the stage (finding.c), then remember.
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
    LINT_S_BEYOND = 1u << 7,    /* a waiting answer can be judged */
    LINT_S_CONTINUED = 1u << 8, /* a waiting re-read can be judged */
    LINT_S_ICRC = 1u << 9,      /* a bad iCRC */
    LINT_S_ODD = 1u << 10,      /* one packet of another service, and the old one goes on */
    LINT_S_OVER = 1u << 11,     /* a READ or ATOMIC was still open when one more came */
    LINT_S_AHEAD = 1u << 12,    /* a larger MSN came before a smaller one */
    LINT_S_EARLY = 1u << 13,    /* the end; once the requester hasn't waited */
    LINT_S_PORT = 1u << 14,     /* the end; the source port has changed */
    LINT_S_PKEY = 1u << 15,     /* one of a flow's first two P_Keys was wrong */
    LINT_S_MTU = 1u << 16,      /* the packet that has shown the MTU was too short */
    LINT_S_BEGUN = 1u << 17,    /* the first request's PSN is a later one than announced */
    LINT_S_BACK = 1u << 18,     /* an ACK that acknowledges less than one before it */
    LINT_S_STRAY = 1u << 19,    /* an answer to a wrong queue pair */
    LINT_S_NO_ICRC = 1u << 20,  /* the end; a packet's iCRC was 0 */
};
#define LINT_STAGES    21
#define LINT_ALONE     (1u << 21) /* no stage: a rule that is judged without the other direction */
#define LINT_RULES_MAX 96u        /* of a stage */

/* Of something that waited. */
enum lint_outcome {
    LINT_NEVER_SENT,   /* the responder later behaves as if it hadn't arrived */
    LINT_NOT_CAPTURED, /* the requester goes on as if it had sent it */
    LINT_OPEN,         /* the capture ends before it shows */
    LINT_CONFIRMED,
};

/* Where the PSN of a response lies among the requests. */
enum lint_where { LINT_W_NONE, LINT_W_BEFORE, LINT_W_KNOWN, LINT_W_BEYOND };

/* How the iCRCs between two hosts differ from what they should be: see rewritten.c. */
struct lint_rewritten {
    struct wire_addr src, dst;
    uint32_t by;  /* what a change in front of the BTH makes of the register there */
    uint32_t len; /* octets from there to the iCRC, of the first packet */
    uint32_t n;   /* packets in a row that agree on it, up to a few, */
    bool lengths; /* of different lengths */
    bool sure;    /* all is as it was made but for such a change, */
    bool said;    /* which has been said */
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
    uint32_t icrc;  /* as it should be */
    bool rewritten; /* and would be, but for addresses that were changed later; */
    bool rewritten_perhaps, rewritten_news; /* perhaps; it is to be said now */
    unsigned icrc_run;                      /* bad ones before it, of its queue pair */
    struct lint_flow *f;                    /* the packet's own */
    struct lint_flow *req;                  /* requests that this response answers: f->peer */
    /* a request */
    const struct lint_rec *old;         /* what was sent with this PSN before */
    const struct lint_rec *prev, *next; /* neighbours by PSN, if seen and good */
    struct lint_read *read;             /* covers this PSN (of a response: in req) */
    bool same;                          /* as `old`, payload included */
    bool same_payload;
    uint32_t index, dma_len; /* place in its message; length in its RETH */
    uint32_t gap;
    /* a response */
    enum lint_where where;
    const struct lint_rec *rec; /* the request with this PSN */
    bool msn_known;             /* and out of range, */
    bool msn_perhaps;           /* unless all that it answers are repetitions, */
    bool msn_differs;           /* from an earlier answer of the same place, */
    bool psn_stands;            /* which was sent before the request that this one is for */
    bool msn_crossed;           /* or an answer to a copy has overtaken another one */
    uint32_t msn_lo, msn_hi;    /* what the MSN may be, */
    uint64_t msn_after;         /* since an earlier packet, this one, or 0, */
    uint32_t msn_before;        /* had that */
    /* CM */
    const struct cm_msg *cm;
    int cm_rc;
    const uint8_t *mad;
    size_t mad_len;
    uint32_t mad_crc;
    struct lint_cm *conn;
    bool from_active, repeat;
    /* something that waited */
    const struct lint_wait *wait;
    enum lint_outcome outcome;
    /* the check's result */
    enum lint_verdict judged;
    bool order_matters; /* it rests on the order of answers, which nothing but the capture tells, */
    bool skew_matters;  /* on that of a request and an answer */
    char expected[LINT_TEXT_MAX], seen[LINT_TEXT_MAX], why[LINT_TEXT_MAX];
};

struct lint {
    lint_report report;
    void *report_ctx;
    struct lint_totals totals;
    struct lint_flow **flow; /* by id */
    uint64_t recs_octets;    /* of what they remember of requests */
    uint32_t room, max_flows;
    struct lint_flow **bucket;
    struct lint_flow **between; /* by hosts */
    uint32_t buckets;           /* of each */
    struct lint_cm cm[LINT_CM_CONNS];
    uint32_t cms;
    uint64_t icrc_run; /* bad iCRCs since the last good one */
    struct {           /* the same of queue pairs that no good packet was for, by a hash */
        uint64_t id;
        unsigned run;
    } stranger[LINT_STRANGERS];
    struct lint_rewritten rewritten[LINT_REWRITTEN]; /* by a hash */
    bool rewritten_any;                              /* there is one */
    struct { /* the latest packets to hosts that couldn't be read, by a hash */
        uint64_t host;
        uint64_t number;
    } unread[LINT_STRANGERS];
    struct lint_recent broken; /* packets without a flow, by what is in them */
    const struct lint_rule *stage[LINT_STAGES][LINT_RULES_MAX + 1]; /* each ends with NULL */
};

/* finding.c */
/* Run the checks of a stage. Returns how many rules are called broken (not merely in doubt). */
unsigned lint_run(struct lint_ctx *c, enum lint_stage stage);
/* Report what this flow's findings are that waited for its end. */
void lint_held(struct lint *l, struct lint_flow *f);
/* Forget those of them that need more than the packet itself. */
void lint_held_forget(struct lint_flow *f);
/* Has the network changed the order of packets of this connection? */
bool lint_disorder(const struct lint_flow *f);
/* Were answers to these requests recorded before what they answer, more than once? */
bool lint_skewed(const struct lint_flow *q);
/* Keep the packet as one that waits. */
void lint_remember(struct lint_ctx *c, struct lint_wait *w);
/* What a check says; each returns true so that it can end with it. */
bool lint_expected(struct lint_ctx *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool lint_seen(struct lint_ctx *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool lint_doubt(struct lint_ctx *c, enum lint_verdict v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* flow.c */
/* The flow of a packet; NULL when there is no room. */
struct lint_flow *lint_flow_get(struct lint *l, const struct wire_pkt *p, uint32_t dqpn,
                                uint32_t sqpn, bool make);
/* How many packets with bad iCRCs came before this one for its queue pair, which has no flow. */
unsigned lint_flow_stranger(struct lint *l, const struct wire_pkt *p);
/* This packet can't be read. */
void lint_flow_unread(struct lint *l, const struct wire_pkt *p, uint64_t number);
/* Has one to the flow's destination been so since packet `since`? */
bool lint_flow_any_unread(const struct lint *l, const struct lint_flow *f, uint64_t since);
/* A fresh flow in place of one with a reused queue pair number. */
struct lint_flow *lint_flow_renew(struct lint *l, struct lint_flow *f);
/* The newest flow from one host to another, and (`older`) those before it; others may be among
 * them.
 */
struct lint_flow *lint_flow_between(const struct lint *l, const struct wire_addr *src,
                                    const struct wire_addr *dst);
/* Find the other direction of `f` by source port or, for a response, by PSN. */
void lint_flow_find_peer(struct lint_ctx *c);
/* That was found by the PSN of a response: has another flow asked for this one, too? */
void lint_flow_doubt_peer(struct lint_ctx *c);
/* The same: does this response fit what was asked? */
void lint_flow_misfit(struct lint_ctx *c);
/* A FIRST or MIDDLE packet shows the MTU. If this one is longer than the only one before it, that
 * one was too short: it is reported, and what was concluded from it forgotten. */
void lint_mtu_watch(struct lint_ctx *c);
/* Begin a new flow for the packet: the queue pair's number is used by a new connection. */
bool lint_renew(struct lint_ctx *c);

/* rewritten.c */
/* What a CRC's register is behind `n` octets of 0. */
uint32_t lint_crc_zeros(uint32_t crc, uint32_t n);
/* Is the iCRC right but for addresses or ports that were changed after it was made? */
bool lint_rewritten(struct lint_ctx *c);
/* A packet has come with a right iCRC, or with one that is wrong for another reason. */
void lint_not_rewritten(struct lint_ctx *c);
/* Hasn't it been said of these hosts? */
bool lint_rewritten_news(struct lint_ctx *c);

/* merged.c */
/* Is it longer than any packet can be? Or, of one that was cut off and so has no iCRC: longer than
 * such a packet is? */
bool lint_looks_merged(const struct lint_ctx *c);

/* msn.c */
/* Sets what the MSN of a response may be, if it isn't that: c->msn_known and what follows it. */
void lint_msn_range(struct lint_ctx *c);
/* This answer is right: remember where the responder stands. */
void lint_msn_place(struct lint_ctx *c);
/* A request comes: has an answer before it counted too much? Judges that (LINT_S_AHEAD). */
void lint_msn_sent(struct lint_ctx *c);

/* stray.c */
/* Is this an answer for another queue pair, as its source port tells? The flow's next packet
 * decides (LINT_S_STRAY); it isn't to be followed. To be called for each packet. */
bool lint_strayed(struct lint_ctx *c);
/* Does another connection between the same hosts wait for this answer? */
bool lint_perhaps_stray(const struct lint_ctx *c);

/* anew.c */
/* Does this packet begin a new life of the queue pair rather than go on with the old one? A message
 * begins, after some silence; but what is repeated is what wasn't acknowledged, and the same, or at
 * least like it. If all ACKs of an old life were lost behind the capture, then this is taken for a
 * new one, which blames no device. Lives that the CM announces need no guess. */
bool lint_begins_anew(const struct lint_ctx *c);

/* request.c, response.c, cmtrack.c */
/* In how many things does this request differ from the record, payload included? */
unsigned lint_differs(const struct lint_ctx *c, const struct lint_rec *r);
/* May a request with opcode `asked` be answered with `given`, which is no ACK? */
bool lint_answers(uint8_t asked, uint8_t given);
/* A request that isn't followed: damaged (LINT_R_CORRUPT) or malformed (LINT_R_BROKEN). */
void lint_request_unread(struct lint_ctx *c, unsigned flag);
/* A good packet of each kind. */
void lint_request(struct lint_ctx *c);
void lint_response(struct lint_ctx *c);
void lint_cm(struct lint_ctx *c);
/* The capture ends: what still waits on this flow is judged as open. */
void lint_flow_end(struct lint *l, struct lint_flow *f);
/* The re-read that waits on this flow was answered in no other form. */
void lint_continued(struct lint *l, struct lint_flow *req, bool end);

#endif
