/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control protocol: the structs of IPC_CM_*.
 *
 * The daemon speaks the CM protocol. A queue pair that was given to it (IPC_CM_QP) it moves, too:
 *   active:  RESOLVE_ADDR (making the id), QP_CREATE (for the id), CONNECT, event ESTABLISHED.
 *   passive: BIND, LISTEN, event CONNECT_REQUEST (it names a new id): QP_CREATE (for the id),
 *            ACCEPT, event ESTABLISHED.
 *   Both:    DISCONNECT or the peer's DREQ: QP to ERR, event DISCONNECTED; QP_DESTROY (and its id).
 * Otherwise the client moves it, with attributes that IPC_CM_QP_ATTR tells:
 *   active:  ID_CREATE, RESOLVE_ADDR, RESOLVE_ROUTE, QP to INIT, CONNECT,
 *            event CONNECT_RESPONSE: QP_ATTR(RTR), QP_MODIFY, QP_ATTR(RTS), QP_MODIFY, ESTABLISH
 *            (which sends the RTU).
 *   passive: ID_CREATE, BIND, LISTEN, event CONNECT_REQUEST (it names a new id): QP to INIT,
 *            QP_ATTR(RTR), QP_MODIFY, QP_ATTR(RTS), QP_MODIFY, ACCEPT, event ESTABLISHED.
 *   Both:    DISCONNECT or the peer's DREQ: event DISCONNECTED, QP to ERR.
 * Datagram service (port space UDP): CONNECT sends SIDR REQ; its answer is an ESTABLISHED event
 * with qpn, qkey and av, or UNREACHABLE with the answer's status.
 */
#ifndef URNIC_IPC_CM_H
#define URNIC_IPC_CM_H

#include "ipc_verbs.h"

#define IPC_PS_TCP 0x0106u
#define IPC_PS_UDP 0x0111u
#define IPC_PS_IB  0x013Fu /* connections, like TCP; rdma_cm uses it for XRC */

/* The numbers of librdmacm. */
enum ipc_cm_event_type {
    IPC_CM_ADDR_RESOLVED,
    IPC_CM_ADDR_ERROR,
    IPC_CM_ROUTE_RESOLVED,
    IPC_CM_ROUTE_ERROR,
    IPC_CM_CONNECT_REQUEST,
    IPC_CM_CONNECT_RESPONSE,
    IPC_CM_CONNECT_ERROR,
    IPC_CM_UNREACHABLE,
    IPC_CM_REJECTED,
    IPC_CM_ESTABLISHED,
    IPC_CM_DISCONNECTED,
    IPC_CM_DEVICE_REMOVAL,
    IPC_CM_MULTICAST_JOIN,
    IPC_CM_MULTICAST_ERROR,
    IPC_CM_ADDR_CHANGE,
    IPC_CM_TIMEWAIT_EXIT,
};

struct ipc_sockaddr { /* IPv4 is mapped into IPv6 */
    uint8_t ip[16];   /* all 0 = any */
    uint16_t port;    /* host order */
    uint16_t zero;
    uint32_t scope;
};

struct ipc_cm_id_create {
    struct ipc_hdr hdr;
    uint32_t channel; /* handle */
    uint32_t ps;      /* IPC_PS_* */
    uint64_t ref;     /* the client's: comes back in events of this id */
};

struct ipc_cm_destroyed {
    struct ipc_hdr hdr;
    uint32_t events; /* number of events ever sent about this id */
    uint32_t zero;
};

struct ipc_cm_addr {
    struct ipc_hdr hdr;
    uint32_t id; /* RESOLVE_ADDR: 0 = make one first, by the fields of minor 1; the reply has it */
    uint32_t timeout_ms;
    struct ipc_sockaddr src, dst;
    /* minor 1 */
    uint32_t channel, ps; /* as in ipc_cm_id_create */
    uint64_t ref;
    uint32_t flags; /* IPC_CM_F_* */
    uint32_t qpn;   /* minor 16, JOIN: a queue pair of the program's own engine; 0 = the id's */
};
#define IPC_CM_F_ROUTE 1u /* RESOLVE_ADDR: also resolve the route; one event for both */

struct ipc_cm_timeout {
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t timeout_ms;
};

struct ipc_cm_listen {
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t backlog; /* 0 = the daemon's default */
    /* minor 13 */
    uint32_t family; /* of an id that is bound to any address: 4, 6 or 0 (both) */
    uint32_t zero;
};

struct ipc_cm_param {
    uint32_t qpn, qkey;
    uint32_t starting_psn; /* the first PSN to receive (CM-08); 0 = the daemon chooses */
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count, srq;
    uint8_t private_len, zero;
};

struct ipc_cm_conn { /* CONNECT, ACCEPT, REJECT */
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t reason; /* REJECT: 0 = consumer (28) */
    struct ipc_cm_param param;
    uint8_t private_data[IPC_PRIVATE_MAX];
    /* minor 1 */
    uint32_t channel; /* ACCEPT: not 0 = IPC_CM_MIGRATE, unless it is refused */
    uint64_t ref;
    /* minor 6, CONNECT: of the path, both ways */
    uint8_t tclass, sl;
    uint8_t qp_type; /* minor 15: of a queue pair of the program's own engine; 0 = RC */
    uint8_t follows; /* minor 15: ... which goes to ERR when the connection ends */
    uint8_t zero[4];
};

struct ipc_cm_qp {
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t qp; /* in RESET: goes to INIT, a datagram queue pair to RTS */
};

struct ipc_cm_qp_attr {
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t state; /* INIT, RTR, RTS */
};

struct ipc_cm_route {
    struct ipc_hdr hdr;
    struct ipc_sockaddr src, dst;
    struct ipc_av av;
    char device[IPC_NAME_MAX];
    uint8_t sgid[16];
    uint8_t smac[6];
    uint16_t pkey;
    uint32_t path_mtu; /* enum */
    uint32_t zero;
};

/* This also gives the id of a CONNECT_REQUEST a reference of its own. Until then its events carry
 * the listener's. */
struct ipc_cm_migrate {
    struct ipc_hdr hdr;
    uint32_t id;
    uint32_t channel; /* channel of later events; may be the same as before */
    uint64_t ref;
};

/* On a CM channel (SOCK_SEQPACKET). */
struct ipc_cm_event {
    uint32_t event; /* enum ipc_cm_event_type */
    int32_t status; /* 0, -errno, or the CM's reject reason (> 0) */
    uint64_t ref;   /* of the id; CONNECT_REQUEST: of the listening id */
    uint32_t id;    /* handle; CONNECT_REQUEST: a new id, which now belongs to the client */
    uint32_t zero;
    struct ipc_sockaddr src, dst; /* CONNECT_REQUEST: local and remote */
    struct ipc_cm_param param;    /* the peer's */
    struct ipc_av av;             /* datagram service */
    uint8_t private_data[IPC_PRIVATE_MAX];
};

IPC_SIZE_CHECK(struct ipc_sockaddr, 24);
IPC_SIZE_CHECK(struct ipc_cm_param, 20);
IPC_SIZE_CHECK(struct ipc_cm_addr, 96);
IPC_SIZE_CHECK(struct ipc_cm_conn, 320);

#endif
