/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures of lib/capture's writer in files and pipes.
 *
 * The writer never waits longer than one write(2). A pipe is written without blocking: while its
 * reader takes nothing, packets are dropped. A caller that has time can ask the writer to wait.
 *
 * Threads: one at a time per writer.
 */
#ifndef URNIC_PCAPNG_FILE_H
#define URNIC_PCAPNG_FILE_H

#include "pcapng.h"

enum pcapng_patience {
    PCAPNG_DROPS, /* packets, while a pipe is full */
    PCAPNG_WAITS, /* wait for the reader of a pipe; a signal ends the wait, with -EINTR */
};

/* Create (or truncate) a file, mode 0600, or take over a descriptor; pcapng_close closes it. `opt`
 * NULL = all defaults. Returns 0, or -errno with nothing left open. */
int pcapng_create(const char *path, enum pcapng_patience patience, const struct pcapng_options *opt,
                  struct pcapng **out);
int pcapng_from_fd(int fd, enum pcapng_patience patience, const struct pcapng_options *opt,
                   struct pcapng **out);

/* The epoch of a file with time stamps of a clock that shows `now`, ns, at this moment. */
uint64_t pcapng_epoch(uint64_t now);

#endif
