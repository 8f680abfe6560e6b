/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures on demand: what a device receives and sends, as pcapng, with our own drops as comments.
 * Each worker of the device copies frames into a ring and never waits; a thread of the capture
 * writes them out, in the order of their times.
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
    int fd;           /* taken over */
    int news;         /* an eventfd that is written to when it has begun, and when it is done */
    uint32_t snaplen; /* 0 = whole frames */
    uint32_t qpn;     /* 0 = everything; else the local queue pair */
    bool comments;    /* drops as comments */
    uint64_t limit;   /* octets of the file, 0 = none */
};

struct capture_result {
    uint64_t packets, octets, lost;
};

/* Prepare: rings and thread. From the control thread, as is what follows. 0 or -errno (then fd is
 * still the caller's). */
int capture_open(struct device *d, const struct capture_params *p, struct capture **out);
/* Have it write out what is left, when it is off its device. */
void capture_stop(struct capture *c);
/* The file has taken its beginning, or is a full pipe, which may yet; and frames are taken. */
bool capture_has_begun(const struct capture *c);
/* It has written out what was left, or couldn't begin, and has closed the file. */
bool capture_is_done(const struct capture *c);
/* Free one that is off its device, and stopped or done; waits until it is done. 0 or why the file
 * is not whole, -errno. */
int capture_close(struct capture *c, struct capture_result *out);
/* Put it on its device / take it off, one member of the team after the other; each on its worker.
 */
void capture_attach(struct capture *c, struct device *member);
void capture_detach(struct capture *c, struct device *member);

/* The device whose frames it takes: the first member of its team. */
struct device *capture_device(const struct capture *c);

/* The data path's part; `list` is the device's. */
void capture_rx(struct capture_tap *list, const struct engine_frame *frames, unsigned n,
                uint64_t now);
void capture_tx(struct capture_tap *list, const struct engine_slot *slots, unsigned n,
                uint64_t now);

#endif
