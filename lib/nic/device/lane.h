/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a member of a team has in place of a port: a queue of the port, where there is one, and a
 * ring to member 0, which sends for it while the queue has no link, as a peer may have fewer queues
 * than we. What comes in for it elsewhere comes over the team's rings (steer.h).
 */
#ifndef NIC_LANE_H
#define NIC_LANE_H

#include "io.h"

struct device;

/* For a member whose team knows the port (team_publish). `queue`: of the port, closed with the
 * lane; NULL = the port has one. 0 and *out; -ENOMEM, and the queue is closed. */
int lane_open(struct device *d, struct io_port *queue, struct io_port **out);
/* On member 0: send what lanes have for it, as much as there is room for. Returns how many frames.
 */
unsigned lane_forward(struct device *d, uint64_t now);

#endif
