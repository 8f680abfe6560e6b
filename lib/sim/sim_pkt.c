/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames and their pool: slabs that only grow, a free list, no allocation per packet.
 */
#include "sim_pkt.h"

#include <stdlib.h>
#include <string.h>

#include "sim_rng.h"
#include "wire_bytes.h"

#define SLAB_PACKETS 512u

/* Offsets in an untagged IPv4 frame, the only kind that simulated hosts send. */
#define OFF_TYPE  12u
#define OFF_TOS   15u
#define OFF_CSUM  24u
#define OFF_SRC   26u
#define OFF_DST   30u
#define OFF_SPORT 34u
#define OFF_TAG   46u /* in the BTH: destination QPN .. PSN */

struct sim_slab {
    struct sim_slab *next;
    _Alignas(64) uint8_t mem[];
};

void sim_pool_init(struct sim_pool *pool, uint32_t data_cap)
{
    if (data_cap < SIM_DATA_MIN)
        data_cap = SIM_DATA_MIN;
    *pool =
        (struct sim_pool){.stride = (offsetof(struct sim_pkt, data) + data_cap + 63) & ~(size_t)63};
}

void sim_pool_free(struct sim_pool *pool)
{
    while (pool->slabs) {
        struct sim_slab *next = pool->slabs->next;
        free(pool->slabs);
        pool->slabs = next;
    }
    pool->free = NULL;
}

static bool grow(struct sim_pool *pool)
{
    struct sim_slab *s = aligned_alloc(64, sizeof(*s) + SLAB_PACKETS * pool->stride);
    if (!s)
        return false;
    s->next = pool->slabs;
    pool->slabs = s;
    for (unsigned i = SLAB_PACKETS; i-- > 0;) {
        struct sim_pkt *p = (struct sim_pkt *)(void *)(s->mem + i * pool->stride);
        p->next = pool->free;
        pool->free = p;
    }
    pool->made += SLAB_PACKETS;
    return true;
}

struct sim_pkt *sim_pkt_new(struct sim_pool *pool)
{
    if (!pool->free && !grow(pool))
        return NULL;
    struct sim_pkt *p = pool->free;
    pool->free = p->next;
    pool->out++;
    return p;
}

void sim_pkt_free(struct sim_pool *pool, struct sim_pkt *p)
{
    p->next = pool->free;
    pool->free = p;
    pool->out--;
}

static bool is_ipv4(const struct sim_pkt *p)
{
    return p->len >= OFF_SPORT + 2 && p->data[OFF_TYPE] == 0x08 && p->data[OFF_TYPE + 1] == 0x00;
}

bool sim_pkt_classify(struct sim_pkt *p)
{
    p->tag = 0;
    if (!is_ipv4(p))
        return false;
    memcpy(&p->tag, p->data + OFF_TAG, sizeof(p->tag));
    uint32_t src = wire_get32(p->data + OFF_SRC), dst = wire_get32(p->data + OFF_DST);
    uint64_t sport = (uint64_t)p->data[OFF_SPORT] << 8 | p->data[OFF_SPORT + 1];
    p->dst = (uint16_t)(dst - SIM_HOST_NET - 1);
    p->flow = (uint32_t)sim_mix(((uint64_t)src << 32 | dst) ^ sport << 16);
    p->prio = p->data[OFF_TOS] >> 5; /* class selector: the DSCP's upper three bits */
    return true;
}

unsigned sim_pkt_ecn(const struct sim_pkt *p)
{
    return is_ipv4(p) ? p->data[OFF_TOS] & SIM_ECN_MASK : 0;
}

/* Only the low octet of the first header word changes: RFC 1624's update of the checksum. */
void sim_pkt_mark(struct sim_pkt *p)
{
    uint8_t *csum = p->data + OFF_CSUM;
    uint32_t old = p->data[OFF_TOS];
    uint32_t new = old | SIM_ECN_CE;
    uint32_t sum = (uint32_t)csum[0] << 8 | csum[1];
    sum = (~sum & 0xFFFFu) + (~old & 0xFFFFu) + new;
    sum = (sum & 0xFFFFu) + (sum >> 16);
    sum = (sum & 0xFFFFu) + (sum >> 16);
    sum = ~sum & 0xFFFFu;
    csum[0] = (uint8_t)(sum >> 8);
    csum[1] = (uint8_t)sum;
    p->data[OFF_TOS] = (uint8_t) new;
}
