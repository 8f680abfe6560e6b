/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protocol engine: all queue pairs of one device on one worker. It does no I/O, reads no clock
 * and starts no thread: packets, time and the outcome of copies come in as arguments.
 *
 * The contract, in the order in which a worker calls it:
 *
 *     used = engine_rx(e, frames, n, now, copies, cap, &ncopies)
 *         Validate a burst; nothing is placed yet. Each copy says which octets of which frame go
 *         to which piece of registered memory (or which atomic to execute). The engine keeps no
 *         pointer into a frame; a frame must stay valid until the caller has done the copies made
 *         from it.
 *     engine_copied(e, results, n, now)
 *         The caller has done (or failed) copies; in any order between queue pairs, in order
 *         within one (the token says which). Only this step advances the acknowledged PSN, posts
 *         completions and owes ACKs; a failed copy becomes the access error that the rules ask
 *         for. It may come later, from another thread's work: that queue pair waits, others don't,
 *         as long as engine_params.records are left.
 *         Copies of one queue pair must be executed in the order in which they were returned.
 *     m = engine_tx(e, slots, n, now)
 *         n slots already reserved from the port, so a frame that was produced can't be "unsent".
 *         The engine writes headers into the slot and names the payload pieces.
 *     engine_sent(e, slots, m, now)
 *         After the caller has gathered the payload of each slot and before it commits. Starts ACK
 *         timers. A slot that could not be gathered (status < 0) becomes void (len = 0), together
 *         with the later slots of its queue pair, which gets the error that the rules ask for. The
 *         caller seals (wire_icrc_seal) before or after this; a void slot's seal is never seen.
 *     engine_deadline(e), engine_expire(e, now)
 *         The next time-out (UINT64_MAX = none); run the time-outs that are due.
 *
 * Between these, on the same thread: posting, modifying, destroying. Destroy is always legal: with
 * copies pending the queue pair lingers invisibly until the last engine_copied.
 *
 * Threads: one thread at a time per engine. Different engines share nothing.
 *
 * Time is ns of any clock that never goes back: since boot, since the start of a capture, since
 * 1970. At 2^63 (292 years) it stands still for the engine: nothing times out any more.
 */
#ifndef URNIC_ENGINE_H
#define URNIC_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cc.h"
#include "engine_counters.h"
#include "ib.h"
#include "mem.h"
#include "wire.h"

#define ENGINE_BURST      64u
#define ENGINE_TX_PIECES  36u /* 16 SGEs of two segments each, rounded up */
#define ENGINE_SGE_MAX    16u
#define ENGINE_INLINE_MAX 256u
#define ENGINE_PKEYS      4u /* entries of the P_Key table */
/* engine_rx never produces more copies than this from one frame. */
#define ENGINE_FRAME_COPIES 40u

struct engine;
struct qp;  /* a queue pair */
struct cq;  /* a completion queue */
struct srq; /* a shared receive queue */

/* ---- phases: receive ---- */

enum engine_disposition {
    ENGINE_TAKEN,        /* processed by the engine, or dropped and counted */
    ENGINE_SLOW_PATH,    /* not RoCE: ARP, ND, ICMP ...; the caller's network code may look at it */
    ENGINE_OTHER_WORKER, /* for the queue pair of another worker: `worker` says which */
};

struct engine_frame {
    const uint8_t *data;
    uint32_t len;
    uint16_t flags;      /* WIRE_P_* for this frame, e.g. checksum already verified */
    uint8_t disposition; /* out: enum engine_disposition */
    uint8_t worker;      /* out, with ENGINE_OTHER_WORKER */
    uint16_t verdict;    /* out: enum wire_verdict of the parse */
    uint16_t drop;       /* out: enum engine_counter that counted a drop; 0 = not dropped */
};

enum engine_copy_kind {
    ENGINE_PUT,   /* src[0..len) -> dst */
    ENGINE_CAS,   /* old = *dst; if old == b then *dst = a; 8 octets, host order, atomic (ATM-01) */
    ENGINE_FADD,  /* old = *dst; *dst = old + a */
    ENGINE_STORE, /* *dst = a at once, 8 octets in their order in memory (ATM-12) */
};

struct engine_copy {
    uint64_t token;     /* hand back in the result */
    const uint8_t *src; /* into the frame, or into constant memory of the engine */
    struct mem_piece dst;
    uint64_t a, b;
    uint32_t frame; /* index of the frame in this engine_rx call */
    uint32_t len;
    uint32_t qpn; /* copies of one qpn keep their order */
    uint8_t kind;
};

/* The new value of an atomic with the old value `old`, if only the caller changes the memory. */
static inline uint64_t engine_copy_value(const struct engine_copy *c, uint64_t old)
{
    return c->kind == ENGINE_FADD  ? old + c->a
           : c->kind == ENGINE_CAS ? (old == c->b ? c->a : old)
                                   : c->a;
}

struct engine_result {
    uint64_t token;
    uint64_t orig; /* atomics: the old value */
    int status;    /* 0, or -errno: the memory is unreachable */
};

/* Validate up to n frames (any n). Returns the number of frames taken. It is less than n only if
 * `copies` is nearly full (fewer than ENGINE_FRAME_COPIES entries left; at most the first 65535 are
 * used); call again with the rest after copying. *ncopies = number of copies produced. */
unsigned engine_rx(struct engine *e, struct engine_frame *frames, unsigned n, uint64_t now,
                   struct engine_copy *copies, unsigned cap, unsigned *ncopies);

/* Report the outcome of copies, as the contract above says. A token counts once. */
void engine_copied(struct engine *e, const struct engine_result *results, unsigned n, uint64_t now);

/* ---- phases: send ---- */

struct engine_slot {
    uint8_t *buf;         /* in: room for the frame */
    uint32_t cap;         /* in: octets there */
    uint32_t len;         /* out: frame length, iCRC included */
    uint16_t ip_off;      /* out: for wire_icrc_seal */
    uint16_t bth_off;     /* out */
    uint16_t payload_off; /* out: where the pieces go, one after the other */
    uint16_t npieces;     /* out: 0 = the payload, if any, is in place already (inline, none) */
    uint32_t payload_len; /* out */
    uint32_t qpn;         /* out: local queue pair, 0 = none */
    uint32_t psn;         /* out */
    uint8_t kind;         /* out: the engine's */
    int status;           /* in, for engine_sent: 0 gathered, -errno the memory could not be read */
    struct mem_piece pieces[ENGINE_TX_PIECES];
};

/* Fill up to n slots (n <= ENGINE_BURST), the first ones. Returns the number filled. A slot must
 * hold the largest frame of the path MTU (engine_params.mtu): `cap` isn't checked. */
unsigned engine_tx(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now);
/* Fill one slot with a WRITE ahead of the pending ACK, for callers that know the peer is waiting
 * for the WRITE. The ACK is the first packet of the next engine_tx. Only WRITEs without immediate
 * go first: a program that sends a message waits for its completion before it looks for the next
 * message, so that message must not overtake the ACK. Returns 1, or 0: engine_tx decides the order.
 */
unsigned engine_tx_first(struct engine *e, struct engine_slot *slot, uint64_t now);
/* Report the outcome of gathering for the slots of the last engine_tx, as the contract above says.
 */
void engine_sent(struct engine *e, struct engine_slot *slots, unsigned n, uint64_t now);

/* A hint: a packet of qp (NULL = none) will be received or sent soon. Fetches its state into the
 * near caches in three steps, 0, 1, 2: each step reads memory that the step before has fetched. */
void engine_prefetch(const struct engine *e, const struct qp *qp, unsigned step);
/* Would engine_tx send a packet now? Cheap. */
bool engine_tx_ready(const struct engine *e);
/* Would engine_tx send nothing but acknowledgements of at most one queue pair? They may wait for
 * the program's answer, within ACK-04, and leave with it. Cheap. */
bool engine_tx_only_ack(const struct engine *e);

/* Not later than the next time-out of any queue pair; UINT64_MAX = none. */
uint64_t engine_deadline(const struct engine *e);
/* Run every time-out that is due by `now`. */
void engine_expire(struct engine *e, uint64_t now);

/* ---- counters ---- */

/* The engine's counters, ENGINE_COUNTER_MAX of them, 64 bit, never reset (CTR-03). */
const uint64_t *engine_counters(const struct engine *e);

/* ---- completions and events ---- */

/* "SUCCESS", "LOC_LEN_ERR" ... of an enum wc_status; never NULL. */
const char *engine_status_name(unsigned status);

struct engine_wc {
    uint64_t wr_id;
    uint32_t status; /* enum wc_status */
    uint32_t opcode; /* enum wc_opcode */
    uint32_t byte_len;
    uint32_t imm; /* as on the wire, or the invalidated R_Key */
    uint32_t qpn, src_qpn;
    uint32_t wc_flags;
    uint16_t pkey_index;
    uint8_t sl;
    uint8_t solicited;   /* CQ-07 */
    uint32_t vendor_err; /* the broken rule: see RULE_AREAS in ib.h */
    uint64_t qp_arg;     /* engine_qp_params.arg of the queue pair */
    uint64_t srq_arg;    /* engine_srq_params.arg of an XRC queue's receive; 0 = none */
};

/* Callbacks of the engine, always from inside one of its own functions, on the caller's thread. A
 * callback may not call the engine. */
struct engine_hooks {
    /* Store a completion. false = no room: the CQ is in error from now on (CQ-05). */
    bool (*cq_push)(void *arg, void *cq_arg, const struct engine_wc *wc);
    /* An asynchronous event about an object; obj_arg is the argument that created it. */
    void (*event)(void *arg, enum ib_event ev, void *obj_arg);
    /* A datagram for QP1: the 256-octet MAD (GSI-02 is checked by the receiver). */
    void (*gsi_rx)(void *arg, const struct wire_pkt *pkt, const uint8_t *payload, uint32_t len);
    /* The first valid request on a QP, in RTR or later: for the CM (CM-23). May be NULL. */
    void (*comm_est)(void *arg, void *qp_arg, uint32_t qpn);
    /* A send queue has room again after engine_post_send returned -EAGAIN. May be NULL. */
    void (*sq_room)(void *arg, void *qp_arg);
    /* A message has come and no receive is posted. The caller posts receives that the program has
     * queued, to the shared queue of srq_arg or (NULL) to the queue pair's own. False: there were
     * none. May be NULL. */
    bool (*recv_wanted)(void *arg, void *qp_arg, void *srq_arg);
    /* A region deregistered with copies pending is free now. May be NULL. */
    void (*mr_freed)(void *arg, void *mr_owner);
    /* engine_rx has listed n copies so far, the last of them from the frame just validated. The
     * caller may do them now, while their octets are in its nearest cache, instead of after
     * engine_rx. They stay listed, none is withdrawn, and engine_copied takes the results as usual.
     * May be NULL. */
    void (*copies)(void *arg, const struct engine_copy *copies, unsigned n);
    /* Called when packets from this address reach a limit. SEC-09, at each start: its packets are
     * dropped for a second, because too many were dropped as `why`. SEC-17, once a second: more
     * CNPs came than it can have sent (rp_cnp_unearned); none is dropped. May be NULL. */
    void (*guess)(void *arg, const struct wire_addr *source, enum engine_counter why);
    /* Trace of every protocol event of interest, NULL = off: swapping the pointer turns it on. */
    void (*trace)(void *arg, uint32_t qpn, const char *what, uint32_t psn, uint64_t v);
};

/* ---- the engine ---- */

struct engine_params {
    struct engine_hooks hooks;
    void *hook_arg;
    /* read for every packet: one cache line */
    uint8_t mac[6];
    uint16_t vlan; /* 0 = untagged; otherwise TCI's VID (WIRE-04) */
    /* P_Key table, 0 = empty; all zero = {0xFFFF} (KEY-01) */
    uint16_t pkeys[ENGINE_PKEYS];
    uint8_t worker;       /* this engine's worker number, part of every QPN (qpn.h) */
    uint8_t worker_bits;  /* QPN bits that name the worker: 0..4; 0 = it is the only one */
    bool programs;        /* programs have engines beside this one: no number of it has bit 23 */
    uint16_t block;       /* 1 + the first block of its numbers; 0 = numbers by `worker` */
    bool loopback;        /* accept loopback addresses (WIRE-29) */
    bool strict_resp;     /* a response that does not fit is fatal (REQ-28) */
    bool nak_confirm;     /* confirm a fatal NAK by a retransmission (SEC-06) */
    bool rnr_on_rd_res;   /* READs above max_dest_rd_atomic: RNR NAK, don't queue (RNR-11) */
    unsigned mtu;         /* port's largest path MTU, enum 1..5; 0 = 5 */
    uint32_t window;      /* packets in flight per QP; 0 = default (REQ-13) */
    uint32_t read_window; /* packets that READs of a QP may ask for before they have come, but for
                           * one READ alone; 0 = no limit (REQ-13) */
    uint64_t line_rate;   /* bit/s; 0 = unknown */
    uint16_t sport;       /* the port sends from this UDP source port, with IPv4 identification 0
                           * (WIRE-11, WIRE-20); 0 = the rules choose the source port */
    uint32_t records;     /* packets with copies pending, all QPs together; 0 = 4096, < 2^16 */
    uint32_t max_qp;      /* 0 = 1024 */
    uint32_t max_cq, max_srq; /* 0 = any number */
    struct mem_params mem;
    uint64_t key[2];   /* secret: QPN permutation, initial PSNs (SEC-07, SEC-08) */
    struct cc_conf cc; /* congestion control of queue pairs without their own; zero = none */
};

/* An engine without queue pairs; *params are copied. NULL = out of memory, too many records. */
struct engine *engine_create(const struct engine_params *params, uint64_t now);
/* Frees everything; no hook is called. */
void engine_destroy(struct engine *e);

/* The engine's registered memory. */
struct mem *engine_mem(struct engine *e);

/* Local addresses (GIDs) that frames may be sent to (WIRE-30). -EEXIST, -ENOENT, -ENOSPC (64). */
int engine_addr_add(struct engine *e, const struct wire_addr *addr);
int engine_addr_del(struct engine *e, const struct wire_addr *addr);

/* Attach a UD queue pair to a multicast group (UD-10, UD-11); detach it. -EINVAL (no UD queue pair,
 * no group; it isn't attached), -ENOMEM. */
int engine_mcast_attach(struct engine *e, struct qp *qp, const struct wire_addr *group);
int engine_mcast_detach(struct engine *e, struct qp *qp, const struct wire_addr *group);
/* The number of groups that the queue pair is attached to. */
unsigned engine_mcast_count(const struct engine *e, const struct qp *qp);
/* The i-th group with an attached queue pair; false after the last. */
bool engine_mcast_get(const struct engine *e, unsigned i, struct wire_addr *group);

/* ---- completion queues, shared receive queues ---- */

/* A completion queue; `arg` comes back in hooks.cq_push and in its events. -ENOMEM, -ENOSPC
 * (max_cq). */
int engine_cq_create(struct engine *e, void *arg, struct cq **out);
int engine_cq_destroy(struct engine *e, struct cq *cq); /* -EBUSY: queue pairs use it (CQ-09) */

struct engine_srq_params {
    void *arg;
    uint32_t pd;
    uint32_t max_wr, max_sge, limit;
    /* XRC (XRC-02): receives complete on `cq`, and the queue pairs of the domain `xrcd`, a
     * protection domain like any other, may name this queue by its number. cq NULL = no XRC. */
    struct cq *cq;
    uint32_t xrcd;
};
/* `limit` arms SRQ_LIMIT_REACHED at once. -EINVAL (domain, sizes), -ENOSPC (max_srq), -ENOMEM. */
int engine_srq_create(struct engine *e, const struct engine_srq_params *p, struct srq **out);
/* mask: SRQA_*. -EINVAL (mask, fewer than are posted, a limit above the size), -ENOMEM: nothing has
 * changed. */
int engine_srq_modify(struct engine *e, struct srq *srq, uint32_t max_wr, uint32_t limit,
                      unsigned mask);
/* *out as created, with size and limit as they are now. Always 0. */
int engine_srq_query(const struct srq *srq, struct engine_srq_params *out);
/* The 24-bit number by which peers of XRC queue pairs name the SRQ; 0 = it has no domain. */
uint32_t engine_srq_num(const struct srq *srq);
/* -EBUSY: queue pairs use it, or a message under way on an XRC queue pair has one of its receives.
 */
int engine_srq_destroy(struct engine *e, struct srq *srq);

/* ---- queue pairs ---- */

struct engine_qp_params {
    void *arg; /* comes back in events and completions */
    enum qp_type type;
    uint32_t pd; /* XRC_TGT: its XRC domain; the SRQ in the packet gives rights to memory */
    struct cq *send_cq, *recv_cq;      /* XRC_INI has no recv_cq, XRC_TGT has none at all */
    struct srq *srq;                   /* NULL = own receive queue; XRC: NULL */
    uint32_t max_send_wr, max_recv_wr; /* in: wanted, out: granted (QP-16) */
    uint32_t max_send_sge, max_recv_sge;
    uint32_t max_inline;
    bool sq_sig_all;
};

/* A path: for connected queue pairs and for each datagram. */
struct engine_av {
    struct wire_addr sgid, dgid; /* local and remote IP; both IPv4-mapped or both not (GID-02) */
    uint8_t dmac[6];
    uint8_t tclass, hop_limit, sl;
    uint32_t flow_label;
};

/* Loss recovery (LR-01). A queue pair with selective repeat uses go-back-N until its peer has said
 * that it does selective repeat, too. */
enum engine_recovery {
    RECOVER_DEFAULT, /* by the parameter `recovery` of its congestion control */
    RECOVER_GBN,     /* go-back-N, the standard */
    RECOVER_SR,      /* selective repeat; the peer must be urnic, too */
    RECOVER_GBN_OOO, /* go-back-N; keeps early packets of the WRITE under way (LR-09) */
};
extern const char *const qp_state_names[];        /* "RESET" ..., by enum qp_state */
extern const char *const engine_recovery_names[]; /* "default", "gbn", "sr", "gbn-ooo", NULL */

struct engine_qp_attr {
    enum qp_state state, cur_state;
    struct engine_av av;
    uint32_t qkey, rq_psn, sq_psn, dest_qpn;
    unsigned access_flags; /* MEM_REMOTE_*, MEM_FLUSH_* */
    uint16_t pkey_index;
    uint8_t port;     /* 1 */
    uint8_t path_mtu; /* enum 1..5 */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    bool en_sqd_async_notify, sq_draining;
    bool e2e_credits; /* ours: honour end-to-end credits (ACK-13), with QPA_STATE to RTR */
    uint8_t recovery; /* ours: enum engine_recovery, with QPA_STATE to RTR */
    /* ours, with QPA_STATE to RTR: the peer is known to do selective repeat. No hello is sent, and
     * packets carry their address from the first one on (LR-02). A peer without selective repeat
     * would drop them. */
    bool recovery_agreed;
};

/* Make a queue pair, in RESET. *p becomes the granted limits, which may be larger than requested.
 * The engine owns the queue pair until engine_qp_destroy. -EINVAL, -ENOMEM, -ENOSPC (max_qp). GSI:
 * at most one, number 1. */
int engine_qp_create(struct engine *e, struct engine_qp_params *p, struct qp **out);
uint32_t engine_qp_num(const struct qp *qp);
/* The queue pair of this number; NULL = none. O(1). */
struct qp *engine_qp_find(struct engine *e, uint32_t qpn);
/* Modify all attributes of the mask or none, by the table of QP-01. -EINVAL (state, mask, a value),
 * -EBUSY (SQD, and not yet drained: QP-08), -EOPNOTSUPP (an alternate path: QP-17), -ENOMEM. */
int engine_qp_modify(struct engine *e, struct qp *qp, const struct engine_qp_attr *attr,
                     unsigned mask, uint64_t now);
/* Current attributes and granted limits; caps may be NULL. Always 0. */
int engine_qp_query(const struct qp *qp, struct engine_qp_attr *out, struct engine_qp_params *caps);
/* Destroy it. After return no completion, event or memory access happens for it (QP-14); the
 * pointer is dead, and the number is quarantined. ACKs owed are lost unless engine_tx ran before
 * (QP-11: modify to ERR, then engine_tx, then destroy; engine_qp_owes says whether that matters).
 */
void engine_qp_destroy(struct engine *e, struct qp *qp);
/* Does the queue pair owe its peer an acknowledgement? */
bool engine_qp_owes(const struct qp *qp);
/* The port has a new MAC (WIRE-36). Queue pairs send from it; those of the device to itself also
 * send to it. They follow by engine_follow. */
void engine_set_mac(struct engine *e, const uint8_t mac[6]);
/* The port has a new largest path MTU, enum 1..5 (WIRE-36). It holds for queue pairs that get their
 * path MTU, or are made, from now on. A pass of engine_follow counts those with a larger one. */
void engine_set_mtu(struct engine *e, unsigned mtu);
/* Queue pairs follow a change of MAC, MTU or congestion control in passes over all of them, because
 * no call may take longer the more queue pairs there are (SHM-12). Each of these three calls starts
 * the pass again and does the first ENGINE_FOLLOW slots itself. */
#define ENGINE_FOLLOW 256u
/* Is the pass unfinished? */
bool engine_follows(const struct engine *e);
/* Continue the pass for `budget` slots. True: slots are left. */
bool engine_follow(struct engine *e, unsigned budget, uint64_t now);
/* Slots looked at by all passes so far, including those of the calls themselves. */
uint64_t engine_follow_looks(const struct engine *e);
/* Queue pairs with a larger path MTU than the port's in the last complete pass. */
unsigned engine_larger_mtu(const struct engine *e);
/* The neighbour's MAC changed (WIRE-07). */
void engine_qp_set_dmac(struct qp *qp, const uint8_t dmac[6]);
/* The queue pair's local address was removed, or is back (GID-04). A muted queue pair sends
 * nothing, and its timers stop, until it moves to RESET or gets another address (QPA_AV). */
void engine_qp_mute(struct engine *e, struct qp *qp, bool mute);
bool engine_qp_is_mute(const struct qp *qp);
/* Move it to ERR with QP_FATAL (QP-10); `why` begins with the rule's id. */
void engine_qp_fail(struct engine *e, struct qp *qp, const char *why, uint64_t now);
/* Choose the congestion control of a queue pair (CC-24); NULL = the device's. *conf is copied. May
 * be called at any time: a queue pair that is already sending starts anew at line rate. 0, -ENOMEM
 * (nothing changes). */
int engine_qp_set_cc(struct engine *e, struct qp *qp, const struct cc_conf *conf, uint64_t now);
/* Choose the device's congestion control. All queue pairs without their own follow (CC-25), by
 * engine_follow; a queue pair that gets no memory keeps its old one. 0, -ENOMEM (nothing changes).
 */
int engine_set_cc(struct engine *e, const struct cc_conf *conf, uint64_t now);
/* An engine with a block of numbers: has it come to numbers that have rested for less than
 * ENGINE_REST_NS? It uses them all the same; engine_add_block gives it others. */
bool engine_wants_block(const struct engine *e);
#define ENGINE_REST_NS 60000000000ull /* the longest TIMEWAIT */
/* One more block of numbers, at most ENGINE_BLOCKS; `key`: its secret. 0, -ENOMEM, -ENOSPC. */
int engine_add_block(struct engine *e, unsigned block, const uint64_t key[2]);
#define ENGINE_BLOCKS 4u
/* Packets in flight of each queue pair, and packets that READs of one may ask for: more than
 * before. Queue pairs that are under way reach it by and by (REQ-13). */
void engine_set_window(struct engine *e, uint32_t window);
/* The device's congestion control; valid until it is changed. */
const struct cc_conf *engine_cc(const struct engine *e);

/* ---- work requests ---- */

struct engine_sge {
    uint64_t va;
    uint32_t len;
    uint32_t lkey;
};

struct engine_send_wr {
    uint64_t wr_id;
    uint8_t opcode, flags, nsge;
    uint16_t inline_len; /* with WR_F_INLINE: octets at inline_data */
    uint32_t imm;        /* immediate as on the wire, or R_Key to invalidate */
    uint32_t rkey;
    uint64_t remote_va;
    uint64_t compare_add, swap; /* FLUSH: compare_add = octets from remote_va, imm = FETH */
    struct engine_av av;        /* UD */
    uint32_t rqpn, rqkey;       /* UD */
    uint32_t xrc_srqn;          /* XRC_INI: the peer's shared receive queue, 24 bits */
    uint16_t pkey_index;        /* GSI */
    const struct engine_sge *sge;
    const uint8_t *inline_data;
    /* BIND_MW */
    uint32_t mw_rkey, mw_new_rkey, mw_lkey;
    uint64_t mw_va, mw_len;
    uint32_t mw_access;
    /* REG_MR (MR-08): mw_va, mw_len, mw_access, and mw_new_rkey: the region's key with its new
     * variant octet; at most max_send_sge segments */
    const struct mem_seg *segs;
    uint32_t nsegs;
};

struct engine_recv_wr {
    uint64_t wr_id;
    uint8_t nsge;
    const struct engine_sge *sge;
};

/* Post; everything is copied before return. 0; -EAGAIN: no room (nothing is lost: post again after
 * sq_room or a completion); -EINVAL: state (QP-05), a datagram longer than the MTU (UD-02), a
 * receive for a queue pair with an SRQ, or for an SRQ in error. A request with another fault is
 * accepted, and completes in order with the status of REQ-08. In ERR it completes with flush. */
int engine_post_send(struct engine *e, struct qp *qp, const struct engine_send_wr *wr,
                     uint64_t now);
int engine_post_recv(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr);
int engine_post_srq_recv(struct engine *e, struct srq *srq, const struct engine_recv_wr *wr);
/* The number of further work requests that fit. */
uint32_t engine_sq_room(const struct qp *qp);
uint32_t engine_rq_room(const struct qp *qp);
uint32_t engine_srq_room(const struct srq *srq);

/* Write the CM's MAD to a peer's QP1 into one slot; the caller seals it like any other. It carries
 * the entry of the P_Key table that matches `pkey`, or the first entry if none does (CM-06).
 * Returns 0, -EINVAL (len), -EMSGSIZE (the slot is too small). */
int engine_gsi_emit(struct engine *e, struct engine_slot *slot, const struct engine_av *av,
                    uint16_t pkey, const uint8_t *mad, uint32_t len);

/* ---- looking inside ---- */

/* State of a queue pair, for `urnic stat`, tests and the flight recorder. */
struct engine_qp_info {
    uint32_t qpn, dest_qpn;
    enum qp_type type;
    enum qp_state state;
    uint32_t epsn, msn;       /* next expected; messages done */
    uint32_t sq_psn, una_psn; /* next to send; oldest unacknowledged */
    uint32_t sq_used, rq_used, inflight_packets, rd_atomic_out;
    uint64_t tx_packets, rx_packets, tx_bytes, rx_bytes, retransmits, timeouts, naks, rnr_naks;
    const struct cc_conf *cc;    /* in force; valid until it is changed */
    uint8_t recovery;            /* enum engine_recovery */
    bool recovery_agreed;        /* the peer does selective repeat, too */
    uint64_t cc_rate, cc_target; /* bit/s; CC_UNLIMITED = not limited */
    uint32_t cc_alpha;           /* CC_RATIO_BITS fraction bits */
    char error[256]; /* why the QP is in ERR: rule, packet, PSN expected; "" = not in ERR */
};
/* Its current state. */
void engine_qp_info(const struct engine *e, const struct qp *qp, struct engine_qp_info *out);
/* Walk over all queue pairs but QP1 in pieces. Call fn for each, from the place `at` (0 = the
 * first), until fn returns false or `budget` places were looked at. When fn returns false, the next
 * call starts with that queue pair. Returns the place for the next call, 0 = the end. A queue pair
 * that is made or destroyed between two calls is visited once or not at all; every other one
 * exactly once. */
uint32_t engine_qp_walk(struct engine *e, uint32_t at, unsigned budget,
                        bool (*fn)(void *arg, struct qp *qp), void *arg);
/* Places looked at by all walks so far. */
uint64_t engine_qp_looks(const struct engine *e);
/* The network reports by ICMP, which any host can forge, that packets to this address do not
 * arrive: `error` is a positive errno, EMSGSIZE if they are too big. The flight recorders of
 * connected queue pairs that send there note it; nothing else changes. It works in pieces: `at`,
 * `budget` and the result are as for engine_qp_walk. */
uint32_t engine_icmp(struct engine *e, const struct wire_addr *to, int error, uint32_t at,
                     unsigned budget);
/* Write the flight recorder as text lines and a NUL, newest line last. If they don't all fit, the
 * newest lines are left out. Returns the octets written, without the NUL. */
size_t engine_qp_history(const struct engine *e, const struct qp *qp, char *buf, size_t size);
/* Octets of engine state of one idle queue pair, without its work queues. */
size_t engine_qp_state_size(void);
/* Live objects, for leak tests. */
struct engine_usage {
    uint32_t qps, cqs, srqs, records;
};
void engine_usage(const struct engine *e, struct engine_usage *out);

#endif
