/* SPDX-License-Identifier: BSD-3-Clause
 *
 * IPv6 neighbour solicitation and advertisement (RFC 4861 section 4.3, 4.4, 7).
 *
 *     octets 0 type, 1 code, 2-3 checksum, 4-7 flags (advertisement: R S O), 8-23 target, options
 */
#include <string.h>

#include "net_port.h"

#define ND_LEN           24u
#define ND_SOLICITATION  135u
#define ND_ADVERTISEMENT 136u
#define ND_SOLICITED     0x40u
#define ND_OVERRIDE      0x20u
#define OPT_SOURCE       1u
#define OPT_TARGET       2u
#define OPT_LEN          8u /* a link-layer address option: type, length 1, MAC */
#define HOP_LIMIT        255u

static const struct wire_addr all_nodes = {{0xFF, 0x02, [15] = 1}};
static const struct wire_addr unspecified;

/* ff02::1:ff00:0 and the low 24 bits. */
static struct wire_addr solicited_node(const struct wire_addr *a)
{
    struct wire_addr g = {{0xFF, 0x02, [11] = 1, [12] = 0xFF}};
    memcpy(g.b + 13, a->b + 13, 3);
    return g;
}

/* A frame with `type`, one MAC option of ours, and the checksum. */
static size_t put_nd(const struct net_port *p, uint8_t *buf, const uint8_t dmac[6],
                     const struct wire_addr *src, const struct wire_addr *dst, uint8_t type,
                     uint8_t flags, const struct wire_addr *target)
{
    uint8_t *ip = buf + net_put_ether(p, buf, dmac, WIRE_ETHERTYPE_IPV6);
    uint8_t *nd = ip + WIRE_IPV6_LEN;
    memset(nd, 0, ND_LEN);
    nd[0] = type;
    nd[4] = flags;
    memcpy(nd + 8, target->b, 16);
    nd[ND_LEN] = type == ND_SOLICITATION ? OPT_SOURCE : OPT_TARGET;
    nd[ND_LEN + 1] = 1;
    memcpy(nd + ND_LEN + 2, p->config.mac, 6);
    icmp6_finish(ip, src, dst, HOP_LIMIT, ND_LEN + OPT_LEN);
    return net_pad(buf, (size_t)(nd + ND_LEN + OPT_LEN - buf));
}

size_t nd_solicit(const struct net_port *p, uint8_t *buf, const struct wire_addr *src,
                  const struct wire_addr *target, const uint8_t *dmac)
{
    struct wire_addr dst = *target;
    uint8_t group[6];
    if (!dmac) {
        dst = solicited_node(target);
        wire_mcast_mac(&dst, group);
        dmac = group;
    }
    return put_nd(p, buf, dmac, src, &dst, ND_SOLICITATION, 0, target);
}

size_t nd_advertise(const struct net_port *p, uint8_t *buf, const struct wire_addr *addr)
{
    uint8_t mac[6];
    wire_mcast_mac(&all_nodes, mac);
    return put_nd(p, buf, mac, addr, &all_nodes, ND_ADVERTISEMENT, ND_OVERRIDE, addr);
}

/* Look through the options: *mac = the MAC in option `type`, or NULL. False = malformed. */
static bool find_mac(const uint8_t *nd, size_t len, uint8_t type, const uint8_t **mac)
{
    *mac = NULL;
    for (size_t at = ND_LEN; at < len;) {
        size_t n = len - at >= 2 ? nd[at + 1] * 8u : 0;
        if (n == 0 || n > len - at)
            return false;
        if (nd[at] == type && n == OPT_LEN && !(nd[at + 2] & 1))
            *mac = nd + at + 2;
        at += n;
    }
    return true;
}

static size_t solicitation(struct net_port *p, const struct net_in *in, const struct wire_addr *src,
                           const struct wire_addr *target, const uint8_t *mac, uint64_t now,
                           uint8_t *reply)
{
    if (!net_answers(p, target))
        return 0;
    bool is_probe = memcmp(src, &unspecified, sizeof(*src)) == 0;
    if (net_addr_has(p, src)) {
        net_contested(p, src, mac ? mac : in->smac, now);
        return 0;
    }
    p->counters[NET_TX_ND]++;
    if (is_probe) /* duplicate address detection: announce to all hosts that it is taken */
        return nd_advertise(p, reply, target);
    if (mac && net_reaching(p, src)) {
        neigh_heard(p, src, mac, false, true, now);
        neigh_learn(p, src, mac);
    }
    return put_nd(p, reply, mac ? mac : in->smac, target, src, ND_ADVERTISEMENT,
                  ND_SOLICITED | ND_OVERRIDE, target);
}

size_t nd_rx(struct net_port *p, const struct net_in *in, size_t icmp_len, uint64_t now,
             uint8_t *reply)
{
    const uint8_t *ip = in->l3;
    const uint8_t *nd = ip + WIRE_IPV6_LEN;
    bool is_ns = nd[0] == ND_SOLICITATION;
    struct wire_addr src;
    struct wire_addr dst;
    struct wire_addr target;
    const uint8_t *mac = NULL;
    p->counters[NET_RX_ND]++;
    if (icmp_len < ND_LEN || nd[1] != 0 || ip[7] != HOP_LIMIT ||
        !find_mac(nd, icmp_len, is_ns ? OPT_SOURCE : OPT_TARGET, &mac))
        goto bad;
    memcpy(src.b, ip + 8, 16);
    memcpy(dst.b, ip + 24, 16);
    memcpy(target.b, nd + 8, 16);
    if (!net_is_unicast(&target) || wire_addr_is_v4(&target) || wire_addr_is_multicast(&src) ||
        wire_addr_is_v4(&src))
        goto bad;
    bool probe = memcmp(&src, &unspecified, sizeof(src)) == 0;
    struct wire_addr group = solicited_node(&target);
    if (is_ns) {
        /* A probe goes to the group of its target and can't name a MAC. */
        if (probe && (mac || memcmp(&dst, &group, sizeof(dst)) != 0))
            goto bad;
        return solicitation(p, in, &src, &target, mac, now, reply);
    }
    bool solicited = nd[4] & ND_SOLICITED;
    if (probe || (solicited && wire_addr_is_multicast(&dst)))
        goto bad;
    if (net_addr_has(p, &target)) {
        net_contested(p, &target, mac ? mac : in->smac, now);
        return 0;
    }
    /* The answer to a unicast request may leave the MAC out: it is the one we asked. */
    uint8_t known[6];
    const struct neigh *n = neigh_find(p, &target);
    if (!mac && n && n->state == NET_PROBE)
        mac = memcpy(known, n->mac, 6);
    if (mac)
        neigh_heard(p, &target, mac, solicited, nd[4] & ND_OVERRIDE, now);
    return 0;
bad:
    p->counters[NET_RX_BAD]++;
    return 0;
}
