/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers of queue pairs of programs, for tests.
 */
#ifndef URNIC_TESTS_PAIR_RIG_H
#define URNIC_TESTS_PAIR_RIG_H

#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "unit.h"

/* The packet's destination is the peer of this queue pair. The pair lives as long as the test. */
static inline void switch_rig_peer(struct switch_channel *c, uint32_t qpn, const struct wire_pkt *p)
{
    struct switch_pair *pair = switch_pair_of(c, qpn);
    if (!pair) {
        pair = calloc(1, sizeof(*pair));
        ck_assert_ptr_nonnull(pair);
        pair->qpn = qpn;
        ck_assert_int_eq(switch_pair_add(c, pair), 0);
    }
    pair->local = p->sip;
    pair->peer = p->dip;
    pair->peer_qpn = p->dqpn;
    memcpy(pair->mac, p->dmac, sizeof(pair->mac));
}

#endif
