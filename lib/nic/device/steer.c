/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See steer.h. A look at a frame's headers that trusts nothing. A frame that is not clearly for
 * another member stays, and this member's engine judges it.
 */
#include "steer.h"

#include <string.h>

#include "device.h"
#include "qpn.h"
#include "team.h"
#include "wire.h"

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86DDu
#define ETHERTYPE_VLAN 0x8100u
#define IP_PROTO_UDP   17u
#define STEER_DETH_LEN 8u
#define STEER_ALL      TEAM_MAX

struct steer_look {
    const uint8_t *bth; /* NULL = it isn't RoCE, or damaged */
    uint32_t len;       /* octets from the BTH on */
    struct wire_addr dip;
};

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static struct steer_look steer_look(const uint8_t *f, uint32_t len)
{
    struct steer_look look = {.bth = NULL};
    uint32_t ip = WIRE_ETH_LEN, udp = 0;
    if (len < WIRE_ETH_LEN + WIRE_VLAN_LEN + 20)
        return look;
    uint32_t type = be16(f + 12);
    if (type == ETHERTYPE_VLAN) {
        type = be16(f + 16);
        ip += WIRE_VLAN_LEN;
    }
    if (type == ETHERTYPE_IPV4 && f[ip + 9] == IP_PROTO_UDP && (be16(f + ip + 6) & 0x3FFFu) == 0) {
        udp = ip + (f[ip] & 0xFu) * 4;
        memset(look.dip.b + 10, 0xFF, 2);
        memcpy(look.dip.b + 12, f + ip + 16, 4);
    } else if (type == ETHERTYPE_IPV6 && len >= ip + 40 && f[ip + 6] == IP_PROTO_UDP) {
        udp = ip + 40;
        memcpy(look.dip.b, f + ip + 24, 16);
    }
    uint32_t bth = udp + 8;
    if (udp == 0 || len < bth + WIRE_BTH_LEN + WIRE_ICRC_LEN || be16(f + udp + 2) != WIRE_UDP_PORT)
        return look;
    look.bth = f + bth;
    look.len = len - bth;
    return look;
}

/* The member that the packet is for; this one if unknown; or STEER_ALL. */
static unsigned steer_target(const struct device *d, const struct steer_look *look)
{
    const uint8_t *b = look->bth;
    uint32_t qpn = (uint32_t)b[5] << 16 | (uint32_t)b[6] << 8 | b[7];
    if (qpn == WIRE_QPN_GSI) {
        const uint32_t headers = WIRE_BTH_LEN + STEER_DETH_LEN;
        int k = look->len < headers + WIRE_ICRC_LEN
                    ? -1
                    : d->gsi->ops->member(d->gsi, b + headers, look->len - headers - WIRE_ICRC_LEN,
                                          &look->dip);
        if (k == GSI_ALL)
            return STEER_ALL;
        return k >= 0 && (unsigned)k < d->team->n ? (unsigned)k : 0;
    }
    const int program = blocks_worker(&d->team->blocks, qpn);
    unsigned k = program >= 0 ? (unsigned)program : qpn_worker(qpn, d->team->bits);
    return k < d->team->n ? k : d->member;
}

static void steer_put(struct device *d, unsigned k, const uint8_t *frame, uint32_t len,
                      uint32_t flags)
{
    if (!frame_ring_put(d->team->ring[d->member][k], frame, len, flags))
        d->stats.steer_lost++;
    d->steered |= 1u << k;
}

/* Pass it to all other members in the group; `flags` are those of each frame but the first. Returns
 * whether this member is in the group as well, or none is. */
static bool steer_group(struct device *d, const struct wire_addr *group, const uint8_t *frame,
                        uint32_t len, uint32_t first, uint32_t flags)
{
    unsigned in = team_in_group(d->team, group);
    const bool here = (in >> d->member & 1) || in == 0;
    if (here)
        first = flags;
    for (unsigned k = 0; k < d->team->n; k++) {
        if (k == d->member || !(in >> k & 1))
            continue;
        steer_put(d, k, frame, len, first);
        first = flags;
    }
    return here;
}

static void steer_all(struct device *d, const uint8_t *frame, uint32_t len, uint32_t flags)
{
    for (unsigned k = 0; k < d->team->n; k++) {
        if (k != d->member)
            steer_put(d, k, frame, len, flags);
    }
}

bool steer_away(struct device *d, const struct io_frame *frame)
{
    struct steer_look look = steer_look(frame->data, frame->len);
    if (!look.bth)
        return false;
    if (frame->data[0] & 1)
        return !steer_group(d, &look.dip, frame->data, frame->len, frame->flags,
                            frame->flags | STEER_COPY);
    unsigned k = steer_target(d, &look);
    if (k == STEER_ALL) {
        steer_all(d, frame->data, frame->len, frame->flags | STEER_COPY);
        return false;
    }
    if (k == d->member) {
        d->stats.steer_right++;
        return false;
    }
    d->stats.steer_moved++;
    steer_put(d, k, frame->data, frame->len, frame->flags);
    return true;
}

void steer_copy(struct device *d, const uint8_t *frame, uint32_t len)
{
    steer_all(d, frame, len, STEER_COPY);
}

bool steer_loop(struct device *d, const struct io_slot *slot)
{
    struct steer_look look = steer_look(slot->data, slot->len);
    unsigned k = look.bth ? steer_target(d, &look) : d->member;
    if (k == STEER_ALL)
        steer_all(d, slot->data, slot->len, STEER_LOOP | STEER_COPY);
    if (k == STEER_ALL || k == d->member)
        return false;
    steer_put(d, k, slot->data, slot->len, STEER_LOOP);
    return true;
}

void steer_loop_group(struct device *d, const struct io_slot *slot)
{
    struct steer_look look = steer_look(slot->data, slot->len);
    if (look.bth)
        steer_group(d, &look.dip, slot->data, slot->len, STEER_LOOP, STEER_LOOP);
}

bool steer_groups(const struct device *d)
{
    return (atomic_load_explicit(&d->team->in_groups, memory_order_relaxed) & ~(1u << d->member)) !=
           0;
}

void steer_wake(struct device *d)
{
    unsigned steered = d->steered;
    d->steered = 0;
    for (unsigned k = 0; steered >> k; k++) {
        if (steered >> k & 1)
            team_wake(d->team, k);
    }
}

/* Members take turns to be first. */
unsigned steer_peek(struct device *d, struct io_frame *out, unsigned max)
{
    unsigned n = 0;
    d->lent = 0;
    for (unsigned i = 0; i < d->team->n && n < max; i++) {
        unsigned k = (d->turn + i) % d->team->n;
        if (k == d->member)
            continue;
        unsigned m = frame_ring_peek(d->team->ring[k][d->member], out + n, max - n);
        if (m > 0)
            d->lent |= 1u << k;
        n += m;
    }
    d->turn++;
    return n;
}

void steer_release(struct device *d)
{
    for (unsigned k = 0; d->lent >> k; k++) {
        if (d->lent >> k & 1)
            frame_ring_release(d->team->ring[k][d->member]);
    }
    d->lent = 0;
}
