/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers of queue pairs of programs, for tests.
 */
#ifndef URNIC_TESTS_PAIR_RIG_H
#define URNIC_TESTS_PAIR_RIG_H

#include <string.h>

#include "pair.h"
#include "unit.h"

#define SWITCH_RIG_PAIRS 2048u

/* The packet's destination is the peer of this queue pair. The pair lives as long as the test. */
static inline void switch_rig_peer(struct switch_channel *c, uint32_t qpn, const struct wire_pkt *p)
{
    static struct switch_pair pairs[SWITCH_RIG_PAIRS];
    static unsigned used;
    struct switch_pair *pair = switch_pair_of(c, qpn);
    if (!pair) {
        ck_assert_uint_lt(used, SWITCH_RIG_PAIRS);
        pair = &pairs[used++];
        pair->qpn = qpn;
        ck_assert_int_eq(switch_pair_add(c, pair), 0);
    }
    pair->local = p->sip;
    pair->peer = p->dip;
    pair->peer_qpn = p->dqpn;
    memcpy(pair->mac, p->dmac, sizeof(pair->mac));
}

#endif
