/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any capture (fuzz_frames.h) through `urnic replay`, in both roles: SEC-03. Every difference must
 * be whole, and the counts must add up.
 */
#include <errno.h>

#include "fuzz_frames.h"
#include "replay.h"

#define OCTETS_MAX (1u << 24)

static struct fuzz_frames frames;
static uint64_t differences;

static void on_difference(void *ctx, const struct replay_difference *d)
{
    (void)ctx;
    differences++;
    FUZZ_CHECK(d->rule && d->rule[0] && d->field && d->field[0]);
    FUZZ_CHECK(memchr(d->ours, 0, sizeof(d->ours)) && memchr(d->why, 0, sizeof(d->why)));
    FUZZ_CHECK(memchr(d->capture, 0, sizeof(d->capture)) && d->capture[0]);
    FUZZ_CHECK(d->number >= 1 && d->number <= frames.number);
}

static void on_result(void *ctx, const struct replay_outcome *o)
{
    (void)ctx;
    FUZZ_CHECK(o->unanswered == !o->compared && o->same <= o->compared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct replay *r = replay_new(OCTETS_MAX);
    struct replay_totals t;
    struct lint_frame f;
    int rc = 0;
    FUZZ_CHECK(r);
    differences = 0;
    frames = (struct fuzz_frames){.data = data, .size = size, .leap = 1ull << 57};
    while (rc == 0 && fuzz_next(&frames, &f))
        rc = replay_add(r, &f);
    FUZZ_CHECK(rc == 0 || rc == -EFBIG);
    free(frames.exact);
    int ran = replay_run(r, REPLAY_BOTH, on_difference, on_result, NULL);
    FUZZ_CHECK(ran == rc || (ran == -EFBIG && !rc));
    replay_totals(r, &t);
    FUZZ_CHECK(t.differ == differences && t.frames == frames.number);
    replay_free(r);
    return 0;
}
