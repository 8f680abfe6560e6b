/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memif protocol, version 2.0: control messages and the layout of a ring.
 *
 * Two processes share memory. The client owns it: it creates regions (memfds) that hold rings and
 * buffers, and passes them over a SOCK_SEQPACKET unix socket on which the server listens:
 *
 *     server                         client
 *       | <------ connect(2) ---------- |
 *       | HELLO ----------------------> |  limits: rings, regions, ring size
 *       | <---------------------- INIT  |  id, secret
 *       | ACK ------------------------> |
 *       | <---------- ADD_REGION (+fd)  |  each acknowledged before the next is sent
 *       | <------------ ADD_RING (+fd)  |  the fd is the eventfd that wakes the ring's reader
 *       | <------------------- CONNECT  |
 *       | CONNECTED ------------------> |  link up
 *
 * A ring has two indices that only grow (modulo 2^16); a slot is an index masked by the ring size.
 * In a client-to-server ring the client fills slots and advances `head`, the server empties them
 * and advances `tail`. In a server-to-client ring the client offers empty buffers by `head`, the
 * server fills them and advances `tail`.
 *
 * All integers are in host order: both ends run on the same machine. A descriptor's flags and
 * lengths are read and written as one 64-bit word, which is laid out for little-endian hosts.
 */
#ifndef URNIC_MEMIF_PROTO_H
#define URNIC_MEMIF_PROTO_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "memif: descriptors are read as 64-bit words of a little-endian host");

#define MEMIF_VERSION       0x0200u
#define MEMIF_MSG_SIZE      128u
#define MEMIF_NAME_SIZE     32u
#define MEMIF_SECRET_MAX    24u
#define MEMIF_LOG2_MAX      14u
#define MEMIF_MODE_ETHERNET 0u

enum memif_msg_type {
    MEMIF_MSG_NONE,
    MEMIF_MSG_ACK,
    MEMIF_MSG_HELLO,
    MEMIF_MSG_INIT,
    MEMIF_MSG_ADD_REGION,
    MEMIF_MSG_ADD_RING,
    MEMIF_MSG_CONNECT,
    MEMIF_MSG_CONNECTED,
    MEMIF_MSG_DISCONNECT,
};

#define MEMIF_PACKED __attribute__((packed))

struct memif_hello {
    char name[MEMIF_NAME_SIZE];
    uint16_t version_min, version_max;
    uint16_t region_max;   /* highest region index */
    uint16_t s2c_ring_max; /* highest ring index, server to client */
    uint16_t c2s_ring_max;
    uint8_t log2_ring_max;
} MEMIF_PACKED;

struct memif_init {
    uint16_t version;
    uint32_t id;
    uint8_t mode;
    char secret[MEMIF_SECRET_MAX];
    char name[MEMIF_NAME_SIZE];
} MEMIF_PACKED;

struct memif_add_region {
    uint16_t index;
    uint64_t size;
} MEMIF_PACKED;

#define MEMIF_ADD_RING_C2S 0x1u

struct memif_add_ring {
    uint16_t flags;
    uint16_t index;
    uint16_t region;
    uint32_t offset;
    uint8_t log2_size;
    uint16_t private_header;
} MEMIF_PACKED;

struct memif_connect {
    char name[MEMIF_NAME_SIZE];
} MEMIF_PACKED;

struct memif_disconnect {
    uint32_t code;
    char text[96];
} MEMIF_PACKED;

/* A control message as it stands in the socket. */
struct memif_msg {
    uint16_t type;
    union {
        struct memif_hello hello;
        struct memif_init init;
        struct memif_add_region add_region;
        struct memif_add_ring add_ring;
        struct memif_connect connect; /* CONNECT and CONNECTED */
        struct memif_disconnect disconnect;
        uint8_t body[MEMIF_MSG_SIZE - sizeof(uint16_t)];
    } MEMIF_PACKED;
} MEMIF_PACKED;

static_assert(sizeof(struct memif_msg) == MEMIF_MSG_SIZE, "a memif message has 128 octets");
static_assert(offsetof(struct memif_msg, hello.log2_ring_max) == 44, "hello layout");
static_assert(offsetof(struct memif_msg, init.name) == 33, "init layout");
static_assert(offsetof(struct memif_msg, add_region.size) == 4, "add_region layout");
static_assert(offsetof(struct memif_msg, add_ring.private_header) == 13, "add_ring layout");

#define MEMIF_COOKIE        0x3E31F20u
#define MEMIF_DESC_NEXT     0x1u /* the frame goes on in the next slot */
#define MEMIF_RING_MASK_INT 0x1u /* the reader polls: don't write its eventfd */
#define MEMIF_DESC_ALIGN    16u

struct memif_desc {
    uint16_t flags;
    uint16_t region;
    uint32_t length; /* full: octets in the buffer; empty: room in it */
    uint32_t offset; /* offset of the buffer, from the start of its region */
    uint32_t metadata;
};

struct memif_ring {
    uint32_t cookie;
    _Atomic uint16_t flags; /* written by the reader of the ring */
    _Atomic uint16_t head;
    uint8_t pad0[56];
    _Atomic uint16_t tail;
    uint8_t pad1[62];
    struct memif_desc desc[];
};

static_assert(sizeof(struct memif_desc) == 16, "descriptor layout");
static_assert(offsetof(struct memif_ring, head) == 6, "ring layout");
static_assert(offsetof(struct memif_ring, tail) == 64, "ring layout");
static_assert(offsetof(struct memif_ring, desc) == 128, "ring layout");

/* Octets that a ring of 2^log2 slots takes. */
static inline size_t memif_ring_octets(unsigned log2)
{
    return sizeof(struct memif_ring) + (sizeof(struct memif_desc) << log2);
}

/* A private copy of a shared descriptor; the peer may be changing the original. */
static inline struct memif_desc memif_desc_load(const struct memif_desc *shared)
{
    const uint64_t *w = (const uint64_t *)shared;
    uint64_t a = __atomic_load_n(&w[0], __ATOMIC_RELAXED);
    uint64_t b = __atomic_load_n(&w[1], __ATOMIC_RELAXED);
    return (struct memif_desc){
        .flags = (uint16_t)a,
        .region = (uint16_t)(a >> 16),
        .length = (uint32_t)(a >> 32),
        .offset = (uint32_t)b,
        .metadata = (uint32_t)(b >> 32),
    };
}

static inline void memif_desc_store(struct memif_desc *shared, struct memif_desc d)
{
    uint64_t *w = (uint64_t *)shared;
    __atomic_store_n(&w[0], d.flags | (uint64_t)d.region << 16 | (uint64_t)d.length << 32,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&w[1], d.offset | (uint64_t)d.metadata << 32, __ATOMIC_RELAXED);
}

#endif
