/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loss recovery beside go-back-N: selective repeat in the way of IRN (SIGCOMM 2018), and a
 * go-back-N receiver that keeps early packets. Rules: LR-01..LR-07, LR-09.
 *
 * Both halves belong to RC queue pairs only, and exist only where they were requested:
 *
 *   receiver   A packet after the expected one is early. It is placed at once if it names its
 *              place: it carries a RETH or the number of its receive work request, or it continues
 *              the WRITE under way. With a go-back-N sender only the last case counts (LR-09). A
 *              window remembers early packets. A packet that fills the gap leaves out the octets
 *              that later packets have written. When the gap closes, the early packets are carried
 *              out in order without a copy: completions, MSN and ACKs keep their order, and memory
 *              ends as if no packet had come early. READ and ATOMIC requests have no early effect:
 *              they are dropped, and come again.
 *   sender     A selective NAK names the expected packet and one that has come. Recovery
 *              retransmits each missing packet from the expected one to the highest that has come,
 *              once. Then it continues with new packets. It ends when all packets sent before its
 *              start are acknowledged. A time-out retransmits all packets that have not come. On
 *              paths that reorder, the sender learns how late a packet may come: a late packet that
 *              was sent only once shows how many packets may overtake another before that one
 *              counts as lost.
 *
 * The packets of selective repeat have opcodes of the manufacturer's group. Only a peer that has
 * declared support for them gets them. An end that may use them says hello: a selective
 * acknowledgement that acknowledges nothing, which any other implementation drops. Until the peer's
 * hello has come, recovery is go-back-N in both directions. A receiver that has agreed can't keep
 * early packets that the sender sent before it knew: they don't name their place. When the peer
 * reports that it kept nothing, the sender sends all of those again.
 */
#ifndef URNIC_SR_H
#define URNIC_SR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "psn.h"

struct qp;
struct record;
struct rwqe;
struct swqe;
struct rx;

#define SR_WINDOW 1024u /* PSNs after the expected one that are kept (LR-02) */
#define SR_SACKS  256u  /* selective NAKs waiting to be sent */
#define SR_PIECES 2u    /* most pieces of memory for one WRITE packet */

/* An early packet, already in memory. */
struct sr_early {
    uint64_t va;
    uint32_t rkey, dma_len, imm;
    uint16_t payload_len;
    uint8_t opcode; /* of RC */
    bool valid, se, ackreq;
    struct mem_piece at[SR_PIECES]; /* its places in memory; len 0 = none */
};

struct sr {
    uint8_t mode;   /* enum engine_recovery */
    uint8_t agreed; /* the peer understands selective repeat */
    uint8_t hello_owed, hellos;
    uint64_t hello_at; /* earliest time for the next hello */
    psn_t plain;       /* packets sent before this one don't name their place */

    /* sender */
    uint64_t marked[SR_WINDOW / 64]; /* PSNs from una on that the peer has */
    uint64_t again[SR_WINDOW / 64];  /* PSNs from una on that were sent more than once */
    uint32_t sent_at[SR_WINDOW];     /* ns, of PSNs from una on, the low 32 bits */
    psn_t high;                      /* one past the highest PSN that has come; una = none */
    psn_t gap;                       /* the packet that the peer lacked last */
    uint32_t gap_over;               /* packets that overtook the gap; 0 = it has come */
    uint64_t gap_again_at;           /* time of the gap's retransmission */
    uint8_t gap_again;               /* retransmissions of the gap; 2 = unknown */
    uint32_t rtt_min;                /* ns: the shortest round trip without retransmission */
    uint8_t doubts;                  /* packets in a row that were probably late */
    uint32_t overtaken;              /* most packets that overtook a packet that was not lost */
    psn_t scan, end;                 /* retransmission round: next PSN to check, end */
    psn_t recover;                   /* recovery ends when this is acknowledged */
    psn_t trigger;                   /* sel_psn of the selective NAK at hand */
    uint8_t selective;               /* the NAK at hand is selective */
    uint8_t recovering;
    uint8_t backoff; /* time-outs since the last progress */
    uint32_t sends;  /* started messages with a receive work request */
    uint64_t since;  /* time of the last retry charged or progress made */

    /* requester of READs */
    uint64_t got[SR_WINDOW / 64]; /* responses from una on that are placed */
    uint32_t ngot;
    psn_t part, part_end; /* the part of a READ that was requested again last */
    uint8_t part_due;     /* the request for `part` is still to be sent */
    uint8_t asks;         /* parts asked for since asked_at */
    uint64_t asked_at;

    /* receiver */
    uint32_t receives; /* messages with a receive work request that have come, in order */
    uint32_t ahead;    /* receive work requests taken for later messages */
    struct rwqe *next; /* first receive work request of `ahead` */
    uint32_t nearly;   /* entries of `early` that are valid */
    psn_t top;         /* all PSNs of `early` are before this one */
    uint8_t draining;  /* within sr_drain */
    uint8_t broken;    /* the copy of an early packet failed after it was counted in */
    psn_t broken_psn;
    uint64_t hold_at; /* LR-15: end of holding NAKs; TIMER_NEVER = they aren't held */
    uint32_t sack_head, sack_tail;
    psn_t sack[SR_SACKS];
    struct sr_early early[SR_WINDOW];
};

/* Entering RTR. 0, -ENOMEM. */
int sr_start(struct engine *e, struct qp *qp);
/* Entering RTS. */
void sr_begin(struct qp *qp, psn_t sq_psn);
/* Entering ERR: no more hellos or selective NAKs. */
void sr_stop(struct qp *qp);
void sr_free(struct engine *e, struct qp *qp);
/* Is there a selective NAK or a hello to send? */
bool sr_tx_ready(const struct qp *qp);
/* Send a hello now and then, until the peer has sent one. */
void sr_hello(struct engine *e, struct qp *qp, uint64_t now);
/* A hello waits to be sent. */
bool sr_hello_due(const struct qp *qp);
/* Selective repeat wasn't asked for, or the peer has left several hellos unanswered and is taken
 * for one that knows only go-back-N (LR-04). */
bool sr_plain(const struct qp *qp);

#endif
