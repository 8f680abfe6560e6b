/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client of protocol 1.0 as it was when that was released, written down in numbers: message
 * types, lengths and offsets of fields. It includes nothing of lib/ipc, and nothing here ever
 * changes: a daemon of the same major version must serve it for all time.
 */
#ifndef URNIC_OLD_CLIENT_H
#define URNIC_OLD_CLIENT_H

#include <stddef.h>
#include <stdint.h>

enum old_type {
    OLD_HELLO = 1,
    OLD_CTX_OPEN = 20,
    OLD_PD_ALLOC = 32,
    OLD_PD_FREE = 33,
    OLD_SLAB_ALLOC = 34,
    OLD_SLAB_FREE = 35,
    OLD_MR_REG = 36,
    OLD_MR_DEREG = 37,
    OLD_CQ_CREATE = 50,
    OLD_CQ_DESTROY = 53,
    OLD_QP_CREATE = 58,
    OLD_QP_MODIFY = 59,
    OLD_QP_DESTROY = 61,
    OLD_CM_CHANNEL_CREATE = 80,
    OLD_CM_CHANNEL_DESTROY = 81,
    OLD_CM_ID_CREATE = 82,
    OLD_CM_ID_DESTROY = 83,
    OLD_CM_BIND = 84,
    OLD_CM_RESOLVE_ADDR = 85,
    OLD_CM_RESOLVE_ROUTE = 86,
    OLD_CM_LISTEN = 87,
    OLD_CM_CONNECT = 88,
    OLD_CM_ACCEPT = 89,
    OLD_CM_ESTABLISH = 91,
    OLD_CM_DISCONNECT = 92,
    OLD_CM_QP_ATTR = 93,
    OLD_CM_MIGRATE = 97,
};

enum old_event {
    OLD_EV_ADDR_RESOLVED = 0,
    OLD_EV_ROUTE_RESOLVED = 2,
    OLD_EV_CONNECT_REQUEST = 4,
    OLD_EV_CONNECT_RESPONSE = 5,
    OLD_EV_ESTABLISHED = 9,
    OLD_EV_DISCONNECTED = 10,
};

/* A message: the sent or received octets, and descriptors. */
struct old_msg {
    uint8_t b[512];
    size_t len;
    int fd[4];
    unsigned nfd;
};

/* Numbers in host order at an offset of the message. */
uint32_t old_get32(const struct old_msg *m, size_t off);
uint64_t old_get64(const struct old_msg *m, size_t off);
void old_put32(struct old_msg *m, size_t off, uint32_t v);
void old_put64(struct old_msg *m, size_t off, uint64_t v);

/* One end: a context with queues, as protocol 1.0 lays them out. */
struct old_end {
    int sock, kick, async, cm_sock;
    uint32_t next_id;
    uint8_t *doorbell;     /* ring of `doorbells` slots after 64 octets of head */
    const uint8_t *worker; /* its page */
    uint32_t doorbells;
    uint8_t *slab[4]; /* queue slabs by number */
    uint8_t *data;
    size_t data_len;
    uint32_t pd, data_slab, mr, lkey, rkey, cq, qp, qpn, cm_channel;
    uint8_t *cq_ring, *sq;
    uint32_t cq_entries, sq_units, sq_doorbell, sq_prod, cq_index;
};

/* Send a request of this type and length and wait for its answer, which must have status 0 and at
 * least `least` octets. Fails the test otherwise. */
void old_call(struct old_end *e, enum old_type type, struct old_msg *m, size_t len, size_t least);
/* A request of one handle. */
void old_handle(struct old_end *e, enum old_type type, uint32_t handle);

/* Open: hello, a context on the device, memory, queues. Close: all of it in reverse. */
void old_open(struct old_end *e, const char *socket, const char *device);
void old_close(struct old_end *e);
/* Write `len` <= 32 octets inline into the peer's memory and wait for the completion. */
void old_write(struct old_end *e, uint64_t remote, uint32_t rkey, const void *data, uint16_t len);
/* The next event of the channel must be this one; returns the id that it names. */
uint32_t old_event(struct old_end *e, enum old_event want, struct old_msg *m);

#endif
