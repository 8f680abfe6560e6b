/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ARP (RFC 826) for Ethernet and IPv4, announcements as RFC 5227 has them.
 *
 *     octets 0-1 hardware 1, 2-3 protocol 0x0800, 4 length 6, 5 length 4, 6-7 operation,
 *     8-13 sender MAC, 14-17 sender IP, 18-23 target MAC, 24-27 target IP
 */
#include <string.h>

#include "net_port.h"

#define ARP_LEN     28u
#define ARP_REQUEST 1u
#define ARP_REPLY   2u

static const uint8_t broadcast[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
static const uint8_t zero_mac[6];
static const uint8_t fixed[6] = {0x00, 0x01, 0x08, 0x00, 6, 4};

static size_t put_arp(const struct net_port *p, uint8_t *buf, const uint8_t *dmac, uint16_t op,
                      const uint8_t *sender_ip, const uint8_t *target_mac, const uint8_t *target_ip)
{
    uint8_t *a = buf + net_put_ether(p, buf, dmac, WIRE_ETHERTYPE_ARP);
    memcpy(a, fixed, sizeof(fixed));
    wire_put16(a + 6, op);
    memcpy(a + 8, p->config.mac, 6);
    memcpy(a + 14, sender_ip, 4);
    memcpy(a + 18, target_mac, 6);
    memcpy(a + 24, target_ip, 4);
    return net_pad(buf, (size_t)(a + ARP_LEN - buf));
}

size_t arp_request(const struct net_port *p, uint8_t *buf, const struct wire_addr *src,
                   const struct wire_addr *target, const uint8_t *dmac)
{
    return put_arp(p, buf, dmac ? dmac : broadcast, ARP_REQUEST, src->b + 12, zero_mac,
                   target->b + 12);
}

size_t arp_rx(struct net_port *p, const struct net_in *in, uint64_t now, uint8_t *reply)
{
    const uint8_t *a = in->l3;
    p->counters[NET_RX_ARP]++;
    uint16_t op = in->len >= ARP_LEN ? wire_get16(a + 6) : 0;
    if ((op != ARP_REQUEST && op != ARP_REPLY) || memcmp(a, fixed, sizeof(fixed)) != 0 ||
        (a[8] & 1) || memcmp(a + 8, zero_mac, 6) == 0) {
        p->counters[NET_RX_BAD]++;
        return 0;
    }
    struct wire_addr sender = wire_addr_v4(wire_get32(a + 14));
    struct wire_addr target = wire_addr_v4(wire_get32(a + 24));
    if (net_addr_has(p, &sender)) {
        net_contested(p, &sender, a + 8, now);
        return 0;
    }
    /* A host that looks whether its address is free says that it is 0.0.0.0: not unicast. */
    bool on_link = net_is_unicast(&sender) && net_reaching(p, &sender);
    bool announcement = memcmp(&sender, &target, sizeof(sender)) == 0;
    bool solicited = op == ARP_REPLY && in->to_us;
    /* No checksum covers ARP: a packet that names another MAC than its source must come twice. */
    bool sure = !solicited || memcmp(in->smac, a + 8, 6) == 0 || neigh_is_at(p, &sender, a + 8);
    if (on_link && (announcement || !neigh_locked(p, &sender, a + 8, now)))
        neigh_heard(p, &sender, a + 8, solicited && sure, sure, now);
    if (op != ARP_REQUEST || !net_answers(p, &target))
        return 0;
    if (on_link)
        neigh_learn(p, &sender, a + 8);
    p->counters[NET_TX_ARP]++;
    return put_arp(p, reply, a + 8, ARP_REPLY, a + 24, a + 8, a + 14);
}
