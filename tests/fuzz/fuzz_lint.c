/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any sequence of frames (fuzz_frames.h) through the tracker: SEC-03, VAL-07. Every finding must be
 * whole, every view within its bounds.
 */
#include "fuzz_frames.h"

#define FLOWS 256u

static struct fuzz_frames frames;

static void on_finding(void *ctx, const struct lint_finding *f)
{
    (void)ctx;
    FUZZ_CHECK(f->rule && f->rule->id && f->verdict < LINT_VERDICTS);
    FUZZ_CHECK(f->number >= 1 && f->number <= frames.number);
    FUZZ_CHECK(memchr(f->dump, 0, sizeof(f->dump)) && f->dump[0]);
    FUZZ_CHECK(memchr(f->expected, 0, sizeof(f->expected)) && f->expected[0]);
    FUZZ_CHECK(memchr(f->seen, 0, sizeof(f->seen)) && f->seen[0]);
    FUZZ_CHECK(!f->why[0] == (f->verdict == LINT_VIOLATION));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lint *l = lint_new(on_finding, NULL, FLOWS);
    struct lint_totals t;
    struct lint_flow_info info;
    struct lint_frame f;
    struct lint_view v;
    FUZZ_CHECK(l);
    frames = (struct fuzz_frames){.data = data, .size = size, .leap = FUZZ_STEP_NS};
    while (fuzz_next(&frames, &f)) {
        lint_packet(l, &f, &v);
        lint_totals(l, &t);
        FUZZ_CHECK(v.kind < LINT_KINDS && (v.flow == LINT_NO_FLOW || v.flow < t.flows));
        FUZZ_CHECK(t.flows <= FLOWS && t.frames == frames.number);
    }
    lint_end(l);
    lint_totals(l, &t);
    for (uint32_t i = 0; i < t.flows; i++) {
        FUZZ_CHECK(lint_flow_info(l, i, &info) && info.id == i);
        FUZZ_CHECK(info.peer == LINT_NO_FLOW || info.peer < t.flows);
    }
    lint_free(l);
    return 0;
}
