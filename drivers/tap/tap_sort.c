/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fragment of a datagram to port 4791 is the kernel's, the first one as well as the others: RoCE
 * knows no fragments, and the kernel, which gets all of them, reassembles and drops them. So is a
 * RoCE packet to an address that the device does not have: perhaps to a virtual machine of this
 * host.
 */
#include "tap_sort.h"

#include <string.h>

#define ETH_LEN   14u
#define VLAN_LEN  4u
#define IP4_LEN   20u
#define IP6_LEN   40u
#define ROCE_PORT 4791u

enum { ETH_IP4 = 0x0800, ETH_ARP = 0x0806, ETH_IP6 = 0x86DD, ETH_VLAN = 0x8100 };
enum { P_HOPOPTS = 0, P_ICMP = 1, P_IGMP = 2, P_UDP = 17, P_ICMP6 = 58 };

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static bool has_addr(const struct tap_filter *f, const struct io_addr *a)
{
    for (unsigned i = 0; i < f->naddr; i++) {
        if (memcmp(f->addr[i].b, a->b, sizeof(a->b)) == 0)
            return true;
    }
    return false;
}

static enum tap_owner sort_ip4(const struct tap_filter *f, bool vlan, const uint8_t *ip,
                               uint32_t len)
{
    if (len < IP4_LEN || ip[0] >> 4 != 4)
        return TAP_KERNEL;
    uint32_t header = (ip[0] & 15u) * 4;
    if (ip[9] == P_ICMP || ip[9] == P_IGMP)
        return TAP_BOTH;
    bool fragment = (be16(ip + 6) & 0x3FFF) != 0;
    if (!vlan || ip[9] != P_UDP || fragment || header < IP4_LEN || len < header + 4 ||
        be16(ip + header + 2) != ROCE_PORT)
        return TAP_KERNEL;
    struct io_addr to = {.b = {[10] = 0xFF, [11] = 0xFF}};
    memcpy(to.b + 12, ip + 16, 4);
    return ip[16] >> 4 == 14 || has_addr(f, &to) ? TAP_DEVICE : TAP_KERNEL;
}

static enum tap_owner sort_ip6(const struct tap_filter *f, bool vlan, const uint8_t *ip,
                               uint32_t len)
{
    if (len < IP6_LEN || ip[0] >> 4 != 6)
        return TAP_KERNEL;
    if (ip[6] == P_ICMP6 || ip[6] == P_HOPOPTS)
        return TAP_BOTH; /* MLD follows a hop-by-hop option */
    if (!vlan || ip[6] != P_UDP || len < IP6_LEN + 4 || be16(ip + IP6_LEN + 2) != ROCE_PORT)
        return TAP_KERNEL;
    struct io_addr to;
    memcpy(to.b, ip + 24, sizeof(to.b));
    return to.b[0] == 0xFF || has_addr(f, &to) ? TAP_DEVICE : TAP_KERNEL;
}

enum tap_owner tap_sort(const struct tap_filter *f, const uint8_t *frame, uint32_t len)
{
    uint32_t at = ETH_LEN;
    uint16_t vlan = 0;
    if (len < at)
        return TAP_KERNEL;
    uint16_t type = be16(frame + 12);
    if (type == ETH_VLAN) {
        at += VLAN_LEN;
        if (len < at)
            return TAP_KERNEL;
        vlan = be16(frame + 14) & 0xFFF;
        type = be16(frame + 16);
    }
    if (type == ETH_ARP)
        return TAP_BOTH;
    if (type == ETH_IP4)
        return sort_ip4(f, vlan == f->vlan, frame + at, len - at);
    return type == ETH_IP6 ? sort_ip6(f, vlan == f->vlan, frame + at, len - at) : TAP_KERNEL;
}
