/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program's end of a daemon's channel, and the page that describes the daemon's device.
 */
#ifndef NIC_PROGRAM_CHANNEL_H
#define NIC_PROGRAM_CHANNEL_H

#include "ipc_engine.h"
#include "uplink.h"

struct device;

/* All zero = no channel. */
struct program_channel {
    const struct ipc_facts_page *page; /* NULL = not open */
    struct uplink uplink;
    struct ipc_engine_channel daemon; /* its functions */
    bool no_sockets;                  /* needs no sockets of its own */
    bool given;                       /* its port is the device's */
};

/* Map the daemon's memory, have it attached, and open the program's end. Settings among the facts
 * go to *conf. 0, or -errno and a sentence in why (IPC_ENGINE_WHY octets); then nothing is open. */
int program_channel_open(struct program_channel *p, const struct ipc_engine_channel *ch,
                         struct config_device *conf, char *why);
/* Move the channel of its device to rings of this many slots each way. As ipc_engine.grow. */
int program_channel_grow(struct program_channel *p, struct device *d, uint32_t slots);
/* Get its device more numbers if it needs some. As ipc_engine.numbers. */
void program_channel_numbers(struct program_channel *p, struct device *d);
/* Close the rest; the device and its port are closed already. No effect if there is no channel. */
void program_channel_close(struct program_channel *p);

#endif
