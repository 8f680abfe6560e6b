/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams: to one queue pair, and to a group.
 */
#include <string.h>

#include "record.h"

#define QKEY 0x11111111u

static int ud_qp(struct record *r, unsigned host)
{
    struct vnet_host *h = r->host[host];
    struct engine_qp_params p = {.arg = h,
                                 .type = QP_UD,
                                 .pd = h->pd,
                                 .send_cq = h->cq,
                                 .recv_cq = h->cq,
                                 .max_send_wr = 64,
                                 .max_recv_wr = 64,
                                 .max_send_sge = 1,
                                 .max_recv_sge = 1};
    struct engine_qp_attr a = {
        .state = QPS_INIT, .qkey = QKEY, .port = 1, .sq_psn = 0x100 + host * 0x1000};
    int rc = engine_qp_create(h->engine, &p, &r->qp[host]);
    rc = rc ? rc
            : engine_qp_modify(h->engine, r->qp[host], &a,
                               QPA_STATE | QPA_PKEY_INDEX | QPA_QKEY | QPA_PORT, r->net->now);
    a.state = QPS_RTR;
    rc = rc ? rc : engine_qp_modify(h->engine, r->qp[host], &a, QPA_STATE, r->net->now);
    a.state = QPS_RTS;
    rc =
        rc ? rc : engine_qp_modify(h->engine, r->qp[host], &a, QPA_STATE | QPA_SQ_PSN, r->net->now);
    if (rc)
        return record_fail(r, "datagram queue pair: %d", rc);
    record_log(r, "%c qpn %06x qkey %08x", 'A' + (int)host, engine_qp_num(r->qp[host]), QKEY);
    return 0;
}

static int datagram(struct record *r, unsigned from, const struct wire_addr *to,
                    const uint8_t dmac[6], uint32_t qpn, uint32_t qkey, unsigned slot, uint32_t len)
{
    struct engine_sge sge;
    bool v4 = wire_addr_is_v4(to);
    struct engine_send_wr wr =
        record_wr(r, from, slot % 2 ? WR_SEND_WITH_IMM : WR_SEND, slot, len, &sge);
    wr.imm = 0xABCD0000u + slot;
    wr.av = (struct engine_av){.sgid = v4 ? r->host[from]->addr4 : r->host[from]->addr6,
                               .dgid = *to,
                               .hop_limit = wire_addr_is_multicast(to) ? 1 : 64};
    memcpy(wr.av.dmac, dmac, 6);
    wr.rqpn = qpn;
    wr.rqkey = qkey;
    for (uint32_t i = 0; i < len; i++)
        record_at(r, from, slot)[i] = (uint8_t)(slot * 16 + i + i / 256);
    return record_post(r, from, &wr);
}

static int receives(struct record *r, unsigned host, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (record_post_recv(r, host, i, 40 + 4096))
            return -1;
    return 0;
}

/* Datagrams of several sizes, with immediates, in both directions and over both IP versions. Then
 * one that finds no receive, and one with a wrong Q_Key. */
int record_ud(struct record *r)
{
    static const uint32_t len[] = {0, 5, 1000, 1024, 4096};
    const uint8_t *mac[2] = {r->host[0]->port->caps.mac, r->host[1]->port->caps.mac};
    unsigned n = 0;
    if (ud_qp(r, 0) || ud_qp(r, 1) || receives(r, 0, 5) || receives(r, 1, 10))
        return -1;
    for (unsigned v6 = 0; v6 < 2; v6++)
        for (unsigned i = 0; i < 5; i++, n++)
            if (datagram(r, 0, v6 ? &r->host[1]->addr6 : &r->host[1]->addr4, mac[1],
                         engine_qp_num(r->qp[1]), QKEY, n, len[i]))
                return -1;
    for (unsigned i = 0; i < 5; i++)
        if (datagram(r, 1, &r->host[0]->addr4, mac[0], engine_qp_num(r->qp[0]), QKEY, i, len[i]))
            return -1;
    if (record_wait(r, 0, 15) || record_wait(r, 1, 15))
        return -1;
    record_log(r, "B has no receive left; then a wrong Q_Key");
    if (datagram(r, 0, &r->host[1]->addr4, mac[1], engine_qp_num(r->qp[1]), QKEY, 10, 64) ||
        datagram(r, 0, &r->host[1]->addr4, mac[1], engine_qp_num(r->qp[1]), QKEY + 1, 12, 64))
        return -1;
    if (record_wait(r, 0, 17))
        return -1;
    vnet_run_for(r->net, 100000);
    return 0;
}

int record_multicast(struct record *r)
{
    struct wire_addr group[2] = {wire_addr_v4(0xEFC00001u), {{0xFF, 0x0E, [15] = 0x77}}};
    uint8_t mac[6];
    if (ud_qp(r, 0) || ud_qp(r, 1) || ud_qp(r, 2) || receives(r, 1, 8) || receives(r, 2, 8))
        return -1;
    for (unsigned host = 1; host < 3; host++)
        for (unsigned g = 0; g < 2; g++)
            if (engine_mcast_attach(r->host[host]->engine, r->qp[host], &group[g]))
                return record_fail(r, "can't join");
    for (unsigned i = 0; i < 4; i++) {
        wire_mcast_mac(&group[i / 2], mac);
        if (datagram(r, 0, &group[i / 2], mac, WIRE_QPN_MULTICAST, QKEY, i, 300 + i))
            return -1;
    }
    return record_wait(r, 1, 4) || record_wait(r, 2, 4) ? -1 : 0;
}
