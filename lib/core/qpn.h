/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair numbers: a keyed permutation over (life, slot), so that numbers can't be guessed,
 * looking one up takes constant time, and a number comes back only after all lives of its slot
 * (SEC-08, QP-14). 0, 1 and 0xFFFFFF are never made.
 *
 * The layout of the 24 bits. An engine that is the only one of its device permutes all of them. On
 * a device of several engines the first bits say in clear which engine a number belongs to, so that
 * a frame finds it without a secret, and in the kernel:
 *
 *     23                      0: an engine of the daemon; 1: kept for engines of programs
 *     22 .. 23 - worker_bits  the worker, of those of the daemon
 *     the rest                permuted
 */
#ifndef URNIC_QPN_H
#define URNIC_QPN_H

#include <stdint.h>

#define QPN_BITS 24u

struct qpn_map {
    uint32_t round_key[4];
    uint8_t worker, worker_bits;
    uint8_t free_bits; /* that are permuted */
    uint8_t slot_bits;
};

/* The worker that a number names, on a device of 1 << worker_bits of them; it is one of them, or
 * above if the number belongs to no engine of the daemon. With 0 bits 0. */
static inline unsigned qpn_worker(uint32_t qpn, unsigned worker_bits)
{
    return worker_bits ? (qpn & 0xFFFFFFu) >> (QPN_BITS - 1 - worker_bits) : 0;
}

/* Numbers of this worker, of 1 << worker_bits, for at most max_slots queue pairs; `key`: secret.
 * worker_bits: 0 to 4. */
void qpn_map_init(struct qpn_map *m, const uint64_t key[2], unsigned worker, unsigned worker_bits,
                  uint32_t max_slots);
/* The number of a slot's life; 0 when this life must be skipped. Lives wrap: see qpn_lives. */
uint32_t qpn_make(const struct qpn_map *m, uint32_t slot, uint32_t life);
/* How many lives a slot has before they wrap. */
uint32_t qpn_lives(const struct qpn_map *m);
/* The slot that a number belongs to, and its worker (qpn_worker). */
uint32_t qpn_slot(const struct qpn_map *m, uint32_t qpn, unsigned *worker);

#endif
