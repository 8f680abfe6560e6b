/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of lib/fault: a rule as the parser leaves it, a frame as the rules see it,
 * and the table of connections.
 */
#ifndef URNIC_FAULT_PRIV_H
#define URNIC_FAULT_PRIV_H

#include "fault.h"
#include "fault_dice.h"
#include "wire.h"

#define FAULT_ACTIONS 4u      /* of a rule */
#define FAULT_WITHIN  100000u /* ns: `reorder` without `within` */

/* Classes of frames; one frame has several of these bits. */
#define FAULT_C_ANY           0x00001u
#define FAULT_C_ROCE          0x00002u
#define FAULT_C_OTHER         0x00004u /* no RoCE, or RoCE that a strict parser refuses */
#define FAULT_C_REQUEST       0x00008u
#define FAULT_C_RESPONSE      0x00010u
#define FAULT_C_DATA          0x00020u /* SEND, WRITE, READ response */
#define FAULT_C_SEND          0x00040u
#define FAULT_C_WRITE         0x00080u
#define FAULT_C_READ_REQUEST  0x00100u
#define FAULT_C_READ_RESPONSE 0x00200u
#define FAULT_C_ATOMIC        0x00400u
#define FAULT_C_ATOMIC_ACK    0x00800u
#define FAULT_C_ACK           0x01000u
#define FAULT_C_NAK           0x02000u
#define FAULT_C_RNR           0x04000u
#define FAULT_C_CNP           0x08000u
#define FAULT_C_CM            0x10000u
#define FAULT_C_UD            0x20000u
#define FAULT_C_PAUSE         0x40000u

/* The selectors of a rule. */
#define FAULT_S_DIR     0x0001u
#define FAULT_S_SRC     0x0002u
#define FAULT_S_DST     0x0004u
#define FAULT_S_QPN     0x0008u
#define FAULT_S_CONN    0x0010u
#define FAULT_S_PSN     0x0020u
#define FAULT_S_TX      0x0040u
#define FAULT_S_POS     0x0080u
#define FAULT_S_SIZE    0x0100u
#define FAULT_S_PAYLOAD 0x0200u
#define FAULT_S_OCCUR   0x0400u
#define FAULT_S_PROB    0x0800u
#define FAULT_S_AFTER   0x1000u
#define FAULT_S_UNTIL   0x2000u
#define FAULT_S_COUNT   0x4000u
#define FAULT_S_CLASS   0x8000u

struct fault_range { /* both ends included */
    uint64_t lo, hi;
};

struct fault_prefix {
    struct wire_addr addr;
    unsigned bits;
};

struct fault_match {
    uint32_t says; /* FAULT_S_* */
    uint32_t classes;
    uint32_t opcodes[8]; /* a bit per opcode; a frame fits a class or an opcode */
    enum fault_dir dir;
    struct fault_prefix src, dst;
    uint32_t qpn;
    struct fault_range conn, psn, size, payload;
    bool psn_relative, retx;
    uint16_t pos;             /* WIRE_F_FIRST .. WIRE_F_ONLY */
    struct fault_range occur; /* these occurrences of a match, if `every` is 0 */
    uint64_t every;           /* if not 0: one match in so many */
    double prob;
    uint64_t after, until, count;
};

enum fault_verb {
    FAULT_V_DROP,
    FAULT_V_DELAY,     /* range: ns */
    FAULT_V_DUPLICATE, /* n */
    FAULT_V_REORDER,   /* n: gap, value: within, ns */
    FAULT_V_CORRUPT,   /* how, n: offset or number of octets, value: xor; repair */
    FAULT_V_MARK,
    FAULT_V_TRIM,   /* n: octets left */
    FAULT_V_INJECT, /* how, n: syndrome or priority, value: quanta; forth */
    FAULT_V_SET,    /* field, how, value; repair */
};

enum fault_corrupt { FAULT_BYTE, FAULT_PAYLOAD, FAULT_RANDOM, FAULT_ICRC };
enum fault_made { FAULT_CNP, FAULT_NAK, FAULT_PAUSE };
enum fault_set { FAULT_TO, FAULT_PLUS, FAULT_MINUS };

/* A field that `set` can change: its place, in bits from the start of a header. */
enum fault_base {
    FAULT_B_IP,
    FAULT_B_UDP,
    FAULT_B_BTH,
    FAULT_B_RETH,
    FAULT_B_AETH,
    FAULT_B_IMM,
    FAULT_B_DETH,
    FAULT_B_ATOMICETH
};

struct fault_field {
    const char *name;
    enum fault_base base;
    uint16_t bit, bit6; /* bit6: in an IPv6 header */
    uint8_t width;
    bool covered; /* by the iCRC */
};
/* The field of this name; NULL = none. */
const struct fault_field *fault_field_find(const char *name, size_t len);
/* The names of all fields, for messages. Returns buf. */
const char *fault_field_names(char *buf, size_t size);

struct fault_action {
    enum fault_verb verb;
    uint8_t how;
    bool repair, forth;
    const struct fault_field *field;
    struct fault_range range;
    uint64_t n, value;
};

struct fault_rule {
    struct fault_match m;
    struct fault_action action[FAULT_ACTIONS];
    unsigned nactions, line;
    size_t text; /* offset in fault.text */
    uint64_t rng;
    uint64_t matched, done, failed;
};

/* ---- connections ---- */

/* One direction: the packets to one queue pair. It carries requests in a PSN space of its own and
 * responses in that of the other direction. Numbers of halves and connections count from 1. */
struct fault_half {
    struct wire_addr src, dst;
    uint32_t dqpn, conn, chain;
    uint32_t waits_next, waits_prev; /* list of halves without a known other direction */
    uint16_t sport;
    uint16_t tries; /* responses that didn't identify the other direction */
    bool requests;  /* first and next are valid */
    bool responses, acks, naks;
    uint32_t first, next;                   /* PSN of requests: the first, and the next */
    uint32_t resp_next, ack_next, nak_next; /* PSNs of responses */
    uint32_t msn;                           /* of the latest acknowledgement */
    uint32_t ends;                          /* messages complete: their last request was seen */
    uint32_t read_psn, read_len;            /* the latest READ; read_len 0 = none */
};

struct fault_conn {
    uint32_t number; /* 0 = free */
    uint32_t half[2];
    uint32_t mtu; /* 0 = not known yet */
    uint64_t used;
};

struct fault_cm { /* a REQ that waits for its REP */
    struct wire_addr a, b;
    uint32_t id, qpn, psn, mtu, rep_qpn;
};

#define FAULT_CMS     64u
#define FAULT_BUCKETS (2u * FAULT_CONNS)

struct fault_table {
    struct fault_conn conn[FAULT_CONNS + 1];
    struct fault_half half[2 * FAULT_CONNS + 1];
    uint32_t bucket[FAULT_BUCKETS];
    uint32_t conns, halves; /* used so far */
    uint32_t free_conn, free_half;
    uint32_t waits; /* the latest half without a known other direction */
    struct fault_cm cm[FAULT_CMS];
    uint32_t cms;
    uint64_t clock;
    uint64_t seen, evicted;
};

/* Facts about a packet from the table. */
struct fault_place {
    uint32_t conn;                 /* number, 0 = none */
    bool rel_known, tx_known;      /* whether rel and retx are valid */
    uint32_t rel;                  /* PSN from the first of its space */
    uint32_t msn;                  /* messages complete before it: the MSN of a NAK for it */
    bool retx;                     /* it is a retransmission */
    const struct fault_half *back; /* the other direction; NULL = not known */
};

/* A frame as the rules see it: parsed once, before any of them changes it. */
struct fault_view {
    uint8_t *frame;
    uint32_t have, len; /* len follows changes */
    enum fault_dir dir;
    bool roce;
    uint32_t classes;
    struct wire_pkt p;
    const struct wire_opcode_info *op;
    struct fault_place at;
    bool whole; /* to the end of the iCRC, and not trimmed: it can be repaired */
};

/* Look up the packet's connection, and learn from the packet. Only for frames that are RoCE. */
void fault_conn_see(struct fault_table *t, const struct fault_view *v, struct fault_place *out);

struct fault {
    struct fault_rule *rule;
    unsigned nrules;
    char *text; /* the rules' texts, NUL after each */
    uint64_t seed, zero;
    bool started, reorders;
    struct fault_table *table; /* NULL: no rule needs connections */
    uint64_t frames, roce;
};

/* Append the rules of a text to f->rule, their words to f->text. */
bool fault_read(struct fault *f, const char *text, size_t len, struct fault_error *err);

/* ---- the parts ---- */

/* Carry out an action; true = done. Adds to *out and *bits. */
bool fault_act(struct fault_rule *r, const struct fault_action *a, struct fault_view *v,
               struct fault_out *out, unsigned *bits);

#endif
