/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing pcapng captures: one interface per port, ns time stamps, direction, comments.
 *
 * Blocks are assembled in the writer's own buffer, and go from there to a function of the caller's
 * when the buffer is full, or by pcapng_flush. A packet that finds no room is counted as dropped.
 * pcapng_file.h of drivers/pcap has the functions for files and pipes.
 *
 * Threads: one at a time per writer.
 */
#ifndef URNIC_PCAPNG_H
#define URNIC_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture_format.h"

#define PCAPNG_INTERFACES  64u
#define PCAPNG_COMMENT_MAX 1024u

struct pcapng;

struct pcapng_options {
    const char *application; /* the writing program's name; NULL = "urnic" */
    size_t buffer;           /* octets of buffer; 0 = 256 KiB */
    uint64_t limit;          /* largest file, octets; 0 = none. Above it packets are dropped */
    uint32_t snaplen;        /* octets kept of each packet; 0 = all */
    uint64_t epoch;          /* added to every time: ns from the Unix epoch to the clock's zero */
};

/* The destination of the file's octets. */
struct pcapng_sink {
    /* Take up to `len` octets, and at least one. Returns how many; -EAGAIN: none for now; else
     * -errno, after which the file is incomplete and nothing more is written. */
    ssize_t (*write)(void *arg, const void *data, size_t len);
    int (*close)(void *arg); /* the writer needs it no more. 0 or -errno; NULL = nothing to do */
    void *arg;
};

struct pcapng_stats {
    uint64_t packets, bytes; /* accepted; bytes of frames */
    uint64_t drops;          /* packets not recorded: limit, error, reader too slow */
    uint64_t errors;         /* failed writes */
    int last_error;          /* errno of the last one */
    uint64_t file_bytes;     /* written to the file */
};

/* Begin a file; `opt` NULL = all defaults. Returns 0, or -ENOMEM with the sink closed. */
int pcapng_open(const struct pcapng_sink *sink, const struct pcapng_options *opt,
                struct pcapng **out);

/* Add an Ethernet interface. `speed` in bit/s, 0 = unknown; description may be NULL. Returns its
 * number, or -ENOSPC. */
int pcapng_interface(struct pcapng *w, const char *name, const char *description, uint64_t speed);

/* Record a frame. `ns` is in the caller's clock (see epoch). A comment (NULL = none; cut at
 * PCAPNG_COMMENT_MAX) is shown by Wireshark: for a frame that we dropped, the counter's name.
 * False: not recorded, and counted in pcapng_stats.drops, unless there is no such interface. */
bool pcapng_packet(struct pcapng *w, int interface, uint64_t ns, enum capture_dir dir,
                   const uint8_t *frame, uint32_t len, const char *comment);

/* Write out the buffered octets. Returns 0 or -errno; -EAGAIN: the sink takes no more for now. */
int pcapng_flush(struct pcapng *w);

/* The packets recorded so far, and those lost. */
void pcapng_stats(const struct pcapng *w, struct pcapng_stats *out);

/* Add per-interface counts, flush, close the sink, free. Returns 0 or the first error of its life,
 * -errno. 0: the file holds every packet that wasn't counted as dropped. */
int pcapng_close(struct pcapng *w);

#endif
