/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connection manager: connects queue pairs by IP address and port the way rdma_cm does on the wire.
 *
 * Sans-IO. MADs, time and the consumer's decisions come in; MADs to send and events come out:
 *
 *     cm_rx(cm, mad, ...)                 a datagram that arrived for QP1
 *     while (cm_tx(cm, &out)) send(out)   datagrams to send; ask after every other call
 *     while (cm_event(cm, &ev)) ...       events for the consumer
 *     cm_deadline(cm) / cm_expire(cm,now) next time-out, UINT64_MAX = none / run due ones
 *
 * A consumer's side of a connection is a struct cm_conn. It stays valid until cm_release, whatever
 * the peer does; the rest of the protocol (TIMEWAIT, repeated DREP) needs no consumer.
 *
 *     active:  cm_connect -> CM_EV_REP -> [QP to RTR, RTS] cm_rtu -> ... CM_EV_DISCONNECTED
 *     passive: cm_listen -> CM_EV_REQ -> [QP to RTR] cm_accept -> CM_EV_ESTABLISHED -> ...
 *
 * One thread at a time. Rules: CM, GSI-02..05, SEC-20, SEC-21, SEC-24.
 */
#ifndef URNIC_CM_H
#define URNIC_CM_H

#include "cm_msg.h"

struct cm;
struct cm_conn;
struct cm_listener;

/* A peer's queue pair that a live connection names (CM-21). The first four members are set. */
struct cm_peer {
    struct wire_addr addr;
    uint64_t guid;
    uint32_t qpn;
    uint32_t id; /* of the connection */
    bool held;
    struct cm_peer *next; /* for the table of all managers of a device */
};

struct cm_params {
    uint64_t key[2]; /* secret seed of ids (CM-15, SEC-21) */
    uint64_t ca_guid;
    uint32_t max_conns;      /* live + half-open + timewait; 0 = 65536 (SEC-20) */
    uint8_t cm_timeout;      /* exponent; 0 = 18, 1.07 s (CM-18) */
    uint8_t max_retries;     /* 0 = 7 */
    uint8_t ack_delay;       /* local CA ACK delay exponent; 0 = 8 (ACK-04) */
    uint8_t packet_lifetime; /* exponent; 0 = 13 */
    uint8_t max_mtu;         /* largest path MTU accepted here, enum 1..5; 0 = 5 (CM-12) */
    uint8_t max_rd_atomic;   /* most that cm_accept and cm_connect offer; 0 = 16 */
    bool lenient_addr;       /* accept a REQ whose IP header is not its packet's source (CM-04) */
    uint64_t timewait_ns;    /* least time in TIMEWAIT; 0 = 1 s (CM-26) */
    uint8_t part_bits, part; /* first bits of its ids: one of several managers of a device */
    /* A connection of this account (cm_conn_set_account) has left the table and no longer counts
     * for max_conns. cm_destroy does not call this. It must not call back; NULL = no accounts. */
    void (*left)(void *account);
    /* Is this host known to be silent? Called once for each request, CM_LOOK_NS after it came.
     * True: give up the request, or our answer to it (SEC-20). It must not call back; NULL = no
     * host is silent. */
    bool (*silent)(void *arg, const struct wire_addr *addr);
    void *silent_arg;
    /* Of several managers of one device: `hold` notes that a live connection names the peer, and
     * sets p->held. False: a connection of another manager, other than `except` (an id, 0 = none),
     * names it, and that manager must get cm_doubt_peer. `drop`: the connection is no longer live.
     * cm_destroy drops nothing. They must not call back; NULL = the only manager. */
    bool (*hold)(void *arg, struct cm_peer *p, uint32_t except);
    void (*drop)(void *arg, struct cm_peer *p);
    void *peers;
};
#define CM_LOOK_NS 3000000000ull

/* `params` are copied. NULL = out of memory. */
struct cm *cm_create(const struct cm_params *params);
/* Free all connections and listeners, without messages or events. NULL is allowed. */
void cm_destroy(struct cm *cm);

/* The values that both ends of a path agree on. */
struct cm_path {
    struct wire_addr local, remote;
    uint8_t mtu;                   /* enum 1..5 */
    uint8_t tclass, hop_limit, sl; /* hop_limit 0 = WIRE_TTL_DEFAULT */
    uint32_t flow_label;           /* 0 = chosen from the ports as Linux does (CM-05) */
    uint16_t pkey;                 /* 0 = 0xFFFF */
};

enum cm_event_type {
    CM_EV_REQ,           /* passive: a peer requests a connection: cm_accept or cm_reject */
    CM_EV_REP,           /* active: accepted: set up the queue pair, then cm_rtu */
    CM_EV_ESTABLISHED,   /* passive: RTU or the first request arrived; active: after cm_rtu */
    CM_EV_REJECTED,      /* reason, private data */
    CM_EV_UNREACHABLE,   /* no answer; passive: the peer has given up, or its host is silent
                            (SEC-20) */
    CM_EV_DISCONNECTED,  /* ended by the peer or our own cm_disconnect: QP to ERR */
    CM_EV_TIMEWAIT_EXIT, /* the QPN may be used again (CM-26) */
    CM_EV_SIDR_REP,      /* active: status, QPN, Q_Key of a datagram service */
    CM_EV_SIDR_REQ,      /* passive: answer with cm_sidr_reply */
};
/* "CONNECT_REQUEST" ..., the names of rdma_cm. */
const char *cm_event_name(unsigned type);

struct cm_event {
    enum cm_event_type type;
    struct cm_conn *conn;
    struct cm_listener *listener; /* CM_EV_REQ, CM_EV_SIDR_REQ */
    void *arg;       /* of the connection (cm_connect, cm_accept) or of the listener (CM_EV_REQ) */
    unsigned reason; /* CM_EV_REJECTED: enum cm_rej_reason; CM_EV_SIDR_REP: enum cm_sidr_status */
    struct wire_addr local, remote;
    uint16_t local_port, remote_port;
    uint32_t responder_resources, initiator_depth; /* as rdma_cm reports them (CM-36) */
    uint32_t qpn, qkey;                            /* the peer's */
    uint8_t retry_count, rnr_retry_count;          /* CM_EV_REQ, CM_EV_REP: for our queue pair */
    bool srq, flow_control;
    bool hung_up;      /* CM_EV_UNREACHABLE: the peer's REP was lost, and the peer has gone */
    uint16_t priv_len; /* size of the whole field: messages carry no length (CM-33) */
    uint8_t priv[CM_PRIVATE_MAX];
};

/* Listen on addr (all zero = any local address) and port. Returns 0, -EADDRINUSE (at this
 * address, or at another one when either is "any"), -ENOMEM.
 * backlog: connection requests awaiting the consumer's answer; 0 = 1024 (CM-34). */
int cm_listen(struct cm *cm, unsigned ps, const struct wire_addr *addr, uint16_t port,
              unsigned backlog, void *arg, struct cm_listener **out);
/* Listen on any local address of one family, 4 (IPv4), 6 (IPv6) or 0 (both), at this port; the rest
 * as above. A listener of the other family may have the same port. */
int cm_listen_family(struct cm *cm, unsigned ps, unsigned family, uint16_t port, unsigned backlog,
                     void *arg, struct cm_listener **out);
/* Is there a listener at this port, at any address? */
bool cm_listens(const struct cm *cm, unsigned ps, uint16_t port);
/* Stop listening; requests not yet answered are rejected. `l` is dead then. */
void cm_unlisten(struct cm *cm, struct cm_listener *l, uint64_t now);

struct cm_connect_params {
    struct cm_path path;
    uint16_t ps;           /* CM_PS_TCP or CM_PS_IB; 0 = CM_PS_TCP */
    uint16_t sport, dport; /* sport 0 = chosen */
    uint32_t qpn;          /* ours */
    uint32_t psn;          /* the first PSN that we expect (CM-08); random (SEC-07) */
    uint8_t transport;     /* enum cm_transport (cm_msg.h) */
    uint8_t responder_resources, initiator_depth;
    uint8_t retry_count, rnr_retry_count; /* <= CM_RETRY_MAX */
    bool srq, flow_control;
    const void *priv;
    uint16_t priv_len;               /* <= CM_REQ_USER_MAX */
    uint8_t cm_timeout, max_retries; /* 0 = cm_params' */
    uint8_t ack_delay;               /* 0 = cm_params' */
};
/* Start connecting. *out is the consumer's until cm_release. -EINVAL (a value out of range, or IP
 * versions that differ), -ENOMEM, -ENOSPC (max_conns). */
int cm_connect(struct cm *cm, const struct cm_connect_params *p, void *arg, uint64_t now,
               struct cm_conn **out);
/* Active side, after CM_EV_REP, with the queue pair in RTS (CM-17). -EINVAL: wrong state. */
int cm_rtu(struct cm *cm, struct cm_conn *c, const void *priv, uint16_t len, uint64_t now);

/* Passive side, before cm_accept: limit the READs and atomics granted, for cm_qp_attr. Without this
 * call the limit is the smaller of the device's limit and the peer's request. */
void cm_grant(struct cm *cm, struct cm_conn *c, uint8_t responder_resources,
              uint8_t initiator_depth);

struct cm_accept_params {
    uint32_t qpn, psn;                            /* as above */
    uint8_t responder_resources, initiator_depth; /* limited to the values of the REQ (CM-07) */
    uint8_t rnr_retry_count;                      /* <= CM_RETRY_MAX */
    bool srq, flow_control;
    const void *priv;
    uint16_t priv_len; /* <= CM_REP_USER_MAX */
    uint8_t ack_delay; /* 0 = cm_params' */
};
/* Does a request wait for our answer? 0 = yes, -EINVAL = no, -ECONNABORTED = no longer: the peer
 * has given up, or the listener is gone. */
int cm_may_accept(const struct cm_conn *c);
/* Passive side, after CM_EV_REQ, with the queue pair in RTR or RTS (CM-17). Events carry `arg` from
 * then on. As cm_may_accept, or -EINVAL (a value out of range): nothing has changed. */
int cm_accept(struct cm *cm, struct cm_conn *c, const struct cm_accept_params *p, void *arg,
              uint64_t now);
/* Refuse a REQ or a REP: reason 0 = 28, consumer (CM-30). -EINVAL (state, length, reason). */
int cm_reject(struct cm *cm, struct cm_conn *c, unsigned reason, const void *priv, uint16_t len,
              uint64_t now);
/* The consumer needs longer to answer a REQ: send MRA with this service timeout exponent (CM-19).
 * -EINVAL (state, exponent over 31). */
int cm_mra(struct cm *cm, struct cm_conn *c, unsigned service_timeout, uint64_t now);
/* Disconnect: send DREQ; CM_EV_DISCONNECTED follows. A REP is refused instead. 0, also if the end
 * is under way or over. -EINVAL before there is an answer, or for private data that doesn't fit. */
int cm_disconnect(struct cm *cm, struct cm_conn *c, const void *priv, uint16_t len, uint64_t now);
/* The consumer has learned that c's peer uses its queue pair for another connection. Ask the peer
 * whether it has lost c, as after a REQ that names the queue pair (CM-21). */
void cm_doubt(struct cm *cm, struct cm_conn *c, uint64_t now);
/* Another connection manager of the device got a request from `peer`. If this manager has a
 * connection with that queue pair, ask the peer whether it has lost it (CM-21). */
void cm_doubt_peer(struct cm *cm, const struct cm_peer *peer, uint64_t now);
/* The first request packet arrived on the passive queue pair (CM-23). */
void cm_comm_est(struct cm *cm, struct cm_conn *c, uint64_t now);
/* The consumer releases c: it gets no more events for it, and the pointer is dead. Ends a live
 * connection. */
void cm_release(struct cm *cm, struct cm_conn *c, uint64_t now);

/* The network reports by an ICMP error, which any host can forge, that there is no RoCE at this
 * address (CM-39). Our unanswered requests to it end with CM_EV_UNREACHABLE. Connections are not
 * affected. Returns the number of ended requests. */
unsigned cm_refused(struct cm *cm, const struct wire_addr *addr);

/* Request the queue pair of a datagram service (CM-31); CM_EV_SIDR_REP or CM_EV_UNREACHABLE
 * follows. len <= CM_SIDR_REQ_USER_MAX. Errors and *out as for cm_connect. */
int cm_sidr_request(struct cm *cm, const struct cm_path *path, uint16_t sport, uint16_t dport,
                    const void *priv, uint16_t len, void *arg, uint64_t now, struct cm_conn **out);
/* Answer CM_EV_SIDR_REQ: CM_SIDR_VALID and the queue pair, or the status of a refusal. len <=
 * CM_SIDR_REP_USER_MAX. -EINVAL (state, status, QPN, len). */
int cm_sidr_reply(struct cm *cm, struct cm_conn *c, unsigned status, uint32_t qpn, uint32_t qkey,
                  const void *priv, uint16_t len, uint64_t now);

/* The attributes for the queue pair of a connection. */
struct cm_qp_attr {
    struct wire_addr sgid, dgid;
    uint32_t flow_label;
    uint8_t tclass, hop_limit, sl;
    uint16_t pkey;
    uint8_t path_mtu, timeout, retry_cnt, rnr_retry;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint32_t dest_qpn, rq_psn, sq_psn;
    bool e2e_credits;
    enum cm_transport transport;
};
/* Known after REQ at the passive side, after REP at the active side; before that -EINVAL. */
int cm_qp_attr(const struct cm_conn *c, struct cm_qp_attr *out);

/* Set the argument of the connection's events from now on. */
void cm_conn_set_arg(struct cm_conn *c, void *arg);
/* The account that pays for its place in the table, TIMEWAIT included, until cm_params.left. */
void cm_conn_set_account(struct cm_conn *c, void *account);
/* "REQ_SENT" ..., the names of CM-16. */
const char *cm_conn_state_name(const struct cm_conn *c);

/* ---- phases ---- */

/* One datagram for QP1. src/dst: the packet's IP addresses; sqpn: DETH's SrcQP. Bad ones are
 * counted and dropped. */
void cm_rx(struct cm *cm, const uint8_t *mad, size_t len, const struct wire_addr *src,
           const struct wire_addr *dst, uint32_t sqpn, uint16_t pkey, uint64_t now);

struct cm_out {
    struct wire_addr src, dst; /* IP addresses; goes to QP1 of dst (CM-06) */
    uint8_t tclass, hop_limit, sl;
    uint16_t pkey; /* P_Key of the partition: the peer's, or the path's (CM-06) */
    uint8_t mad[CM_MAD_LEN];
};
/* The next datagram to send; false = none. */
bool cm_tx(struct cm *cm, struct cm_out *out);
/* The next event; false = none. */
bool cm_event(struct cm *cm, struct cm_event *ev);
/* The time at which cm_expire has work; UINT64_MAX = no timer runs. */
uint64_t cm_deadline(const struct cm *cm);
/* Run every timer that is due by `now`. */
void cm_expire(struct cm *cm, uint64_t now);

/* ---- counters ---- */

#define CM_COUNTERS(X)                                                                             \
    X(cm_rx, "CM-16")                                                                              \
    X(cm_tx, "CM-16")                                                                              \
    X(cm_retries, "CM-18")                                                                         \
    X(cm_rx_bad_mad, "GSI-02")                                                                     \
    X(cm_rx_bad_id, "SEC-21")                                                                      \
    X(cm_rx_unsupported, "GSI-05")                                                                 \
    X(cm_req_backlog_drop, "CM-34")                                                                \
    X(cm_rx_rate_limited, "SEC-20")                                                                \
    X(cm_silent_peer, "SEC-20")                                                                    \
    X(cm_dup_req, "CM-20")                                                                         \
    X(cm_dup_rep, "CM-22")                                                                         \
    X(cm_stale, "CM-21")                                                                           \
    X(cm_challenges, "CM-21")                                                                      \
    X(cm_stale_confirmed, "CM-21")                                                                 \
    X(cm_established, "CM-16")                                                                     \
    X(cm_rejected, "CM-28")

enum cm_counter {
#define X(name, rule) CM_C_##name,
    CM_COUNTERS(X)
#undef X
        CM_COUNTER_MAX
};
extern const char *const cm_counter_names[CM_COUNTER_MAX];
/* All counters, CM_COUNTER_MAX of them; never reset. */
const uint64_t *cm_counters(const struct cm *cm);

/* Set the largest path MTU that is accepted and requested (cm_params.max_mtu). */
void cm_set_mtu(struct cm *cm, uint8_t max_mtu);

/* Connections in the table, TIMEWAIT included; for leak tests. */
uint32_t cm_live(const struct cm *cm);

#endif
