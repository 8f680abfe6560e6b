/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of our engine in the responder's place share: as_responder.c gives it the requests
 * of the capture, responder_answer.c compares the captured answers with its own, responder_excuse.c
 * knows what else explains them, responder_reread.c watches READs that are repeated from the
 * middle. One thread.
 */
#ifndef URNIC_REPLAY_AS_RESPONDER_H
#define URNIC_REPLAY_AS_RESPONDER_H

#include "regions.h"
#include "stage.h"

#define LEDGER_BUCKETS 65536u
#define REREADS        64u
#define BACK           4096u /* packets in which what was before an answer is looked for */
#define EARLY          256u  /* packets in which answers to what went before the capture may come */

/* An answer of our engine, in its ledger. */
struct answer {
    uint32_t next; /* of the same bucket, + 1 */
    uint32_t psn, msn;
    uint16_t payload_len, pkey;
    uint64_t content; /* hash of the payload; the original value of an ATOMIC */
    uint8_t opcode, syndrome;
    bool used;
};

struct responder {
    struct direction *d;
    struct judge *j;
    struct stage stage;
    struct answer *ledger;
    uint32_t answers, room;
    uint32_t *bucket; /* index + 1 */
    struct regions regions;
    const struct packet *feeding;
    const struct packet *refused; /* for good, by our engine, */
    const struct packet *dropped; /* or dropped in its turn, */
    const char *dropped_rule;     /* by this rule */
    uint8_t *declined; /* bit per PSN bucket: repeated more often than our engine bears */
    struct {
        uint32_t psn;
        uint64_t ns;
    } reread[REREADS]; /* by PSN: when a READ was last asked for from there on */
    /* READs repeated from the middle: an answer like the first one's, where one of its own is due.
     * Once it may be the first answer, late; twice and never otherwise is a habit. */
    const struct packet *odd;
    bool odd_told, regular;
    bool broken_off;            /* UC: the message under way is dropped, up to its end */
    bool started;               /* a request of this connection has come */
    bool middle;                /* the capture begins in the middle */
    const struct packet *first; /* answer with a message number */
    bool hole;                  /* the capture missed a request that its responder has answered */
    bool behind;                /* our engine is, with this PSN, and that has been said */
    uint32_t behind_at;
    bool failed;  /* out of memory */
    char why[96]; /* reason of the latest difference, where that names a packet */
};

/* Of a payload, for the ledger. */
uint64_t responder_hash(const uint8_t *data, size_t len);

/* Give it request number `at` of the direction, now. */
void responder_give(struct responder *r, size_t at);

/* Look for a captured answer in the ledger, and tell the judge. */
void responder_compare(struct responder *r, const struct packet *p);
/* What our engine does instead of an answer that it doesn't give, by the rule, in a sentence. */
const char *responder_why(const char *rule);
/* Tell the judge that it differs; our engine has this answer instead, NULL = nothing. */
void responder_differ(struct responder *r, const struct packet *p, const char *rule,
                      const char *field, const struct answer *ours, const char *why);

/* Is `found` the answer to the first execution of a READ, but seen where one to a later execution,
 * which begins here, is due? Then the judge has been told, if it is a habit. */
bool reread_oddly(struct responder *r, const struct packet *p, const struct answer *found);

/* Does this response begin in the middle of a READ that was asked for from its beginning, a round
 * trip after what came before it? Then the capture has missed the READ from here. */
bool reread_missed(const struct responder *r, const struct packet *p);

/* ---- what explains a captured answer that our engine doesn't give ---- */

/* It shows that the responder is further than our engine: the capture has all that it needed, but
 * in another order, or it is thought lost. Our engine gets it, in order. */
void excuse_order(struct responder *r, const struct packet *p);
/* It covers what our engine waits for, or something behind it, though the capture has never shown
 * it: from here on nothing can be told. */
bool excuse_hole(const struct responder *r, const struct packet *p);
/* It refuses a packet that the capture has missed. */
bool excuse_missed(const struct responder *r, const struct packet *p);
/* It is an RNR NAK of what takes a receive or room, and not long covered: the peer may have had
 * none. */
bool excuse_starved(const struct responder *r, const struct packet *p);
/* It is a NAK that the network explains: what it asks for was delayed behind the capture, or not
 * all was captured, or it was overtaken itself. */
bool excuse_delayed(const struct responder *r, const struct packet *p);
/* It is a fatal NAK for the second time, a copy as far as the IP identification tells. */
bool excuse_copied(const struct responder *r, const struct packet *p);
/* Between `from` and this NAK: has the responder refused what it asks for, for want of a receive,
 * and said nothing else of it since? */
bool excuse_refused_since(const struct responder *r, const struct packet *from,
                          const struct packet *nak);

#endif
