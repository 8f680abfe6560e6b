/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the halves of our engine in the responder's place share: one gives it the requests of the
 * capture (as_responder.c), the other compares the captured answers with its own
 * (responder_answer.c). One thread.
 */
#ifndef URNIC_REPLAY_AS_RESPONDER_H
#define URNIC_REPLAY_AS_RESPONDER_H

#include "regions.h"
#include "stage.h"

#define LEDGER_BUCKETS 65536u
#define REREADS        64u
#define EARLY          256u /* packets in which answers to what went before the capture may come */

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
    bool begun;                 /* a request of this connection has come */
    bool middle;                /* the capture begins in the middle */
    const struct packet *first; /* answer with a message number */
    bool hole;                  /* the capture missed a request that its responder has answered */
    bool behind;                /* our engine is, with this PSN, and that has been said */
    uint32_t behind_at;
    bool failed; /* out of memory */
};

/* Of a payload, for the ledger. */
uint64_t responder_hash(const uint8_t *data, size_t len);

/* Give it request number `at` of the direction, now. */
void responder_give(struct responder *r, size_t at);

/* Look for a captured answer in the ledger, and tell the judge. */
void responder_compare(struct responder *r, const struct packet *p);

#endif
