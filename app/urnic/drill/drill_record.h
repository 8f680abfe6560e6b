/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic drill --record`: the packets of a run of scripts, as one pcapng file. One thread.
 */
#ifndef URNIC_DRILL_RECORD_H
#define URNIC_DRILL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drill.h"

struct drill_record_frame;
struct pcapng;

/* At first zero, except for `path`. */
struct drill_record {
    const char *path; /* the file; NULL = nothing is recorded */
    struct pcapng *out;
    int interface;
    struct drill_record_frame *frames; /* frames of the present run, in the script's order */
    size_t nframes, cap;
    uint64_t clock; /* ns: beginning of the run in the file, where runs follow each other */
    bool lost;      /* memory for a frame was lacking */
};

/* Open the file, unless it is open. Call it just before the first run: without a run the file keeps
 * its old contents. False: it can't be opened; a message is printed. */
bool drill_record_open(struct drill_record *r);
/* drill_options.frame, with the record as its argument. */
void drill_record_frame(void *record, uint64_t ns, uint32_t order, enum drill_direction dir,
                        const uint8_t *frame, uint32_t len, const char *comment);
/* A run that took `took` ns has ended: write its frames, in the order of their times. */
void drill_record_run_over(struct drill_record *r, uint64_t took);
/* Close the file, if it was opened. 0, or -errno with a message: the file is incomplete. */
int drill_record_close(struct drill_record *r);

#endif
