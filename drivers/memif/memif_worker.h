/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A memif port of several workers. Its connection has several pairs of rings, and each worker a
 * queue (io_ops.queue), which has some of the pairs for itself:
 *
 *     the peer is        pairs                                     worker k sends by
 *     an urnic, M        N * M, one between each two workers       the pair of the worker that a
 *     workers                                                      packet's queue pair number names
 *     another program    as many as it has                         pair k, if there is one
 *
 * With an urnic both ends use a pair alone, so that rings have one writer and one reader. The
 * client's worker c and the server's worker s have pair c * (server's workers) + s. Of another
 * program pair i is read by worker i modulo N.
 *
 * Queue 0 is the port that was opened first. It alone has the socket. When the link comes up it
 * makes a strand for each pair, a memif_port without a socket, with a mapping of its own, and the
 * strand's worker takes it over. So a worker's memory stays until that worker has finished with it,
 * also after the end of the connection.
 */
#ifndef URNIC_MEMIF_WORKER_H
#define URNIC_MEMIF_WORKER_H

#include "memif_port.h"

struct memif_worker;

/* io_ops.queue: k is the next queue to make. Not after the first call of service. */
int memif_worker_queue(struct io_port *io, unsigned k, unsigned n, struct io_port **out);

/* On queue 0: the link is up; give all workers their strands. 0, or -ENOMEM. */
int memif_worker_up(struct memif_port *p);
/* On queue 0: the connection has ended. */
void memif_worker_down(struct memif_port *p);
/* On queue 0: the fault of the peer that a worker has found, or MEMIF_OK. */
enum memif_reason memif_worker_fault(const struct memif_port *p);
/* Close a queue; queue 0 is the last. */
void memif_worker_close(struct memif_port *p);

#endif
