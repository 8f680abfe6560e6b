/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See capread_train.h. Nothing in the packet says how long its datagrams are. The second one begins
 * where the BTH's partition key and destination queue pair stand again, and where the octets before
 * it are the iCRC of the first one.
 *
 * Only packets from port 4791 with a UDP checksum are looked at: sockets send so, and cards don't.
 */
#include "capread_train.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"
#include "wire_bytes.h"
#include "wire_csum.h"

#define LEAST     (WIRE_BTH_LEN + WIRE_ICRC_LEN)
#define BTH_PKEY  2u
#define BTH_DQPN  5u
#define TRAIN_MAX 65536u

/* Make `out` the packet of the datagram of `len` octets at `datagram`, at this place of the train.
 */
static void make_frame(const struct capread_train *t, const uint8_t *from, const uint8_t *datagram,
                       uint32_t len, uint16_t place, uint8_t *out)
{
    memcpy(out, from, t->hdr);
    memcpy(out + t->hdr, datagram, len);
    uint8_t *udp = out + t->hdr - WIRE_UDP_LEN;
    wire_put16(udp + 4, (uint16_t)(len + WIRE_UDP_LEN));
    wire_put16(udp + 6, 0);
    uint8_t *ip = out + WIRE_ETH_LEN;
    if (wire_get16(out + 12) == WIRE_ETHERTYPE_VLAN)
        ip += WIRE_VLAN_LEN;
    if (ip[0] >> 4 == 6) {
        wire_put16(ip + 4, (uint16_t)(len + WIRE_UDP_LEN));
        return;
    }
    wire_put16(ip + 2, (uint16_t)(len + WIRE_UDP_LEN + WIRE_IPV4_LEN));
    wire_put16(ip + 4, (uint16_t)(wire_get16(ip + 4) + place));
    wire_put16(ip + 10, 0);
    wire_csum_put(ip + 10, wire_csum_add(0, ip, WIRE_IPV4_LEN));
}

static bool is_sealed(const struct capread_train *t, const uint8_t *frame, uint32_t len)
{
    uint16_t ip =
        (uint16_t)(wire_get16(frame + 12) == WIRE_ETHERTYPE_VLAN ? WIRE_ETH_LEN + WIRE_VLAN_LEN
                                                                 : WIRE_ETH_LEN);

    return wire_icrc(frame, len, ip, (uint16_t)t->hdr) == wire_get32le(frame + len - WIRE_ICRC_LEN);
}

/* Find the headers' end, and how much payload there is. False: nothing that may be a train. */
static bool read_headers(struct capread_train *t, const struct capread_packet *p)
{
    const uint8_t *f = p->frame;
    uint32_t ip = WIRE_ETH_LEN;

    if (p->len < WIRE_ETH_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + 2 * LEAST || p->len > TRAIN_MAX)
        return false;
    uint16_t type = wire_get16(f + 12);
    if (type == WIRE_ETHERTYPE_VLAN) {
        type = wire_get16(f + 16);
        ip += WIRE_VLAN_LEN;
    }
    if (type == WIRE_ETHERTYPE_IPV4 && f[ip] == 0x45 && f[ip + 9] == WIRE_PROTO_UDP)
        t->hdr = ip + WIRE_IPV4_LEN + WIRE_UDP_LEN;
    else if (type == WIRE_ETHERTYPE_IPV6 && f[ip] >> 4 == 6 && f[ip + 6] == WIRE_PROTO_UDP)
        t->hdr = ip + WIRE_IPV6_LEN + WIRE_UDP_LEN;
    else
        return false;
    if (p->len < t->hdr + 2 * LEAST)
        return false;
    const uint8_t *udp = f + t->hdr - WIRE_UDP_LEN;
    if (wire_get16(udp) != WIRE_UDP_PORT || wire_get16(udp + 2) != WIRE_UDP_PORT ||
        wire_get16(udp + 6) == 0)
        return false;
    uint32_t udp_len = wire_get16(udp + 4);
    t->at = 0;
    t->end = udp_len > WIRE_UDP_LEN ? udp_len - WIRE_UDP_LEN : 0;
    return t->end >= 2 * LEAST && t->hdr + t->end <= p->len;
}

static uint32_t find_segment(struct capread_train *t, const struct capread_packet *p)
{
    const uint8_t *bth = p->frame + t->hdr;

    for (uint32_t s = LEAST; s + LEAST <= t->end && t->hdr + s <= sizeof(t->frame); s += 4) {
        if (memcmp(bth + s + BTH_PKEY, bth + BTH_PKEY, 2) != 0 ||
            memcmp(bth + s + BTH_DQPN, bth + BTH_DQPN, 3) != 0)
            continue;
        make_frame(t, p->frame, bth, s, 0, t->frame);
        if (is_sealed(t, t->frame, t->hdr + s))
            return s;
    }
    return 0;
}

bool capread_train(struct capread_train *t, struct capread_packet *p)
{
    t->end = 0;
    if (!read_headers(t, p) || is_sealed(t, p->frame, t->hdr + t->end)) {
        t->end = 0;
        return false;
    }
    t->segment = find_segment(t, p);
    if (t->segment && !t->octets)
        t->octets = malloc(TRAIN_MAX);
    if (!t->segment || !t->octets) {
        t->end = 0;
        return false;
    }
    memcpy(t->octets, p->frame, t->hdr + t->end);
    t->packet = *p;
    t->place = 0;
    return capread_train_next(t, p);
}

bool capread_train_next(struct capread_train *t, struct capread_packet *p)
{
    if (t->at >= t->end)
        return false;
    uint32_t len = t->end - t->at < t->segment ? t->end - t->at : t->segment;
    make_frame(t, t->octets, t->octets + t->hdr + t->at, len, t->place, t->frame);
    *p = t->packet;
    p->frame = t->frame;
    p->len = p->wire_len = t->hdr + len;
    t->at += len;
    t->place++;
    return true;
}

void capread_train_free(struct capread_train *t)
{
    free(t->octets);
}
