/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rig for the engine's unit tests: one engine with one queue pair, a peer that the test plays by
 * hand, one region of memory, time that the test steps, copies that wait on demand.
 */
#ifndef URNIC_TEST_CORE_RIG_H
#define URNIC_TEST_CORE_RIG_H

#include "engine.h"
#include "unit.h"

#define RIG_MEM   (1u << 20)
#define RIG_VA    0x10000000ull
#define RIG_PSN   0xFFFFF0u /* PSN-05: everything runs across the wrap */
#define RIG_RQPSN 0x7FFFF8u
#define RIG_PEER  0x123456u /* the peer's queue pair */
#define RIG_MTU   1024u
#define RIG_T     (4096ull << 8) /* timeout attribute 8 */
#define RIG_LOG   4096

struct rig_opts {
    enum qp_type type;        /* 0 = RC */
    uint32_t sq_psn, rq_psn;  /* 0 = RIG_PSN, RIG_RQPSN */
    uint32_t dest_qpn;        /* 0 = RIG_PEER */
    unsigned window, mtu;     /* 0 = defaults; mtu is the enum */
    int max_rd_atomic;        /* 0 = 4, -1 = none */
    int retry_cnt, rnr_retry; /* 0 = 3, -1 = none */
    unsigned max_send_wr;
    uint32_t max_qp;  /* 0 = 64 */
    uint16_t block;   /* engine_params.block */
    uint32_t records; /* 0 = default */
    bool credits, sig_all, ipv6, strict_resp, nak_confirm, rnr_on_rd_res;
    struct srq *srq;
    uint64_t start; /* start of the clock, ns; 0 = 1 ms */
    bool stay;      /* leave the queue pair in RESET */
    bool no_timer;  /* timeout attribute 0 */
};

struct rig {
    struct engine *e;
    struct qp *qp;
    struct cq *cq;
    uint32_t pd, lkey, rkey;
    uint8_t *mem;
    uint64_t now;
    struct wire_addr lip, rip;
    bool ipv6;

    /* packets of the queue pair since rig_clear */
    struct wire_pkt sent[RIG_LOG];
    uint8_t *payload[RIG_LOG]; /* points into frames kept until rig_clear */
    unsigned nsent;

    struct engine_wc wc[RIG_LOG];
    unsigned nwc;
    unsigned cq_room; /* completions that still fit */
    enum ib_event ev[64];
    unsigned nev;
    unsigned comm_est, sq_room, mr_freed, gsi, guesses;
    struct { /* by the trace hook, the n-th at n % 64 */
        const char *what;
        uint64_t v;
    } traced[64];
    unsigned ntraced;

    struct engine_copy listed[64]; /* by the copies hook: the last one of the n-th call */
    unsigned nlisted;

    bool late; /* copies wait for rig_copy */
    struct engine_copy copies[RIG_LOG];
    unsigned ncopies;
    uint64_t orig[RIG_LOG];
    unsigned fail_gather;     /* the n-th slot from now fails, 1 = the next; 0 = none */
    struct engine_frame last; /* result of the last rig_rx */
};

/* An engine with memory, queues and a queue pair, by the options `o`. */
struct rig *rig_new(const struct rig_opts *o);
void rig_free(struct rig *r);
/* Check that both have sent the same packets, payload included. Only IP ids may differ, since a
 * slot that was filled in vain uses one up. */
void rig_same_sent(const struct rig *a, const struct rig *b);
struct engine_qp_attr rig_attr(const struct rig *r, const struct rig_opts *o);
/* RESET to RTS, or as far as `to`. */
void rig_connect(struct rig *r, struct qp *qp, const struct rig_opts *o, enum qp_state to);

/* Posting; the buffer begins at RIG_VA + off. */
struct engine_send_wr rig_wr(struct rig *r, enum wr_opcode op, uint64_t wr_id, uint32_t off,
                             uint32_t len);
int rig_post(struct rig *r, enum wr_opcode op, uint64_t wr_id, uint32_t len, unsigned flags);
int rig_post_recv(struct rig *r, uint64_t wr_id, uint32_t off, uint32_t len);

/* Send the waiting packets, at most `max` (0 = all). Returns their number. */
unsigned rig_tx(struct rig *r, unsigned max);
void rig_clear(struct rig *r); /* forget packets and completions */

/* A packet from the peer, addresses filled in; payload from `data` (NULL = a pattern). Copies are
 * executed at once unless `late`. */
struct wire_pkt rig_pkt(struct rig *r, unsigned opcode, uint32_t psn);
void rig_rx(struct rig *r, struct wire_pkt *p, const void *data);
void rig_aeth(struct rig *r, uint32_t psn, unsigned syndrome, uint32_t msn);
void rig_ack(struct rig *r, uint32_t psn);
/* READ response `op` (enum wire_op) of `len` octets of value `fill`. */
void rig_read_resp(struct rig *r, unsigned op, uint32_t psn, uint32_t len, int fill);
void rig_copy(struct rig *r, unsigned n, int status); /* finish the n oldest late copies */

/* Let time pass; runs the timers that are due on the way. */
void rig_pass(struct rig *r, uint64_t ns);
uint64_t rig_count(const struct rig *r, enum engine_counter c);
uint32_t rig_psn(uint32_t first, uint32_t n); /* first + n, 24 bits */
enum qp_state rig_state(const struct rig *r);

#endif
