/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames of a queue pair: headers from its template, into slots.
 */
#include "slot.h"

#include <string.h>

struct wire_pkt engine_path(const struct engine *e, const struct engine_av *av, uint32_t qpn,
                            uint32_t dqpn)
{
    bool v4 = wire_addr_is_v4(&av->dgid);
    struct wire_pkt p = {
        .ip_version = v4 ? 4 : 6,
        .vlan = e->p.vlan != 0,
        .tci = (uint16_t)((av->sl & 7) << 13 | e->p.vlan),
        .tclass = av->tclass,
        .ttl = av->hop_limit ? av->hop_limit : WIRE_TTL_DEFAULT,
        .ip_flags = WIRE_IP_DF,
        .flow_label = av->flow_label,
        .sip = av->sgid,
        .dip = av->dgid,
        .sport = e->p.sport ? e->p.sport : wire_udp_sport(av->flow_label, qpn, dqpn),
        .dport = WIRE_UDP_PORT,
        .dqpn = dqpn,
    };
    memcpy(p.dmac, av->dmac, 6);
    memcpy(p.smac, e->p.mac, 6);
    return p;
}

static uint16_t next_id(struct qp *qp)
{
    uint16_t id = qp->ip_id;
    qp->ip_id = (uint16_t)(id + qp->id_step);
    return id;
}

/* WIRE-14: requests, responses and ACKs alike. */
static uint8_t slot_tclass(const struct qp *qp)
{
    return qp->ect ? (uint8_t)((qp->tclass & ~3u) | qp->ect) : qp->tclass;
}

void engine_slot_emit(struct qp *qp, struct engine_slot *slot, struct wire_var *v,
                      enum slot_kind kind)
{
    v->tclass = slot_tclass(qp);
    v->ip_id = next_id(qp);
    slot->payload_off = (uint16_t)wire_tmpl_emit(slot->buf, &qp->tmpl, v, &slot->len);
    slot->ip_off = qp->tmpl.ip_off;
    slot->bth_off = qp->tmpl.bth_off;
    slot->npieces = 0;
    slot->payload_len = v->payload_len;
    slot->qpn = qp->qpn;
    slot->psn = v->psn;
    slot->kind = (uint8_t)kind;
    slot->status = 0;
}

void engine_run_begin(const struct qp *qp, struct slot_run *run, struct wire_var *v)
{
    v->tclass = slot_tclass(qp);
    wire_tmpl_run(&run->tmpl, &qp->tmpl, v, &run->len);
    run->payload_len = v->payload_len;
    run->qpn = qp->qpn;
}

void engine_run_next(struct qp *qp, const struct slot_run *run, struct engine_slot *slot, psn_t psn,
                     bool ackreq, enum slot_kind kind, struct mem_piece piece)
{
    wire_tmpl_next(slot->buf, &run->tmpl, psn.v, ackreq, next_id(qp));
    slot->len = run->len;
    slot->ip_off = run->tmpl.ip_off;
    slot->bth_off = run->tmpl.bth_off;
    slot->payload_off = run->tmpl.len;
    slot->npieces = 1;
    slot->payload_len = run->payload_len;
    slot->qpn = run->qpn;
    slot->psn = psn.v;
    slot->kind = (uint8_t)kind;
    slot->status = 0;
    slot->pieces[0] = piece;
}
