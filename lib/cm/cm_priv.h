/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside the connection manager: states, the connection, and the table that holds connections.
 */
#ifndef URNIC_CM_PRIV_H
#define URNIC_CM_PRIV_H

#include "cm.h"

#define CM_NONE 0xFFFFFFFFu

/* CM-16; timer_fired has the action of each state's timer. */
#define CM_STATES(X)                                                                               \
    X(CLOSED)                                                                                      \
    X(REQ_SENT)                                                                                    \
    X(MRA_REQ_RCVD)                                                                                \
    X(REP_RCVD)                                                                                    \
    X(REQ_RCVD)                                                                                    \
    X(MRA_REQ_SENT)                                                                                \
    X(REP_SENT)                                                                                    \
    X(MRA_REP_RCVD)                                                                                \
    X(ESTABLISHED)                                                                                 \
    X(DREQ_SENT)                                                                                   \
    X(TIMEWAIT)                                                                                    \
    X(SIDR_REQ_SENT)                                                                               \
    X(SIDR_REQ_RCVD)                                                                               \
    X(SIDR_DONE)

enum cm_state {
#define X(name) CMS_##name,
    CM_STATES(X)
#undef X
};

struct cm_conn {
    /* chains of the three look-ups, see cm_table.c */
    struct cm_conn *next_local, *next_remote, *next_qpn;
    struct cm_conn *tx_next; /* queue of connections with `mad` to send */
    struct cm_conn *all_prev, *all_next;
    uint64_t deadline;
    uint32_t heap_at; /* place in the timer heap, CM_NONE = no timer */

    enum cm_state state;
    bool active, released, tx_queued, in_remote, in_qpn, half_open, req_delivered;
    bool lap_answered; /* CM-32: once */
    uint8_t retries_left;
    uint8_t ev_refs; /* events in the queue that name this connection */
    uint32_t local_id, remote_id;
    uint64_t tid, peer_guid;
    void *arg;
    void *account;                /* NULL = none */
    struct cm_listener *listener; /* the listener that must answer it */
    struct cm_conn *wait_prev, *wait_next;

    struct cm_path path;
    uint16_t lport, rport;
    uint16_t qp_pkey; /* the queue pair's; path.pkey is that of our datagrams */
    uint64_t service_id;
    uint64_t resend_ns; /* wait before a repetition */
    uint64_t answer_ns; /* passive: the peer's wait for our answer */
    /* passive, half open: the timer's own time, and the earlier check of the peer's host */
    uint64_t until, look_at;
    bool looked;
    uint32_t qpn, peer_qpn, psn, peer_psn;
    uint8_t resp_res, init_depth; /* our offer or grant */
    uint8_t peer_resp_res, peer_init_depth;
    uint8_t retry_cnt, rnr_retry; /* for our queue pair */
    uint8_t ack_timeout;          /* for our queue pair */
    uint8_t transport, max_retries;
    uint8_t rep_wait; /* exponent of the wait for the answer to our REP */
    bool flow_control, peer_flow_control, peer_srq, peer_alt_path;
    struct cm_peer peer; /* in the table of all managers of the device */
    /* CM-21: challenges, which ask whether the peer still has the connection */
    uint64_t challenge_tid, challenged_at; /* of the last challenge; at 0 = never */
    uint8_t challenges_left;               /* repetitions to come */
    uint8_t mad[CM_MAD_LEN];               /* message that this state sends and repeats */
};

struct cm_listener {
    struct cm_listener *next;
    struct wire_addr addr; /* all zero = any */
    unsigned family;       /* of any address: 4, 6 or 0 (both) */
    uint64_t service_id;
    uint32_t backlog, pending;
    struct cm_conn *waiting; /* for its answer, `pending` of them */
    void *arg;
};

struct cm_event_node {
    struct cm_event_node *next;
    struct cm_event ev;
};

#define CM_OUT_RING        512u   /* replies that belong to no connection */
#define CM_STATELESS_PER_S 10000u /* limit of such replies per second */
#define CM_STATELESS_BURST 1000u
#define CM_LISTEN_BUCKETS  1024u
#define CM_SRC_BUCKETS     4096u         /* pending requests per (hashed) source address */
#define CM_SRC_PENDING     64u           /* pending requests guaranteed for every source (CM-34) */
#define CM_GUID_LEN        8u            /* in the ARI of a REJ (CM-28) */
#define CM_SEEN            65536u        /* requests seen once, for SEC-20 */
#define CM_HURRY_NS        2000000000ull /* between REPs to a source with many pending requests */
#define CM_HURRY_RETRIES   3u            /* repetitions of a REP to such a source (SEC-20) */
/* The longest wait of a peer that counts (SEC-20): Linux waits 16 times 17 s. */
#define CM_PATIENCE_MAX_NS 300000000000ull

struct cm {
    struct cm_params params;
    uint64_t ctr; /* feeds the id generator */
    uint32_t live, half_open;
    uint32_t bucket_mask;
    struct cm_conn **by_local, **by_remote, **by_qpn;
    struct cm_conn *all;
    struct cm_conn **heap;
    uint32_t heap_len, heap_cap;
    struct cm_listener *listeners[CM_LISTEN_BUCKETS];
    struct cm_conn *tx_head, **tx_tail;
    struct cm_event_node *ev_head, **ev_tail;
    struct cm_out *out; /* ring of CM_OUT_RING */
    uint32_t out_head, out_tail;
    uint64_t out_tokens_at; /* token bucket of stateless replies */
    uint32_t out_tokens;
    uint16_t src_pending[CM_SRC_BUCKETS];
    struct {
        uint32_t tag, at_ms; /* of its hash; 0 = none */
    } seen[CM_SEEN];
    uint64_t counters[CM_COUNTER_MAX];
};

/* cm_table.c: ids, look-ups, timers, queues */

/* Keyed with the secret of cm_params. */
uint64_t cm_hash(const struct cm *cm, const void *data, size_t len);
/* The next unpredictable number. */
uint64_t cm_random(struct cm *cm);
/* A connection with a local id; NULL = out of memory, or max_conns. */
struct cm_conn *cm_conn_new(struct cm *cm, enum cm_state state, void *arg);
/* Take it out of the list of all, and free it; the caller handles the other tables. */
void cm_conn_free(struct cm *cm, struct cm_conn *c);
/* CLOSED, and out of all tables; freed if released. */
void cm_conn_close(struct cm *cm, struct cm_conn *c);
/* Set the peer's id, and then its QPN, once each. Look-ups then find the connection by them. */
void cm_conn_set_remote(struct cm *cm, struct cm_conn *c, uint64_t guid, uint32_t remote_id);
void cm_conn_set_peer_qpn(struct cm *cm, struct cm_conn *c, uint32_t qpn);
/* Note that the connection names this queue pair of its peer, in the table of all managers. False:
 * a live connection of another manager, other than `except`, names it (CM-21). */
bool cm_hold_peer(struct cm *cm, struct cm_conn *c, uint64_t guid, uint32_t qpn, uint32_t except);
/* The connection is no longer live. */
void cm_drop_peer(struct cm *cm, struct cm_conn *c);
/* Look-ups; NULL = none. */
struct cm_conn *cm_find_local(const struct cm *cm, uint32_t local_id);
struct cm_conn *cm_find_remote(const struct cm *cm, const struct wire_addr *addr, uint64_t guid,
                               uint32_t remote_id);
struct cm_conn *cm_find_qpn(const struct cm *cm, const struct wire_addr *addr, uint64_t guid,
                            uint32_t qpn);
void cm_timer_set(struct cm *cm, struct cm_conn *c, uint64_t deadline); /* UINT64_MAX = off */
/* Send c->mad when cm_tx is called next. */
void cm_tx_queue(struct cm *cm, struct cm_conn *c);
/* Queue an event, filled in with the connection's values, and return it; never NULL. Without
 * memory, or if the connection was released, the event is a dummy that is not queued. */
struct cm_event *cm_event_push(struct cm *cm, struct cm_conn *c, enum cm_event_type type);
/* Count the connection as half-open, or no longer (SEC-20, CM-34). */
void cm_half_open(struct cm *cm, struct cm_conn *c, bool on);
/* Has this source so many pending requests that the wait for its answers is shorter (SEC-20)? */
bool cm_source_busy(const struct cm *cm, const struct wire_addr *src);
/* Has this source as many requests pending as it may have at a listener (CM-34)? */
bool cm_source_full(const struct cm *cm, const struct cm_listener *l, const struct wire_addr *src);
bool cm_addr_eq(const struct wire_addr *a, const struct wire_addr *b);

static inline void cm_count(struct cm *cm, enum cm_counter which)
{
    cm->counters[which]++;
}

/* cm_send.c */

/* Send `msg`, and make it the message of this state. expects_answer: repeat it until an answer
 * comes; otherwise the timer stays as it is. */
void cm_send(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now,
             bool expects_answer);
/* A reply that belongs to no connection, or to one that ends with it. Rate-limited (CM-24). */
void cm_send_stateless(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg,
                       uint64_t now);
/* A REJ of the message `to`, which may belong to no connection (local_id 0); ari0: the octet of
 * additional information, 0 = none. Rate-limited. */
void cm_send_rej_to(struct cm *cm, const struct cm_path *path, const struct cm_msg *to,
                    uint32_t local_id, unsigned reason, enum cm_about about, uint8_t ari0,
                    uint64_t now);
/* A REJ of a message of the connection's peer. Rate-limited. */
void cm_send_rej(struct cm *cm, const struct cm_conn *c, unsigned reason, enum cm_about about,
                 const void *priv, size_t len, uint64_t now);

/* cm_rx.c: effects of messages and time */

/* A peer's ACK timeout, held within bounds (SEC-24). */
uint8_t cm_ack_clamp(unsigned exponent);
/* 4.096 us * 2^exponent, exponents of peers clamped (SEC-24). */
uint64_t cm_wait_ns(unsigned exponent);
/* Does its QPN still belong to it? */
bool cm_is_live(const struct cm_conn *c);
/* CM-21: a message names the QPN of this connection's peer for another connection. Ask the peer
 * whether it has forgotten this one; only its answer ends it. */
void cm_challenge(struct cm *cm, struct cm_conn *old, uint64_t now);

/* Set the timer. For a half-open connection, its host is checked before that (SEC-20). */
void cm_timer_look(struct cm *cm, struct cm_conn *c, uint64_t until, uint64_t now);

/* cm_req.c */

/* Do the limits allow one more request, identified by `seen` of cm_hash? If not, it is counted, and
 * the caller drops it (CM-34, SEC-20). */
bool cm_has_room(struct cm *cm, const struct cm_listener *l, const struct wire_addr *src,
                 uint64_t hash, uint64_t now);
/* A REQ has come from `src` to our `dst`. */
void cm_rx_req(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
               const struct wire_addr *dst, uint16_t pkey, uint64_t now);

/* cm_listen.c */

/* The listener of the service at this address (NULL = any); NULL = none. */
struct cm_listener *cm_find_listener(const struct cm *cm, uint64_t service_id,
                                     const struct wire_addr *addr);
/* Free them all; no connection waits for any. */
void cm_listeners_free(struct cm *cm);
/* Count the connection as waiting for its listener's answer, if it has a listener (CM-34). */
void cm_awaits(struct cm_conn *c);
/* It has the answer, or needs none any more: detach it from its listener. */
void cm_answered(struct cm_conn *c);

/* cm_sidr.c: a SIDR_REQ has come from `src` to our `dst`; a SIDR_REP from `src`. */
void cm_sidr_rx_req(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                    const struct wire_addr *dst, uint16_t pkey, uint64_t now);
void cm_sidr_rx_rep(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src);

#endif
