/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any file at all through the capture reader: SEC-03. Every octet of every packet handed out is
 * touched, and lengths, numbers and the end of the file must be consistent.
 */
#include "capread.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct capread *c;
    struct capread_packet p;
    struct capread_info info;
    char why[128];
    uint64_t number = 0, octets = 0;
    unsigned sum = 0;
    if (capread_open_mem(data, size, &c, why, sizeof why) < 0) {
        FUZZ_CHECK(why[0]);
        return 0;
    }
    while (capread_next(c, &p) == 1) {
        FUZZ_CHECK(p.number > number && p.len <= p.wire_len);
        FUZZ_CHECK(p.len <= CAPREAD_FRAME_MAX + 14);
        number = p.number;
        octets += p.len;
        for (uint32_t i = 0; i < p.len; i++)
            sum += p.frame[i];
        for (const char *s = p.comment; s && *s; s++)
            sum += (unsigned char)*s;
    }
    FUZZ_CHECK(capread_next(c, &p) == 0);
    capread_info(c, &info);
    FUZZ_CHECK(info.packets >= number && info.offset <= size);
    FUZZ_CHECK(octets <= 15 * (uint64_t)size); /* a record has 16 octets at least; +14 made up */
    capread_close(c);
    *(volatile unsigned *)&sum;
    return 0;
}
