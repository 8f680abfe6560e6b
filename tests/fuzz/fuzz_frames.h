/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fuzzer's octets as frames of a capture: a list of records of flags, time step, 16-bit length,
 * frame. Flag bit 0: mend the iCRC, which a fuzzer can't guess; bit 1: the capture kept only half
 * of the frame; bit 2: another interface; bit 3: the frame before, again; bit 4: a leap in time.
 */
#ifndef URNIC_TESTS_FUZZ_FRAMES_H
#define URNIC_TESTS_FUZZ_FRAMES_H

#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "lint.h"
#include "wire_bytes.h"

#define FUZZ_STEP_NS 50000u

struct fuzz_frames {
    const uint8_t *data;
    size_t size;
    uint64_t leap; /* ns of a leap's step */
    uint64_t ns, number;
    uint32_t len;
    uint8_t frame[4400];
    uint8_t *exact; /* the last one; a sanitizer notices octets after its end */
};

static inline void fuzz_mend(uint8_t *f, size_t len)
{
    struct wire_pkt p;
    (void)wire_parse(f, len, WIRE_P_LOOPBACK | WIRE_P_V1 | WIRE_P_IP_CSUM_OK | WIRE_P_NO_ICRC, &p);
    if (p.icrc_off && p.icrc_off + WIRE_ICRC_LEN <= len)
        wire_put32le(f + p.icrc_off, wire_icrc(f, p.icrc_off + WIRE_ICRC_LEN, p.ip_off, p.bth_off));
}

/* The next frame, valid until the next call. False: no frame is left, and no memory to free. */
static inline bool fuzz_next(struct fuzz_frames *r, struct lint_frame *f)
{
    free(r->exact);
    r->exact = NULL;
    if (r->size < 4)
        return false;
    uint8_t flags = r->data[0];
    uint32_t n = (uint32_t)r->data[2] << 8 | r->data[3];
    r->ns += (uint64_t)r->data[1] * (flags & 16 ? r->leap : FUZZ_STEP_NS);
    r->data += 4;
    r->size -= 4;
    if (!(flags & 8)) {
        r->len = n < r->size ? n : (uint32_t)r->size;
        r->len = r->len < sizeof(r->frame) ? r->len : (uint32_t)sizeof(r->frame);
        memcpy(r->frame, r->data, r->len);
        r->data += r->len;
        r->size -= r->len;
    }
    if (flags & 1)
        fuzz_mend(r->frame, r->len);
    uint32_t have = flags & 2 ? r->len / 2 : r->len;
    r->exact = malloc(have ? have : 1);
    FUZZ_CHECK(r->exact);
    memcpy(r->exact, r->frame, have);
    *f = (struct lint_frame){.number = ++r->number,
                             .ns = r->ns,
                             .data = r->exact,
                             .len = have,
                             .wire_len = r->len,
                             .interface = flags >> 2 & 1};
    return true;
}

#endif
