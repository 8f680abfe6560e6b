/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair numbers: a keyed permutation of 24 bits over (worker, life, slot), so that numbers
 * can't be guessed, looking one up takes constant time, the worker that owns it can be told, and a
 * number comes back only after all lives of its slot (SEC-08, QP-14). 0, 1 and 0xFFFFFF are never
 * made.
 */
#ifndef URNIC_QPN_H
#define URNIC_QPN_H

#include <stdint.h>

struct qpn_map {
    uint32_t round_key[4];
    uint8_t worker, worker_bits, slot_bits;
};

/* Numbers of this worker, of 1 << worker_bits, for at most max_slots queue pairs; `key`: secret. */
void qpn_map_init(struct qpn_map *m, const uint64_t key[2], unsigned worker, unsigned worker_bits,
                  uint32_t max_slots);
/* The number of a slot's life; 0 when this life must be skipped. Lives wrap: see qpn_lives. */
uint32_t qpn_make(const struct qpn_map *m, uint32_t slot, uint32_t life);
/* How many lives a slot has before they wrap. */
uint32_t qpn_lives(const struct qpn_map *m);
/* The slot that a number belongs to, and its worker. */
uint32_t qpn_slot(const struct qpn_map *m, uint32_t qpn, unsigned *worker);

#endif
