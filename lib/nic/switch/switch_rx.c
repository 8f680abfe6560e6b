/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A frame is read only as far as needed to find its queue pair: the program's engine judges it.
 * Malformed frames go to the daemon's engine, which counts them.
 */
#include "switch_rx.h"

#include <string.h>

#include "channel.h"
#include "switch_group.h"
#include "switch_spill.h"
#include "wire_bytes.h"

#define IPV4_PLAIN 0x45 /* version, and a header without options */

/* The offset of the BTH of a RoCEv2 frame; 0: it is no such frame, or one for the daemon's engine.
 */
static uint32_t find_bth(const uint8_t *f, uint32_t len, uint32_t *ip_off)
{
    uint32_t ip = WIRE_ETH_LEN;
    if (len < WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV4_LEN + WIRE_UDP_LEN + WIRE_BTH_LEN)
        return 0;
    uint16_t type = wire_get16(f + 12);
    if (type == WIRE_ETHERTYPE_VLAN) {
        type = wire_get16(f + 16);
        ip += WIRE_VLAN_LEN;
    }
    *ip_off = ip;
    uint32_t udp = ip + (type == WIRE_ETHERTYPE_IPV6 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN);
    if (len < udp + WIRE_UDP_LEN + WIRE_BTH_LEN)
        return 0;
    const uint8_t *h = f + ip;
    bool good = type == WIRE_ETHERTYPE_IPV4
                    ? h[0] == IPV4_PLAIN && h[9] == WIRE_PROTO_UDP && !(wire_get16(h + 6) & 0x3FFF)
                    : type == WIRE_ETHERTYPE_IPV6 && h[0] >> 4 == 6 && h[6] == WIRE_PROTO_UDP;
    return good && wire_get16(f + udp + 2) == WIRE_UDP_PORT ? udp + WIRE_UDP_LEN : 0;
}

static struct wire_addr dest_addr(const uint8_t *ip)
{
    struct wire_addr a;
    if (ip[0] >> 4 == 4)
        return wire_addr_v4(wire_get32(ip + 16));
    memcpy(a.b, ip + 24, sizeof(a.b));
    return a;
}

/* Copy a datagram for the members of its group. Returns whether all of these are here. */
static bool copy(struct nic_switch *s, const struct io_frame *f, const uint8_t *ip)
{
    struct wire_addr group = dest_addr(ip);
    return switch_group_copy(s, &group, f) && s->engine_in && !s->engine_in(s->engine_arg, &group);
}

/* The channel that a frame is for. *copied: it is a datagram to a group, and needn't go further. */
static struct switch_channel *owner(struct nic_switch *s, const struct io_frame *f, bool *copied)
{
    *copied = false;
    uint32_t ip, bth = find_bth(f->data, f->len, &ip);
    if (bth == 0)
        return NULL;
    uint32_t qpn = wire_get32(f->data + bth + 4) & WIRE_QPN_MASK;
    if (qpn == WIRE_QPN_MULTICAST && (f->data[0] & 1) && s->ngroups > 0) {
        *copied = copy(s, f, f->data + ip);
        return NULL;
    }
    struct switch_channel *c = switch_owner(s, qpn);
    if (!c || c->ending || memcmp(f->data, s->mac, sizeof(s->mac)) != 0)
        return NULL;
    return c;
}

/* Count a lost frame: it doesn't fit, or there is no room to wait. */
static void lose(struct nic_switch *s, struct switch_channel *c)
{
    c->drops++;
    s->counters[SWITCH_C_channel_drops]++;
}

/* Slots in a channel's ring. None while frames wait: those go first. */
static unsigned reserve(struct switch_channel *c, struct io_slot *slots, unsigned want)
{
    unsigned n = switch_spills(c) ? 0 : c->io->ops->tx_reserve(c->io, slots, want, 0);
    c->stuck = c->stuck && n == 0;
    return n;
}

/* Until the next switch_wake, frames for this channel do not wake its program. */
static void hold(struct nic_switch *s, struct switch_channel *c)
{
    if (c->unwoken)
        return;
    channel_hold_wake(c->io, true);
    c->unwoken = true;
    c->unwoken_next = s->unwoken;
    s->unwoken = c;
}

void switch_wake(struct nic_switch *s, bool stream)
{
    if (!s->unwoken || (stream && ++s->held_bursts < SWITCH_HELD_BURSTS))
        return;
    for (struct switch_channel *c = s->unwoken; c; c = c->unwoken_next) {
        channel_hold_wake(c->io, false);
        c->unwoken = false;
    }
    s->unwoken = NULL;
    s->held_bursts = 0;
}

void switch_wake_forget(struct nic_switch *s, const struct switch_channel *c)
{
    struct switch_channel **at = &s->unwoken;
    while (*at && *at != c)
        at = &(*at)->unwoken_next;
    if (*at)
        *at = c->unwoken_next;
}

/* Give those of the frames that `which` names to a channel. */
static void give(struct nic_switch *s, struct switch_channel *c, const struct io_frame *frames,
                 uint64_t which)
{
    struct io_slot slots[IO_BURST_MAX];
    unsigned all = (unsigned)__builtin_popcountll(which), n = reserve(c, slots, all);
    if (all > SWITCH_FEW)
        hold(s, c);
    for (unsigned k = 0; k < n; which &= which - 1, k++) {
        const struct io_frame *f = &frames[__builtin_ctzll(which)];
        if (f->len > slots[k].cap) { /* left unsent */
            lose(s, c);
            continue;
        }
        memcpy(slots[k].data, f->data, f->len);
        slots[k].len = f->len;
        channel_tx_meta(c->io, k, f->flags);
        s->counters[SWITCH_C_channel_rx_frames]++;
    }
    if (n > 0)
        c->io->ops->tx_commit(c->io, slots, n, 0);
    for (; which; which &= which - 1) {
        if (!switch_spill(s, c, NULL, 0, &frames[__builtin_ctzll(which)]))
            lose(s, c);
    }
}

uint64_t switch_rx(struct nic_switch *s, const struct io_frame *frames, unsigned n)
{
    struct switch_channel *to[IO_BURST_MAX];
    uint64_t taken = 0, copied = 0;
    if (!s->channels)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        bool done;
        to[i] = owner(s, &frames[i], &done);
        copied |= (uint64_t)done << i;
        taken |= (uint64_t)(to[i] != NULL) << i;
    }
    for (uint64_t left = taken; left;) {
        struct switch_channel *c = to[__builtin_ctzll(left)];
        uint64_t which = 0;
        for (uint64_t m = left; m; m &= m - 1) {
            unsigned i = (unsigned)__builtin_ctzll(m);
            which |= (uint64_t)(to[i] == c) << i;
        }
        give(s, c, frames, which);
        left &= ~which;
    }
    return taken | copied;
}

bool switch_put(struct nic_switch *s, struct switch_channel *c, const uint8_t *head,
                uint32_t head_len, const struct io_frame *frame)
{
    struct io_slot slot;
    if (reserve(c, &slot, 1) == 0) {
        bool waits = switch_spill(s, c, head, head_len, frame);
        if (!waits)
            lose(s, c);
        return waits;
    }
    if (slot.cap < frame->len) {
        lose(s, c);
        return false;
    }
    if (head_len > 0)
        memcpy(slot.data, head, head_len);
    memcpy(slot.data + head_len, frame->data + head_len, frame->len - head_len);
    slot.len = frame->len;
    channel_tx_meta(c->io, 0, frame->flags);
    c->io->ops->tx_commit(c->io, &slot, 1, 0);
    s->counters[SWITCH_C_channel_rx_frames]++;
    return true;
}
