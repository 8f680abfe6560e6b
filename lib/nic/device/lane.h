/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The substitute for a port that a member of a team has. It has a queue of the port, if there is
 * one, and a ring to member 0. Member 0 sends for it while the queue has no link: a peer may have
 * fewer queues. Frames for it that other members receive come over the team's rings (steer.h).
 */
#ifndef NIC_LANE_H
#define NIC_LANE_H

#include "io.h"

struct device;

/* Open the lane of a member whose team knows the port (team_publish). `queue` is a queue of the
 * port, closed with the lane; NULL = the port has a single queue. 0 and *out; -ENOMEM: the queue is
 * closed. */
int lane_open(struct device *d, struct io_port *queue, struct io_port **out);
/* On member 0: send frames of the lanes while the port has room. Returns the number of frames. */
unsigned lane_forward(struct device *d, uint64_t now);

#endif
