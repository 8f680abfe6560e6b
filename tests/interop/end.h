/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a test: a device, one memory region, a completion queue, a few queue pairs.
 * Implemented twice, on liburnic (end_urnic.c) and on libibverbs with librdmacm (end_rdma.c), so
 * that the same program, peer.c, plays both ends and each test runs in both directions.
 *
 * Opcodes, states, statuses, flags and masks are libibverbs' numbers, which liburnic shares.
 * Functions return 0 or -errno. One thread.
 */
#ifndef URNIC_INTEROP_END_H
#define URNIC_INTEROP_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define END_QPS  16
#define END_QKEY 0x11111111u

enum { END_RC = 2, END_UC = 3, END_UD = 4 };
enum { END_INIT = 1, END_RTR, END_RTS };

struct end;

/* The address of a queue pair's other end, and the values that both agreed on. */
struct end_path {
    uint8_t remote[16];
    uint32_t qpn, sq_psn, rq_psn;
    unsigned mtu; /* octets */
    unsigned access;
    uint8_t timeout, retry, rnr_retry, rnr_timer;
    uint8_t rd_atomic, dest_rd_atomic;
    uint32_t qkey;
    int upto; /* the state to stop in */
};

struct end_work {
    uint64_t id;
    int opcode;
    unsigned flags;
    uint32_t off, len; /* in the region */
    uint32_t lkey;     /* 0: the region's */
    uint64_t raddr;
    uint32_t rkey;
    uint32_t imm; /* octets as on the wire; or the R_Key to invalidate */
    uint64_t compare_add, swap;
    uint8_t to[16]; /* datagrams */
    uint32_t to_qpn, qkey;
};

struct end_wc {
    uint64_t id;
    int status, opcode;
    uint32_t len, flags, imm, src_qpn;
};

/* The parameters of a connection. */
struct end_offer {
    const void *private_data;
    uint8_t private_len;
    uint8_t rd_atomic, retry, rnr_retry;
};

struct end_event {
    int event; /* enum rdma_cm_event_type */
    int status;
    uint8_t rd_atomic, depth;
    uint8_t private_data[256];
    unsigned private_len;
};

/* Open the device that has this address (IPv4 mapped), with a region of `size` octets. */
int end_open(struct end **e, const uint8_t addr[16], size_t size, unsigned access);
uint8_t *end_memory(struct end *e);
uint64_t end_address(struct end *e); /* of the region, for the peer */
uint32_t end_rkey(struct end *e);

/* A queue pair in slot q, state RESET. */
int end_qp(struct end *e, unsigned q, int type, uint32_t *qpn);
/* RESET to RTS by hand, or not quite so far. Datagrams only need sq_psn and qkey. */
int end_join(struct end *e, unsigned q, const struct end_path *path);
int end_modify(struct end *e, unsigned q, int state);
/* Its state, or -errno. */
int end_state(struct end *e, unsigned q);
int end_destroy(struct end *e, unsigned q);

/* Post work: a receive into [off, off + len) of the region (lkey 0: its own), or a send from there.
 */
int end_recv(struct end *e, unsigned q, uint64_t id, uint32_t off, uint32_t len, uint32_t lkey);
int end_send(struct end *e, unsigned q, const struct end_work *w);
/* 1 and a completion, 0: no completion, or -errno. */
int end_poll(struct end *e, struct end_wc *wc);
/* The next asynchronous event and the queue pair that it is about (0: none), likewise. */
int end_async(struct end *e, int *type, uint32_t *qpn);

/* Connections. A server listens, `answer`s a request by giving it a queue pair in INIT in slot q,
 * to which receives can be posted, and accepts or rejects. A client dials likewise, then connects.
 */
int end_listen(struct end *e, uint16_t port);
int end_answer(struct end *e, unsigned q, struct end_event *request, int timeout_ms);
int end_accept(struct end *e, unsigned q, const struct end_offer *offer);
int end_reject(struct end *e, unsigned q, const void *data, uint8_t len);
int end_dial(struct end *e, unsigned q, struct sockaddr *to, int timeout_ms);
int end_connect(struct end *e, unsigned q, const struct end_offer *offer);
int end_hangup(struct end *e, unsigned q);
/* The next connection event. -ETIMEDOUT. */
int end_event(struct end *e, struct end_event *event, int timeout_ms);

#endif
