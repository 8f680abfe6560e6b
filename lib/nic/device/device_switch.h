/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch of a device (switch.h): engines of programs on the same port as the daemon's engine.
 * It is made when the first program needs it.
 *
 * On the device's worker.
 */
#ifndef NIC_DEVICE_SWITCH_H
#define NIC_DEVICE_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct device;
struct engine_frame;
struct engine_slot;
struct wire_addr;

/* Make the switch (d->sw) and the page of facts (d->facts), so that programs' engines can be
 * attached. On a device of several workers this is the member's own, for the programs whose
 * contexts it has. 0, also if they exist; -ENOMEM: out of memory, descriptors or watches. */
int device_switch_start(struct device *d);
/* Close all channels; harmless without any. */
void device_switch_stop(struct device *d);
/* The device's addresses or its MAC have changed. */
void device_switch_follow(struct device *d);

/* The i-th group that the daemon's engine or programs are members of, each once; false after the
 * last. Also of a device without a switch. */
bool device_group_get(const struct device *d, unsigned i, struct wire_addr *group);

/* Begin a round. Returns the number of channels that have woken up. */
unsigned device_switch_round(struct device *d, uint64_t now);
/* Give received frames, from the port (`port`), or from the device itself or another member, to the
 * programs that they are for, and move the others up. Returns the number of frames left. */
unsigned device_switch_rx(struct device *d, struct io_frame *frames, unsigned n, bool port);
/* After device_take, after a peek without frames, and before a yield: wake the sleeping programs
 * that have got frames, during a stream only now and then (switch_wake). */
void device_switch_wake(struct device *d, bool stream);
/* Give captures the frames that a port or other members have lent, in their order: `came` are all n
 * frames, `frames` the part of them that the daemon's engine has seen. */
void device_switch_capture(struct device *d, const struct io_frame *came, unsigned n,
                           const struct engine_frame *frames, unsigned seen, uint64_t now);
/* Fill n > 0 slots with frames of programs, and put their lengths into `es`, too. Returns the
 * number filled. */
unsigned device_switch_tx(struct device *d, struct io_slot *slots, struct engine_slot *es,
                          unsigned n, uint64_t now);
/* Before the worker blocks: from now on programs wake it. Returns whether one has frames already,
 * so that the worker must not block. */
bool device_switch_sleep(struct device *d);
/* Without a link: drop frames of programs, as those of the daemon's engine are (EVT-05). `room` has
 * IO_FRAME_MAX octets. Returns the number dropped. */
unsigned device_switch_lose(struct device *d, uint8_t *room, uint64_t now);

#endif
