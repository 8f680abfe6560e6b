/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Membership in multicast groups, so that switches and routers send us their datagrams (UD-11):
 * IGMPv3 (RFC 3376) and MLDv2 (RFC 3810), and their predecessors while an older querier is on the
 * link (IGMPv2, RFC 2236; MLDv1, RFC 2710). We take every sender, so a record excludes none.
 *
 * Timers: a change is reported NET_GROUP_REPORTS times; a query is answered once, at a moment
 * within the time that it grants which depends on our MAC and the group, so that hosts don't answer
 * all at once.
 */
#include <errno.h>
#include <string.h>

#include "net_port.h"

#define IGMP_QUERY     0x11u
#define IGMP_V2_REPORT 0x16u
#define IGMP_V2_LEAVE  0x17u
#define IGMP_V3_REPORT 0x22u
#define MLD_QUERY      130u
#define MLD_V1_REPORT  131u
#define MLD_V1_DONE    132u
#define MLD_V2_REPORT  143u
#define IP_IGMP_LEN    24u /* header with the router alert option */
#define HBH_LEN        8u  /* hop-by-hop header with it */
#define TTL            1u
/* Where reports go: to all IGMPv3 routers, and to all routers that a host leaves (IGMPv2). */
#define ALL_IGMPV3_ROUTERS 0xE0000016u
#define ALL_ROUTERS        0xE0000002u
#define ALL_SYSTEMS        0xE0000001u

enum record { IS_EXCLUDE = 2, TO_INCLUDE = 3, TO_EXCLUDE = 4 };

static struct net_group *find(struct net_port *p, const struct wire_addr *addr)
{
    for (size_t i = 0; i < p->group_count; i++)
        if (memcmp(&p->group[i].addr, addr, sizeof(*addr)) == 0)
            return &p->group[i];
    return NULL;
}

/* Is the group reported? Not if it never leaves the host or is known to all: 224.0.0.1, ff02::1,
 * scope 0 or 1. */
static bool is_reported(const struct wire_addr *a)
{
    if (wire_addr_is_v4(a))
        return wire_get32(a->b + 12) != ALL_SYSTEMS;
    static const struct wire_addr all_nodes = {{0xFF, 0x02, [15] = 1}};
    return (a->b[1] & 15) > 1 && memcmp(a, &all_nodes, sizeof(*a)) != 0;
}

static void changed(struct net_group *g, bool leaving, uint64_t now)
{
    g->leaving = leaving;
    g->reports = NET_GROUP_REPORTS;
    g->due = now;
    g->answer = NET_NEVER;
    g->send = true;
}

int net_group_join(struct net_port *port, const struct wire_addr *group, uint64_t now)
{
    struct net_group *g = find(port, group);
    if (!wire_addr_is_multicast(group))
        return -EINVAL;
    if (g && !g->leaving)
        return -EEXIST;
    if (!g) {
        if (port->group_count == NET_GROUPS_MAX)
            return -ENOSPC;
        g = &port->group[port->group_count++];
        *g = (struct net_group){.addr = *group};
    }
    changed(g, false, now);
    return 0;
}

int net_group_leave(struct net_port *port, const struct wire_addr *group, uint64_t now)
{
    struct net_group *g = find(port, group);
    if (!g || g->leaving)
        return -ENOENT;
    changed(g, true, now);
    return 0;
}

static void forget(struct net_port *p, size_t i)
{
    p->group[i] = p->group[--p->group_count];
}

void net_group_forget(struct net_port *port, const struct wire_addr *group)
{
    struct net_group *g = find(port, group);
    if (g)
        forget(port, (size_t)(g - port->group));
}

bool net_group_get(const struct net_port *port, size_t i, struct wire_addr *group, bool *member)
{
    if (i >= port->group_count)
        return false;
    *group = port->group[i].addr;
    *member = !port->group[i].leaving;
    return true;
}

void group_announce(struct net_port *p, uint64_t now)
{
    for (size_t i = 0; i < p->group_count; i++)
        changed(&p->group[i], p->group[i].leaving, now);
}

/* ---- reports ---- */

static size_t put_igmp(const struct net_port *p, uint8_t *buf, const struct net_group *g,
                       enum record record, bool old)
{
    const struct net_own *own = net_first_own(p, true, false);
    uint32_t group = wire_get32(g->addr.b + 12);
    uint32_t to = !old ? ALL_IGMPV3_ROUTERS : g->leaving ? ALL_ROUTERS : group;
    struct wire_addr dst = wire_addr_v4(to);
    size_t len = old ? 8 : 16;
    uint8_t mac[6];
    wire_mcast_mac(&dst, mac);
    uint8_t *ip = buf + net_put_ether(p, buf, mac, WIRE_ETHERTYPE_IPV4);
    uint8_t *igmp = ip + IP_IGMP_LEN;
    memset(ip, 0, IP_IGMP_LEN + len);
    ip[0] = 0x46;
    ip[1] = 0xC0; /* internetwork control */
    wire_put16(ip + 2, (uint16_t)(IP_IGMP_LEN + len));
    wire_put16(ip + 6, NET_IPV4_DF);
    ip[8] = TTL;
    ip[9] = NET_PROTO_IGMP;
    if (own)
        memcpy(ip + 12, own->addr.b + 12, 4);
    wire_put32(ip + 16, to);
    ip[20] = 0x94; /* router alert */
    ip[21] = 4;
    wire_csum_put(ip + 10, wire_csum_add(0, ip, IP_IGMP_LEN));
    igmp[0] = !old ? IGMP_V3_REPORT : g->leaving ? IGMP_V2_LEAVE : IGMP_V2_REPORT;
    if (old) {
        wire_put32(igmp + 4, group);
    } else {
        igmp[7] = 1; /* record */
        igmp[8] = (uint8_t)record;
        wire_put32(igmp + 12, group);
    }
    wire_csum_put(igmp + 2, wire_csum_add(0, igmp, len));
    return net_pad(buf, (size_t)(igmp + len - buf));
}

static size_t put_mld(const struct net_port *p, uint8_t *buf, const struct net_group *g,
                      enum record record, bool old)
{
    static const uint8_t hop_by_hop[HBH_LEN] = {NET_PROTO_ICMP6, 0, 5, 2, 0, 0, 1, 0};
    const struct net_own *own = net_first_own(p, false, true);
    struct wire_addr dst = {{0xFF, 0x02, [15] = 0x16}}; /* all MLDv2 routers */
    size_t len = old ? 24 : 28;
    uint8_t mac[6];
    if (old && g->leaving)
        dst.b[15] = 2; /* all routers */
    else if (old)
        dst = g->addr;
    wire_mcast_mac(&dst, mac);
    uint8_t *ip = buf + net_put_ether(p, buf, mac, WIRE_ETHERTYPE_IPV6);
    uint8_t *mld = ip + WIRE_IPV6_LEN + HBH_LEN;
    memset(ip, 0, WIRE_IPV6_LEN + HBH_LEN + len);
    ip[0] = 0x60;
    wire_put16(ip + 4, (uint16_t)(HBH_LEN + len));
    ip[7] = TTL;
    if (own)
        memcpy(ip + 8, own->addr.b, 16);
    memcpy(ip + 24, dst.b, 16);
    memcpy(ip + WIRE_IPV6_LEN, hop_by_hop, HBH_LEN);
    mld[0] = !old ? MLD_V2_REPORT : g->leaving ? MLD_V1_DONE : MLD_V1_REPORT;
    if (old) {
        memcpy(mld + 8, g->addr.b, 16);
    } else {
        mld[7] = 1; /* record */
        mld[8] = (uint8_t)record;
        memcpy(mld + 12, g->addr.b, 16);
    }
    wire_csum_put(mld + 2, wire_csum_add(icmp6_pseudo_sum(ip, len), mld, len));
    return net_pad(buf, (size_t)(mld + len - buf));
}

size_t group_tx(struct net_port *p, uint8_t *buf, uint64_t now)
{
    for (size_t i = 0; i < p->group_count; i++) {
        struct net_group *g = &p->group[i];
        bool change = g->reports > 0 && now >= g->due;
        if (!g->send)
            continue;
        g->send = false;
        enum record record = !change ? IS_EXCLUDE : g->leaving ? TO_INCLUDE : TO_EXCLUDE;
        bool v4 = wire_addr_is_v4(&g->addr);
        bool report = is_reported(&g->addr);
        bool old = now < p->old_querier[!v4];
        size_t n = !report ? 0
                   : v4    ? put_igmp(p, buf, g, record, old)
                           : put_mld(p, buf, g, record, old);
        if (change) {
            g->reports--;
            g->due = now + NET_GROUP_NS;
        }
        g->answer = NET_NEVER;
        if (g->leaving && (g->reports == 0 || old)) {
            forget(p, i);
            i--;
        }
        if (n) {
            p->counters[NET_TX_GROUP]++;
            return n;
        }
    }
    return 0;
}

uint64_t group_deadline(const struct net_port *p)
{
    uint64_t at = NET_NEVER;
    for (size_t i = 0; i < p->group_count; i++) {
        const struct net_group *g = &p->group[i];
        if (g->send)
            continue;
        if (g->reports && g->due < at)
            at = g->due;
        if (g->answer < at)
            at = g->answer;
    }
    return at;
}

void group_expire(struct net_port *p, uint64_t now)
{
    for (size_t i = 0; i < p->group_count; i++) {
        struct net_group *g = &p->group[i];
        g->send |= (g->reports && now >= g->due) || now >= g->answer;
    }
}

/* ---- queries ---- */

/* Answer for `group` (zero: for all of the family) within `grant` ns. */
static void queried(struct net_port *p, const struct wire_addr *group, bool v4, uint64_t grant,
                    uint64_t now)
{
    for (size_t i = 0; i < p->group_count; i++) {
        struct net_group *g = &p->group[i];
        if (g->leaving || wire_addr_is_v4(&g->addr) != v4 ||
            (group && memcmp(group, &g->addr, sizeof(*group)) != 0))
            continue;
        uint32_t spread = wire_get32(p->config.mac + 2) ^ wire_get32(g->addr.b + 12);
        uint64_t at = now + grant / 256 * (spread * 0x9E3779B1u >> 24);
        if (at < g->answer)
            g->answer = at;
    }
}

void igmp_rx(struct net_port *p, const struct net_in *in, uint64_t now)
{
    const uint8_t *ip = in->l3;
    size_t hdr = (size_t)(ip[0] & 15u) * 4, total = wire_get16(ip + 2);
    const uint8_t *igmp = ip + hdr;
    p->counters[NET_RX_GROUP]++;
    if (hdr < WIRE_IPV4_LEN || total < hdr + 8 || total > in->len || ip[8] != TTL ||
        wire_csum_add(0, ip, hdr) != 0xFFFF || wire_csum_add(0, igmp, total - hdr) != 0xFFFF) {
        p->counters[NET_RX_BAD]++;
        return;
    }
    if (igmp[0] != IGMP_QUERY)
        return;
    uint32_t group = wire_get32(igmp + 4);
    struct wire_addr addr = wire_addr_v4(group);
    /* Tenths of a second; an exponent above 127; IGMPv1 says 0 and means 10 s. */
    uint64_t grant = igmp[1] == 0 ? 100 : igmp[1] > 127 ? 128 : igmp[1];
    if (total - hdr < 12)
        p->old_querier[0] = now + NET_OLD_QUERIER_NS;
    queried(p, group ? &addr : NULL, true, grant * 100 * NET_NS_PER_MS, now);
}

void mld_rx(struct net_port *p, const struct net_in *in, uint64_t now)
{
    static const struct wire_addr zero;
    const uint8_t *ip = in->l3, *hbh = ip + WIRE_IPV6_LEN;
    size_t total = wire_get16(ip + 4);
    size_t skip = in->len >= WIRE_IPV6_LEN + HBH_LEN ? (hbh[1] + 1u) * 8u : 0;
    struct wire_addr src, group;
    p->counters[NET_RX_GROUP]++;
    if (skip == 0 || hbh[0] != NET_PROTO_ICMP6 || total > in->len - WIRE_IPV6_LEN ||
        total < skip + 24 || ip[7] != TTL)
        goto bad;
    const uint8_t *mld = hbh + skip;
    size_t len = total - skip;
    if (wire_csum_add(icmp6_pseudo_sum(ip, len), mld, len) != 0xFFFF)
        goto bad;
    if (mld[0] != MLD_QUERY)
        return;
    memcpy(src.b, ip + 8, 16);
    memcpy(group.b, mld + 8, 16);
    if (!net_is_link_local(&src)) /* RFC 3810 section 5.1.14: from off the link */
        goto bad;
    uint64_t grant = wire_get16(mld + 4); /* ms; an exponent above 32767 */
    if (grant > 32767)
        grant = 32768;
    if (len < 28)
        p->old_querier[1] = now + NET_OLD_QUERIER_NS;
    bool general = memcmp(&group, &zero, sizeof(zero)) == 0;
    queried(p, general ? NULL : &group, false, grant * NET_NS_PER_MS, now);
    return;
bad:
    p->counters[NET_RX_BAD]++;
}
