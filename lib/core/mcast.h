/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast groups: datagrams to them go to every attached queue pair (UD-10, UD-11).
 */
#ifndef URNIC_MCAST_H
#define URNIC_MCAST_H

#include "engine.h"

struct rx;

/* A datagram for 0xFFFFFF: to every attached queue pair (UD-10); checks P_Key and Q_Key itself. */
void mcast_rx(struct rx *rx);
/* The queue pair is being destroyed: leave all groups. */
void mcast_leave_all(struct engine *e, struct qp *qp);

#endif
