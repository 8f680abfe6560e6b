/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port: creation, taking frames apart by EtherType, and the frames that it sends by itself.
 *
 * Timers: the announcements of an address (NET_ANNOUNCE_NS apart), and one per neighbour (see
 * net_neigh.c). A timer that runs out marks something to send; net_tx sends it.
 */
#include "net_port.h"

#include <stdlib.h>
#include <string.h>

#define ETH_MIN     60u   /* least frame without FCS */
#define VID_MAX     4094u /* 4095 is reserved */
#define MTU_MIN     576u  /* accepted by every IPv4 host */
#define MTU_DEFAULT 1500u

size_t net_put_ether(const struct net_port *p, uint8_t *buf, const uint8_t dmac[6], uint16_t type)
{
    uint8_t *at = buf + 12;
    memcpy(buf, dmac, 6);
    memcpy(buf + 6, p->config.mac, 6);
    if (p->config.vlan) {
        wire_put16(at, WIRE_ETHERTYPE_VLAN);
        wire_put16(at + 2, p->config.vlan);
        at += WIRE_VLAN_LEN;
    }
    wire_put16(at, type);
    return (size_t)(at + 2 - buf);
}

size_t net_pad(uint8_t *buf, size_t len)
{
    if (len >= ETH_MIN)
        return len;
    memset(buf + len, 0, ETH_MIN - len);
    return ETH_MIN;
}

/* fe80::/64 with the MAC as EUI-64 (GID-03). */
static struct wire_addr link_local(const uint8_t mac[6])
{
    return (struct wire_addr){{0xFE, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xFF, 0xFE,
                               mac[3], mac[4], mac[5]}};
}

struct net_port *net_port_new(const struct net_config *config, uint64_t now)
{
    static const uint8_t zero[6];
    if ((config->mac[0] & 1) || memcmp(config->mac, zero, 6) == 0 || config->vlan > VID_MAX ||
        (config->mtu && config->mtu < MTU_MIN) || config->neighbours > NET_NEIGH_MAX)
        return NULL;
    struct net_port *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->config = *config;
    if (!p->config.mtu)
        p->config.mtu = MTU_DEFAULT;
    if (!p->config.neighbours)
        p->config.neighbours = NET_NEIGH_DEFAULT;
    if (neigh_table_init(p) != 0) {
        net_port_free(p);
        return NULL;
    }
    struct wire_addr ll = link_local(config->mac);
    net_addr_add(p, &ll, 64, now);
    return p;
}

void net_mac_set(struct net_port *port, const uint8_t mac[6], uint64_t now)
{
    memcpy(port->config.mac, mac, 6);
    net_announce(port, now);
}

void net_mtu_set(struct net_port *port, uint16_t mtu)
{
    port->config.mtu = mtu < MTU_MIN ? MTU_MIN : mtu;
}

void net_port_free(struct net_port *port)
{
    if (!port)
        return;
    free(port->table);
    free(port->hash);
    free(port);
}

/* cap >= NET_TX_MAX */
static size_t take(struct net_port *port, const uint8_t *frame, size_t len, uint64_t now,
                   uint8_t *reply, size_t cap)
{
    if (len < WIRE_ETH_LEN) {
        port->counters[NET_RX_BAD]++;
        return 0;
    }
    struct net_in in = {
        .smac = frame + 6,
        .to_us = memcmp(frame, port->config.mac, 6) == 0,
    };
    size_t off = WIRE_ETH_LEN;
    uint16_t vid = 0;
    uint16_t type = wire_get16(frame + 12);
    if (type == WIRE_ETHERTYPE_VLAN && len >= off + WIRE_VLAN_LEN) {
        vid = wire_get16(frame + off) & 0xFFFu;
        type = wire_get16(frame + off + 2);
        off += WIRE_VLAN_LEN;
    }
    if (vid != port->config.vlan) {
        port->counters[NET_RX_WRONG_VLAN]++;
        return 0;
    }
    /* For another host, or one of our own frames that came back, or nonsense. */
    if ((!in.to_us && !(frame[0] & 1)) || memcmp(in.smac, port->config.mac, 6) == 0 ||
        (in.smac[0] & 1)) {
        port->counters[NET_RX_OTHER]++;
        return 0;
    }
    in.l3 = frame + off;
    in.len = len - off;
    switch (type) {
    case WIRE_ETHERTYPE_ARP:
        return arp_rx(port, &in, now, reply);
    case WIRE_ETHERTYPE_IPV4:
        return icmp_rx_v4(port, &in, now, reply, cap);
    case WIRE_ETHERTYPE_IPV6:
        return icmp_rx_v6(port, &in, now, reply, cap);
    default:
        port->counters[NET_RX_OTHER]++;
        return 0;
    }
}

size_t net_rx(struct net_port *port, const uint8_t *frame, size_t len, uint64_t now, uint8_t *reply,
              size_t cap)
{
    uint8_t nowhere[NET_TX_MAX];
    if (cap >= NET_TX_MAX)
        return take(port, frame, len, now, reply, cap);
    take(port, frame, len, now, nowhere, sizeof(nowhere));
    return 0;
}

static size_t announce(struct net_port *p, uint8_t *buf, const struct wire_addr *addr)
{
    if (wire_addr_is_v4(addr)) {
        p->counters[NET_TX_ARP]++;
        return arp_request(p, buf, addr, addr, NULL);
    }
    p->counters[NET_TX_ND]++;
    return nd_advertise(p, buf, addr);
}

/* The next announcement of an own address. */
static size_t tx_announcement(struct net_port *p, uint8_t *buf, uint64_t now)
{
    for (size_t i = 0; i < p->own_count; i++) {
        struct net_own *o = &p->own[i];
        if (o->defend_now) {
            o->defend_now = false;
            p->counters[NET_ADDR_DEFENDED]++;
            return announce(p, buf, &o->addr);
        }
        if (!o->announce_now)
            continue;
        o->announce_now = false;
        o->announcements--;
        o->announce_due = now + NET_ANNOUNCE_NS;
        if (!o->foreign)
            return announce(p, buf, &o->addr);
    }
    return 0;
}

static struct neigh *next_request(struct net_port *p)
{
    struct neigh *n = TAILQ_FIRST(&p->tx);
    if (n) {
        TAILQ_REMOVE(&p->tx, n, tx);
        n->wants_tx = false;
    }
    return n;
}

bool net_next_request(struct net_port *port, struct wire_addr *addr)
{
    const struct neigh *n = port->config.quiet ? next_request(port) : NULL;
    if (n)
        *addr = n->addr;
    return n != NULL;
}

/* The next request for a neighbour. */
static size_t tx_request(struct net_port *p, uint8_t *buf)
{
    const struct neigh *n;
    while ((n = next_request(p))) {
        const struct net_own *own = net_reaching(p, &n->addr);
        const uint8_t *dmac = n->state == NET_PROBE ? n->mac : NULL;
        if (!own)
            continue; /* its prefix has gone meanwhile */
        if (wire_addr_is_v4(&n->addr)) {
            p->counters[NET_TX_ARP]++;
            return arp_request(p, buf, &own->addr, &n->addr, dmac);
        }
        p->counters[NET_TX_ND]++;
        return nd_solicit(p, buf, &own->addr, &n->addr, dmac);
    }
    return 0;
}

size_t net_tx(struct net_port *port, uint8_t *buf, size_t cap, uint64_t now)
{
    if (cap < NET_TX_MAX)
        return 0;
    size_t n = tx_announcement(port, buf, now);
    if (!n)
        n = group_tx(port, buf, now);
    return n || port->config.quiet ? n : tx_request(port, buf);
}

uint64_t net_deadline(const struct net_port *port)
{
    uint64_t due = group_deadline(port);
    if (port->neigh_due < due)
        due = port->neigh_due;
    for (size_t i = 0; i < port->own_count; i++) {
        const struct net_own *o = &port->own[i];
        if (o->announcements && !o->announce_now && o->announce_due < due)
            due = o->announce_due;
    }
    return due;
}

void net_expire(struct net_port *port, uint64_t now)
{
    for (size_t i = 0; i < port->own_count; i++) {
        struct net_own *o = &port->own[i];
        if (o->announcements && now >= o->announce_due)
            o->announce_now = true;
    }
    group_expire(port, now);
    neigh_expire(port, now);
}

uint64_t net_counter(const struct net_port *port, enum net_counter c)
{
    return (unsigned)c < NET_COUNTERS ? port->counters[c] : 0;
}

const char *net_counter_name(enum net_counter c)
{
    static const char *const names[NET_COUNTERS] = {
        [NET_RX_ARP] = "net_rx_arp",
        [NET_RX_ND] = "net_rx_nd",
        [NET_RX_ECHO] = "net_rx_echo",
        [NET_RX_BAD] = "net_rx_bad",
        [NET_RX_OTHER] = "net_rx_other",
        [NET_RX_WRONG_VLAN] = "net_rx_wrong_vlan",
        [NET_TX_ARP] = "net_tx_arp",
        [NET_TX_ND] = "net_tx_nd",
        [NET_TX_ECHO] = "net_tx_echo",
        [NET_RX_GROUP] = "net_rx_group",
        [NET_TX_GROUP] = "net_tx_group",
        [NET_ECHO_LIMITED] = "net_echo_limited",
        [NET_ADDR_CONFLICT] = "net_addr_conflict",
        [NET_ADDR_DEFENDED] = "net_addr_defended",
        [NET_NEIGH_CHANGED] = "net_neigh_changed",
        [NET_NEIGH_CLAIMED] = "net_neigh_claimed",
        [NET_NEIGH_FAILED] = "net_neigh_failed",
        [NET_NEIGH_EVICTED] = "net_neigh_evicted",
        [NET_RX_TOO_BIG] = "net_rx_too_big",
    };
    return (unsigned)c < NET_COUNTERS ? names[c] : "unknown";
}
