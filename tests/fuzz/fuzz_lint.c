/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any sequence of frames through the tracker: SEC-03, VAL-07. An input is a list of records: flags,
 * time step, 16-bit length, frame. Flag bit 0: mend the iCRC, which a fuzzer can't guess; bit 1:
 * the capture kept only half of the frame; bit 2: another interface; bit 3: use the frame before.
 * Every finding must be whole, every view within its bounds.
 */
#include <string.h>

#include "fuzz.h"
#include "lint.h"
#include "wire_bytes.h"

#define FRAME_MAX 4400u
#define FLOWS     256u

static uint64_t last_number;

static void on_finding(void *ctx, const struct lint_finding *f)
{
    (void)ctx;
    FUZZ_CHECK(f->rule && f->rule->id && f->verdict < LINT_VERDICTS);
    FUZZ_CHECK(f->number >= 1 && f->number <= last_number);
    FUZZ_CHECK(memchr(f->dump, 0, sizeof f->dump) && f->dump[0]);
    FUZZ_CHECK(memchr(f->expected, 0, sizeof f->expected) && f->expected[0]);
    FUZZ_CHECK(memchr(f->seen, 0, sizeof f->seen) && f->seen[0]);
    FUZZ_CHECK(!f->why[0] == (f->verdict == LINT_VIOLATION));
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
    struct lint *l = lint_new(on_finding, NULL, FLOWS);
    struct lint_totals t;
    struct lint_flow_info info;
    uint64_t ns = 0;
    uint32_t len = 0;
    FUZZ_CHECK(l);
    last_number = 0;
    while (size >= 4) {
        uint8_t flags = data[0];
        uint32_t n = (uint32_t)data[2] << 8 | data[3];
        ns += (uint64_t)data[1] * 50000;
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
        struct lint_view v;
        FUZZ_CHECK(exact);
        memcpy(exact, frame, have);
        struct lint_frame f = {.number = ++last_number,
                               .ns = ns,
                               .data = exact,
                               .len = have,
                               .wire_len = len,
                               .interface = flags >> 2 & 1};
        lint_packet(l, &f, &v);
        free(exact);
        lint_totals(l, &t);
        FUZZ_CHECK(v.kind < LINT_KINDS && (v.flow == LINT_NO_FLOW || v.flow < t.flows));
        FUZZ_CHECK(t.flows <= FLOWS && t.frames == last_number);
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
