/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch of a device (switch.h): engines of programs beside the daemon's, on the same port. It
 * is made when the first program needs it. On the device's worker.
 */
#ifndef NIC_DEVICE_SWITCH_H
#define NIC_DEVICE_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

struct device;
struct engine_slot;

/* From now on programs' engines can be attached (d->sw), and there is a page for them (d->facts).
 * 0, also when they could before; -ENOTSUP: the device has several workers; -ENOMEM: out of memory,
 * descriptors or watches. */
int device_switch_start(struct device *d);
/* Close all channels. Nothing to do is fine. */
void device_switch_stop(struct device *d);
/* The device's addresses or its MAC have changed. */
void device_switch_follow(struct device *d);

/* A round begins. Returns how many channels have woken up. */
unsigned device_switch_round(struct device *d, uint64_t now);
/* Frames that have come, from the device itself (`own`) or from the port: those of programs are
 * given to them, and the rest moves up. Returns how many are left. */
unsigned device_switch_rx(struct device *d, struct io_frame *frames, unsigned n, bool own);
/* Fill slots with frames of programs, and say their lengths in `es`, too. n isn't 0. Returns how
 * many. */
unsigned device_switch_tx(struct device *d, struct io_slot *slots, struct engine_slot *es,
                          unsigned n, uint64_t now);
/* Before the worker blocks: programs wake it up from now on. Returns whether one has something, so
 * that it mustn't. */
bool device_switch_sleep(struct device *d);
/* Without a link: frames of programs are lost, as those of the daemon's engine are (EVT-05). `room`
 * has IO_FRAME_MAX octets. Returns how many there were. */
unsigned device_switch_lose(struct device *d, uint8_t *room, uint64_t now);

#endif
