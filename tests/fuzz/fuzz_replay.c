/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any capture through `urnic replay`, in both roles: SEC-03. An input is a list of records as
 * fuzz_lint takes them: flags, time step, 16-bit length, frame. Flag bit 0: mend the iCRC, which a
 * fuzzer can't guess; bit 1: the capture kept only half of the frame; bit 2: another interface; bit
 * 3: the frame before, again; bit 4: a great leap in time. Every difference must be whole, and the
 * counts must add up.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "replay.h"
#include "wire_bytes.h"

#define FRAME_MAX  4400u
#define OCTETS_MAX (1u << 20)

static uint64_t differences, last_number;

static void on_difference(void *ctx, const struct replay_difference *d)
{
    (void)ctx;
    differences++;
    FUZZ_CHECK(d->rule && d->rule[0] && d->field && d->field[0]);
    FUZZ_CHECK(memchr(d->ours, 0, sizeof d->ours) && memchr(d->why, 0, sizeof d->why));
    FUZZ_CHECK(memchr(d->capture, 0, sizeof d->capture) && d->capture[0]);
    FUZZ_CHECK(d->number >= 1 && d->number <= last_number);
}

static void on_result(void *ctx, const struct replay_outcome *o)
{
    (void)ctx;
    FUZZ_CHECK(o->unanswered == !o->compared && o->same <= o->compared);
}

static void mend(uint8_t *f, size_t len)
{
    struct wire_pkt p;
    (void)wire_parse(f, len, WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, &p);
    if (p.icrc_off && p.icrc_off + WIRE_ICRC_LEN <= len)
        wire_put32le(f + p.icrc_off, wire_icrc(f, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t frame[FRAME_MAX];
    struct replay *r = replay_new(OCTETS_MAX);
    struct replay_totals t;
    uint64_t ns = 0;
    uint32_t len = 0;
    int rc = 0;
    FUZZ_CHECK(r);
    last_number = differences = 0;
    while (size >= 4 && !rc) {
        uint8_t flags = data[0];
        uint32_t n = (uint32_t)data[2] << 8 | data[3];
        ns += (uint64_t)data[1] * (flags & 16 ? 1ull << 57 : 50000);
        data += 4;
        size -= 4;
        if (!(flags & 8)) {
            len = n < size ? n : (uint32_t)size;
            len = len < FRAME_MAX ? len : FRAME_MAX;
            memcpy(frame, data, len);
            data += len;
            size -= len;
        }
        if (flags & 1)
            mend(frame, len);
        uint32_t have = flags & 2 ? len / 2 : len;
        uint8_t *exact = malloc(have ? have : 1); /* so that a sanitizer sees every octet beyond */
        FUZZ_CHECK(exact);
        memcpy(exact, frame, have);
        struct lint_frame f = {.number = ++last_number,
                               .ns = ns,
                               .data = exact,
                               .len = have,
                               .wire_len = len,
                               .interface = flags >> 2 & 1};
        rc = replay_add(r, &f);
        free(exact);
        FUZZ_CHECK(rc == 0 || rc == -EFBIG);
    }
    FUZZ_CHECK(replay_run(r, REPLAY_BOTH, on_difference, on_result, NULL) == 0);
    replay_totals(r, &t);
    FUZZ_CHECK(t.differ == differences && t.frames == last_number);
    replay_free(r);
    return 0;
}
