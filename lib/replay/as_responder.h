/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files that put our engine in the responder's place. as_responder.c gives it the
 * captured requests, responder_answer.c compares the captured answers with its own,
 * responder_excuse.c finds other explanations for them, responder_reread.c watches READs that are
 * repeated from the middle. One thread.
 */
#ifndef URNIC_REPLAY_AS_RESPONDER_H
#define URNIC_REPLAY_AS_RESPONDER_H

#include "regions.h"
#include "stage.h"

#define LEDGER_BUCKETS 65536u
#define REREADS        64u
#define BACK           4096u /* packets searched before an answer */
#define EARLY          256u  /* packets with possible answers to requests from before the capture */

/* An answer of our engine, in the ledger. */
struct answer {
    uint32_t next; /* index + 1 of the next one in the bucket */
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
    const struct packet *refused; /* refused for good by our engine */
    const struct packet *dropped; /* dropped by our engine in its turn */
    const char *dropped_rule;     /* rule for dropping it */
    uint8_t *declined;            /* bit per PSN bucket: repeated too often for our engine */
    struct {
        uint32_t psn;
        uint64_t ns;
    } reread[REREADS]; /* by PSN: time of the last READ from there on */
    /* READs repeated from the middle: an answer that continues the first one, though the re-read
     * needs its own. Once it may be the late first answer; twice and never otherwise is a habit. */
    const struct packet *stale;
    bool stale_told, regular;
    bool broken_off;            /* UC: the current message is dropped up to its end */
    bool started;               /* a request of this connection was fed */
    bool middle;                /* the capture starts in the middle */
    const struct packet *first; /* first answer with a message number */
    bool hole;                  /* the capture missed a request that its responder has answered */
    bool lags;                  /* our engine lags at this PSN, as reported */
    uint32_t lags_at;
    bool failed;  /* out of memory */
    char why[96]; /* reason of the latest difference, if it names a packet */
};

/* The hash of a payload, for the ledger. */
uint64_t responder_hash(const uint8_t *data, size_t len);

/* Feed request number `at` of the direction. */
void responder_give(struct responder *r, size_t at);

/* Look for a captured answer in the ledger, and tell the judge. */
void responder_compare(struct responder *r, const struct packet *p);
/* By rule: a sentence on our engine's action where it doesn't give the captured answer. */
const char *responder_why(const char *rule);
/* Report a difference to the judge; our engine has this answer instead, NULL = none. */
void responder_differ(struct responder *r, const struct packet *p, const char *rule,
                      const char *field, const struct answer *ours, const char *why);

/* Is `found` the answer to the first execution of a READ, at a place that needs one to a later
 * execution, which starts here? If it is a habit, it has been reported to the judge. */
bool reread_oddly(struct responder *r, const struct packet *p, const struct answer *found);

/* Does this response start in the middle of a READ that was requested from its start, a round trip
 * after the response before it? Then the capture has missed the READ from here. */
bool reread_missed(const struct responder *r, const struct packet *p);

/* ---- explanations of a captured answer that our engine doesn't give ---- */

/* The answer shows that the responder is ahead of our engine: the capture has all the packets for
 * it, but in another order, or marked as lost. Feed them to our engine in order. */
void excuse_order(struct responder *r, const struct packet *p);
/* The answer covers our engine's expected PSN or a later one, but the capture lacks that request:
 * from here on nothing can be judged. */
bool excuse_hole(const struct responder *r, const struct packet *p);
/* The answer refuses a packet that the capture has missed. */
bool excuse_missed(const struct responder *r, const struct packet *p);
/* The answer is an RNR NAK of a request that takes a receive or other room, and that was not
 * covered long ago: the peer may have had none. */
bool excuse_starved(const struct responder *r, const struct packet *p);
/* The answer is a NAK that the network explains: its packet was delayed after the capture point, or
 * packets were not captured, or the NAK was overtaken itself. */
bool excuse_delayed(const struct responder *r, const struct packet *p);
/* The answer is a second fatal NAK, a copy by its IP identification. */
bool excuse_copied(const struct responder *r, const struct packet *p);
/* Between `from` and this NAK: has the responder refused the NAK's PSN for want of a receive, and
 * given no other answer to it since? */
bool excuse_refused_since(const struct responder *r, const struct packet *from,
                          const struct packet *nak);

#endif
