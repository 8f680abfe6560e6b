/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame on its way through the simulated network, and the pool that frames come from.
 */
#ifndef URNIC_SIM_PKT_H
#define URNIC_SIM_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets on the wire in addition to the frame's: preamble, FCS and the gap between frames. */
#define SIM_WIRE_EXTRA 24u
#define SIM_FRAME_MIN  60u /* without FCS */
#define SIM_FRAME_HEAD 54u /* Ethernet .. BTH: headers of every frame of a host */
#define SIM_DATA_MIN   85u /* room for headers when payload is skipped: two cache lines a packet */

#define SIM_ECN_MASK 3u
#define SIM_ECN_CE   3u

enum sim_pkt_flag {
    SIM_PKT_PAUSE = 1,   /* a PFC frame: concerns only the next port */
    SIM_PKT_CORRUPT = 2, /* damaged on the way, without stored payload */
    SIM_PKT_FAULTED = 4, /* made by a fault: further ones leave it alone */
};

/* Each hop reads only the first cache line, which includes the frame's TOS octet. */
struct sim_pkt {
    struct sim_pkt *next;
    uint64_t next_at; /* ns: arrival of the next frame on its wire; saves a look at that frame */
    uint64_t tag;     /* QPN and PSN as on the wire: identity of the packet in the digest */
    uint32_t len;     /* octets of the frame, without FCS */
    uint32_t flow;    /* hash of addresses and source port, for ECMP */
    uint16_t dst;     /* host */
    uint16_t in;      /* port by which it entered the switch that holds it */
    uint8_t hdr;      /* octets before the payload */
    uint8_t prio;     /* 0..7 */
    uint8_t flags;    /* enum sim_pkt_flag */
    uint8_t data[];   /* the frame: whole, or headers only when payload is skipped */
};

_Static_assert(offsetof(struct sim_pkt, data) + 16 <= 64, "the TOS octet is in the first line");

static inline uint32_t sim_pkt_wire(const struct sim_pkt *p)
{
    return (p->len < SIM_FRAME_MIN ? SIM_FRAME_MIN : p->len) + SIM_WIRE_EXTRA;
}

struct sim_pool {
    struct sim_pkt *free;
    struct sim_slab *slabs;
    size_t stride;
    uint64_t made, out; /* packets in slabs; of these in use */
};

/* `data_cap`: octets of each frame that are kept. */
void sim_pool_init(struct sim_pool *pool, uint32_t data_cap);
void sim_pool_free(struct sim_pool *pool);
/* NULL = out of memory. The fields are not initialised. */
struct sim_pkt *sim_pkt_new(struct sim_pool *pool);
/* Back into the pool. */
void sim_pkt_free(struct sim_pool *pool, struct sim_pkt *p);

struct sim_fifo {
    struct sim_pkt *head, *tail;
};

static inline void sim_fifo_push(struct sim_fifo *f, struct sim_pkt *p)
{
    p->next = NULL;
    if (f->head)
        f->tail->next = p;
    else
        f->head = p;
    f->tail = p;
}

static inline struct sim_pkt *sim_fifo_pop(struct sim_fifo *f)
{
    struct sim_pkt *p = f->head;
    f->head = p->next;
    return p;
}

/* Fill dst, flow and prio from an IPv4 RoCE frame's headers. False: not such a frame. */
bool sim_pkt_classify(struct sim_pkt *p);
/* The ECN field of an IPv4 frame (0 for others), and setting CE with the checksum kept right. */
unsigned sim_pkt_ecn(const struct sim_pkt *p);
void sim_pkt_mark(struct sim_pkt *p);

/* Host n has the address 10.x.y.z, whose lower 24 bits are n + 1. */
#define SIM_HOST_NET 0x0A000000u

#endif
