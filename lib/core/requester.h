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
#ifndef URNIC_REQUESTER_H
#define URNIC_REQUESTER_H

#include "engine.h"
#include "psn.h"
#include "record.h"

#define REQ_WINDOW_DEFAULT 512u /* half a memif ring: the peer never waits for us */
#define REQ_WINDOW_MIN     16u

enum swqe_flag {
    SWQE_CHECKED = 1, /* PSNs assigned, SGEs are mem_refs now */
};

union swqe_sge {
    struct engine_sge sge; /* until the work request starts */
    struct mem_ref ref;    /* from then on */
    struct mem_seg seg;    /* of REG_MR */
};

struct swqe_dest { /* UD: where to */
    struct engine_av av;
    uint32_t rqpn, rqkey;
    uint16_t pkey_index;
} __attribute__((aligned(8))); /* SGEs follow */

struct swqe_xrc { /* XRC: the queue that the peer takes receives from */
    uint32_t srqn, zero;
};

struct swqe_bind {
    uint64_t va, len;
    uint32_t rkey, new_rkey, lkey, access;
};

/* A work request, the engine's private copy, kept until it has completed. Behind it, in the same
 * ring slot: swqe_dest for datagram queue pairs, swqe_xrc for those of XRC; then SGEs, or inline
 * data, or swqe_bind, or REG_MR's segments. Of REG_MR the rest is in rkey (its key), va, swap (its
 * length) and imm (its rights). */
struct swqe {
    uint64_t wr_id;
    uint64_t va;
    uint64_t compare_add, swap;
    uint32_t len; /* octets of the message */
    uint32_t rkey, imm;
    psn_t first;
    uint32_t npsn; /* 0 = local operation */
    uint32_t ssn;
    uint16_t inline_len;
    uint8_t opcode, wr_flags, nsge, flags;
    uint8_t error; /* enum engine_status that it will complete with; 0 = none */
};
_Static_assert(sizeof(struct swqe) == 64, "one cache line");
_Static_assert(sizeof(union swqe_sge) == sizeof(struct mem_ref), "a segment takes no more room");

/* Is it a READ or an ATOMIC, which the peer answers with data? */
static inline bool swqe_is_rd(const struct swqe *w)
{
    return w->opcode == WR_RDMA_READ || w->opcode == WR_ATOMIC_CMP_AND_SWP ||
           w->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

struct req {
    /* first cache line: what every packet touches */
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
    uint8_t fail;        /* enum engine_status to fail with once `recs` is empty */
    uint8_t full;        /* a post was refused: sq_room is owed */
    uint8_t probe : 1;   /* LR-12 is on */
    uint8_t probed : 1;  /* ... and has been used since the last progress */
    uint8_t astray : 2;  /* READ responses in a row that don't go on behind `seen` but elsewhere */
    uint8_t asking : 1;  /* nxt is sent again to ask for an answer, whatever the window is now */
    uint8_t stray;       /* the last one's PSN, its low 8 bits */
    uint8_t adaptive;    /* time-outs since the last progress, if LR-10 is on */
    uint8_t confirm;     /* a fatal NAK for una that has to come again (SEC-06), 0 = none */
    psn_t again;         /* one past the last PSN that has been sent more than once */
    psn_t rtx_psn, rnr_psn;
    psn_t seen;           /* how far answers that came too early have got; una when none has */
    uint32_t rd_first;    /* oldest READ or ATOMIC without all its answers; == started: none */
    uint32_t restart_pkt; /* last partial re-READ began here (REQ-30) */
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

/* send_queue.c */
/* The ring of a new queue pair; what is granted is put into *p. 0, -ENOMEM. */
int req_init(struct engine *e, struct qp *qp, struct engine_qp_params *p);
void req_free(struct qp *qp);
/* To RESET: forget everything. */
void req_reset(struct engine *e, struct qp *qp);
/* To RTS. */
void req_start(struct qp *qp, psn_t sq_psn);
/* See engine_post_send. */
int req_post(struct engine *e, struct qp *qp, const struct engine_send_wr *wr);
/* The list behind a work request; what is in it says SWQE_CHECKED. */
union swqe_sge *req_sges(const struct qp *qp, struct swqe *w);
/* Has all that was started completed? */
bool req_drained(const struct qp *qp);
/* In SQD: tell the owner, once, if it wants to know (QP-07). */
void req_check_drained(struct engine *e, struct qp *qp);

/* requester.c */
/* Fill up to n slots. Fewer than n: there is nothing more to send now. */
unsigned req_tx(struct engine *e, struct qp *qp, struct engine_slot *slots, unsigned n,
                uint64_t now);
/* After the gather of one slot of this side. False: it failed, the rest of this side's slots of the
 * queue pair are void too. */
bool req_sent(struct engine *e, struct qp *qp, const struct engine_slot *slot, uint64_t now);

/* completer.c */
/* A response for an RC queue pair that passed VAL-01 steps 1..8. */
void comp_rx(struct rx *rx, struct qp *qp);
/* A record of side REC_COMP is done (r->status says how). Never called for stale records. */
void comp_commit(struct engine *e, struct qp *qp, struct record *r, uint64_t now);
/* All records of this side are gone: what waited for that. */
void comp_idle(struct engine *e, struct qp *qp, uint64_t now);
/* Does a READ response's length and position fit packet k of w (REQ-29, REQ-30)? */
bool comp_fits_read(const struct qp *qp, const struct swqe *w, uint32_t k, const struct rx *rx);
/* Place packet k of the READ w before its turn. False: not done; the state may be ERR now. */
bool comp_read_early(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t k);
/* Complete what `done` and local errors allow, in order. */
void comp_retire(struct engine *e, struct qp *qp, uint64_t now);
/* Give in to a fatal NAK. */
void comp_refused(struct engine *e, struct qp *qp, uint8_t syndrome, uint64_t now);
/* The oldest work request fails with `status`, the queue pair goes to ERR (REQ-36); waits for
 * pending copies. */
void comp_fail(struct engine *e, struct qp *qp, enum engine_status status, const char *why,
               uint64_t now);
/* Flush the send queue in order (QP-12). */
void comp_flush(struct engine *e, struct qp *qp);

/* retransmit.c */
/* The next packet sent is that of PSN p, which lies in [una, max]. */
void rtx_place(struct qp *qp, psn_t p);
/* Send again from PSN p, which lies in [una, max]. */
void rtx_go_back(struct engine *e, struct qp *qp, psn_t p);
/* A sequence NAK for p: a retry, but not while what it asks for is under way. */
void rtx_nak(struct engine *e, struct qp *qp, psn_t p, uint64_t now);
/* ... for an answer to p while the one for una is missing. */
enum rtx_answer {
    RTX_ACK,        /* an acknowledgement, a NAK, or an ATOMIC's answer */
    RTX_READ_START, /* a READ response with which an answer begins */
    RTX_READ_ON,    /* ... goes on, or ends */
};
void rtx_implied(struct engine *e, struct qp *qp, psn_t p, enum rtx_answer kind, uint64_t now);
/* READ responses to an old request come while the READ has been asked for again: the peer gets to
 * the later request when it is done with them. The time for its answer begins anew, within bounds
 * (TMR-02). */
void rtx_old_answer(struct qp *qp, uint64_t now);
/* An RNR NAK for p: nothing is sent for as long as `code` says (RNR-05). */
void rtx_rnr(struct engine *e, struct qp *qp, psn_t p, unsigned code, uint64_t now);
/* Send again from una, free of charge: a fatal NAK for it counts when it comes again (SEC-06). */
void rtx_confirm(struct engine *e, struct qp *qp, uint8_t syndrome, uint64_t now);
/* The peer is alive: a fatal NAK that is to be confirmed wasn't its own. */
void rtx_refute(struct engine *e, struct qp *qp);
/* ns for which answers to the first transmission may still come in. */
uint64_t rtx_round_trip(const struct qp *qp);
/* una has moved by n PSNs (REQ-33). */
void rtx_progress(struct engine *e, struct qp *qp, uint32_t n, uint64_t now);
/* The queue pair's timer has fired: ack_at, rnr_at or probe_at may be due. */
void rtx_expire(struct engine *e, struct qp *qp, uint64_t now);
/* LR-12: the time for a probe begins anew: something has been sent, or answered. */
void rtx_probe_arm(struct engine *e, struct qp *qp, bool progress, uint64_t now);
/* The ACK timer's time after a time-out, from the measured round trip (LR-10). */
uint64_t rtx_adaptive(const struct qp *qp);

#endif
