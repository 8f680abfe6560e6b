/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peers' queue pairs that live connections of a device name, whichever of its workers has the
 * connection: a request that names one of another worker's is refused, and that worker asks the
 * peer whether it has lost its connection (CM-21). Any thread.
 */
#ifndef NIC_PEERS_H
#define NIC_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "cm.h"

struct peers;

/* For a device of several workers. The ids of its connections begin with `bits` bits that name the
 * worker. `wake` wakes a worker that has connections to doubt; NULL = no worker sleeps. Returns
 * NULL if memory or random numbers lack. free takes NULL. */
struct peers *peers_new(unsigned bits, void (*wake)(void *arg, unsigned member), void *arg);
void peers_free(struct peers *t);

/* cm_params.hold and .drop; `peers` is a struct peers. */
bool peers_hold(void *peers, struct cm_peer *p, uint32_t except);
void peers_drop(void *peers, struct cm_peer *p);

/* Has this worker connections to doubt? */
bool peers_doubts(const struct peers *t, unsigned member);
/* The peer of the next entry; false = none. Several entries of one peer are reported once, and some
 * of many peers are lost: a repeated request causes them again. */
bool peers_next(struct peers *t, unsigned member, struct cm_peer *out);

#endif
