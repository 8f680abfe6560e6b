/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One engine with one queue pair on virtual time, in the place of one end of a captured connection
 * or flow of datagrams. Its packets come by a callback; memory is the owner's.
 */
#ifndef URNIC_STAGE_H
#define URNIC_STAGE_H

#include "engine.h"
#include "replay_priv.h"

#define STAGE_BEGIN    1000000000ull
#define STAGE_RECVS    64u
#define STAGE_PKEYS    4u
#define STAGE_END      (1ull << 56)      /* bound of the engine's clock, below Unix time */
#define STAGE_LOCAL_VA 0x100000000000ull /* start of the region for local use, 2^46 octets */

struct stage_owner {
    void *ctx;
    /* A frame that the engine sends, parsed, addressed and numbered as in the capture. */
    void (*sent)(void *ctx, const struct wire_pkt *p, const uint8_t *frame, uint32_t len);
    /* Fetch payload for sending; obj is the region's. */
    void (*fetch)(void *ctx, const struct mem_piece *from, uint8_t *to);
    /* Do a copy from a frame; returns 0 or -errno. *orig for atomics. */
    int (*copy)(void *ctx, const struct engine_copy *c, uint64_t *orig);
    /* NULL, or: a completion; a datagram for queue pair 1. */
    void (*completed)(void *ctx, const struct engine_wc *wc);
    void (*gsi)(void *ctx, const struct wire_pkt *p, const uint8_t *mad, uint32_t len);
};

struct stage_params {
    enum qp_type type;              /* RC, UC, UD */
    struct wire_addr local, remote; /* UD: local may be a group */
    uint32_t qkey;                  /* UD */
    uint32_t remote_qpn, rq_psn, sq_psn, mtu;
    uint16_t pkey;
    uint16_t more_pkeys[STAGE_PKEYS - 1]; /* for queue pair 1; 0 = none */
    uint8_t rnr_timer;
    uint8_t recovery; /* enum engine_recovery */
    unsigned rights;
    uint64_t now;
    uint64_t budget; /* see struct stage */
};

struct stage {
    struct engine *e;
    struct qp *qp;
    uint32_t pd, lkey;        /* the local region, backed by obj NULL */
    uint64_t now;             /* virtual: ns since STAGE_BEGIN before the capture's first packet */
    uint64_t budget;          /* frames that it may still send: one READ packet can request 2 GiB */
    enum engine_counter drop; /* reason for dropping the latest packet; none = not dropped */
    struct stage_params p;
    struct stage_owner owner;
};

/* 0, -ENOMEM, -EINVAL. Free with stage_free in any case. */
int stage_init(struct stage *s, const struct stage_params *p, const struct stage_owner *o);
void stage_free(struct stage *s);

/* Advance time to that of a captured packet, and run due timers. Time never goes back. */
void stage_time(struct stage *s, uint64_t ns);
/* Advance time to the next time-out. False when there is none. */
bool stage_wait(struct stage *s);
/* Send a datagram of the local region to another queue pair, by the owner's `sent`. 0 or -errno. */
int stage_datagram(struct stage *s, const struct engine_send_wr *wr);
/* The same for a MAD to queue pair 1, with one of the P_Keys. */
int stage_mad(struct stage *s, uint16_t pkey, const uint8_t *mad, uint32_t len);
/* Send all packets that may be sent now. */
void stage_flush(struct stage *s);
/* Feed the peer's hello of selective repeat. */
void stage_hello(struct stage *s);
/* Feed a captured packet, addressed to this queue pair, with this R_Key if it has one. */
void stage_feed(struct stage *s, const struct packet *p, uint32_t rkey);

/* A packet with these headers, from the stage to the peer's queue pair `dqpn`, as one line of text.
 */
void stage_dump(const struct stage *s, const struct wire_pkt *headers, uint32_t dqpn,
                char text[REPLAY_DUMP_MAX]);

/* Read the engine: a counter, the queue pair's state, the PSN that it expects next. */
uint64_t stage_count(const struct stage *s, enum engine_counter c);
enum qp_state stage_state(const struct stage *s);
uint32_t stage_epsn(const struct stage *s);

#endif
