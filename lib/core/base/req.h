/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sending half of a queue pair: work requests are taken and started (send_queue.c), become
 * packets (requester.c), answers become completions (completer.c), losses become retransmissions
 * (retransmit.c).
 * Rules: REQ, RTX, TMR, RNR-05..09, ACK-12..17, UC-02, UD-03.
 *
 *              head                 cur                     started            tail
 *     SQ   ... | sent, unanswered   | being sent (pkt)      | next to start    | free ...
 *     PSN  ... done <= una          nxt                     <= max
 *
 * `una` runs ahead of `done` while copies of READ responses are pending. After a go-back, cur and
 * nxt stand before `max`.
 */
#ifndef URNIC_REQ_H
#define URNIC_REQ_H

#include "engine.h"
#include "psn.h"
#include "record.h"

#define REQ_WINDOW_DEFAULT 512u /* half a memif ring: the peer never waits for us */
#define REQ_WINDOW_MIN     16u

struct req {
    /* first cache line: touched for every packet */
    psn_t nxt, max, una, done;
    uint32_t head, cur, started, tail; /* work request indices, free running */
    uint32_t pkt;                      /* next packet of `cur` */
    uint32_t since_ackreq;
    uint32_t rd_psns; /* response PSNs reserved and not received yet */
    psn_t ob_end;     /* one past the last PSN that obliges the peer to answer */
    uint32_t window;  /* packets that may be in flight now */
    uint16_t rd_out;  /* READ and ATOMIC work requests not completed */
    uint8_t obliged;  /* ob_end is valid */
    uint8_t rnr_wait; /* waiting for rnr_at */
    uint8_t *ring;

    /* second */
    uint64_t ack_at; /* TIMER_NEVER = not running */
    uint64_t rnr_at;
    uint64_t probe_at; /* LR-12; TIMER_NEVER = not running */
    uint32_t mask;     /* ring entries - 1 */
    uint32_t depth;    /* granted max_send_wr */
    uint16_t stride;
    uint8_t retry_left, rnr_left;
    uint8_t rtx;         /* a retransmission of rtx_psn is under way (TMR-07) */
    uint8_t restart_set; /* restart_pkt is valid for the READ at rd_first */
    uint8_t fail;        /* enum wc_status to fail with once `recs` is empty */
    uint8_t full;        /* a post was refused: sq_room is owed */
    uint8_t probe : 1;   /* LR-12 is on */
    uint8_t probed : 1;  /* a probe was sent since the last progress */
    uint8_t astray : 2;  /* READ responses in a row that don't continue `seen` */
    uint8_t asking : 1;  /* nxt is sent again to ask for an answer, even outside the window */
    uint8_t stray;       /* low 8 bits of the last one's PSN */
    uint8_t adaptive;    /* time-outs since the last progress, if LR-10 is on */
    uint8_t confirm;     /* a fatal NAK for una that has to come again (SEC-06), 0 = none */
    psn_t again;         /* one past the highest PSN that was sent more than once; una = none */
    psn_t rtx_psn, rnr_psn;
    psn_t seen;           /* place that answers past a gap have reached; una = none */
    uint32_t rd_first;    /* oldest READ or ATOMIC without all its answers; `started` = none */
    uint32_t restart_pkt; /* first packet of the last partial re-READ (REQ-30) */
    uint32_t implied_at;  /* ns, the low 32 bits: when an implied NAK last cost a retry */
    uint64_t rtx_at;
    uint32_t ssn, lsn; /* messages started; credit limit (ACK-15) */
    psn_t rtt_psn;
    uint32_t acked;  /* PSNs answered since `window` last grew */
    uint32_t srtt;   /* ns; 0 = no sample yet */
    uint32_t rttvar; /* ns: mean deviation */
    uint64_t rtt_at; /* 0 = no sample running */
    struct record_fifo recs;
};

#endif
