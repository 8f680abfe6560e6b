/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rule text, a NUL, then frames, each after five octets: flags (1 = from b to a, 2 = only half of
 * it is there, 4 = keep its iCRC, otherwise make a right one), length, time since the one before. A
 * text is refused with a place in it, or its rules have only the effects in fault.h on the frames,
 * touch no octet outside of them, and repeat these effects after a reset.
 */
#include <string.h>

#include "fault.h"
#include "fault_hold.h"
#include "fuzz.h"
#include "wire.h"
#include "wire_bytes.h"

#define HEAD   5u
#define FRAMES 64u

/* A fuzzer can't guess iCRCs. */
static void mend(uint8_t *frame, uint32_t len)
{
    struct wire_pkt p;
    if (wire_parse(frame, len, WIRE_P_IP_CSUM_OK | WIRE_P_QINQ, &p) == WIRE_BAD_ICRC)
        wire_put32le(frame + p.icrc_off,
                     wire_icrc(frame, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off));
}

static void check_injected(const struct fault_out *out)
{
    struct wire_pkt p;
    FUZZ_CHECK(out->ninject && out->ninject <= FAULT_INJECTS);
    for (uint32_t i = 0; i < out->ninject; i++) {
        const struct fault_inject *in = &out->inject[i];
        FUZZ_CHECK(in->len <= FAULT_INJECT_LEN);
        if (in->data[12] == 0x88 && in->data[13] == 0x08)
            continue;
        enum wire_verdict v = wire_parse(in->data, in->len, WIRE_P_LOOPBACK, &p);
        /* A frame to a group can't be answered well; that is the rule's mistake. */
        FUZZ_CHECK(v == WIRE_OK || v == WIRE_BAD_ADDR || v == WIRE_BAD_QPN);
    }
}

/* Process all frames once; returns a digest of the outcomes. */
static uint64_t play(struct fault *f, const uint8_t *data, size_t size)
{
    struct fault_hold *h = fault_hold_new(16);
    struct fault_out out;
    uint64_t digest = 0, now = 0;
    unsigned held = 0, taken = 0;
    FUZZ_CHECK(h);
    for (unsigned n = 0; n < FRAMES && size > HEAD; n++) {
        uint32_t len = (uint32_t)data[1] << 8 | data[2];
        uint8_t flags = data[0];
        now += (uint64_t)data[3] << 8 | data[4];
        data += HEAD;
        size -= HEAD;
        if (len > size)
            len = (uint32_t)size;
        uint32_t have = flags & 2 ? len / 2 : len;
        uint8_t *frame = malloc(have ? have : 1);
        FUZZ_CHECK(frame);
        memcpy(frame, data, have);
        if (!(flags & 4))
            mend(frame, have);
        uint8_t *before = malloc(have ? have : 1);
        FUZZ_CHECK(before);
        memcpy(before, frame, have);
        enum fault_dir dir = flags & 1 ? FAULT_BA : FAULT_AB;
        unsigned bits = fault_apply_cut(f, dir, frame, have, len, now, &out);
        FUZZ_CHECK(!(bits & FAULT_DROP) || !(bits & ~(FAULT_DROP | FAULT_INJECT)));
        FUZZ_CHECK(out.len <= len && (out.len == len || bits & (FAULT_CHANGED | FAULT_DROP)));
        FUZZ_CHECK(bits & FAULT_CHANGED || bits & FAULT_DROP || !memcmp(frame, before, have));
        FUZZ_CHECK(!(bits & FAULT_COPY) == !out.copies || bits & FAULT_DROP);
        FUZZ_CHECK(out.copies <= FAULT_COPIES_MAX);
        if (bits & FAULT_INJECT)
            check_injected(&out);
        if (bits & FAULT_HOLD)
            held += fault_hold_add(h, &out, dir, &out, now);
        else
            fault_hold_passed(h, dir, out.flow, now);
        while (fault_hold_take(h, now, NULL))
            taken++;
        digest = (digest ^ bits ^ out.delay ^ out.len) * 0x9E3779B97F4A7C15u;
        for (uint32_t i = 0; i < have; i++)
            digest = (digest ^ frame[i]) * 0x100000001B3u;
        free(frame);
        free(before);
        data += len;
        size -= len;
    }
    while (fault_hold_take(h, UINT64_MAX, NULL))
        taken++;
    FUZZ_CHECK(held == taken && fault_hold_count(h) == 0);
    fault_hold_free(h);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fault_error err;
    struct fault_rule_stats s;
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t len = nul ? (size_t)(nul - data) : size;
    struct fault *f = fault_parse((const char *)data, len, 1, &err);
    if (!f) {
        FUZZ_CHECK(err.line && err.column && err.column <= len + 1 && err.text[0]);
        return 0;
    }
    size_t rest = nul ? size - len - 1 : 0;
    uint64_t first = play(f, data + size - rest, rest);
    for (unsigned i = 0; i < fault_rules(f); i++) {
        fault_rule_stats(f, i, &s);
        FUZZ_CHECK(s.done <= s.matched && s.line);
        const char *text = fault_describe(f, i);
        struct fault *again = fault_parse(text, strlen(text), 1, &err);
        FUZZ_CHECK(again && fault_rules(again) == 1);
        FUZZ_CHECK(!strcmp(fault_describe(again, 0), text));
        fault_free(again);
    }
    fault_free(f);
    f = fault_parse((const char *)data, len, 1, &err);
    FUZZ_CHECK(f && play(f, data + size - rest, rest) == first);
    fault_free(f);
    return 0;
}
