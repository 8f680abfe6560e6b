/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A CNP is made when the mark is seen, waits in a queue of the engine, and is sent before
 * everything else. It takes no PSN and is never retransmitted. Only the interval limits CNPs, and a
 * cap that keeps a flood of marks from becoming a flood of CNPs.
 */
#include "cnp.h"

#include <string.h>

#include "engine_priv.h"
#include "limiter.h"
#include "rx.h"
#include "slot.h"

#define CAP_BURST_NS 1000000u /* as many at once as the cap allows in this time */

/* CC-04, CC-26: the first one at once; then one per interval, and one per received burst, which has
 * one `now`. at = time of the last one, 0 = never. */
static bool due(uint64_t at, uint64_t interval, uint64_t now)
{
    return !at || (now - at >= interval && now != at);
}

static struct cnp_peer *peer(struct cnp_state *c, const struct wire_addr *ip)
{
    uint64_t h = 0;
    for (unsigned i = 0; i < sizeof(ip->b); i++)
        h = (h ^ ip->b[i]) * 0x100000001b3ull;
    struct cnp_peer *p = &c->peer[(h >> 32) % CNP_PEERS];
    if (memcmp(&p->ip, ip, sizeof(*ip)) != 0)
        *p = (struct cnp_peer){.ip = *ip};
    return p;
}

/* CC-05: the time of the last CNP of this scope (queue pair, address, port). */
static uint64_t *last_made(struct rx *rx, struct qp *qp, unsigned scope)
{
    struct cnp_state *c = rx->e->cnp;
    switch (scope) {
    case CC_SCOPE_IP:
        return &peer(c, &rx->pkt.sip)->at;
    case CC_SCOPE_PORT:
        return &c->port_at;
    default:
        return &qp->cnp_at;
    }
}

static bool under_cap(struct cnp_state *c, uint64_t per_second, uint64_t now)
{
    if (c->cap_at > now)
        return false;
    if (now - c->cap_at > CAP_BURST_NS)
        c->cap_at = now - CAP_BURST_NS;
    c->cap_at += 1000000000u / per_second;
    return true;
}

/* CC-06, OPC-05. */
static void build(const struct rx *rx, const struct qp *qp, const uint64_t *v, struct cnp *out)
{
    const struct wire_pkt *in = &rx->pkt;
    bool connected = qp_connected(qp);
    uint32_t dqpn = connected ? qp->dest_qpn : in->sqpn;
    uint32_t flow = connected ? qp->attr.av.flow_label : in->flow_label;
    struct wire_pkt p = {
        .ip_version = in->ip_version,
        .vlan = in->vlan,
        .tci = (uint16_t)(v[CC_P_cnp_prio] << 13 | (in->tci & 0xFFF)),
        .tclass = (uint8_t)(v[CC_P_cnp_dscp] << 2 | v[CC_P_cnp_ecn]),
        .ttl = WIRE_TTL_DEFAULT,
        .ip_flags = WIRE_IP_DF,
        .flow_label = flow,
        .sip = in->dip,
        .dip = in->sip,
        .sport = rx->e->p.sport ? rx->e->p.sport : wire_udp_sport(flow, qp->qpn, dqpn),
        .opcode = WIRE_OPCODE_CNP,
        .pkey = qp->pkey,
        .dqpn = dqpn,
        .becn = true,
    };
    memcpy(p.dmac, connected ? qp->attr.av.dmac : in->smac, 6);
    memcpy(p.smac, rx->e->p.mac, 6);
    out->payload_off = (uint16_t)wire_build(out->frame, sizeof(out->frame), &p);
    out->len = (uint16_t)wire_frame_len(&p);
    out->ip_off = p.ip_off;
    out->bth_off = p.bth_off;
    out->qpn = qp->qpn;
}

bool cnp_make(struct rx *rx, struct qp *qp)
{
    struct cnp_state *c = rx->e->cnp;
    const uint64_t *v = qp->cc_conf->conf.v;
    if (!v[CC_P_np] || !(v[CC_P_prios] >> (qp->attr.av.sl & 7) & 1) ||
        wire_addr_is_multicast(&rx->pkt.dip)) /* a CNP can't come from a group's address */
        return false;
    uint64_t *last = last_made(rx, qp, (unsigned)v[CC_P_cnp_scope]);
    if (c->tail - c->head == CNP_QUEUE || !due(*last, v[CC_P_cnp_interval], rx->now) ||
        !under_cap(c, v[CC_P_cnp_max], rx->now))
        return false;
    *last = rx->now;
    build(rx, qp, v, &c->queue[c->tail++ % CNP_QUEUE]);
    rx->e->cnps++;
    return true;
}

void cnp_on_mark(struct rx *rx, struct qp *qp)
{
    engine_count(rx->e, ENGINE_C_np_ecn_marked_roce_packets);
    if (!(rx->op->flags & WIRE_F_CNP)) /* CC-07 */
        cnp_make(rx, qp);
}

unsigned cnp_tx(struct engine *e, struct engine_slot *slots, unsigned n)
{
    struct cnp_state *c = e->cnp;
    unsigned k;
    for (k = 0; k < n && e->cnps; k++, e->cnps--) {
        const struct cnp *p = &c->queue[c->head++ % CNP_QUEUE];
        struct engine_slot *s = &slots[k];
        memcpy(s->buf, p->frame, p->len);
        s->len = p->len;
        s->ip_off = p->ip_off;
        s->bth_off = p->bth_off;
        s->payload_off = p->payload_off;
        s->npieces = 0;
        s->payload_len = 0;
        s->qpn = p->qpn;
        s->psn = 0;
        s->kind = SLOT_CNP;
        s->status = 0;
        engine_count(e, ENGINE_C_np_cnp_sent);
        e->counters[ENGINE_C_tx_packets]++;
        e->counters[ENGINE_C_tx_bytes] += p->len;
    }
    return k;
}
