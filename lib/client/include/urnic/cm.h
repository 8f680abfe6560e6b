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

/* librdmacm's. Those without a remark come as the calls below say. */
enum urnic_cm_event_type {
    URNIC_CM_ADDR_RESOLVED,
    URNIC_CM_ADDR_ERROR,
    URNIC_CM_ROUTE_RESOLVED,
    URNIC_CM_ROUTE_ERROR, /* never comes */
    URNIC_CM_CONNECT_REQUEST,
    URNIC_CM_CONNECT_RESPONSE, /* only of ids without a queue pair: see urnic_init_qp_attr */
    URNIC_CM_CONNECT_ERROR,
    URNIC_CM_UNREACHABLE,
    URNIC_CM_REJECTED,
    URNIC_CM_ESTABLISHED,
    URNIC_CM_DISCONNECTED,
    URNIC_CM_DEVICE_REMOVAL, /* never comes: urnic_get_cm_event returns -ENODEV */
    URNIC_CM_MULTICAST_JOIN,
    URNIC_CM_MULTICAST_ERROR, /* never comes */
    URNIC_CM_ADDR_CHANGE,     /* never comes */
    URNIC_CM_TIMEWAIT_EXIT,   /* a second or more after the end of a connection whose id is still
                               * there: nothing needs to be done */
};

/* IB: connections as in TCP, at ports of their own; rdma_cm asks for XRC in it. */
enum urnic_port_space { URNIC_PS_TCP = 0x0106, URNIC_PS_UDP = 0x0111, URNIC_PS_IB = 0x013F };

struct urnic_conn_param {
    /* For the peer: up to 56 octets in a request, 196 in a reply; of datagrams 180 and 136. */
    const void *private_data;
    uint8_t private_data_len;
    uint8_t responder_resources; /* READs and atomics at a time from the peer; 0, or more: 16 */
    uint8_t initiator_depth;     /* and to it; 0, or more: 16 */
    uint8_t retry_count;         /* urnic_connect: of both ends; 0..7, the default is 7 */
    uint8_t rnr_retry_count;     /* as rdma_cm: of what the peer sends, whose own says how often we
                                  * try; 0..7, 7 = for ever, the default */
    bool retry_counts_set;       /* the two above are meant, 0 included */
    /* urnic_connect: as in urnic_ah_attr, for what both ends send: whoever accepts has the peer's.
     * Not 0: -EOPNOTSUPP from an older daemon. */
    uint8_t tclass, sl;
    uint32_t qp_num; /* for ids without a queue pair: see urnic_init_qp_attr */
    uint32_t qkey;   /* of datagrams, for the peer; 0 = that of the queue pair */
};

struct urnic_cm_event {
    enum urnic_cm_event_type event;
    int status;                 /* 0; -errno; > 0: the peer's reason of a refusal */
    struct urnic_cm_id *id;     /* CONNECT_REQUEST: a new id, the application's from now on */
    struct urnic_cm_id *listen; /* CONNECT_REQUEST: the listener */
    uint8_t responder_resources, initiator_depth;
    /* of what we send, as the peer wants it (CONNECT_REQUEST; of a response the second one) */
    uint8_t retry_count, rnr_retry_count;
    uint32_t qp_num, qkey;     /* the peer's */
    struct urnic_ah_attr ah;   /* datagrams: where to send */
    uint32_t private_data_len; /* as rdma_cm: of the whole field, filled up with zeros */
    uint8_t private_data[256];
};

/* ---- with events ---- */

/* -ENOTSUP: the daemon is older than this library. -ENOMEM; -EDQUOT: a context has 4096 at most. */
URNIC_API int urnic_create_cm_channel(struct urnic_context *ctx, struct urnic_cm_channel **channel);
URNIC_API int urnic_destroy_cm_channel(struct urnic_cm_channel *channel); /* -EBUSY: ids use it */
/* Readable when an event waits, or when the daemon has gone. */
URNIC_API int urnic_cm_channel_fd(const struct urnic_cm_channel *channel);
/* Wait for an event (don't wait when the descriptor is non-blocking, or poll() has called it
 * readable: -EAGAIN; urnic.h, event loops). -ENODEV: the daemon has gone;
 * -ENOMEM: a peer's request was refused for want of memory, and the next event can be got.
 * The event is a copy: there is nothing to acknowledge, and destroying an id doesn't wait for
 * anybody: where another thread than the one that gets the events destroys ids, an event that was
 * got just before may name one of them.
 * With a queue pair given to the id, CONNECT_RESPONSE never shows: ESTABLISHED does, and by then
 * the queue pair is in RTS. A message of the peer may be polled before the event is got, and may be
 * answered; DISCONNECTED, REJECTED and UNREACHABLE have moved it to ERR, but not one for datagrams.
 */
URNIC_API int urnic_get_cm_event(struct urnic_cm_channel *channel, struct urnic_cm_event *event);
/* In words, for people; a constant string. */
URNIC_API const char *urnic_cm_event_str(enum urnic_cm_event_type event);

/* An id whose events arrive on this channel. -EINVAL: no such port space (an older daemon says so
 * of URNIC_PS_IB, to the first request about the id); -ENOMEM. */
URNIC_API int urnic_create_id(struct urnic_cm_channel *channel, enum urnic_port_space ps,
                              void *id_context, struct urnic_cm_id **id);
/* Ends the connection if there is one: the peer is told; a request without an answer is refused.
 * The queue pair stays the application's, in the state that it is in. */
URNIC_API int urnic_destroy_id(struct urnic_cm_id *id);
/* The same, and destroys its queue pair if it has one, at the cost of one. Completions that weren't
 * polled are dropped. -EBUSY: attached to multicast groups that the id hasn't joined. */
URNIC_API int urnic_destroy_ep(struct urnic_cm_id *id);
/* The id_context it was made with, or was given later. The id of a CONNECT_REQUEST begins with that
 * of its listener. */
URNIC_API void *urnic_id_context(const struct urnic_cm_id *id);
URNIC_API void urnic_id_set_context(struct urnic_cm_id *id, void *id_context);
/* Let this queue pair go with the connection (in RESET now: it goes to INIT; one for datagrams to
 * RTS), and with no other id any more. -EINVAL: it is beyond INIT or another context's, or the id
 * has one, listens or has ended. */
URNIC_API int urnic_id_set_qp(struct urnic_cm_id *id, struct urnic_qp *qp);
/* The same with a new one, at the cost of urnic_create_qp alone, and with its errors. */
URNIC_API int urnic_create_id_qp(struct urnic_cm_id *id, struct urnic_pd *pd,
                                 struct urnic_qp_init_attr *attr, struct urnic_qp **qp);
/* Of an id without a queue pair (urnic_init_qp_attr): does the application's own take its receives
 * from a shared receive queue? The peer is told with urnic_connect and urnic_accept, and nothing
 * depends on it. Not known to be one until this is called. */
URNIC_API void urnic_id_set_srq(struct urnic_cm_id *id, bool srq);
/* What the peer has said of its own: known with the events CONNECT_REQUEST, CONNECT_RESPONSE and
 * ESTABLISHED, false before them. */
URNIC_API bool urnic_id_peer_srq(const struct urnic_cm_id *id);
/* The queue pair that goes with it; NULL = none. */
URNIC_API struct urnic_qp *urnic_id_qp(const struct urnic_cm_id *id);

/* Take a local address (all zero: any) and port (0: the daemon chooses; urnic_id_addr tells).
 * -EADDRNOTAVAIL: not an address of the device; -EAFNOSUPPORT. */
URNIC_API int urnic_bind_addr(struct urnic_cm_id *id, const struct sockaddr *addr);
/* Local and remote address, each may be NULL: 16 octets (IPv4 mapped) and port. -EINVAL: the id has
 * neither been bound, nor resolved, nor come with a request. */
URNIC_API int urnic_id_addr(struct urnic_cm_id *id, uint8_t local[16], uint16_t *local_port,
                            uint8_t remote[16], uint16_t *remote_port);
/* Take requests for the bound address, or for any, at a port that the daemon chooses: event
 * CONNECT_REQUEST. backlog: requests that wait for an answer, 0 = 1024; what comes beyond,
 * or beyond half of what others leave from one host, is dropped, and asked again. -EADDRINUSE:
 * somebody listens at this port, at the same address or at any; -EDQUOT: the user has too many
 * listeners. */
URNIC_API int urnic_listen(struct urnic_cm_id *id, int backlog);
/* The same, and of any address only those of this family (AF_INET, AF_INET6; AF_UNSPEC: all): two
 * ids may then listen at one port, one for each. -EAFNOSUPPORT: another family; -EOPNOTSUPP: an
 * older daemon. */
URNIC_API int urnic_listen_family(struct urnic_cm_id *id, int backlog, int family);
/* Events ADDR_RESOLVED, then on ROUTE_RESOLVED; or the _ERROR of each. src may be NULL; timeout_ms
 * 0 = 2,000. -EADDRNOTAVAIL: src is not an address of the device; -EAFNOSUPPORT; -EINVAL: src and
 * dst are of different families, the id is resolving, resolved or listening already, or dst is a
 * multicast address, to which only datagrams go (URNIC_PS_UDP). Who can't be reached is told by the
 * event: its status is -ENETUNREACH, -EHOSTUNREACH (nobody has that address, asked for 3 s) or
 * -ETIMEDOUT (the time was over before). Finding the route then takes no time, and its timeout_ms
 * says nothing. */
URNIC_API int urnic_resolve_addr(struct urnic_cm_id *id, const struct sockaddr *src,
                                 const struct sockaddr *dst, int timeout_ms);
URNIC_API int urnic_resolve_route(struct urnic_cm_id *id, int timeout_ms);
/* Both in one: event ROUTE_RESOLVED, or ADDR_ERROR. */
URNIC_API int urnic_resolve(struct urnic_cm_id *id, const struct sockaddr *src,
                            const struct sockaddr *dst, int timeout_ms);
/* The id's datagram queue pair joins a group (an IPv4 or IPv6 multicast address), and the port with
 * it (IGMP, MLD). Event MULTICAST_JOIN: send to `qp_num` with `qkey` by `ah`. It leaves with the
 * second call, or with the id. -EINVAL: no datagram queue pair, or no group; -EADDRINUSE joined. */
URNIC_API int urnic_join_multicast(struct urnic_cm_id *id, const struct sockaddr *addr);
URNIC_API int urnic_leave_multicast(struct urnic_cm_id *id, const struct sockaddr *addr);
/* Event ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR. The status -ECONNABORTED of the last
 * two says that the peer has accepted and gone; behind CONNECT_ERROR, DISCONNECTED or REJECTED
 * follows. Another status of CONNECT_ERROR: the peer has accepted, but the queue pair couldn't go
 * along, -EINVAL as it was in INIT no more (urnic_disconnect, urnic_modify_qp), -EADDRNOTAVAIL as
 * our address has gone; the peer hears REJECTED, and nothing follows. REJECTED with status 10: the
 * queue pair went with another connection before, of whose end the peer had not heard; now it has,
 * and this can be tried with a new id. UNREACHABLE's -ETIMEDOUT: nobody answers. A datagram service
 * that refuses is UNREACHABLE as well, with the status of its answer, 1 nobody listens, 2 rejected,
 * and its private data. param may be NULL. -EINVAL: the route is not resolved, or a parameter is
 * out of range; -EPROTOTYPE: a queue pair for datagrams. */
URNIC_API int urnic_connect(struct urnic_cm_id *id, const struct urnic_conn_param *param);
/* Accept the request that the id came with: event ESTABLISHED. Of datagrams there is no event: the
 * peer has its answer, and the id may be destroyed. param may be NULL. -EINVAL: no such request, no
 * queue pair, or a parameter is out of range; -EPROTOTYPE: the peer asks for another type (RC, UC)
 * than the queue pair's; -ECONNABORTED: its peer has given up, as event REJECTED or UNREACHABLE
 * says; -EADDRNOTAVAIL: the address that it came to has gone. */
URNIC_API int urnic_accept(struct urnic_cm_id *id, const struct urnic_conn_param *param);
/* Refuse it, with up to 148 octets for the peer; of datagrams 136. -EINVAL: more, or nothing to be
 * refused (any more). */
URNIC_API int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len);
/* For ids without a queue pair, whose application moves one of its own (conn_param.qp_num, RC,
 * UC or XRC, of this or another context that the same process has opened on the device; until it is
 * destroyed, it goes with this id; an older daemon wants it to be of the same context). The
 * attributes that the connection has for attr->qp_state, INIT, RTR or RTS, and their mask, for
 * urnic_modify_qp; what is not in the mask is 0. who connects: INIT; urnic_connect; event
 * CONNECT_RESPONSE: RTR, RTS, urnic_establish who accepts:  event CONNECT_REQUEST: INIT, RTR, RTS;
 * urnic_accept; event ESTABLISHED Both move it to ERR at DISCONNECTED. -EINVAL: another state, RTR
 * or RTS before the peer's message has come, or of an id for datagrams; -EADDRNOTAVAIL: our address
 * has gone. */
URNIC_API int urnic_init_qp_attr(struct urnic_cm_id *id, struct urnic_qp_attr *attr,
                                 unsigned *mask);
/* The answer to CONNECT_RESPONSE, without which the peer's side asks again and gives up: its event
 * is ESTABLISHED, here comes none. urnic_reject refuses instead. -EINVAL: there was none. */
URNIC_API int urnic_establish(struct urnic_cm_id *id);
/* Moves the queue pair to ERR: what was posted completes with flush. Event DISCONNECTED; of a
 * request that has no answer yet there will be none: the peer's answer becomes CONNECT_ERROR, and
 * destroying the id, or urnic_reject, answers the peer's. -EINVAL: nobody has asked to connect, or
 * the id is for datagrams. */
URNIC_API int urnic_disconnect(struct urnic_cm_id *id);

/* ---- blocking ---- */

struct urnic_listener;

/* What the connection's queue pair shall be. */
struct urnic_conn_attr {
    struct urnic_pd *pd;
    struct urnic_qp_init_attr qp;
    struct urnic_conn_param param;
    int timeout_ms; /* for the whole call; 0 = 10,000; -1 = wait for ever */
};

/* A connection. Fields are read-only. Each has a channel of its own, of which a context has 4096:
 * for more connections use ids, any number of which share a channel, or more contexts. */
struct urnic_conn {
    struct urnic_qp *qp;
    struct urnic_cm_id *id;
    struct urnic_cm_channel *channel; /* its own: DISCONNECTED arrives here */
    uint32_t private_data_len;        /* what the peer sent */
    uint8_t private_data[256];
};

/* Connect to "192.0.2.1" or "fd00::1". To post receives before the peer can send, do it in
 * `prepare`, which is called (if not NULL) with the new queue pair in INIT; it returns 0 or
 * -errno, or errno, as libibverbs' functions do.
 * -EHOSTUNREACH: nobody has that address; -ETIMEDOUT: nobody answers, or the time was over before
 * that was known; -ENETUNREACH: no route to it; -ECONNREFUSED: nobody listens, or rejected;
 * -ECONNABORTED: the peer has accepted and gone; -EINVAL: `ip` is no address or a multicast one,
 * or as urnic_create_qp; -EPROTOTYPE: a queue pair for datagrams, which takes an id of its own;
 * -EDQUOT: too many connections; -ENODEV; what `prepare` said. */
URNIC_API int urnic_connect_addr(struct urnic_context *ctx, const char *ip, uint16_t port,
                                 struct urnic_conn_attr *attr,
                                 int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                                 struct urnic_conn **conn);
/* Listen on a local address, NULL = on every one. port 0: the daemon chooses. -EADDRINUSE,
 * -EADDRNOTAVAIL, -EINVAL, -ENODEV. */
URNIC_API int urnic_listen_addr(struct urnic_context *ctx, const char *ip, uint16_t port,
                                int backlog, struct urnic_listener **listener);
/* The port it listens on; and a descriptor that is readable when a connection waits. That peer may
 * have given up by the time it is asked for: urnic_accept_conn then waits for the next one, for
 * timeout_ms at most. An event loop that must not wait uses urnic_listen and a channel. */
URNIC_API uint16_t urnic_listener_port(const struct urnic_listener *listener);
URNIC_API int urnic_listener_fd(const struct urnic_listener *listener);
/* Take the next connection; `prepare` as above. A peer that gives up meanwhile, or asks for another
 * type of queue pair, doesn't count: the next one's queue pair is prepared instead. timeout_ms is
 * the time for a peer to come: one that has is waited for, 10 s at least. -ETIMEDOUT, -EINVAL,
 * -EPROTOTYPE (a queue pair for datagrams), -EDQUOT (too many connections: this one is refused),
 * -ENODEV, what `prepare` said. */
URNIC_API int urnic_accept_conn(struct urnic_listener *listener, struct urnic_conn_attr *attr,
                                int (*prepare)(void *arg, struct urnic_qp *qp), void *arg,
                                struct urnic_conn **conn);
/* Stop listening; requests that nobody took are refused. */
URNIC_API int urnic_close_listener(struct urnic_listener *listener);
/* Disconnect and destroy the queue pair. Unpolled completions are dropped. As urnic_destroy_ep. */
URNIC_API int urnic_close_conn(struct urnic_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
