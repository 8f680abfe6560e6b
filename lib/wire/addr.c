/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses and the small numeric rules around them: GIDs, group MACs, source ports, P_Keys, MTUs.
 */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire_bytes.h"

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool wire_addr_is_v4(const struct wire_addr *a)
{
    return memcmp(a->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool wire_addr_is_multicast(const struct wire_addr *a)
{
    return a->b[0] == 0xFF || (wire_addr_is_v4(a) && (a->b[12] & 0xF0) == 0xE0);
}

struct wire_addr wire_addr_v4(uint32_t host_order)
{
    struct wire_addr a;
    memcpy(a.b, v4_prefix, sizeof(v4_prefix));
    wire_put32(a.b + 12, host_order);
    return a;
}

const char *wire_addr_str(const struct wire_addr *a, char *buf, size_t size)
{
    char text[INET6_ADDRSTRLEN];
    if (wire_addr_is_v4(a))
        inet_ntop(AF_INET, a->b + 12, text, sizeof(text));
    else
        inet_ntop(AF_INET6, a->b, text, sizeof(text));
    snprintf(buf, size, "%s", text);
    return buf;
}

int wire_addr_parse(const char *s, struct wire_addr *out)
{
    struct wire_addr a;
    if (inet_pton(AF_INET, s, a.b + 12) == 1)
        memcpy(a.b, v4_prefix, sizeof(v4_prefix));
    else if (inet_pton(AF_INET6, s, a.b) != 1)
        return -EINVAL;
    *out = a;
    return 0;
}

void wire_mcast_mac(const struct wire_addr *group, uint8_t mac[6])
{
    if (wire_addr_is_v4(group)) {
        mac[0] = 0x01;
        mac[1] = 0x00;
        mac[2] = 0x5E;
        mac[3] = group->b[13] & 0x7F;
        mac[4] = group->b[14];
        mac[5] = group->b[15];
    } else {
        mac[0] = 0x33;
        mac[1] = 0x33;
        memcpy(mac + 2, group->b + 12, 4);
    }
}

uint16_t wire_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
    uint32_t fl = flow_label & 0xFFFFFu;
    if (!fl) {
        uint64_t v = (uint64_t)lqpn * rqpn;
        v ^= v >> 20;
        v ^= v >> 40;
        fl = (uint32_t)(v & 0xFFFFFu);
    }
    return (uint16_t)(0xC000u | ((fl & 0x3FFFu) ^ (fl >> 14)));
}

bool wire_pkey_match(uint16_t packet, uint16_t table)
{
    uint16_t partition = packet & 0x7FFF;
    return partition != 0 && partition == (table & 0x7FFF) && ((packet | table) & 0x8000);
}

uint32_t wire_mtu_octets(unsigned mtu_enum)
{
    return mtu_enum >= 1 && mtu_enum <= 5 ? 128u << mtu_enum : 0;
}

unsigned wire_mtu_enum(uint32_t octets)
{
    for (unsigned e = 1; e <= 5; e++)
        if (wire_mtu_octets(e) == octets)
            return e;
    return 0;
}

unsigned wire_mtu_for_ip(uint32_t ip_mtu)
{
    /* The reserve of WIRE-26: IPv6 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, iCRC 4. */
    unsigned e = 5;
    while (e && wire_mtu_octets(e) + 96u > ip_mtu)
        e--;
    return e;
}
