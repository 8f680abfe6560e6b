/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair numbers as a four-round Feistel network over 12 + 12 bits. Rules: SEC-08, QP-14,
 * HDR-07.
 */
#include "qpn.h"

#include "wire.h"

#define HALF_BITS 12
#define HALF_MASK 0xFFFu
#define QPN_BITS  24

static uint32_t round_fn(uint32_t half, uint32_t key)
{
    uint32_t x = (half ^ key) * 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    return (x >> 17) & HALF_MASK;
}

static uint32_t permute(const struct qpn_map *m, uint32_t v)
{
    uint32_t l = v >> HALF_BITS, r = v & HALF_MASK;
    for (int i = 0; i < 4; i++) {
        uint32_t t = l ^ round_fn(r, m->round_key[i]);
        l = r;
        r = t;
    }
    return l << HALF_BITS | r;
}

static uint32_t unpermute(const struct qpn_map *m, uint32_t v)
{
    uint32_t l = v >> HALF_BITS, r = v & HALF_MASK;
    for (int i = 3; i >= 0; i--) {
        uint32_t t = r ^ round_fn(l, m->round_key[i]);
        r = l;
        l = t;
    }
    return l << HALF_BITS | r;
}

void qpn_map_init(struct qpn_map *m, const uint64_t key[2], unsigned worker, unsigned worker_bits,
                  uint32_t max_slots)
{
    m->round_key[0] = (uint32_t)key[0];
    m->round_key[1] = (uint32_t)(key[0] >> 32);
    m->round_key[2] = (uint32_t)key[1];
    m->round_key[3] = (uint32_t)(key[1] >> 32);
    m->worker = (uint8_t)worker;
    m->worker_bits = (uint8_t)worker_bits;
    m->slot_bits = 1;
    while (m->slot_bits < QPN_BITS - worker_bits && (1u << m->slot_bits) < max_slots)
        m->slot_bits++;
}

uint32_t qpn_lives(const struct qpn_map *m)
{
    return 1u << (QPN_BITS - m->worker_bits - m->slot_bits);
}

uint32_t qpn_make(const struct qpn_map *m, uint32_t slot, uint32_t life)
{
    uint32_t dense = (life & (qpn_lives(m) - 1)) << m->slot_bits | slot;
    if (m->worker_bits)
        dense |= (uint32_t)m->worker << (QPN_BITS - m->worker_bits);
    uint32_t qpn = permute(m, dense);
    return qpn <= WIRE_QPN_GSI || qpn == WIRE_QPN_MULTICAST ? 0 : qpn;
}

uint32_t qpn_slot(const struct qpn_map *m, uint32_t qpn, unsigned *worker)
{
    uint32_t dense = unpermute(m, qpn & WIRE_QPN_MASK);
    *worker = m->worker_bits ? dense >> (QPN_BITS - m->worker_bits) : m->worker;
    return dense & ((1u << m->slot_bits) - 1);
}
