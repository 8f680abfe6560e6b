/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the first to the last packet of a capture file, for `urnic lint` and `urnic replay`.
 */
#ifndef URNIC_LINT_READ_H
#define URNIC_LINT_READ_H

#include "lint_frame.h"

/* Open a file; "-" is standard input. Returns 0, or -errno with a sentence (without file name) in
 * `why`. -EINVAL: not a capture. */
int lint_read_open(const char *path, struct capread **out, char *why, size_t why_size);

/* Is it worth a progress bar: are there `least` octets or more, and a terminal to draw on? */
bool lint_read_shows(const struct capread *cap, uint64_t least);

/* Give every packet, in the file's order, to `take`; with a progress bar if `show`. Returns 0 at
 * the end, -EINTR after a signal (cli_stop), -errno when reading failed. A result of `take` below 0
 * ends the reading and is returned. */
int lint_read(struct capread *cap, bool show, int (*take)(void *arg, const struct lint_frame *f),
              void *arg);

#endif
