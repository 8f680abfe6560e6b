/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program's end of a daemon's channel, and the page that describes the daemon's device.
 */
#ifndef NIC_PROGRAM_CHANNEL_H
#define NIC_PROGRAM_CHANNEL_H

#include "uplink.h"

struct ipc_engine_channel;

/* All zero = no channel. */
struct program_channel {
    const struct ipc_facts_page *page; /* NULL = not open */
    struct uplink uplink;
    bool no_sockets; /* needs no sockets of its own */
    bool given;      /* its port is the device's */
};

/* Map the daemon's memory, have it attached, and open the program's end. Settings among the facts
 * go to *conf. 0, or -errno and a sentence in why (IPC_ENGINE_WHY octets); then nothing is open. */
int program_channel_open(struct program_channel *p, const struct ipc_engine_channel *ch,
                         struct config_device *conf, char *why);
/* Close the rest; the device and its port are closed already. No effect if there is no channel. */
void program_channel_close(struct program_channel *p);

#endif
