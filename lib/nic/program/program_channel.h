/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program's end of a channel of a daemon, and the page that says what the daemon's device is.
 */
#ifndef NIC_PROGRAM_CHANNEL_H
#define NIC_PROGRAM_CHANNEL_H

#include "uplink.h"

struct ipc_engine_channel;

/* All zero: there is none. */
struct program_channel {
    const struct ipc_facts_page *page; /* NULL = none is open */
    struct uplink uplink;
    bool no_sockets; /* it needs none of its own */
    bool given;      /* its port is the device's */
};

/* Map what the daemon has made, have it attached, and open the program's end. What of the facts are
 * settings goes to *conf. 0, or -errno and a sentence in why (IPC_ENGINE_WHY octets); then nothing
 * is open. */
int program_channel_open(struct program_channel *p, const struct ipc_engine_channel *ch,
                         struct config_device *conf, char *why);
/* The device is closed, and its port with it. Harmless on one that is none. */
void program_channel_close(struct program_channel *p);

#endif
