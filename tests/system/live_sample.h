/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traffic of all kinds between running daemons, whose contents are checked: a live sample of the
 * loss matrix, over any link.
 */
#ifndef URNIC_LIVE_SAMPLE_H
#define URNIC_LIVE_SAMPLE_H

#include <stdbool.h>

#include "daemon_rig.h"

#define LIVE_SIZE (1u << 20) /* octets of memory that each end has */

/* WRITE a part of memory, READ it back to another place, SEND it, and add to a word, all at once;
 * the contents must be right. `seed` makes them differ from the last ones. */
void live_exchange(struct end *from, struct end *to, uint32_t seed);
/* Connect n pairs of ends, and exchange between each, both ways, three times. */
void live_exchanges(struct end *a, struct end *b, unsigned n);
/* The worker of pair i, at this end or the other one: pairs take all combinations. -1: there is
 * only one. */
int live_worker(unsigned i, unsigned workers, bool other);

#endif
