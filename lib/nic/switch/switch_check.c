/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parser is the receiver's, and reads no octet after the copy. The checks here are those that
 * it doesn't make: the owners of addresses and numbers.
 */
#include "switch_check.h"

#include <string.h>

#include "pair.h"
#include "share.h"

#define CONTROLLED 0x80000000u /* KEY-08 */
#define ETH_MIN    60u         /* octets: shorter frames are padded with zeroes */

static enum switch_way refuse(struct switch_frame *out, enum switch_counter why)
{
    out->why = why;
    return SWITCH_REFUSED;
}

/* Does the frame end with its iCRC, apart from Ethernet's padding (SEC-11)? */
static bool ends_well(const struct switch_frame *f, uint32_t len, const struct wire_pkt *p)
{
    uint32_t end = p->icrc_off + WIRE_ICRC_LEN;
    if (end == len)
        return true;
    if (len != ETH_MIN)
        return false;
    while (end < len && f->head[end] == 0)
        end++;
    return end == len;
}

static bool vlan_is_ours(const struct nic_switch *s, const struct wire_pkt *p)
{
    return s->vlan ? p->vlan && (p->tci & 0xFFF) == s->vlan : !p->vlan;
}

/* Is the destination MAC that of a group when the address is, and only then? */
static bool dest_agrees(const struct wire_pkt *p, bool group)
{
    uint8_t mac[6];
    if (!group)
        return (p->dmac[0] & 1) == 0;
    wire_mcast_mac(&p->dip, mac);
    return memcmp(mac, p->dmac, sizeof(mac)) == 0;
}

/* Use the neighbour's MAC that the daemon knows now, because a program's queue pairs don't learn of
 * a new one (WIRE-07). If the daemon knows none, use the program's. */
static void set_next_hop(const struct nic_switch *s, struct switch_channel *from,
                         const struct wire_addr *dst, uint8_t *mac)
{
    if (!s->next_hop)
        return;
    if (from->hop_round != s->rounds || memcmp(from->hop_of.b, dst->b, sizeof(dst->b)) != 0) {
        from->hop_round = s->rounds;
        from->hop_of = *dst;
        from->hop_known = s->next_hop(s->engine_arg, from->share, dst, from->hop) == 0;
    }
    if (from->hop_known)
        memcpy(mac, from->hop, sizeof(from->hop));
}

static bool parse(const struct nic_switch *s, const struct io_frame *frame,
                  struct switch_frame *out, struct wire_pkt *p)
{
    out->head_len = frame->len < SWITCH_HEAD ? frame->len : SWITCH_HEAD;
    memcpy(out->head, frame->data, out->head_len);
    return wire_parse_cut(out->head, out->head_len, frame->len, s->parse, p) == WIRE_OK &&
           ends_well(out, frame->len, p);
}

enum switch_way switch_check_stray(const struct nic_switch *s, const struct io_frame *frame,
                                   struct switch_frame *out)
{
    struct wire_pkt p;
    if (!parse(s, frame, out, &p))
        return refuse(out, SWITCH_C_channel_bad_frame);
    if (memcmp(p.dmac, s->mac, sizeof(s->mac)) != 0 || !switch_has_addr(s, &p.dip))
        return refuse(out, SWITCH_C_channel_bad_dest);
    if (p.dqpn <= WIRE_QPN_GSI)
        return refuse(out, SWITCH_C_channel_bad_qpn);
    out->to = switch_owner(s, p.dqpn);
    return out->to && !out->to->ending ? SWITCH_INSIDE : SWITCH_PORT;
}

/* Is the packet for the queue pair's peer? */
static bool for_peer(const struct switch_pair *pair, const struct wire_pkt *p)
{
    return pair && pair->peer_qpn == p->dqpn &&
           memcmp(pair->peer.b, p->dip.b, sizeof(p->dip.b)) == 0 &&
           memcmp(pair->local.b, p->sip.b, sizeof(p->sip.b)) == 0;
}

/* Check the packet's sender. *pair: the sending queue pair and its peer. NULL = the packet is a
 * datagram, or a CNP to a queue pair that is not the peer. Returns the reason for a refusal;
 * SWITCH_COUNTER_MAX = none. */
static enum switch_counter judge(const struct nic_switch *s, const struct switch_channel *from,
                                 uint32_t qpn, const struct wire_pkt *p,
                                 const struct switch_pair **pair)
{
    *pair = NULL;
    if (wire_opcodes[p->opcode].headers & WIRE_H_DETH) {
        if (switch_owner(s, p->sqpn) != from)
            return SWITCH_C_channel_bad_srcqp;
        return p->qkey & CONTROLLED ? SWITCH_C_channel_bad_qkey : SWITCH_COUNTER_MAX;
    }
    const struct switch_pair *of = switch_pair_of(from, qpn);
    if (for_peer(of, p))
        *pair = of;
    else if (p->opcode != WIRE_OPCODE_CNP)
        return SWITCH_C_channel_bad_peer;
    else if (!share_may_notify(from->share, s->now))
        return SWITCH_C_channel_cnp_drops;
    return SWITCH_COUNTER_MAX;
}

enum switch_way switch_check(const struct nic_switch *s, struct switch_channel *from, uint32_t qpn,
                             const struct io_frame *frame, struct switch_frame *out)
{
    const struct switch_pair *pair;
    struct wire_pkt p;
    if (!parse(s, frame, out, &p))
        return refuse(out, SWITCH_C_channel_bad_frame);
    if (!vlan_is_ours(s, &p))
        return refuse(out, SWITCH_C_channel_bad_vlan);
    if (!switch_has_addr(s, &p.sip))
        return refuse(out, SWITCH_C_channel_bad_source);
    bool group = p.dqpn == WIRE_QPN_MULTICAST;
    if (!dest_agrees(&p, group))
        return refuse(out, SWITCH_C_channel_bad_dest);
    if (p.dqpn <= WIRE_QPN_GSI)
        return refuse(out, SWITCH_C_channel_bad_qpn);
    enum switch_counter why = judge(s, from, qpn, &p, &pair);
    if (why != SWITCH_COUNTER_MAX)
        return refuse(out, why);
    memcpy(out->head + 6, s->mac, sizeof(s->mac));
    if (pair)
        memcpy(out->head, pair->mac, sizeof(pair->mac));
    if (!group)
        set_next_hop(s, from, &p.dip, out->head);
    out->to = NULL;
    if (memcmp(out->head, s->mac, sizeof(s->mac)) == 0)
        out->to = switch_owner(s, p.dqpn);
    return out->to && !out->to->ending ? SWITCH_INSIDE : SWITCH_PORT;
}
