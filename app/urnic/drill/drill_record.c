/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames are reported in the script's order, but written in the order of time. So the frames of a
 * run are kept until its end.
 */
#include "drill_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "pcapng_file.h"

#define EPOCH_NS 1000000000u /* virtual time 0 in the file: a second after 1970 began */
#define PAUSE_NS 1000000u    /* between two runs */

struct drill_record_frame {
    uint64_t ns;
    uint32_t order;
    enum drill_direction dir;
    uint32_t len;
    char *comment;
    uint8_t *octets;
};

bool drill_record_open(struct drill_record *r)
{
    const struct pcapng_options o = {.application = "urnic drill", .epoch = EPOCH_NS};
    if (!r->path || r->out)
        return true;
    int rc = pcapng_create(r->path, PCAPNG_WAITS, &o, &r->out);
    if (rc < 0) {
        cli_errno(rc, "--record %s", r->path);
        return false;
    }
    r->interface = pcapng_interface(r->out, "drill", "the device", 0);
    return true;
}

static bool room_for_frame(struct drill_record *r)
{
    if (r->nframes < r->cap)
        return true;
    size_t cap = r->cap ? 2 * r->cap : 1024;
    struct drill_record_frame *more = reallocarray(r->frames, cap, sizeof(*more));
    if (!more)
        return false;
    r->frames = more;
    r->cap = cap;
    return true;
}

void drill_record_frame(void *record, uint64_t ns, uint32_t order, enum drill_direction dir,
                        const uint8_t *frame, uint32_t len, const char *comment)
{
    struct drill_record *r = record;
    if (!r->out)
        return;
    struct drill_record_frame f = {.ns = ns,
                                   .order = order,
                                   .dir = dir,
                                   .len = len,
                                   .comment = comment ? strdup(comment) : NULL,
                                   .octets = malloc(len + 1)};
    if (!f.octets || (comment && !f.comment) || !room_for_frame(r)) {
        r->lost = true;
        free(f.octets);
        free(f.comment);
        return;
    }
    memcpy(f.octets, frame, len);
    r->frames[r->nframes++] = f;
}

static int by_time(const void *a, const void *b)
{
    const struct drill_record_frame *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void drill_record_run_over(struct drill_record *r, uint64_t took)
{
    if (!r->out)
        return;
    if (r->nframes)
        qsort(r->frames, r->nframes, sizeof(*r->frames), by_time);
    for (size_t i = 0; i < r->nframes; i++) {
        struct drill_record_frame *f = &r->frames[i];
        pcapng_packet(r->out, r->interface, r->clock + f->ns,
                      f->dir == DRILL_TO_DEVICE ? CAPTURE_IN : CAPTURE_OUT, f->octets, f->len,
                      f->comment);
        free(f->octets);
        free(f->comment);
    }
    r->nframes = 0;
    r->clock += took + PAUSE_NS;
}

int drill_record_close(struct drill_record *r)
{
    int rc = r->out ? pcapng_close(r->out) : 0;
    if (!rc && r->lost)
        rc = -ENOMEM;
    free(r->frames);
    if (rc < 0)
        cli_errno(rc, "--record %s", r->path);
    return rc;
}
