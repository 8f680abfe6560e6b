/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures on demand: frames that a device receives and sends, as pcapng, with our own drops as
 * comments. Each worker of the device copies frames into a ring and never waits; a thread of the
 * capture writes them out, in the order of their times.
 */
#ifndef NIC_CAPTURE_H
#define NIC_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct capture;
struct capture_tap;
struct device;

struct capture_params {
    int fd;           /* the capture closes it */
    int news;         /* an eventfd, written when the capture has started and when it is done */
    uint32_t snaplen; /* 0 = whole frames */
    uint32_t qpn;     /* 0 = everything; else the local queue pair */
    bool comments;    /* drops as comments */
    uint64_t limit;   /* octets of the file, 0 = none */
};

struct capture_result {
    uint64_t packets, octets, lost;
};

/* Prepare a capture: rings and thread. 0 or -errno (then fd is still the caller's). On the control
 * thread, as are the four functions below. */
int capture_open(struct device *d, const struct capture_params *p, struct capture **out);
/* Write out the remaining frames. The capture must be off its device. */
void capture_stop(struct capture *c);
/* Has it started? Then the file has its first octets (or is a full pipe, which may still take
 * them), and frames are recorded. */
bool capture_has_started(const struct capture *c);
/* Has it closed the file? Then it has written out the remaining frames, or could not start. */
bool capture_is_done(const struct capture *c);
/* Free a capture that is off its device, and stopped or done; waits until it is done. 0, or -errno:
 * why the file is incomplete. */
int capture_close(struct capture *c, struct capture_result *out);
/* Put it on its device, or take it off, one member of the team after the other; each on its
 * worker. */
void capture_attach(struct capture *c, struct device *member);
void capture_detach(struct capture *c, struct device *member);

/* Its device: the first member of the team. */
struct device *capture_device(const struct capture *c);

/* For the data path; `list` is the device's. */
void capture_rx(struct capture_tap *list, const struct engine_frame *frames, unsigned n,
                uint64_t now);
void capture_tx(struct capture_tap *list, const struct engine_slot *slots, unsigned n,
                uint64_t now);

#endif
