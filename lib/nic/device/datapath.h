/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of a device in and out, and its time: the phases of a round. On its worker.
 */
#ifndef NIC_DATAPATH_H
#define NIC_DATAPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct datapath;
struct device;

/* The data path's scratch memory. NULL = out of memory; free takes NULL. */
struct datapath *datapath_new(void);
void datapath_free(struct datapath *p);

/* Peek at received frames: of the port, DATAPATH_RX_BURST at most, and from the device to itself.
 * Unless it returns 0, device_take must follow. Returns the number of frames. */
unsigned device_peek(struct device *d, uint64_t now);
/* Process the frames of device_peek, and release them. Work that applications posted before these
 * frames were sent must be taken before this call (UC-05, UD-06). Returns whether an application or
 * a peer may be waiting for a result. */
bool device_take(struct device *d, uint64_t now);
/* Run due timers. Returns how many things were done. */
unsigned device_timers(struct device *d, uint64_t now);
/* Send pending frames, a few bursts at most. Returns the number of frames. */
unsigned device_tx(struct device *d, uint64_t now);
/* Send the one WRITE that answers the frame just received, ahead of its ACK, which takes as long to
 * make and to read. device_tx comes next. */
unsigned device_tx_first(struct device *d, uint64_t now);
/* Is no frame pending that a peer waits for? (ACKs can wait for an answer.) */
bool device_can_wait(const struct device *d);

/* Has a timer of its queue pairs fired late, because the worker was off the processor? Then an
 * answer may be among several received bursts. */
bool device_is_late(const struct device *d, uint64_t now);
#define DATAPATH_CATCH_UP 256u
/* The device was late and has taken the received frames. It isn't late again for a while, so that a
 * flood of frames doesn't delay all other work. */
void device_caught_up(struct device *d);
/* The next time at which device_timers or the port has work, ns; UINT64_MAX = none. */
uint64_t device_deadline(struct device *d, uint64_t now);

/* engine_hooks.copies, with the device as its argument. */
void device_rx_copies(void *device, const struct engine_copy *copies, unsigned n);

/* Frames received in one round. They fit into L2 from the check to the copy. They are few enough
 * that a sender with a hundred in flight keeps sending while the first ones are acknowledged. */
#define DATAPATH_RX_BURST 32u
/* More frames in one round are a stream, which needs throughput. */
#define DATAPATH_FEW 4u

#endif
