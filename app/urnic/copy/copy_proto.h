/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protocol of `urnic copy` and `urnic serve`: one reliable connection, small SEND messages to
 * steer it, and the file's octets by RDMA through a window of slots.
 *
 *     put:  C: PUT path size          S: READY (slots: address and key)
 *           C: WRITE with immediate into slot k mod slots, immediate = octets
 *           S: CREDIT k (that chunk is in the file)          ... until all is there
 *           C: FINISH                 S: RESULT sha256
 *     get:  C: GET path               S: READY size (slots)
 *           S: FILLED k octets        C: READ of slot k mod slots, then CREDIT k
 *           C: FINISH                 S: RESULT sha256
 *
 * ERROR from the server, with a text, ends either. Both ends are little-endian (urnic runs nowhere
 * else).
 */
#ifndef URNIC_COPY_PROTO_H
#define URNIC_COPY_PROTO_H

#include <stdint.h>

#include "digest.h"
#include "resources.h"
#include "urnic/urnic.h"

#define COPY_MAGIC 0x31594370u
#define COPY_PORT  7471u
#define COPY_SLOT  (1u << 20)
#define COPY_SLOTS 8u
#define COPY_TEXT  384u
#define COPY_RECVS (2 * COPY_SLOTS + 8)

enum copy_type {
    COPY_PUT = 1,
    COPY_GET,
    COPY_READY,
    COPY_CREDIT,
    COPY_FILLED,
    COPY_FINISH,
    COPY_RESULT,
    COPY_ERROR,
};

struct copy_msg {
    uint32_t magic;
    uint32_t type; /* enum copy_type */
    uint64_t size; /* PUT, READY of a get: octets of the file */
    uint64_t addr; /* READY: the slots */
    uint32_t rkey;
    uint32_t octets;            /* FILLED */
    uint64_t chunk;             /* CREDIT, FILLED */
    uint8_t digest[DIGEST_LEN]; /* RESULT: SHA-256 of the file */
    char text[COPY_TEXT];       /* PUT, GET: path; ERROR: message */
};

/* An arrival: a message, an immediate, or the end of one of our own operations. */
struct copy_arrival {
    enum { COPY_MSG, COPY_IMM, COPY_READ_DONE, COPY_GONE } what;
    struct copy_msg msg; /* COPY_MSG */
    uint32_t imm;        /* COPY_IMM: octets */
    uint64_t chunk;      /* COPY_READ_DONE */
};

/* One end of a connection. */
struct copy_end {
    struct resources res;
    struct urnic_conn *conn;
    uint8_t *slots;              /* COPY_SLOTS of COPY_SLOT octets, where res.mem begins */
    struct copy_msg *in;         /* COPY_RECVS of them, after the slots */
    struct copy_msg *out;        /* COPY_RECVS of them */
    uint64_t sent;               /* messages posted so far */
    enum urnic_wc_status failed; /* status of the completion that ended it */
};

/* The number of chunks of a file of `size` octets, and the length of chunk k: a slot, except for
 * the last one. */
static inline uint64_t copy_chunks(uint64_t size)
{
    return size / COPY_SLOT + (size % COPY_SLOT != 0);
}
static inline uint32_t copy_chunk_octets(uint64_t size, uint64_t k)
{
    uint64_t left = size - k * COPY_SLOT;
    return left < COPY_SLOT ? (uint32_t)left : COPY_SLOT;
}

/* Make memory and queues. access: the peer's rights to the slots. 0 or -errno. */
int copy_end_init(struct copy_end *e, struct urnic_context *ctx, unsigned access);
/* Hang up and free everything; also after a copy_end_init that failed. */
void copy_end_free(struct copy_end *e);
/* Connection attributes that use the end's queues; `prepare` for urnic_connect_addr and
 * _accept_conn. */
void copy_end_attr(struct copy_end *e, struct urnic_conn_attr *attr);
int copy_prepare(void *arg, struct urnic_qp *qp);

/* Send a message, whose magic is filled in here. 0 or -errno of posting. */
int copy_send(struct copy_end *e, const struct copy_msg *msg);
/* WRITE with immediate of slot k mod slots to the peer's; READ of the peer's into ours. k counts
 * chunks from 0; the caller has checked a number of the peer. 0 or -errno of posting. */
int copy_write(struct copy_end *e, uint64_t k, uint32_t octets, uint64_t addr, uint32_t rkey);
int copy_read(struct copy_end *e, uint64_t k, uint32_t octets, uint64_t addr, uint32_t rkey);

/* Wait for the next arrival, at most timeout_ms (-1 = for ever). 0; -ETIMEDOUT; -EIO: the
 * connection failed (e->failed says how); -ENODEV; -EINTR: cli_stop. */
int copy_wait(struct copy_end *e, struct copy_arrival *out, int timeout_ms);

#endif
