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

/* The scratch of a device's data path. NULL = out of memory; free takes NULL. */
struct datapath *datapath_new(void);
void datapath_free(struct datapath *p);

/* Have frames lent that have come: by the port, DATAPATH_RX_BURST at most, and from the device
 * itself. device_take comes next, unless it returns 0. Returns how many. */
unsigned device_peek(struct device *d, uint64_t now);
/* Act on what device_peek has lent, and give it back. What applications have posted before these
 * frames were sent has to be taken before that (UC-05, UD-06). Returns whether something came of it
 * that an application or a peer may wait for. */
bool device_take(struct device *d, uint64_t now);
/* What is due. Returns how much there was to do. */
unsigned device_timers(struct device *d, uint64_t now);
/* What there is to send: a few bursts at most. Returns how many frames. */
unsigned device_tx(struct device *d, uint64_t now);
/* Send the one WRITE that is an answer to what has just been received: before, not together with,
 * its acknowledgement, which takes as long to make and to read. device_tx comes next. */
unsigned device_tx_first(struct device *d, uint64_t now);
/* Is there nothing to send that anybody waits for (acknowledgements can wait for an answer)? */
bool device_can_wait(const struct device *d);

/* Has a timer of its queue pairs waited for the worker, which was off the processor? Then an answer
 * may stand behind so many bursts that have come meanwhile. */
bool device_is_late(const struct device *d, uint64_t now);
#define DATAPATH_CATCH_UP 256u
/* It has been late, and what had come was taken: it isn't late again for a while, so that a flood
 * doesn't keep the rest waiting. */
void device_caught_up(struct device *d);
/* The next time at which device_timers or the port has something to do, ns; UINT64_MAX = none. */
uint64_t device_deadline(struct device *d, uint64_t now);

/* engine_hooks.copies, with the device as its argument. */
void device_rx_copies(void *device, const struct engine_copy *copies, unsigned n);

/* Frames received in one round: they fit into L2 from the check to the copy, and are few enough
 * that who has a hundred on their way sends on while the first of them are acknowledged. */
#define DATAPATH_RX_BURST 32u

#endif
