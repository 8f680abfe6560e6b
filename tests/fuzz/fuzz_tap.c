/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owner of a frame on a wire that the kernel shares. Any octets, judged within their bounds: a
 * packet to the device that the engine would take is never the kernel's alone, and a frame withheld
 * from the kernel is in the device's VLAN.
 *
 * Input: an octet for the VLAN, then the frame.
 */
#include <string.h>

#include "fuzz.h"
#include "tap_sort.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tap_filter f = {.naddr = 2};
    struct wire_addr ours[2] = {wire_addr_v4(0xC0000201)};
    struct wire_pkt p;
    wire_addr_parse("2001:db8::1", &ours[1]);
    memcpy(f.addr[0].b, ours[0].b, 16);
    memcpy(f.addr[1].b, ours[1].b, 16);
    if (size < 2 || size > IO_FRAME_MAX)
        return 0;
    f.vlan = data[0] & 7;
    uint32_t len = (uint32_t)size - 1;
    uint8_t *frame = malloc(len); /* of its exact length */
    FUZZ_CHECK(frame);
    memcpy(frame, data + 1, len);
    enum tap_owner owner = tap_sort(&f, frame, len);
    FUZZ_CHECK(owner == TAP_DEVICE || owner == TAP_KERNEL || owner == TAP_BOTH);
    if (wire_parse(frame, len, WIRE_P_NO_ICRC, &p) == WIRE_OK) {
        bool here = !memcmp(p.dip.b, ours[0].b, 16) || !memcmp(p.dip.b, ours[1].b, 16);
        bool vlan = (p.vlan ? p.tci & 0xFFF : 0) == f.vlan;
        if (here && vlan)
            FUZZ_CHECK(owner == TAP_DEVICE);
        if (!here && !wire_addr_is_multicast(&p.dip))
            FUZZ_CHECK(owner != TAP_DEVICE);
        if (!vlan)
            FUZZ_CHECK(owner != TAP_DEVICE);
    }
    if (owner == TAP_DEVICE)
        FUZZ_CHECK(len >= 14 + 20 + 4);
    free(frame);
    return 0;
}
