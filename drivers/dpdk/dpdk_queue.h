/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One receive and one send queue of a DPDK port: moves frames between DPDK's buffers (mbufs) and
 * the worker that has the queue. A port begins with queue 0. On a device of several workers others
 * follow, a port each for a worker of its own (io_ops.queue).
 *
 * Queue 0's worker alone attaches and detaches the device. It takes the lock of each other queue to
 * do so, and the worker of such a queue holds that lock in each call. Queue 0 needs none.
 */
#ifndef URNIC_DPDK_QUEUE_H
#define URNIC_DPDK_QUEUE_H

#include "dpdk_spec.h"
#include "io.h"

#include <pthread.h>
#include <rte_mbuf.h>

struct dpdk_port;

struct dpdk_queue {
    struct io_port io; /* first: the vtable's functions cast */
    struct dpdk_port *port;
    uint16_t index;
    bool thread_known; /* `thread` has been made known to DPDK */
    pthread_t thread;  /* the queue's last user */
    pthread_mutex_t lock;

    /* Lent frames, oldest first: lent[first % MAX] ... lent[last % MAX). */
    uint32_t lent_first, lent_last;
    uint32_t n_reserved, n_spare, n_queued;
    uint64_t last_now;
    struct io_stats st; /* without the device's own counters */

    struct rte_mbuf *lent[PORT_LENT_MAX];
    struct rte_mbuf *reserved[IO_BURST_MAX]; /* slots handed out by the last tx_reserve */
    struct rte_mbuf *spare[IO_BURST_MAX];    /* returned unsent: the next slots */
    struct rte_mbuf *queued[PORT_QUEUE_MAX]; /* committed, in order */

    /* news about the device, for the worker's next look */
    struct io_caps caps; /* the port's, except rx_fd */
    int rx_fd;           /* -1 = none */
    int packet_fd;       /* af_packet's socket, in rx_fd (an epoll) only while armed; -1 = none */
    size_t rx_piece;     /* octets of each read of that interrupt; 0 = not known yet */
    bool rx_interrupt;   /* rx_fd is an interrupt that has to be armed */
};

/* Initialize queue `index` of the port, which has no device yet. */
void dpdk_queue_init(struct dpdk_queue *q, struct dpdk_port *port, uint16_t index);

/* Lock and unlock a queue, around changes that its worker may not see half done. For queue 0's
 * worker; no effect on queue 0. */
void dpdk_queue_lock(struct dpdk_queue *q);
void dpdk_queue_unlock(struct dpdk_queue *q);

/* Give the device as many waiting frames as it takes now. Locked. */
void dpdk_queue_flush(struct dpdk_queue *q);
/* Drop every frame that waits to be sent. Locked. */
void dpdk_queue_drop(struct dpdk_queue *q);
/* Clear the error of af_packet's socket. An interface that goes down leaves it there: it would fail
 * the first send after the interface is up again, and makes poll() return at once until then. */
void dpdk_queue_clear_error(const struct dpdk_queue *q);
/* Does its worker hold no buffer of the device's? Locked. */
static inline bool dpdk_queue_is_idle(const struct dpdk_queue *q)
{
    return q->lent_first == q->lent_last && q->n_reserved == 0 && q->n_queued == 0;
}

/* Functions of io_ops for every queue; the port's own table has them, too. */
void dpdk_queue_rx_arm(struct io_port *io, bool on);
unsigned dpdk_queue_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                            uint64_t now);
void dpdk_queue_rx_release(struct io_port *io, unsigned n);
unsigned dpdk_queue_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                               uint64_t now);
void dpdk_queue_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                          uint64_t now);
uint64_t dpdk_queue_deadline(struct io_port *io);

/* io_ops.queue of the port: *out = NULL if the device has fewer queues. */
int dpdk_queue_give(struct io_port *io, unsigned k, unsigned n, struct io_port **out);

#endif
