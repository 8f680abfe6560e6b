/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The marking curve of CC-02, and damage to frames.
 */
#include "mem_fault.h"

#include "fault_dice.h"
#include "wire.h"
#include "wire_bytes.h"

#define ECN_MASK 0x03u /* 00 not ECT, 01 and 10 ECT, 11 CE */

double mem_ecn_probability(uint64_t q, uint64_t kmin, uint64_t kmax, double pmax)
{
    if (kmax == 0 || q <= kmin)
        return 0;
    if (q > kmax)
        return 1;
    return pmax * (double)(q - kmin) / (double)(kmax - kmin);
}

bool mem_frame_mark_ce(uint8_t *frame, uint32_t len)
{
    uint32_t off = 12;
    while (off + 4 <= len && (wire_get16(frame + off) == WIRE_ETHERTYPE_VLAN ||
                              wire_get16(frame + off) == WIRE_ETHERTYPE_SVLAN))
        off += 4;
    if (off + 2 > len)
        return false;
    uint16_t type = wire_get16(frame + off);
    uint8_t *ip = frame + off + 2;
    uint32_t room = len - off - 2;

    if (type == WIRE_ETHERTYPE_IPV6 && room >= WIRE_IPV6_LEN) {
        /* version(4) class(8) flow(20): the class's low two bits are bits 5..4 of octet 1 */
        if ((ip[1] >> 4 & ECN_MASK) == 0)
            return false;
        ip[1] |= ECN_MASK << 4;
        return true;
    }
    if (type == WIRE_ETHERTYPE_IPV4 && room >= WIRE_IPV4_LEN) {
        if ((ip[1] & ECN_MASK) == 0)
            return false;
        uint16_t before = wire_get16(ip);
        ip[1] |= ECN_MASK;
        /* RFC 1624: HC' = ~(~HC + ~m + m') in ones' complement; a wrong sum stays wrong. */
        uint32_t sum =
            (uint16_t)~wire_get16(ip + 10) + (uint32_t)(uint16_t)~before + wire_get16(ip);
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        ip[10] = (uint8_t)(~sum >> 8);
        ip[11] = (uint8_t)~sum;
        return true;
    }
    return false;
}

void mem_frame_flip(uint8_t *frame, uint32_t len, unsigned bits, uint64_t *dice)
{
    uint64_t chosen[8];
    unsigned n = 0;
    if (bits > 8)
        bits = 8;
    while (n < bits) {
        uint64_t bit = fault_draw_below(dice, (uint64_t)len * 8);
        bool again = false;
        for (unsigned i = 0; i < n; i++)
            again |= chosen[i] == bit;
        if (again)
            continue;
        chosen[n++] = bit;
        frame[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
}
