/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Own addresses, on-link prefixes, gateways, and the choice of next hop and source.
 */
#include <errno.h>
#include <string.h>

#include "net_port.h"

bool net_is_unicast(const struct wire_addr *a)
{
    static const struct wire_addr zero;
    if (wire_addr_is_multicast(a) || memcmp(a, &zero, sizeof(zero)) == 0)
        return false;
    /* 0.0.0.0/8 and 255.255.255.255 */
    return !wire_addr_is_v4(a) || (a->b[12] != 0 && wire_get32(a->b + 12) != 0xFFFFFFFFu);
}

bool net_is_link_local(const struct wire_addr *a)
{
    return a->b[0] == 0xFE && (a->b[1] & 0xC0) == 0x80;
}

static bool same_prefix(const struct wire_addr *a, const struct wire_addr *b, unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;
    if (memcmp(a->b, b->b, whole) != 0)
        return false;
    return rest == 0 || (a->b[whole] ^ b->b[whole]) >> (8 - rest) == 0;
}

/* Is `a` the network or the broadcast address of an IPv4 prefix? */
static bool is_v4_edge(const struct wire_addr *a, unsigned prefix)
{
    if (!wire_addr_is_v4(a) || prefix < 96 || prefix >= 127)
        return false;
    uint32_t host = UINT32_MAX >> (prefix - 96);
    uint32_t v = wire_get32(a->b + 12) & host;
    return v == 0 || v == host;
}

const struct net_own *net_covering(const struct net_port *p, const struct wire_addr *addr)
{
    const struct net_own *best = NULL;
    for (size_t i = 0; i < p->own_count; i++) {
        const struct net_own *o = &p->own[i];
        /* A short IPv6 prefix must not cover the mapped IPv4 addresses. */
        if (wire_addr_is_v4(&o->addr) == wire_addr_is_v4(addr) &&
            same_prefix(&o->addr, addr, o->prefix) && (!best || o->prefix > best->prefix))
            best = o;
    }
    return best && is_v4_edge(addr, best->prefix) ? NULL : best;
}

/* Is `addr` within one of our prefixes, including its network and broadcast addresses? */
static bool is_in_prefix(const struct net_port *p, const struct wire_addr *addr)
{
    for (size_t i = 0; i < p->own_count; i++)
        if (wire_addr_is_v4(&p->own[i].addr) == wire_addr_is_v4(addr) &&
            same_prefix(&p->own[i].addr, addr, p->own[i].prefix))
            return true;
    return false;
}

/* The index of one of our own addresses; own_count = not one of them. */
static size_t find_own(const struct net_port *p, const struct wire_addr *addr)
{
    size_t i = 0;
    while (i < p->own_count && memcmp(&p->own[i].addr, addr, sizeof(*addr)) != 0)
        i++;
    return i;
}

bool net_addr_has(const struct net_port *port, const struct wire_addr *addr)
{
    return find_own(port, addr) < port->own_count;
}

bool net_addr_possible(const struct wire_addr *addr, unsigned prefix_len)
{
    bool v4 = wire_addr_is_v4(addr);
    return net_is_unicast(addr) && prefix_len <= (v4 ? 32u : 128u) &&
           !is_v4_edge(addr, prefix_len + (v4 ? 96u : 0u));
}

int net_addr_add(struct net_port *port, const struct wire_addr *addr, unsigned prefix_len,
                 uint64_t now)
{
    if (!net_addr_possible(addr, prefix_len))
        return -EINVAL;
    if (net_addr_has(port, addr))
        return -EEXIST;
    if (port->own_count == NET_ADDRS_MAX)
        return -ENOSPC;
    port->own[port->own_count++] = (struct net_own){
        .addr = *addr,
        .prefix = prefix_len + (wire_addr_is_v4(addr) ? 96u : 0u),
        .announcements = NET_ANNOUNCEMENTS,
        .announce_now = true,
        .announce_due = now,
    };
    return 0;
}

int net_addr_del(struct net_port *port, const struct wire_addr *addr)
{
    size_t i = find_own(port, addr);
    if (i == port->own_count)
        return -ENOENT;
    port->own_count--;
    memmove(&port->own[i], &port->own[i + 1], (port->own_count - i) * sizeof(port->own[0]));
    neigh_flush_unreachable(port);
    return 0;
}

/* RFC 5227 section 2.4 (c): an address that was configured is kept, and defended once; not again
 * as long as claims follow each other, or two hosts would shout at each other for ever. */
void net_contested(struct net_port *p, const struct wire_addr *addr, const uint8_t mac[6],
                   uint64_t now)
{
    size_t i = find_own(p, addr);
    if (i == p->own_count || memcmp(mac, p->config.mac, 6) == 0)
        return;
    struct net_own *o = &p->own[i];
    p->counters[NET_ADDR_CONFLICT]++;
    if (now >= o->contested) {
        o->defend_now = !o->foreign;
        o->conflict = true;
        memcpy(o->rival, mac, 6);
    }
    o->contested = now + NET_DEFEND_NS;
}

bool net_next_conflict(struct net_port *port, struct net_conflict *conflict)
{
    for (size_t i = 0; i < port->own_count; i++) {
        struct net_own *o = &port->own[i];
        if (!o->conflict)
            continue;
        o->conflict = false;
        *conflict = (struct net_conflict){.addr = o->addr, .defended = !o->foreign};
        memcpy(conflict->mac, o->rival, 6);
        return true;
    }
    return false;
}

int net_addr_foreign(struct net_port *port, const struct wire_addr *addr, bool foreign)
{
    size_t i = find_own(port, addr);
    if (i == port->own_count)
        return -ENOENT;
    port->own[i].foreign = foreign;
    return 0;
}

bool net_answers(const struct net_port *p, const struct wire_addr *addr)
{
    size_t i = find_own(p, addr);
    return i < p->own_count && !p->own[i].foreign;
}

int net_gateway_set(struct net_port *port, const struct wire_addr *gateway)
{
    if (!net_is_unicast(gateway))
        return -EINVAL;
    bool v6 = !wire_addr_is_v4(gateway);
    port->gateway[v6] = *gateway;
    port->has_gateway[v6] = true;
    return 0;
}

const struct net_own *net_first_own(const struct net_port *p, bool v4, bool local)
{
    for (size_t i = 0; i < p->own_count; i++)
        if (wire_addr_is_v4(&p->own[i].addr) == v4 && net_is_link_local(&p->own[i].addr) == local)
            return &p->own[i];
    return NULL;
}

/* A cloud may give each host a prefix of one address and a gateway outside of it (RFC 3442 routes):
 * the gateway is on the link all the same. */
const struct net_own *net_reaching(const struct net_port *p, const struct wire_addr *addr)
{
    const struct net_own *own = net_covering(p, addr);
    bool v6 = !wire_addr_is_v4(addr);
    if (own || !p->has_gateway[v6] || memcmp(addr, &p->gateway[v6], sizeof(*addr)) != 0 ||
        is_in_prefix(p, addr))
        return own;
    return net_first_own(p, !v6, false);
}

int net_next_hop(const struct net_port *port, const struct wire_addr *dst, struct wire_addr *hop)
{
    bool v6 = !wire_addr_is_v4(dst);
    *hop = *dst;
    if (wire_addr_is_multicast(dst) || net_addr_has(port, dst))
        return 0;
    if (!net_is_unicast(dst))
        return -ENETUNREACH;
    if (net_covering(port, dst))
        return 0;
    if (net_is_link_local(dst) || !port->has_gateway[v6] || !net_reaching(port, &port->gateway[v6]))
        return -ENETUNREACH;
    /* The broadcast address of an own prefix goes nowhere, least of all to a gateway. */
    if (is_in_prefix(port, dst))
        return -ENETUNREACH;
    *hop = port->gateway[v6];
    return 0;
}

int net_source(const struct net_port *port, const struct wire_addr *dst, struct wire_addr *src)
{
    struct wire_addr hop;
    int rc = net_next_hop(port, dst, &hop);
    if (rc)
        return rc;
    bool v4 = wire_addr_is_v4(dst);
    /* Groups of scope 1 and 2 stay on the link as well. */
    bool local = net_is_link_local(dst) || (dst->b[0] == 0xFF && (dst->b[1] & 15) <= 2);
    size_t i = find_own(port, &hop);
    const struct net_own *o = i < port->own_count ? &port->own[i] : net_covering(port, &hop);
    if (!o || (net_is_link_local(&o->addr) && !local)) { /* a group, or a link-local gateway */
        const struct net_own *fits = net_first_own(port, v4, local);
        if (fits)
            o = fits;
        else if (!o)
            o = net_first_own(port, v4, !local);
    }
    if (!o)
        return -ENETUNREACH;
    *src = o->addr;
    return 0;
}

void net_announce(struct net_port *port, uint64_t now)
{
    for (size_t i = 0; i < port->own_count; i++) {
        port->own[i].announcements = NET_ANNOUNCEMENTS;
        port->own[i].announce_now = true;
        port->own[i].announce_due = now;
    }
    group_announce(port, now);
}
