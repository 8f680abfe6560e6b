/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair numbers: a keyed permutation over (life, slot), so that numbers can't be guessed,
 * looking one up takes constant time, and a number comes back only after all lives of its slot
 * (SEC-08, QP-14). 0, 1 and 0xFFFFFF are never made.
 *
 * The layout of the 24 bits. An engine that is alone, as in the simulator, permutes all of them. On
 * a device of several engines the first bits say in clear which engine a number belongs to, so that
 * a frame finds it without a secret, and in the kernel:
 *
 *     bit                     of an engine of the daemon      of an engine of a program
 *     23                      0                               1
 *     then                    the worker, worker_bits bits    the block, 10 bits: 22 .. 13
 *     the rest                permuted                        permuted: 12 .. 0
 *
 * A program may have several blocks. The daemon draws them at random and gives each a key of its
 * own, so a peer that knows one number of a block must still guess 13 bits of the next.
 */
#ifndef URNIC_QPN_H
#define URNIC_QPN_H

#include <stdbool.h>
#include <stdint.h>

#define QPN_BITS       24u
#define QPN_BLOCKS     1024u /* blocks of programs */
#define QPN_BLOCK_BITS 13u   /* permuted bits in a block */

struct qpn_map {
    uint32_t round_key[4];
    uint16_t clear;    /* the bits in clear; the worker if there are none */
    uint8_t free_bits; /* number of permuted bits */
    uint8_t slot_bits;
};

/* The worker that a number names, on a device of 1 << worker_bits workers. If the number belongs to
 * no engine of the daemon, the result may be above the last worker. 0 if worker_bits is 0. */
static inline unsigned qpn_worker(uint32_t qpn, unsigned worker_bits)
{
    return worker_bits ? (qpn & 0xFFFFFFu) >> (QPN_BITS - 1 - worker_bits) : 0;
}

/* Numbers of this worker, of 1 << worker_bits, for at most max_slots queue pairs; `key`: secret.
 * worker_bits: 0 to 4. programs: programs have engines, too; without them, and with no worker bits,
 * all 24 bits are permuted. */
void qpn_map_init(struct qpn_map *m, const uint64_t key[2], unsigned worker, unsigned worker_bits,
                  bool programs, uint32_t max_slots);
/* Numbers of a block (0 to QPN_BLOCKS - 1), for at most max_slots queue pairs, 1 << QPN_BLOCK_BITS
 * of them if more; `key`: the block's, secret. */
void qpn_map_init_block(struct qpn_map *m, const uint64_t key[2], unsigned block,
                        uint32_t max_slots);

/* The block that a number belongs to; QPN_BLOCKS: none, it is one of the daemon's engines, or
 * 0xFFFFFF. */
static inline unsigned qpn_block(uint32_t qpn)
{
    qpn &= 0xFFFFFFu;
    return qpn >> 23 && qpn != 0xFFFFFFu ? qpn >> QPN_BLOCK_BITS & (QPN_BLOCKS - 1) : QPN_BLOCKS;
}

/* The number of a slot's life; 0 when this life must be skipped. Lives wrap: see qpn_lives. */
uint32_t qpn_make(const struct qpn_map *m, uint32_t slot, uint32_t life);
/* How many lives a slot has before they wrap. */
uint32_t qpn_lives(const struct qpn_map *m);
/* The slot that a number belongs to, and its worker (qpn_worker). In a block's map the number must
 * be of the block (qpn_block), and the worker is 0. */
uint32_t qpn_slot(const struct qpn_map *m, uint32_t qpn, unsigned *worker);

#endif
