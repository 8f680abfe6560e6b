/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting, refusing and hanging up by the connection manager, and finding a datagram service: A
 * is active, B passive. Whatever the link loses is repeated until it arrives.
 */
#include <string.h>

#include "cm.h"
#include "record.h"

#define PORT 7471
#define QKEY 0x01234567u
#define PSN  0xABC000u /* that B expects */

struct side {
    struct record *r;
    struct vnet_host *host, *peer;
    unsigned index;
    struct cm *cm;
    struct cm_listener *listener;
    struct cm_conn *conn;
    bool up, down, rejected, resolved, dirty;
    uint32_t qpn, qkey; /* of the datagram service */
    int rc;
};

static int qp_to(struct side *s, const struct cm_qp_attr *c, enum qp_state state)
{
    struct engine_qp_attr a = {.state = state,
                               .port = 1,
                               .access_flags = MEM_REMOTE_ANY,
                               .av = {.sgid = c->sgid,
                                      .dgid = c->dgid,
                                      .tclass = c->tclass,
                                      .hop_limit = c->hop_limit,
                                      .flow_label = c->flow_label},
                               .rq_psn = c->rq_psn,
                               .sq_psn = c->sq_psn,
                               .dest_qpn = c->dest_qpn,
                               .path_mtu = c->path_mtu,
                               .timeout = c->timeout,
                               .retry_cnt = c->retry_cnt,
                               .rnr_retry = c->rnr_retry,
                               .min_rnr_timer = 1,
                               .max_rd_atomic = c->max_rd_atomic,
                               .max_dest_rd_atomic = c->max_dest_rd_atomic};
    static const unsigned mask[] = {
        [QPS_INIT] = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
        [QPS_RTR] = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                    QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
        [QPS_RTS] = QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                    QPA_MAX_QP_RD_ATOMIC,
        [QPS_ERR] = QPA_STATE,
    };
    memcpy(a.av.dmac, s->peer->port->caps.mac, 6);
    return engine_qp_modify(s->host->engine, s->r->qp[s->index], &a, mask[state],
                            s->host->net->now);
}

/* The queue pair goes all the way to where requests may be sent. */
static int qp_up(struct side *s)
{
    struct cm_qp_attr c;
    int rc = cm_qp_attr(s->conn, &c);
    c.rq_psn = s->index ? PSN : c.rq_psn; /* B has not sent its PSN yet */
    for (enum qp_state state = QPS_INIT; state <= QPS_RTS && !rc; state++)
        rc = qp_to(s, &c, state);
    return rc;
}

static int accept(struct side *s)
{
    struct cm_accept_params p = {.qpn = engine_qp_num(s->r->qp[s->index]),
                                 .psn = PSN,
                                 .responder_resources = 16,
                                 .initiator_depth = 16,
                                 .rnr_retry_count = 7,
                                 .priv = "welcome",
                                 .priv_len = 8};
    int rc = qp_up(s);
    return rc ? rc : cm_accept(s->cm, s->conn, &p, s, s->host->net->now);
}

static int on_event(struct side *s, const struct cm_event *ev)
{
    uint64_t now = s->host->net->now;
    record_log(s->r, "%c: %s", 'A' + (int)s->index, cm_event_name(ev->type));
    switch (ev->type) {
    case CM_EV_REQ:
        s->conn = ev->conn;
        return accept(s);
    case CM_EV_REP: {
        int rc = qp_up(s);
        return rc ? rc : cm_rtu(s->cm, s->conn, NULL, 0, now);
    }
    case CM_EV_ESTABLISHED:
        s->up = true;
        return 0;
    case CM_EV_REJECTED:
        s->rejected = true;
        record_log(s->r, "reason %u", ev->reason);
        return 0;
    case CM_EV_DISCONNECTED:
        s->down = true;
        return qp_to(s, &(struct cm_qp_attr){0}, QPS_ERR);
    case CM_EV_SIDR_REQ:
        return cm_sidr_reply(s->cm, ev->conn, 0, engine_qp_num(s->r->qp[s->index]), QKEY, NULL, 0,
                             now);
    case CM_EV_SIDR_REP:
        s->resolved = true;
        s->qpn = ev->qpn;
        s->qkey = ev->qkey;
        return 0;
    default:
        return 0;
    }
}

/* ---- the service beside the engine ---- */

static void gsi_rx(void *ctx, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len)
{
    struct side *s = ctx;
    cm_rx(s->cm, mad, len, &pkt->sip, &pkt->dip, pkt->sqpn, pkt->pkey, s->host->net->now);
    s->dirty = true;
}

static bool run(void *ctx, uint64_t now)
{
    struct side *s = ctx;
    struct cm_event ev;
    if (cm_deadline(s->cm) <= now) {
        cm_expire(s->cm, now);
        s->dirty = true;
    }
    bool work = s->dirty;
    while (s->dirty && cm_event(s->cm, &ev))
        s->rc = s->rc ? s->rc : on_event(s, &ev);
    s->dirty = false;
    return work;
}

static bool tx(void *ctx, struct engine_slot *slot)
{
    struct side *s = ctx;
    struct cm_out out;
    if (!cm_tx(s->cm, &out))
        return false;
    struct engine_av av = {.sgid = out.src,
                           .dgid = out.dst,
                           .tclass = out.tclass,
                           .hop_limit = out.hop_limit,
                           .sl = out.sl};
    memcpy(av.dmac, s->peer->port->caps.mac, 6);
    return engine_gsi_emit(s->host->engine, slot, &av, out.pkey, out.mad, CM_MAD_LEN) == 0;
}

static uint64_t deadline(void *ctx)
{
    const struct side *s = ctx;
    return cm_deadline(s->cm);
}

static bool start(struct side side[2], struct record *r)
{
    for (unsigned i = 0; i < 2; i++) {
        struct cm_params p = {.key = {7, i + 1},
                              .ca_guid = 0x0200000000000001u + i,
                              .cm_timeout = 14, /* 67 ms: losses don't take for ever */
                              .packet_lifetime = 5,
                              .max_mtu = 3,
                              .timewait_ns = 1000000};
        side[i] = (struct side){
            .r = r, .host = r->host[i], .peer = r->host[!i], .index = i, .cm = cm_create(&p)};
        if (!side[i].cm)
            return false;
        r->host[i]->service = (struct vnet_service){
            .ctx = &side[i], .gsi_rx = gsi_rx, .run = run, .tx = tx, .deadline = deadline};
    }
    return true;
}

static void stop(struct side side[2])
{
    for (unsigned i = 0; i < 2; i++) {
        side[i].host->service = (struct vnet_service){0};
        if (side[i].cm)
            cm_destroy(side[i].cm);
    }
}

static int make_qps(struct record *r, enum qp_type type)
{
    for (unsigned i = 0; i < 2; i++) {
        struct engine_qp_params q = {.arg = r->host[i],
                                     .type = type,
                                     .pd = r->host[i]->pd,
                                     .send_cq = r->host[i]->cq,
                                     .recv_cq = r->host[i]->cq,
                                     .max_send_wr = 16,
                                     .max_recv_wr = 16,
                                     .max_send_sge = 1,
                                     .max_recv_sge = 1};
        if (engine_qp_create(r->host[i]->engine, &q, &r->qp[i]))
            return record_fail(r, "no queue pair");
        record_log(r, "%c qpn %06x", 'A' + (int)i, engine_qp_num(r->qp[i]));
    }
    return 0;
}

/* ---- scenarios ---- */

static bool connected(void *ctx)
{
    const struct side *s = ctx;
    return (s[0].up && s[1].up) || s[0].rejected || s[0].rc || s[1].rc;
}

static bool parted(void *ctx)
{
    const struct side *s = ctx;
    return s[0].down && s[1].down;
}

static bool resolved(void *ctx)
{
    const struct side *s = ctx;
    return s[0].resolved || s[0].rc || s[1].rc;
}

static struct cm_path path_of(const struct record *r)
{
    bool v6 = r->s->qp.ipv6;
    return (struct cm_path){.local = v6 ? r->host[0]->addr6 : r->host[0]->addr4,
                            .remote = v6 ? r->host[1]->addr6 : r->host[1]->addr4,
                            .mtu = 3};
}

static int talk(struct side side[2], struct record *r)
{
    static const uint8_t verbs[] = {WR_SEND, WR_RDMA_WRITE, WR_RDMA_READ, WR_SEND};
    uint64_t now;
    unsigned n = sizeof(verbs);
    for (unsigned i = 0; i < n; i++) {
        struct engine_sge sge;
        struct engine_send_wr wr = record_wr(r, 0, verbs[i], i, 1500, &sge);
        if ((verbs[i] == WR_SEND && record_post_recv(r, 1, i, RECORD_SLOT)) ||
            record_post(r, 0, &wr))
            return -1;
    }
    if (record_wait(r, 0, n))
        return -1;
    now = r->net->now;
    if (cm_disconnect(side[0].cm, side[0].conn, NULL, 0, now))
        return record_fail(r, "can't hang up");
    if (vnet_run(r->net, parted, side, RECORD_LIMIT))
        return record_fail(r, "parting: %s", r->net->why);
    vnet_run_for(r->net, 1000000000);
    return 0;
}

static int connect_with(struct record *r, bool listens)
{
    struct side side[2] = {0};
    int rc = start(side, r) ? make_qps(r, QP_RC) : record_fail(r, "no connection manager");
    if (!rc && listens &&
        cm_listen(side[1].cm, CM_PS_TCP, &(struct wire_addr){{0}}, PORT, 0, NULL,
                  &side[1].listener))
        rc = record_fail(r, "can't listen");
    if (!rc) {
        struct cm_connect_params p = {.path = path_of(r),
                                      .dport = PORT,
                                      .sport = 40000,
                                      .qpn = engine_qp_num(r->qp[0]),
                                      .psn = 0x123000,
                                      .responder_resources = 16,
                                      .initiator_depth = 16,
                                      .retry_count = 7,
                                      .rnr_retry_count = 7,
                                      .priv = "hello",
                                      .priv_len = 6};
        if (cm_connect(side[0].cm, &p, NULL, r->net->now, &side[0].conn))
            rc = record_fail(r, "can't connect");
    }
    if (!rc && vnet_run(r->net, connected, side, RECORD_LIMIT))
        rc = record_fail(r, "connecting: %s", r->net->why);
    if (!rc && (side[0].rc || side[1].rc || side[0].rejected == listens))
        rc = record_fail(r, "connecting: %d, %d", side[0].rc, side[1].rc);
    if (!rc && listens)
        rc = talk(side, r);
    stop(side);
    return rc;
}

int record_cm(struct record *r)
{
    return connect_with(r, true);
}

int record_cm_reject(struct record *r)
{
    return connect_with(r, false);
}

/* The server of datagrams at this port. */
int record_cm_udp(struct record *r)
{
    struct side side[2] = {0};
    struct cm_path path = path_of(r);
    int rc = start(side, r) ? make_qps(r, QP_UD) : record_fail(r, "no connection manager");
    if (!rc && (cm_listen(side[1].cm, CM_PS_UDP, &(struct wire_addr){{0}}, PORT, 0, NULL,
                          &side[1].listener) ||
                cm_sidr_request(side[0].cm, &path, 40000, PORT, "hello", 6, NULL, r->net->now,
                                &side[0].conn)))
        rc = record_fail(r, "can't ask");
    if (!rc && (vnet_run(r->net, resolved, side, RECORD_LIMIT) || side[0].rc || side[1].rc))
        rc = record_fail(r, "asking: %s", r->net->why);
    if (!rc && side[0].qpn != engine_qp_num(r->qp[1]))
        rc = record_fail(r, "the wrong queue pair");
    stop(side);
    return rc;
}
