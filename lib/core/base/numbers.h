/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers of an engine's queue pairs: slots of its table, and the permutations (qpn.h) that
 * make numbers of them.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdint.h>

struct engine;
struct qp;

/* Give the queue pair a slot and a number. A slot that was never used comes first, then the one
 * that has been free for longest. 0, -ENOMEM, -ENOSPC. */
int number_take(struct engine *e, struct qp *qp);
/* Take them back. */
void number_give(struct engine *e, struct qp *qp);

/* The number of this life of a slot; 0 = none. */
uint32_t number_make(const struct engine *e, uint32_t slot, uint32_t life);
/* The slot of a number, and its worker (qpn_slot). Of an engine with blocks: worker 0; another one
 * if the number is of none of its blocks. */
uint32_t number_slot(const struct engine *e, uint32_t qpn, unsigned *worker);

/* Use this block, too; `key`: its secret. Arrays for its slots are there, or not made yet. */
void number_block(struct engine *e, unsigned block, const uint64_t key[2]);

#endif
