/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing pcapng captures: one interface per port, ns time stamps, direction, comments.
 *
 * Meant for a worker: blocks are assembled in the writer's own buffer, and only whole buffers go to
 * the file. What can't be written is counted, never waited for longer than one write(2): a pipe or
 * FIFO is written without blocking, and packets are dropped while nobody reads it; unless the
 * options say that the writer has time.
 *
 * Threads: one at a time per writer.
 */
#ifndef URNIC_PCAPNG_H
#define URNIC_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_INTERFACES  64u
#define PCAPNG_COMMENT_MAX 1024u

struct pcapng;

struct pcapng_options {
    const char *application; /* who writes; NULL = "urnic" */
    size_t buffer;           /* octets of buffer; 0 = 256 KiB */
    uint64_t limit;          /* largest file, octets; 0 = none. Beyond it packets are dropped */
    uint32_t snaplen;        /* octets kept of each packet; 0 = all */
    uint64_t epoch;          /* added to every time: ns from the Unix epoch to the clock's zero */
    bool waits; /* nothing is dropped because a pipe is full; a signal ends that, with -EINTR */
};

enum pcapng_dir { PCAPNG_NO_DIR, PCAPNG_IN, PCAPNG_OUT };

struct pcapng_stats {
    uint64_t packets, bytes; /* accepted; bytes of frames */
    uint64_t drops;          /* packets not recorded: limit, error, reader too slow */
    uint64_t errors;         /* failed writes */
    int last_error;          /* errno of the last one */
    uint64_t file_bytes;     /* written to the file */
};

/* Create (or truncate) a file, mode 0600, or take over a descriptor. Returns 0, or -errno with
 * nothing left open. */
int pcapng_create(const char *path, const struct pcapng_options *opt, struct pcapng **out);
int pcapng_from_fd(int fd, const struct pcapng_options *opt, struct pcapng **out);

/* Add an Ethernet interface. `speed` in bit/s, 0 = unknown; description may be NULL. Returns its
 * number, or -ENOSPC. */
int pcapng_interface(struct pcapng *w, const char *name, const char *description, uint64_t speed);

/* Record a frame. `ns` is in the caller's clock (see epoch). A comment (NULL = none; cut at
 * PCAPNG_COMMENT_MAX) shows up in Wireshark: for a frame that we dropped, the counter's name.
 * False: not recorded, and counted in pcapng_stats.drops, unless there is no such interface. */
bool pcapng_packet(struct pcapng *w, int interface, uint64_t ns, enum pcapng_dir dir,
                   const uint8_t *frame, uint32_t len, const char *comment);

/* Write out what is buffered. Returns 0 or -errno; -EAGAIN when a pipe is full. */
int pcapng_flush(struct pcapng *w);

/* What has been recorded so far, and what not. */
void pcapng_stats(const struct pcapng *w, struct pcapng_stats *out);

/* Add per-interface counts, flush, close, free. Returns 0 or the first error of its life, -errno:
 * 0 means that the file holds every packet that wasn't counted as dropped. */
int pcapng_close(struct pcapng *w);

#endif
