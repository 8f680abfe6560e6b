/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting queue pairs by IP address: with events, or with three blocking calls.
 * Conventions: urnic/urnic.h.
 *
 * Blocking, for programs that do one thing:
 *
 *     server: urnic_listen_addr, then urnic_accept_conn for each peer
 *     client: urnic_connect_addr
 *     both:   post and poll on urnic_conn.qp; urnic_close_conn
 *
 * With events: create an id, give it a queue pair, start an operation, get the event. The library
 * and the daemon move the queue pair through its states as the connection comes and goes.
 */
#ifndef URNIC_CM_H
#define URNIC_CM_H

#include "urnic/verbs.h"

struct sockaddr;

#ifdef __cplusplus
extern "C" {
#endif

struct urnic_cm_channel; /* where connection events arrive */
struct urnic_cm_id;      /* a listener or a connection */

/* The events of librdmacm. The calls below say when each one comes. */
enum urnic_cm_event_type {
    URNIC_CM_ADDR_RESOLVED,
    URNIC_CM_ADDR_ERROR,
    URNIC_CM_ROUTE_RESOLVED,
    URNIC_CM_ROUTE_ERROR, /* never comes */
    URNIC_CM_CONNECT_REQUEST,
    URNIC_CM_CONNECT_RESPONSE, /* only for ids without a queue pair: see urnic_init_qp_attr */
    URNIC_CM_CONNECT_ERROR,
    URNIC_CM_UNREACHABLE,
    URNIC_CM_REJECTED,
    URNIC_CM_ESTABLISHED,
    URNIC_CM_DISCONNECTED,
    URNIC_CM_DEVICE_REMOVAL, /* never comes: urnic_get_cm_event returns -ENODEV */
    URNIC_CM_MULTICAST_JOIN,
    URNIC_CM_MULTICAST_ERROR, /* never comes */
    URNIC_CM_ADDR_CHANGE,     /* never comes */
    URNIC_CM_TIMEWAIT_EXIT,   /* at least a second after the end of a connection, if its id still
                               * exists; the application need not do anything */
};

/* IB: connections like those of TCP, with ports of their own. rdma_cm uses it for XRC. */
enum urnic_port_space { URNIC_PS_TCP = 0x0106, URNIC_PS_UDP = 0x0111, URNIC_PS_IB = 0x013F };

struct urnic_conn_param {
    /* For the peer. Connections: up to 56 octets in a request, 196 in a reply. Datagram services:
     * 180 and 136. */
    const void *private_data;
    uint8_t private_data_len;
    uint8_t responder_resources; /* READs and atomics at a time from the peer; 0 or above 32 = 32 */
    uint8_t initiator_depth;     /* the same to the peer; 0 or above 32 = 32 */
    uint8_t retry_count;         /* urnic_connect: for both ends; 0..7, default 7 */
    uint8_t rnr_retry_count;     /* for the peer's queue pair, as in rdma_cm; 0..7, 7 = for ever,
                                  * the default. The peer's value is for our queue pair. */
    bool retry_counts_set;       /* use the two counts above, also when they are 0 */
    /* For urnic_connect. Traffic class and service level of the packets, as in urnic_ah_attr. Both
     * ends use them: the accepting side takes them from the request. If they are not 0: -EOPNOTSUPP
     * from an older daemon. */
    uint8_t tclass, sl;
    uint32_t qp_num; /* for ids without a queue pair: see urnic_init_qp_attr */
    uint32_t qkey;   /* datagram services: for the peer; 0 = the queue pair's */
};

struct urnic_cm_event {
    enum urnic_cm_event_type event;
    int status;                 /* 0; -errno; > 0: the peer's reason for a refusal */
    struct urnic_cm_id *id;     /* CONNECT_REQUEST: a new id, the application's from now on */
    struct urnic_cm_id *listen; /* CONNECT_REQUEST: the listener */
    uint8_t responder_resources, initiator_depth;
    /* For our queue pair, as the peer wants them: both with CONNECT_REQUEST, the second also with
     * a response. */
    uint8_t retry_count, rnr_retry_count;
    uint32_t qp_num, qkey;     /* the peer's */
    struct urnic_ah_attr ah;   /* datagram services: where to send */
    uint32_t private_data_len; /* of the whole field, padded with zeros, as in rdma_cm */
    uint8_t private_data[256];
};

/* ---- with events ---- */

/* -ENOTSUP: the daemon is older than this library. -ENOMEM. -EDQUOT: the context has 4096 channels,
 * the maximum. */
URNIC_API int urnic_create_cm_channel(struct urnic_context *ctx, struct urnic_cm_channel **channel);
URNIC_API int urnic_destroy_cm_channel(struct urnic_cm_channel *channel); /* -EBUSY: ids use it */
/* Readable when an event waits, or when the daemon has gone. */
URNIC_API int urnic_cm_channel_fd(const struct urnic_cm_channel *channel);
/* Wait for an event. When the descriptor is non-blocking, or poll() has called it readable, the
 * call does not wait: -EAGAIN (urnic.h, event loops).
 *
 * -ENODEV: the daemon has gone. -ENOMEM: a peer's request was refused because memory was short; the
 * next call gets the next event.
 *
 * The event is a copy and needs no acknowledgement. Destroying an id does not wait for its events:
 * if one thread destroys ids while another gets events, an event may name an id that has just been
 * destroyed.
 *
 * For an id with a queue pair, CONNECT_RESPONSE does not come. ESTABLISHED comes instead, and the
 * queue pair is in RTS by then; a message of the peer may be polled, and answered, even before it.
 * When DISCONNECTED, REJECTED or UNREACHABLE comes, the queue pair has moved to ERR, except one for
 * datagrams. */
URNIC_API int urnic_get_cm_event(struct urnic_cm_channel *channel, struct urnic_cm_event *event);
/* In words, for people; a constant string. */
URNIC_API const char *urnic_cm_event_str(enum urnic_cm_event_type event);

/* An id; its events arrive on this channel. -ENOMEM. -EINVAL: no such port space. (An older daemon
 * refuses URNIC_PS_IB only at the first request about the id.) */
URNIC_API int urnic_create_id(struct urnic_cm_channel *channel, enum urnic_port_space ps,
                              void *id_context, struct urnic_cm_id **id);
/* Destroys the id and ends its connection: the peer is told; an unanswered request is refused. The
 * queue pair stays the application's, in its current state. */
URNIC_API int urnic_destroy_id(struct urnic_cm_id *id);
/* Destroys the id and its queue pair, if it has one, with one request to the daemon. Unpolled
 * completions are dropped. -EBUSY: the queue pair is attached to multicast groups that the id
 * hasn't joined. */
URNIC_API int urnic_destroy_ep(struct urnic_cm_id *id);
/* The id_context, from urnic_create_id or urnic_id_set_context. The id of a CONNECT_REQUEST starts
 * with its listener's. */
URNIC_API void *urnic_id_context(const struct urnic_cm_id *id);
URNIC_API void urnic_id_set_context(struct urnic_cm_id *id, void *id_context);
/* Give the id a queue pair in RESET or INIT. The queue pair goes to INIT now, one for datagrams to
 * RTS. Another id that had it loses it. -EINVAL: the queue pair is in a later state or
 * another context's; the id has one, listens, or has ended. */
URNIC_API int urnic_id_set_qp(struct urnic_cm_id *id, struct urnic_qp *qp);
/* The same with a new queue pair, in one request to the daemon. Errors also as urnic_create_qp. */
URNIC_API int urnic_create_id_qp(struct urnic_cm_id *id, struct urnic_pd *pd,
                                 struct urnic_qp_init_attr *attr, struct urnic_qp **qp);
/* Say whether the application's own queue pair uses a shared receive queue. For an id without a
 * queue pair (urnic_init_qp_attr). Default: no. urnic_connect and urnic_accept tell the peer;
 * nothing else depends on it. */
URNIC_API void urnic_id_set_srq(struct urnic_cm_id *id, bool srq);
/* Does the peer's queue pair use a shared receive queue? Known with CONNECT_REQUEST,
 * CONNECT_RESPONSE and ESTABLISHED; false before. */
URNIC_API bool urnic_id_peer_srq(const struct urnic_cm_id *id);
/* The id's queue pair; NULL = none. */
URNIC_API struct urnic_qp *urnic_id_qp(const struct urnic_cm_id *id);

/* Bind to a local address (all zero: any) and port (0: the daemon chooses; urnic_id_addr returns
 * it). -EADDRNOTAVAIL: not an address of the device. -EAFNOSUPPORT. */
URNIC_API int urnic_bind_addr(struct urnic_cm_id *id, const struct sockaddr *addr);
/* Local and remote address; each pointer may be NULL. An address is 16 octets (IPv4 mapped) and a
 * port. -EINVAL: the id is neither bound nor resolved, and did not come with a request. */
URNIC_API int urnic_id_addr(struct urnic_cm_id *id, uint8_t local[16], uint16_t *local_port,
                            uint8_t remote[16], uint16_t *remote_port);
/* Listen at the bound address; without one at any address and a port that the daemon chooses. Event
 * CONNECT_REQUEST. backlog: requests that may wait for an answer, 0 = 1024. When the backlog is
 * full, requests are dropped; the peer repeats them. So are those of a host that has taken more
 * than half of the room left by other hosts. -EADDRINUSE: a listener has this port, at the same
 * address, or one of the two listens at any. -EDQUOT: the user has too many listeners. */
URNIC_API int urnic_listen(struct urnic_cm_id *id, int backlog);
/* The same, but "any address" means one family: AF_INET, AF_INET6, or AF_UNSPEC for both. Two ids,
 * one per family, may then listen at one port. -EAFNOSUPPORT: another family. -EOPNOTSUPP: an older
 * daemon. */
URNIC_API int urnic_listen_family(struct urnic_cm_id *id, int backlog, int family);
/* Find a peer. Event ADDR_RESOLVED or ADDR_ERROR. src may be NULL. timeout_ms 0 = 2,000.
 *
 * -EADDRNOTAVAIL: src is not an address of the device. -EAFNOSUPPORT. -EINVAL: src and dst are of
 * different families; the id is resolving, resolved or listening; or dst is a multicast address and
 * the id is not for datagrams (URNIC_PS_UDP).
 *
 * ADDR_ERROR's status: -ENETUNREACH, no route; -EHOSTUNREACH, no host answered for the address
 * within 3 s; -ETIMEDOUT, timeout_ms was over before. */
URNIC_API int urnic_resolve_addr(struct urnic_cm_id *id, const struct sockaddr *src,
                                 const struct sockaddr *dst, int timeout_ms);
/* Event ROUTE_RESOLVED, at once: urnic_resolve_addr has found the route. timeout_ms is ignored. */
URNIC_API int urnic_resolve_route(struct urnic_cm_id *id, int timeout_ms);
/* Both in one call: event ROUTE_RESOLVED, or ADDR_ERROR. */
URNIC_API int urnic_resolve(struct urnic_cm_id *id, const struct sockaddr *src,
                            const struct sockaddr *dst, int timeout_ms);
/* The id's datagram queue pair joins an IPv4 or IPv6 multicast group, and the port reports the
 * group (IGMP, MLD). Event MULTICAST_JOIN: send to `qp_num` with `qkey` by `ah`. The queue pair
 * leaves with urnic_leave_multicast, or when the id is destroyed. -EINVAL: no datagram queue pair,
 * or not a group. -EADDRINUSE: joined already. */
URNIC_API int urnic_join_multicast(struct urnic_cm_id *id, const struct sockaddr *addr);
URNIC_API int urnic_leave_multicast(struct urnic_cm_id *id, const struct sockaddr *addr);
/* Connect. param may be NULL. -EINVAL: the route is not resolved, or a parameter is out of range.
 * -EPROTOTYPE: a queue pair for datagrams. One of these events follows:
 *
 *   ESTABLISHED
 *   REJECTED        the peer refused. Status 10: the peer still had an old connection of this queue
 *                   pair. It has dropped it now; try again with a new id.
 *   UNREACHABLE     -ETIMEDOUT: no answer. -ECONNABORTED: the peer accepted and has gone. > 0: a
 *                   datagram service refused (1 no listener, 2 rejected), with its private data.
 *   CONNECT_ERROR   -ECONNABORTED: the peer accepted and has gone; DISCONNECTED or REJECTED
 * follows. -EINVAL: the peer accepted, but the queue pair was no longer in INIT. -EADDRNOTAVAIL:
 * the peer accepted, but our address has gone. After these two the peer gets REJECTED, and no event
 * follows here. */
URNIC_API int urnic_connect(struct urnic_cm_id *id, const struct urnic_conn_param *param);
/* Accept the request that came with the id. Event ESTABLISHED. No event comes for datagram
 * services: the answer is the end of the exchange, and the id may be destroyed. param may be NULL.
 * -EINVAL: no such request, no queue pair, or a parameter is out of range. -EPROTOTYPE: the peer
 * asks for another type of queue pair (RC, UC). -ECONNABORTED: the peer has given up; event
 * REJECTED or UNREACHABLE says so, too. -EADDRNOTAVAIL: our address has gone. */
URNIC_API int urnic_accept(struct urnic_cm_id *id, const struct urnic_conn_param *param);
/* Refuse the request, with up to 148 octets for the peer; datagram services: 136. -EINVAL: more
 * octets, or no request waits for an answer. */
URNIC_API int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len);
/* For ids without a queue pair: the application changes the states of its own (conn_param.qp_num;
 * RC, UC or XRC). Writes the attributes for attr->qp_state, INIT, RTR or RTS, and their mask, for
 * urnic_modify_qp; attributes outside the mask are 0.
 *
 *     connecting: INIT; urnic_connect; event CONNECT_RESPONSE; RTR; RTS; urnic_establish
 *     accepting:  event CONNECT_REQUEST; INIT; RTR; RTS; urnic_accept; event ESTABLISHED
 *     both:       ERR at DISCONNECTED
 *
 * The queue pair may be of another context of this process on the same device, and belongs to the
 * id until it is destroyed; an older daemon wants the same context. -EINVAL: another state, RTR or
 * RTS before the peer's message has come, or an id for datagrams. -EADDRNOTAVAIL: our address has
 * gone.
 */
URNIC_API int urnic_init_qp_attr(struct urnic_cm_id *id, struct urnic_qp_attr *attr,
                                 unsigned *mask);
/* Answer CONNECT_RESPONSE: the peer gets ESTABLISHED; no event comes here. Without it the peer asks
 * again and then gives up. urnic_reject refuses instead. -EINVAL: no response has come. */
URNIC_API int urnic_establish(struct urnic_cm_id *id);
/* Move the queue pair to ERR, where its work requests complete with flush, and tell the peer. Event
 * DISCONNECTED. While a request has no answer yet, that event does not come: an answer of the peer
 * becomes CONNECT_ERROR; a request of the peer is answered by urnic_reject, or when the id is
 * destroyed. -EINVAL: there is no connection or request, or the id is for datagrams. */
URNIC_API int urnic_disconnect(struct urnic_cm_id *id);

/* ---- blocking ---- */

struct urnic_listener;

/* The queue pair and parameters of a connection. */
struct urnic_conn_attr {
    struct urnic_pd *pd;
    struct urnic_qp_init_attr qp;
    struct urnic_conn_param param;
    int timeout_ms; /* for the whole call; 0 = 10,000; -1 = wait for ever */
};

/* A connection. Fields are read-only. Each connection has a channel, of which a context has at most
 * 4096. For more connections use ids, which can share a channel, or more contexts. */
struct urnic_conn {
    struct urnic_qp *qp;
    struct urnic_cm_id *id;
    struct urnic_cm_channel *channel; /* its own: DISCONNECTED arrives here */
    uint32_t private_data_len;        /* from the peer */
    uint8_t private_data[256];
};

/* Connect to "192.0.2.1" or "fd00::1". `prepare`, if not NULL, is called with the new queue pair in
 * INIT: post receives there, before the peer can send. It returns 0, -errno, or errno as the
 * functions of libibverbs do.
 *
 * -EHOSTUNREACH: no host has that address. -ETIMEDOUT: no answer, or timeout_ms was over before.
 * -ENETUNREACH: no route. -ECONNREFUSED: no listener, or rejected. -ECONNABORTED: the peer accepted
 * and has gone. -EINVAL: `ip` is no address or a multicast one; or as urnic_create_qp. -EPROTOTYPE:
 * a queue pair for datagrams: use an id. -EDQUOT: too many connections. -ENODEV. Errors of
 * `prepare` are returned as they are. */
URNIC_API int urnic_connect_addr(struct urnic_context *ctx, const char *ip, uint16_t port,
                                 struct urnic_conn_attr *attr,
                                 int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                                 struct urnic_conn **conn);
/* Listen on a local address, NULL = on every one. port 0: the daemon chooses. -EADDRINUSE,
 * -EADDRNOTAVAIL, -EINVAL, -ENODEV. */
URNIC_API int urnic_listen_addr(struct urnic_context *ctx, const char *ip, uint16_t port,
                                int backlog, struct urnic_listener **listener);
/* The port it listens on. */
URNIC_API uint16_t urnic_listener_port(const struct urnic_listener *listener);
/* A descriptor that is readable when a connection waits. If that peer gives up meanwhile,
 * urnic_accept_conn waits for the next one, up to timeout_ms. An event loop that must not wait uses
 * urnic_listen and a channel. */
URNIC_API int urnic_listener_fd(const struct urnic_listener *listener);
/* Take the next connection; `prepare` as above. If a peer gives up meanwhile, or asks for another
 * type of queue pair, the call goes on with the next peer. timeout_ms limits the wait for a peer to
 * come; once one has come, the call waits at least 10 s for it. -ETIMEDOUT. -EINVAL. -EPROTOTYPE: a
 * queue pair for datagrams. -EDQUOT: too many connections; this one is refused. -ENODEV. Errors of
 * `prepare` are returned as they are. */
URNIC_API int urnic_accept_conn(struct urnic_listener *listener, struct urnic_conn_attr *attr,
                                int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                                struct urnic_conn **conn);
/* Stop listening. Waiting requests are refused. */
URNIC_API int urnic_close_listener(struct urnic_listener *listener);
/* Disconnect and destroy the queue pair. Unpolled completions are dropped. Errors:
 * urnic_destroy_ep.
 */
URNIC_API int urnic_close_conn(struct urnic_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
