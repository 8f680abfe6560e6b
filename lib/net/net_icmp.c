/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ICMP and ICMPv6: answers to echo requests; ICMPv6 also leads to neighbour discovery.
 *
 * Only echo requests to one of our unicast addresses are answered, to the MAC that they came from,
 * at no more than NET_ECHO_RATE, and never with more octets than they had.
 */
#include <string.h>

#include "net_port.h"

#define PROTO_HOP_BY_HOP 0u /* the header in front of MLD */
#define ECHO_LEN         8u
#define ECHO_REQUEST     8u
#define ECHO6_REQUEST    128u
#define ECHO6_REPLY      129u
#define UNREACHABLE      3u
#define NEEDS_FRAGMENTS  4u /* code */
#define TOO_BIG6         2u
#define ND_FIRST         135u
#define ND_LAST          136u

/* One reply costs 1/NET_ECHO_RATE seconds; a second's worth may be spent at once. */
static bool may_echo(struct net_port *p, uint64_t now)
{
    uint64_t second = 1000u * NET_NS_PER_MS;
    uint64_t cost = second / NET_ECHO_RATE;
    if (p->echo_paid < now)
        p->echo_paid = now;
    if (p->echo_paid + cost - now > second) {
        p->counters[NET_ECHO_LIMITED]++;
        return false;
    }
    p->echo_paid += cost;
    p->counters[NET_TX_ECHO]++;
    return true;
}

static size_t ignore(struct net_port *p, enum net_counter why)
{
    p->counters[why]++;
    return 0;
}

size_t icmp_rx_v4(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply,
                  size_t cap)
{
    const uint8_t *ip = in->l3;
    if (in->len >= WIRE_IPV4_LEN && ip[0] >> 4 == 4 && ip[9] == NET_PROTO_IGMP) {
        igmp_rx(p, in, now);
        return 0;
    }
    if (in->len < WIRE_IPV4_LEN || ip[0] != 0x45 || ip[9] != NET_PROTO_ICMP ||
        (wire_get16(ip + 6) & 0x3FFFu) || !in->to_us)
        return ignore(p, NET_RX_OTHER);
    struct wire_addr src = wire_addr_v4(wire_get32(ip + 12));
    struct wire_addr dst = wire_addr_v4(wire_get32(ip + 16));
    size_t total = wire_get16(ip + 2);
    if (!net_answers(p, &dst) || total < WIRE_IPV4_LEN || total > p->config.mtu)
        return ignore(p, NET_RX_OTHER);
    const uint8_t *icmp = ip + WIRE_IPV4_LEN;
    size_t n = total - WIRE_IPV4_LEN;
    if (n < ECHO_LEN || total > in->len || wire_csum_add(0, ip, WIRE_IPV4_LEN) != 0xFFFF ||
        wire_csum_add(0, icmp, n) != 0xFFFF)
        return ignore(p, NET_RX_BAD);
    if (icmp[0] == UNREACHABLE && icmp[1] == NEEDS_FRAGMENTS) /* WIRE-32 */
        return ignore(p, NET_RX_TOO_BIG);
    if (icmp[0] != ECHO_REQUEST || icmp[1] != 0)
        return ignore(p, NET_RX_OTHER);
    p->counters[NET_RX_ECHO]++;
    if (!net_is_unicast(&src) || net_addr_has(p, &src))
        return ignore(p, NET_RX_BAD);
    if (cap < WIRE_ETH_LEN + WIRE_VLAN_LEN + total || !may_echo(p, now))
        return 0;

    uint8_t *out = reply + net_put_ether(p, reply, in->smac, WIRE_ETHERTYPE_IPV4);
    memset(out, 0, WIRE_IPV4_LEN);
    out[0] = 0x45;
    wire_put16(out + 2, (uint16_t)total);
    wire_put16(out + 6, NET_IPV4_DF);
    out[8] = WIRE_TTL_DEFAULT;
    out[9] = NET_PROTO_ICMP;
    memcpy(out + 12, ip + 16, 4);
    memcpy(out + 16, ip + 12, 4);
    wire_csum_put(out + 10, wire_csum_add(0, out, WIRE_IPV4_LEN));
    uint8_t *echo = out + WIRE_IPV4_LEN;
    memcpy(echo, icmp, n);
    memset(echo, 0, 4); /* type 0: reply; checksum */
    wire_csum_put(echo + 2, wire_csum_add(0, echo, n));
    return net_pad(reply, (size_t)(echo + n - reply));
}

uint16_t icmp6_pseudo_sum(const uint8_t *ip, size_t len)
{
    uint8_t tail[4] = {(uint8_t)(len >> 8), (uint8_t)len, 0, NET_PROTO_ICMP6};
    return wire_csum_add(wire_csum_add(0, ip + 8, 32), tail, sizeof(tail));
}

void icmp6_finish(uint8_t *ip, const struct wire_addr *src, const struct wire_addr *dst,
                  uint8_t hop_limit, size_t len)
{
    wire_put32(ip, 6u << 28);
    wire_put16(ip + 4, (uint16_t)len);
    ip[6] = NET_PROTO_ICMP6;
    ip[7] = hop_limit;
    memcpy(ip + 8, src->b, 16);
    memcpy(ip + 24, dst->b, 16);
    uint8_t *icmp = ip + WIRE_IPV6_LEN;
    memset(icmp + 2, 0, 2);
    wire_csum_put(icmp + 2, wire_csum_add(icmp6_pseudo_sum(ip, len), icmp, len));
}

/* Handle an echo request, or a router's error about a packet of ours. */
static size_t for_us_v6(struct net_port *p, const struct net_in *in, size_t n, uint64_t now,
                        uint8_t *reply, size_t cap)
{
    const uint8_t *ip = in->l3, *icmp = ip + WIRE_IPV6_LEN;
    struct wire_addr src;
    struct wire_addr dst;
    memcpy(src.b, ip + 8, 16);
    memcpy(dst.b, ip + 24, 16);
    if (!in->to_us || !net_answers(p, &dst) || WIRE_IPV6_LEN + n > p->config.mtu || icmp[1] != 0)
        return ignore(p, NET_RX_OTHER);
    if (icmp[0] == TOO_BIG6) /* WIRE-32 */
        return ignore(p, NET_RX_TOO_BIG);
    p->counters[NET_RX_ECHO]++;
    if (n < ECHO_LEN || !net_is_unicast(&src) || wire_addr_is_v4(&src) || net_addr_has(p, &src))
        return ignore(p, NET_RX_BAD);
    if (cap < WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN + n || !may_echo(p, now))
        return 0;
    uint8_t *out = reply + net_put_ether(p, reply, in->smac, WIRE_ETHERTYPE_IPV6);
    memcpy(out + WIRE_IPV6_LEN, icmp, n);
    out[WIRE_IPV6_LEN] = ECHO6_REPLY;
    icmp6_finish(out, &dst, &src, WIRE_TTL_DEFAULT, n);
    return net_pad(reply, (size_t)(out + WIRE_IPV6_LEN + n - reply));
}

size_t icmp_rx_v6(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply,
                  size_t cap)
{
    const uint8_t *ip = in->l3;
    if (in->len >= WIRE_IPV6_LEN && ip[0] >> 4 == 6 && ip[6] == PROTO_HOP_BY_HOP) {
        mld_rx(p, in, now);
        return 0;
    }
    if (in->len < WIRE_IPV6_LEN || ip[0] >> 4 != 6 || ip[6] != NET_PROTO_ICMP6)
        return ignore(p, NET_RX_OTHER);
    size_t n = wire_get16(ip + 4);
    const uint8_t *icmp = ip + WIRE_IPV6_LEN;
    if (n < 4 || n > in->len - WIRE_IPV6_LEN ||
        wire_csum_add(icmp6_pseudo_sum(ip, n), icmp, n) != 0xFFFF)
        return ignore(p, NET_RX_BAD);
    if (icmp[0] >= ND_FIRST && icmp[0] <= ND_LAST)
        return nd_rx(p, in, n, now, reply);
    if (icmp[0] == ECHO6_REQUEST || icmp[0] == TOO_BIG6)
        return for_us_v6(p, in, n, now, reply, cap);
    return ignore(p, NET_RX_OTHER);
}
