/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A capture of the frames received at the two ports of a bump, with comments on the rules' actions.
 * One thread.
 */
#ifndef URNIC_WIRE_CAPTURE_H
#define URNIC_WIRE_CAPTURE_H

#include "bump.h"
#include "pcapng.h"

struct wire_capture {
    struct pcapng *w; /* NULL = none */
    int interface[BUMP_DIRS];
    uint8_t before[IO_FRAME_MAX]; /* the frame, while the rules change it */
};

/* Create the file. Returns 0 or -errno. */
int wire_capture_open(struct wire_capture *c, const char *path, const struct bump *b);

/* Note a frame before the rules see it. */
void wire_capture_before(struct wire_capture *c, const uint8_t *frame, uint32_t len);
/* Write it, and what the rules did: `now` is of CLOCK_MONOTONIC, `bits` = the rules' FAULT_*. */
void wire_capture_after(struct wire_capture *c, enum fault_dir dir, uint32_t len, uint64_t now,
                        unsigned bits);

/* Close the file. Returns 0, or -errno of any error of the file. */
int wire_capture_close(struct wire_capture *c);

#endif
