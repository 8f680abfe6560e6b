/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queues in shared memory, doorbells and wake-ups. Everything lies in slabs that the daemon creates
 * and seals; several queues share a slab.
 *
 *     send queue      ipc_queue, then 64-octet units; an entry is 1 to 8 units, inline data in
 *                     place, and may wrap from the last unit to the first
 *     receive queue   ipc_queue, then entries of a fixed stride
 *     CQ              ipc_cq_ring, then 64-octet entries with a phase
 *     doorbells       ipc_doorbell: a ring of queue numbers, one ring per context
 *     worker page     ipc_worker, then ipc_life: read-only for applications
 *
 * Indices are free-running 32-bit counters; (index & (entries - 1)) is the place. Each index has
 * one writer and a cache line of its own.
 *
 * Memory order. Contents are released before the index (or the phase) that shows them, and the
 * reader acquires that. The three wake-up flags need more, because "I publish, then look at your
 * flag" races with "I raise my flag, then look for what you published": both sides put a seq_cst
 * fence between their store and their look, so at least one of them sees the other (SHM-06).
 *
 *     flag      raised by                 then looks at     the other side
 *     pending   client, to ring once      -                 worker: pending = 0; fence; read prod
 *               client: prod; FENCE; pending == 0 ? set it and push the number : done
 *     sleeping  worker: sleeping = 1; FENCE; any doorbell? awake : block
 *               client: push the number; FENCE; sleeping ? kick : done
 *     arm       client: arm |= kind; FENCE; poll the CQ again (the application does)
 *               worker: store CQEs; FENCE; arm matches ? arm = 0, notify : done
 *
 * The doorbell ring can't overflow: a queue is in it at most once, because only the client that
 * changes `pending` from 0 to 1 pushes the number, and the worker takes the number out before it
 * changes `pending` back. Another queue gets the number only after the worker has emptied the ring
 * of its old entries.
 *
 * The daemon must copy each entry once (ipc_sq_fetch, ipc_rq_fetch do), keep its own consumer index
 * and masks in private memory, bound the entries and doorbells of a round (SHM-08), and check that
 * doorbell numbers name a queue.
 */
#ifndef URNIC_IPC_RING_H
#define URNIC_IPC_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ib.h"
#include "ipc_verbs.h"

#define IPC_LINE       64u
#define IPC_UNIT       64u /* octets of a send queue unit, and of a CQE */
#define IPC_UNITS_MAX  8u  /* of one entry */
#define IPC_SGE_MAX    16u
#define IPC_INLINE_MAX 256u

/* A full barrier that also holds a store before a later load. ThreadSanitizer doesn't know fences:
 * a locked instruction does the same on the machine. */
static inline void ipc_fence(void)
{
#ifdef __SANITIZE_THREAD__
    _Atomic uint32_t dummy = 0;
    atomic_fetch_add_explicit(&dummy, 1, memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* ---- layouts ---- */

/* The head of a send, receive or shared receive queue; entries follow directly. */
struct ipc_queue {
    _Alignas(IPC_LINE) _Atomic uint32_t prod;    /* client: units or entries published */
    _Alignas(IPC_LINE) _Atomic uint32_t cons;    /* daemon: units or entries taken over */
    _Alignas(IPC_LINE) _Atomic uint32_t pending; /* 1 = in the doorbell ring */
};

struct ipc_cq_ring {
    _Alignas(IPC_LINE) _Atomic uint32_t cons; /* client: entries polled */
    _Atomic uint32_t error; /* daemon, once: 1 = overflowed, in error (CQ-05); empty polls look
                             * here, where the daemon writes nothing else */
    _Alignas(IPC_LINE) _Atomic uint32_t arm;  /* IPC_ARM_*, cleared by the event */
    _Alignas(IPC_LINE) _Atomic uint32_t prod; /* daemon: a copy for display, never for decisions */
};
#define IPC_ARM_SOLICITED 1u
#define IPC_ARM_NEXT      2u

struct ipc_doorbell {
    _Alignas(IPC_LINE) _Atomic uint32_t tail;   /* clients: next place, taken by fetch-and-add */
    _Alignas(IPC_LINE) _Atomic uint32_t slot[]; /* queue number + 1; 0 = empty */
};

/* Written by the worker, mapped read-only by applications. */
struct ipc_worker {
    _Alignas(IPC_LINE) _Atomic uint32_t sleeping; /* 1 = kick me */
    _Atomic uint32_t gone;                        /* 1 = the daemon has shut down */
    uint32_t number;
};

/* After it in the worker's page (minor 5): a robust futex, which a thread of the daemon holds from
 * its start on. However the daemon ends, the kernel sets IPC_LIFE_OVER. */
struct ipc_life {
    _Alignas(IPC_LINE) _Atomic uint32_t holder; /* thread id; 0 = an older daemon */
};
#define IPC_LIFE_OVER 0x40000000u /* FUTEX_OWNER_DIED */

struct ipc_sge {
    uint64_t va;
    uint32_t len;
    uint32_t lkey;
};

/* In place of an opcode, from ipc_sq_fetch only: completes with LOC_QP_OP_ERR (REQ-08). */
#define IPC_WR_MALFORMED 255u

/* An entry of a send queue has these parts, in this order: this struct; one of the extensions
 * below, if the opcode or the queue pair's type has one; on a queue pair of XRC an ipc_sqe_xrc;
 * then nsge ipc_sge, or inline_len octets. */
struct ipc_sqe {
    uint8_t opcode; /* enum wr_opcode */
    uint8_t flags;  /* WR_F_* */
    uint8_t units;  /* 1..8: all of this entry */
    uint8_t nsge;   /* 0 with F_INLINE */
    uint16_t inline_len;
    uint16_t pkey_index;
    uint32_t imm; /* immediate as on the wire, the R_Key to invalidate, or the FETH (minor 14) */
    uint32_t rkey;
    uint64_t cookie; /* comes back in the CQE as it is */
    uint64_t remote_va;
};

struct ipc_sqe_atomic { /* CMP_SWAP, FETCH_ADD; FLUSH: compare_add = number of octets */
    uint64_t compare_add;
    uint64_t swap;
};

struct ipc_sqe_ud { /* every entry of a UD queue pair */
    struct ipc_av av;
    uint32_t qpn, qkey;
};

struct ipc_sqe_bind { /* BIND_MW */
    uint32_t mw_rkey, new_rkey, mr_lkey, access;
    uint64_t va, len;
};

struct ipc_sqe_xrc { /* every entry of a queue pair of XRC */
    uint32_t srqn;   /* the peer's shared receive queue */
    uint32_t zero;
};

/* REG_MR. The entry's SGEs are the segments of the region. An SGE's va counts from the start of the
 * region's memory (IPC_MR_ALLOC); its lkey is 0. */
struct ipc_sqe_reg {
    uint32_t key; /* the region's key, with its new variant octet */
    uint32_t access;
    uint64_t va, len;
    uint64_t zero;
};

/* An entry of a receive queue: this, then nsge ipc_sge. */
struct ipc_rqe {
    uint64_t cookie;
    uint32_t nsge;
    uint32_t zero;
};

enum ipc_cqe_kind { IPC_CQE_SEND, IPC_CQE_RECV };

struct ipc_cqe {
    uint64_t cookie; /* of the entry */
    uint32_t qp_ref; /* ipc_qp_create.ref */
    uint32_t qpn, src_qpn;
    uint32_t byte_len;
    uint32_t imm;      /* as on the wire, or the invalidated R_Key */
    uint32_t wc_flags; /* WC_F_* */
    uint8_t status;    /* enum wc_status (CQ-02) */
    uint8_t opcode;    /* enum wc_opcode */
    uint8_t kind;      /* enum ipc_cqe_kind */
    uint8_t sl;
    uint16_t pkey_index, zero;
    uint32_t vendor_err;
    uint32_t srq_ref;   /* receives of XRC: ipc_srq_create.ref; 0 = the queue pair's */
    uint64_t timestamp; /* ns of the worker's clock */
    uint32_t spare2;
    _Atomic uint32_t phase; /* written last: ipc_cq_phase(index) = valid */
};

#define IPC_RING_CHECK(cond) _Static_assert(cond, #cond)
IPC_RING_CHECK(sizeof(struct ipc_queue) == 192);
IPC_RING_CHECK(sizeof(struct ipc_cq_ring) == 192);
IPC_RING_CHECK(sizeof(struct ipc_doorbell) == 64 || sizeof(struct ipc_doorbell) == 128);
IPC_RING_CHECK(offsetof(struct ipc_doorbell, slot) == 64);
IPC_RING_CHECK(sizeof(struct ipc_worker) == 64);
IPC_RING_CHECK(sizeof(struct ipc_life) == 64);
IPC_RING_CHECK(sizeof(struct ipc_sge) == 16);
IPC_RING_CHECK(sizeof(struct ipc_sqe) == 32);
IPC_RING_CHECK(sizeof(struct ipc_sqe_atomic) == 16);
IPC_RING_CHECK(sizeof(struct ipc_sqe_ud) == 48);
IPC_RING_CHECK(sizeof(struct ipc_sqe_bind) == 32);
IPC_RING_CHECK(sizeof(struct ipc_sqe_reg) == 32);
IPC_RING_CHECK(sizeof(struct ipc_sqe_xrc) == 8);
IPC_RING_CHECK(sizeof(struct ipc_rqe) == 16);
IPC_RING_CHECK(sizeof(struct ipc_cqe) == 64);
IPC_RING_CHECK(sizeof(struct ipc_sqe) + sizeof(struct ipc_sqe_ud) + IPC_INLINE_MAX <=
               (size_t)IPC_UNIT * IPC_UNITS_MAX);
IPC_RING_CHECK(sizeof(struct ipc_sqe) + sizeof(struct ipc_sqe_ud) +
                   IPC_SGE_MAX * sizeof(struct ipc_sge) <=
               (size_t)IPC_UNIT * IPC_UNITS_MAX);
IPC_RING_CHECK(ATOMIC_INT_LOCK_FREE == 2);

/* Octets of one receive queue entry: a power of two, so that strides divide cache lines. */
static inline uint32_t ipc_rq_stride(uint32_t max_sge)
{
    uint32_t need = (uint32_t)sizeof(struct ipc_rqe) + max_sge * (uint32_t)sizeof(struct ipc_sge);
    uint32_t stride = 32;
    while (stride < need)
        stride *= 2;
    return stride;
}

/* Octets of the extension after an ipc_sqe. */
static inline uint32_t ipc_sqe_ext(unsigned opcode, bool ud)
{
    if (ud)
        return sizeof(struct ipc_sqe_ud);
    if (opcode == WR_ATOMIC_CMP_AND_SWP || opcode == WR_ATOMIC_FETCH_AND_ADD || opcode == WR_FLUSH)
        return sizeof(struct ipc_sqe_atomic);
    if (opcode == WR_BIND_MW)
        return sizeof(struct ipc_sqe_bind);
    if (opcode == WR_REG_MR)
        return sizeof(struct ipc_sqe_reg);
    return 0;
}

/* Units of the longest send request within these limits; for XRC call it as for `ud`, whose
 * extension is longer. */
static inline uint32_t ipc_sqe_units_max(uint32_t max_sge, uint32_t max_inline, bool ud)
{
    uint32_t sge = max_sge * (uint32_t)sizeof(struct ipc_sge);
    uint32_t ext = ud ? (uint32_t)sizeof(struct ipc_sqe_ud) : (uint32_t)sizeof(struct ipc_sqe_bind);
    uint32_t data = sge > max_inline ? sge : max_inline;
    return ((uint32_t)sizeof(struct ipc_sqe) + ext + data + IPC_UNIT - 1) / IPC_UNIT;
}

/* A side's private view of a queue: addresses and masks never come from shared memory. */
struct ipc_ring {
    struct ipc_queue *q;
    uint8_t *base;
    uint32_t entries; /* power of two */
    uint32_t stride;
    uint32_t index; /* own index: the client's prod, the daemon's cons */
    bool ud;        /* send queues: of a UD queue pair */
    bool xrc;       /* send queues: of an XRC queue pair; set after ipc_ring_init */
};

struct ipc_cq_view {
    struct ipc_cq_ring *ring;
    struct ipc_cqe *base;
    uint32_t entries; /* power of two */
    uint32_t index;   /* own index: the daemon's prod, the client's cons */
};

/* Invariants of a view: it is one that ipc_ring_init or ipc_cq_view_init has made. Only private
 * memory is checked; the other process may write anything. */
static inline bool ipc_ring_ok(const struct ipc_ring *r)
{
    return r->entries != 0 && (r->entries & (r->entries - 1)) == 0 && r->stride >= 32 &&
           (r->stride & (r->stride - 1)) == 0 &&
           r->base == (const uint8_t *)r->q + sizeof(struct ipc_queue);
}

static inline bool ipc_cq_view_ok(const struct ipc_cq_view *v)
{
    return v->entries != 0 && (v->entries & (v->entries - 1)) == 0 &&
           (const uint8_t *)v->base == (const uint8_t *)v->ring + sizeof(struct ipc_cq_ring);
}

/* `ok`, or in builds with -Dinvariants=true: the invariant, the values, and abort. */
#ifdef URNIC_INVARIANTS
void ipc_ring_holds(bool ok, const char *invariant, uint32_t index, uint32_t other,
                    uint32_t entries);
#define IPC_HOLDS(...) ipc_ring_holds(__VA_ARGS__)
#else
#define IPC_HOLDS(...) ((void)0)
#endif

/* Octets of a queue in a slab, head included. */
static inline uint64_t ipc_queue_size(uint32_t entries, uint32_t stride)
{
    return sizeof(struct ipc_queue) + (uint64_t)entries * stride;
}

/* A view of the queue at `at`, empty. */
static inline void ipc_ring_init(struct ipc_ring *r, void *at, uint32_t entries, uint32_t stride,
                                 bool ud)
{
    r->q = at;
    r->base = (uint8_t *)at + sizeof(struct ipc_queue);
    r->entries = entries;
    r->stride = stride;
    r->index = 0;
    r->ud = ud;
    r->xrc = false;
}

/* Octets of all extensions after an ipc_sqe of this queue. */
static inline uint32_t ipc_ring_ext(const struct ipc_ring *r, unsigned opcode)
{
    return ipc_sqe_ext(opcode, r->ud) + (r->xrc ? (uint32_t)sizeof(struct ipc_sqe_xrc) : 0);
}

/* A view of the completion queue at `at`, empty. */
static inline void ipc_cq_view_init(struct ipc_cq_view *v, void *at, uint32_t entries)
{
    v->ring = at;
    v->base = (struct ipc_cqe *)(void *)((uint8_t *)at + sizeof(struct ipc_cq_ring));
    v->entries = entries;
    v->index = 0;
}

/* ---- client: post ---- */

/* Units or entries that fit now. */
static inline uint32_t ipc_ring_room(const struct ipc_ring *r)
{
    return r->entries - (r->index - atomic_load_explicit(&r->q->cons, memory_order_acquire));
}

/* Show everything up to r->index. True: the caller must push the queue's number
 * (ipc_doorbell_push). */
static inline bool ipc_ring_publish(struct ipc_ring *r)
{
    IPC_HOLDS(ipc_ring_ok(r), "ring-view", r->index, 0, r->entries);
    IPC_HOLDS(ipc_ring_room(r) <= r->entries, "ring-room", r->index,
              atomic_load_explicit(&r->q->cons, memory_order_relaxed), r->entries);
    atomic_store_explicit(&r->q->prod, r->index, memory_order_release);
    ipc_fence();
    if (atomic_load_explicit(&r->q->pending, memory_order_relaxed) != 0)
        return false;
    return atomic_exchange_explicit(&r->q->pending, 1, memory_order_relaxed) == 0;
}

/* Push a queue's number; any thread. True: the worker sleeps, kick it. */
static inline bool ipc_doorbell_push(struct ipc_doorbell *db, uint32_t slots, uint32_t number,
                                     const struct ipc_worker *worker)
{
    uint32_t at = atomic_fetch_add_explicit(&db->tail, 1, memory_order_relaxed);
    atomic_store_explicit(&db->slot[at & (slots - 1)], number + 1, memory_order_release);
    ipc_fence();
    return atomic_load_explicit(&worker->sleeping, memory_order_relaxed) != 0;
}

/* ---- daemon: take ---- */

/* Take the next number out of the ring whose private head is *head; -1 = none now. The client may
 * have written any number: check it. */
static inline int64_t ipc_doorbell_pop(struct ipc_doorbell *db, uint32_t slots, uint32_t *head)
{
    _Atomic uint32_t *slot = &db->slot[*head & (slots - 1)];
    uint32_t v = atomic_load_explicit(slot, memory_order_acquire);
    if (v == 0)
        return -1;
    atomic_store_explicit(slot, 0, memory_order_relaxed);
    ++*head;
    return (int64_t)v - 1;
}

/* Is a number waiting? A reader checks this before it sleeps. */
static inline bool ipc_doorbell_ready(const struct ipc_doorbell *db, uint32_t slots, uint32_t head)
{
    return atomic_load_explicit(&db->slot[head & (slots - 1)], memory_order_acquire) != 0;
}

/* Call it after popping a queue's number, before looking at its entries. From here on the client
 * rings again for new entries. The worker must remember the present ones. */
static inline void ipc_ring_attend(struct ipc_ring *r)
{
    atomic_store_explicit(&r->q->pending, 0, memory_order_release);
    ipc_fence();
}

/* A worker about to block: true sleep = 1, then look at every doorbell ring, block only if all are
 * empty. Awake again: false. */
static inline void ipc_worker_sleeping(struct ipc_worker *w, bool sleeping)
{
    atomic_store_explicit(&w->sleeping, sleeping, memory_order_relaxed);
    if (sleeping)
        ipc_fence();
}

/* Tell the client that all places up to r->index are free again. */
static inline void ipc_ring_release(struct ipc_ring *r)
{
    IPC_HOLDS(ipc_ring_ok(r), "ring-view", r->index, 0, r->entries);
    atomic_store_explicit(&r->q->cons, r->index, memory_order_release);
}

/* A send queue entry in private memory, whose form is checked. */
struct ipc_send {
    union {
        struct ipc_sqe wr; /* opcode may be IPC_WR_MALFORMED: then only cookie and flags count */
        _Alignas(IPC_LINE) uint8_t raw[IPC_UNIT * IPC_UNITS_MAX];
    };
    struct ipc_sqe_atomic atomic;
    struct ipc_sqe_bind bind;
    struct ipc_sqe_reg reg;
    struct ipc_sqe_ud ud;
    struct ipc_sqe_xrc xrc;
    const struct ipc_sge *sge;  /* wr.nsge of them, inside raw */
    const uint8_t *inline_data; /* wr.inline_len octets inside raw, or NULL without F_INLINE */
};

struct ipc_recv_entry {
    uint64_t cookie;
    /* <= IPC_SGE_MAX, and as many as the stride holds; UINT32_MAX = malformed (RSP-13) */
    uint32_t nsge;
    struct ipc_sge sge[IPC_SGE_MAX];
};

/* Copy the next entry out of a send queue, once, and check the copy. r->index advances; call
 * ipc_ring_release when done with a batch. Guarantees on 1: flags has no unknown bit, nsge <=
 * IPC_SGE_MAX, inline_len <= IPC_INLINE_MAX and both lie inside the copy; opcode is known or
 * IPC_WR_MALFORMED. The caller checks limits of the queue pair (max_sge, opcode by type). Returns
 * 1; 0: empty; -EPROTO: the index or the unit count is wrong, so the caller moves the queue pair to
 * ERR with QP_FATAL (SHM-01, SHM-02, SHM-03). */
int ipc_sq_fetch(struct ipc_ring *r, struct ipc_send *out);

/* The same for receive queues. Returns 1; 0: empty; -EPROTO: the index is wrong. */
int ipc_rq_fetch(struct ipc_ring *r, struct ipc_recv_entry *out);

/* ---- completion queues ---- */

/* The phase of a valid entry: it changes each time round, and fresh memory has 0. */
static inline uint32_t ipc_cq_phase(const struct ipc_cq_view *v, uint32_t index)
{
    return (index & v->entries) == 0 ? 1 : 2;
}

/* Daemon: store a completion (its phase is ignored), which the client doesn't see yet. False: no
 * room, or the client's index is wrong; the CQ is in error then (CQ-05, SHM-05). */
static inline bool ipc_cq_stage(struct ipc_cq_view *v, const struct ipc_cqe *cqe)
{
    IPC_HOLDS(ipc_cq_view_ok(v), "completions-view", v->index, 0, v->entries);
    uint32_t used = v->index - atomic_load_explicit(&v->ring->cons, memory_order_acquire);
    if (used >= v->entries)
        return false;
    struct ipc_cqe *at = &v->base[v->index & (v->entries - 1)];
    memcpy((void *)at, (const void *)cqe, offsetof(struct ipc_cqe, phase));
    v->index++;
    return true;
}

/* Daemon: show the completions from the index `from` up to v->index. */
static inline void ipc_cq_show(const struct ipc_cq_view *v, uint32_t from)
{
    for (; from != v->index; from++)
        atomic_store_explicit(&v->base[from & (v->entries - 1)].phase, ipc_cq_phase(v, from),
                              memory_order_release);
}

/* Daemon: store a completion and show it. False as ipc_cq_stage. */
static inline bool ipc_cq_push(struct ipc_cq_view *v, const struct ipc_cqe *cqe)
{
    if (!ipc_cq_stage(v, cqe))
        return false;
    ipc_cq_show(v, v->index - 1);
    return true;
}

/* Daemon: after storing one or more completions, of which at least one was solicited or in error
 * (`solicited`): must an event be sent? Clears the arming if so. */
static inline bool ipc_cq_notify(struct ipc_cq_view *v, bool solicited)
{
    ipc_fence();
    uint32_t arm = atomic_load_explicit(&v->ring->arm, memory_order_relaxed);
    if (!(arm & IPC_ARM_NEXT) && !(solicited && (arm & IPC_ARM_SOLICITED)))
        return false;
    return atomic_exchange_explicit(&v->ring->arm, 0, memory_order_relaxed) != 0;
}

/* Client: the next completion, NULL = none. It stays valid until ipc_cq_consume. */
static inline struct ipc_cqe *ipc_cq_peek(const struct ipc_cq_view *v)
{
    struct ipc_cqe *at = &v->base[v->index & (v->entries - 1)];
    if (atomic_load_explicit(&at->phase, memory_order_acquire) != ipc_cq_phase(v, v->index))
        return NULL;
    return at;
}

/* Client: give back all entries up to v->index. */
static inline void ipc_cq_consume(struct ipc_cq_view *v)
{
    IPC_HOLDS(ipc_cq_view_ok(v), "completions-view", v->index, 0, v->entries);
    /* The daemon can't have overwritten entries that were not given back. */
    IPC_HOLDS(v->index - atomic_load_explicit(&v->ring->cons, memory_order_relaxed) <= v->entries,
              "completions-order", v->index,
              atomic_load_explicit(&v->ring->cons, memory_order_relaxed), v->entries);
    atomic_store_explicit(&v->ring->cons, v->index, memory_order_release);
}

/* Client: ask for one event (CQ-06); then poll again. The stronger of two kinds wins. */
static inline void ipc_cq_arm(struct ipc_cq_view *v, uint32_t kind)
{
    atomic_fetch_or_explicit(&v->ring->arm, kind, memory_order_seq_cst);
    ipc_fence();
}

#endif
