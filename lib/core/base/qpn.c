/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair numbers as a four-round Feistel network over two halves, of 12 bits
 * each if all bits are permuted. Rules: SEC-08, QP-14,
 * HDR-07.
 */
#include "qpn.h"

#include "wire.h"

static uint32_t round_fn(uint32_t half, uint32_t key)
{
    uint32_t x = (half ^ key) * 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    return x >> 17;
}

/* Both halves take turns; an odd number of bits leaves the upper half one bit shorter. */
static uint32_t permute(const struct qpn_map *m, uint32_t v, bool back)
{
    const unsigned low = (m->free_bits + 1u) / 2;
    const uint32_t low_mask = (1u << low) - 1, high_mask = (1u << (m->free_bits - low)) - 1;
    uint32_t h = v >> low, l = v & low_mask;
    for (unsigned i = 0; i < 4; i++) {
        unsigned turn = back ? 3 - i : i;
        if (turn % 2 == 0)
            h ^= round_fn(l, m->round_key[turn]) & high_mask;
        else
            l ^= round_fn(h, m->round_key[turn]) & low_mask;
    }
    return h << low | l;
}

static void map_init(struct qpn_map *m, const uint64_t key[2], unsigned clear, unsigned clear_bits,
                     uint32_t max_slots)
{
    *m = (struct qpn_map){
        .round_key = {(uint32_t)key[0], (uint32_t)(key[0] >> 32), (uint32_t)key[1],
                      (uint32_t)(key[1] >> 32)},
        .clear = (uint16_t)clear,
        .free_bits = (uint8_t)(QPN_BITS - clear_bits),
        .slot_bits = 1,
    };
    while (m->slot_bits < m->free_bits && (1u << m->slot_bits) < max_slots)
        m->slot_bits++;
}

void qpn_map_init(struct qpn_map *m, const uint64_t key[2], unsigned worker, unsigned worker_bits,
                  bool programs, uint32_t max_slots)
{
    map_init(m, key, worker, worker_bits > 0 || programs ? 1 + worker_bits : 0, max_slots);
}

void qpn_map_init_block(struct qpn_map *m, const uint64_t key[2], unsigned block,
                        uint32_t max_slots)
{
    map_init(m, key, QPN_BLOCKS | block, QPN_BITS - QPN_BLOCK_BITS, max_slots);
}

uint32_t qpn_lives(const struct qpn_map *m)
{
    return 1u << (m->free_bits - m->slot_bits);
}

uint32_t qpn_make(const struct qpn_map *m, uint32_t slot, uint32_t life)
{
    uint32_t dense = (life & (qpn_lives(m) - 1)) << m->slot_bits | slot;
    uint32_t qpn = permute(m, dense, false);
    if (m->free_bits < QPN_BITS)
        qpn |= (uint32_t)m->clear << m->free_bits;
    return qpn <= WIRE_QPN_GSI || qpn == WIRE_QPN_MULTICAST ? 0 : qpn;
}

uint32_t qpn_slot(const struct qpn_map *m, uint32_t qpn, unsigned *worker)
{
    uint32_t dense = permute(m, qpn & ((1u << m->free_bits) - 1), true);
    uint32_t clear = (qpn & WIRE_QPN_MASK) >> m->free_bits;
    if (m->free_bits == QPN_BLOCK_BITS)
        *worker = clear != m->clear;
    else
        *worker = m->free_bits < QPN_BITS ? clear : m->clear;
    return dense & ((1u << m->slot_bits) - 1);
}
