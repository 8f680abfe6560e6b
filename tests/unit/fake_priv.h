/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of the fake daemon: fake_daemon.c has devices, memory and queues, fake_cm.c connections.
 */
#ifndef URNIC_FAKE_PRIV_H
#define URNIC_FAKE_PRIV_H

#include <pthread.h>

#include "fake_daemon.h"
#include "ipc.h"

#define CONNS     4
#define OBJS      64
#define DOORBELLS 256u

enum kind { NONE, PD, SLAB, MR, CHANNEL, CQ, SRQ, QP, CM_CHANNEL, CM_ID };

struct obj {
    enum kind kind;
    struct conn *conn;
    uint32_t ref;
    /* CQ */
    struct ipc_cq_view cq;
    int fd; /* channels: our end */
    struct obj *channel;
    /* QP, SRQ */
    struct ipc_ring sq, rq;
    struct obj *send_cq, *recv_cq, *srq;
    uint32_t qpn, dest, state, type;
    bool sig_all;
    /* CM */
    uint16_t port;
    struct obj *peer;
    uint32_t qp_handle; /* queue pair of the connection, 0 = none */
};

struct conn {
    int sock, kick, async;
    struct obj obj[OBJS]; /* by handle; 0 unused */
    uint8_t *slab;        /* doorbells, then queues from the bottom up */
    size_t slab_size, slab_used;
    bool slab_known;
    uint32_t head;
    struct ipc_doorbell *db;
    struct ipc_worker *worker;
    int slab_fd;
    struct obj *bell[DOORBELLS];
    uint32_t bells;
};

union msg {
    struct ipc_hdr hdr;
    struct ipc_hello hello;
    struct ipc_handle handle;
    struct ipc_device_attr device_attr;
    struct ipc_port_attr port_attr;
    struct ipc_ctx_opened ctx_opened;
    struct ipc_slab_alloc slab_alloc;
    struct ipc_slab slab;
    struct ipc_mr_reg mr_reg;
    struct ipc_mr mr;
    struct ipc_cq_create cq_create;
    struct ipc_cq cq;
    struct ipc_srq_create srq_create;
    struct ipc_srq srq;
    struct ipc_srq_attr srq_attr;
    struct ipc_qp_create qp_create;
    struct ipc_qp qp;
    struct ipc_qp_destroy qp_destroy;
    struct ipc_qp_modify qp_modify;
    struct ipc_av_resolve av;
    struct ipc_cm_id_create cm_id_create;
    struct ipc_cm_destroyed cm_destroyed;
    struct ipc_cm_addr cm_addr;
    struct ipc_cm_timeout cm_timeout;
    struct ipc_cm_listen cm_listen;
    struct ipc_cm_conn cm_conn;
    struct ipc_cm_qp_attr cm_qp_attr;
    struct ipc_cm_route cm_route;
    struct ipc_cm_migrate cm_migrate;
    struct ipc_cm_qp cm_qp;
    uint8_t raw[2048];
};

#define KEPT 8u

struct answer {
    union msg m;
    size_t len;
    int fds[IPC_FD_MAX]; /* closed after sending */
    unsigned nfds;
};

struct fake {
    struct fake_knobs knobs;
    struct {
        struct conn *to;
        struct answer a;
    } late[KEPT]; /* knobs.kept of them */
    pthread_t thread;
    _Atomic bool stop;
    int listener;
    char dir[64], path[96];
    struct conn conn[CONNS];
    struct obj *newest_qp;
};

/* A new object of the connection; its handle in *handle. One too many ends
 * the test. */
struct obj *obj_new(struct conn *c, enum kind kind, uint32_t *handle);
/* NULL = no such handle of this kind. */
struct obj *obj_get(struct conn *c, uint32_t handle, enum kind kind);
int qp_modify(struct conn *c, const struct ipc_qp_modify *r);

/* Requests about connections: status as in the reply. */
int cm_request(struct fake *f, struct conn *c, const union msg *r, struct answer *a);
/* Bind a queue pair to an id; a queue pair is gone. */
int cm_take(struct conn *c, uint32_t id, uint32_t qp);
void cm_destroy(struct conn *c, uint32_t id);

#endif
