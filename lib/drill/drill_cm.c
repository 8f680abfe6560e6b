/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statements for the device's connection manager, as its consumer would call it.
 */
#include <string.h>

#include "drill_priv.h"

struct private_data {
    uint8_t octets[CM_PRIVATE_MAX];
    uint16_t len;
};

static bool private_of(struct drill_run *run, const struct drill_stmt *st, struct private_data *w)
{
    const struct drill_arg *a = drill_arg(st, CMF_PRIVATE);
    w->len = 0;
    if (!a)
        return true;
    uint32_t n;
    if (!drill_octets_len(&a->v.data, &n))
        return drill_end(run, DRILL_WRONG, st, "private: octets with a length of their own");
    if (n > sizeof(w->octets))
        return drill_end(run, DRILL_WRONG, st, "private: at most %zu octets", sizeof(w->octets));
    w->len = (uint16_t)n;
    return drill_octets(run, st, &a->v.data, 0, w->octets, n);
}

/* Move the queue pair as far as the connection has attributes for it (CM-17). */
static int set_up(struct drill_run *run, struct drill_object *qp, struct cm_conn *conn)
{
    struct cm_qp_attr c;
    struct engine_qp_attr a;
    int rc = cm_qp_attr(conn, &c);
    if (rc)
        return rc;
    engine_qp_query(qp->qp, &a, NULL);
    a.port = 1;
    a.av = (struct engine_av){.sgid = c.sgid,
                              .dgid = c.dgid,
                              .tclass = c.tclass,
                              .hop_limit = c.hop_limit,
                              .sl = c.sl,
                              .flow_label = c.flow_label};
    memcpy(a.av.dmac, qp->dmac, 6);
    a.dest_qpn = c.dest_qpn;
    a.rq_psn = c.rq_psn;
    a.sq_psn = c.sq_psn;
    a.path_mtu = c.path_mtu;
    a.timeout = c.timeout;
    a.retry_cnt = c.retry_cnt;
    a.rnr_retry = c.rnr_retry;
    a.max_rd_atomic = c.max_rd_atomic;
    a.max_dest_rd_atomic = c.max_dest_rd_atomic;
    a.min_rnr_timer = 12;
    static const enum qp_state steps[] = {QPS_RTR, QPS_RTS};
    for (unsigned i = 0; i < 2 && !rc; i++) {
        a.state = steps[i];
        rc = engine_qp_modify(run->e, qp->qp, &a, drill_step_mask(qp->type, steps[i]), run->now);
    }
    qp->sq_psn = qp->seen_psn = c.sq_psn;
    qp->rq_psn = c.rq_psn;
    qp->peer_qpn = c.dest_qpn;
    qp->mtu = wire_mtu_octets(c.path_mtu);
    qp->sport = wire_udp_sport(c.flow_label, qp->qpn, c.dest_qpn);
    qp->local = c.sgid;
    qp->peer = c.dgid;
    qp->next_psn = 0;
    return rc;
}

static bool qp_of(struct drill_run *run, const struct drill_stmt *st, struct drill_object **qp)
{
    const struct drill_arg *a = drill_arg(st, CMF_QP);
    *qp = a ? drill_need(run, st, a->v.name, KIND_QP) : NULL;
    return !a || *qp;
}

static bool listen(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_LISTENER);
    static const struct wire_addr any;
    uint64_t port, backlog, udp;
    bool go;
    if (!o || !drill_number(run, st, CMF_PORT, DRILL_CM_PORT, &port) ||
        !drill_number(run, st, CMF_BACKLOG, 0, &backlog) ||
        !drill_number(run, st, CMF_UDP, 0, &udp))
        return false;
    run->listen_port = (uint16_t)port;
    int rc = cm_listen(run->cm, udp ? CM_PS_UDP : CM_PS_TCP, &any, (uint16_t)port,
                       (unsigned)backlog, o, &o->listener);
    o->dead = rc != 0;
    return drill_returned(run, st, rc, &go);
}

static uint64_t transport_of(const struct drill_object *qp)
{
    return qp == NULL               ? CM_TRANSPORT_RC
           : qp->type == QP_UC      ? CM_TRANSPORT_UC
           : qp->type == QP_XRC_INI ? CM_TRANSPORT_XRC
                                    : CM_TRANSPORT_RC;
}

static bool do_connect(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_CONN), *qp;
    struct private_data w;
    uint64_t port, sport, resp, init, retry, rnr, timeout, retries, transport, mtu, pkey;
    bool go;
    if (!o || !qp_of(run, st, &qp) || !private_of(run, st, &w) ||
        !drill_number(run, st, CMF_PORT, DRILL_CM_PORT, &port) ||
        !drill_number(run, st, CMF_SPORT, 0, &sport) ||
        !drill_number(run, st, CMF_RESP_RES, 4, &resp) ||
        !drill_number(run, st, CMF_INIT_DEPTH, 4, &init) ||
        !drill_number(run, st, CMF_RETRY, 7, &retry) ||
        !drill_number(run, st, CMF_RNR_RETRY, 7, &rnr) ||
        !drill_number(run, st, CMF_TIMEOUT, 0, &timeout) ||
        !drill_number(run, st, CMF_RETRIES, 0, &retries) ||
        !drill_number(run, st, CMF_MTU, 3, &mtu) || !drill_number(run, st, CMF_PKEY, 0, &pkey) ||
        !drill_number(run, st, CMF_TRANSPORT, transport_of(qp), &transport))
        return false;
    struct cm_connect_params p = {.path = {.local = run->local,
                                           .remote = run->peer,
                                           .mtu = (uint8_t)mtu,
                                           .pkey = (uint16_t)pkey},
                                  .sport = (uint16_t)sport,
                                  .dport = (uint16_t)port,
                                  .qpn = qp ? qp->qpn : 0,
                                  .psn = qp ? qp->rq_psn : 0,
                                  .transport = (uint8_t)transport,
                                  .responder_resources = (uint8_t)resp,
                                  .initiator_depth = (uint8_t)init,
                                  .retry_count = (uint8_t)retry,
                                  .rnr_retry_count = (uint8_t)rnr,
                                  .priv = w.octets,
                                  .priv_len = w.len,
                                  .cm_timeout = (uint8_t)timeout,
                                  .max_retries = (uint8_t)retries};
    int rc = cm_connect(run->cm, &p, o, run->now, &o->conn);
    o->dead = rc != 0;
    if (qp && !rc)
        qp->conn = o->conn;
    run->last = run->now;
    return drill_returned(run, st, rc, &go);
}

static bool do_accept(struct drill_run *run, const struct drill_stmt *st, struct drill_object *c)
{
    struct drill_object *qp;
    struct private_data w;
    uint64_t resp, init, rnr;
    bool go;
    if (!qp_of(run, st, &qp) || !private_of(run, st, &w) ||
        !drill_number(run, st, CMF_RESP_RES, 4, &resp) ||
        !drill_number(run, st, CMF_INIT_DEPTH, 4, &init) ||
        !drill_number(run, st, CMF_RNR_RETRY, 7, &rnr))
        return false;
    if (!qp)
        return drill_end(run, DRILL_WRONG, st, "accept needs qp NAME");
    struct cm_accept_params p = {.qpn = qp->qpn,
                                 .psn = qp->rq_psn,
                                 .responder_resources = (uint8_t)resp,
                                 .initiator_depth = (uint8_t)init,
                                 .rnr_retry_count = (uint8_t)rnr,
                                 .priv = w.octets,
                                 .priv_len = w.len};
    int rc = cm_accept(run->cm, c->conn, &p, c, run->now);
    if (!rc) {
        qp->conn = c->conn;
        rc = set_up(run, qp, c->conn);
    }
    return drill_returned(run, st, rc, &go);
}

static bool rtu(struct drill_run *run, const struct drill_stmt *st, struct drill_object *c)
{
    struct drill_object *qp;
    struct private_data w;
    bool go;
    int rc = 0;
    if (!qp_of(run, st, &qp) || !private_of(run, st, &w))
        return false;
    if (qp)
        rc = set_up(run, qp, c->conn);
    if (!rc)
        rc = cm_rtu(run->cm, c->conn, w.octets, w.len, run->now);
    return drill_returned(run, st, rc, &go);
}

static bool reject(struct drill_run *run, const struct drill_stmt *st, struct drill_object *c)
{
    struct private_data w;
    uint64_t reason;
    bool go;
    if (!private_of(run, st, &w) || !drill_number(run, st, CMF_REASON, 0, &reason))
        return false;
    return drill_returned(
        run, st, cm_reject(run->cm, c->conn, (unsigned)reason, w.octets, w.len, run->now), &go);
}

static bool sidr(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_add(run, st, st->name, KIND_CONN);
    struct cm_path path = {.local = run->local, .remote = run->peer};
    struct private_data w;
    uint64_t port, sport;
    bool go;
    if (!o || !private_of(run, st, &w) || !drill_number(run, st, CMF_PORT, DRILL_CM_PORT, &port) ||
        !drill_number(run, st, CMF_SPORT, 0, &sport))
        return false;
    int rc = cm_sidr_request(run->cm, &path, (uint16_t)sport, (uint16_t)port, w.octets, w.len, o,
                             run->now, &o->conn);
    o->dead = rc != 0;
    run->last = run->now;
    return drill_returned(run, st, rc, &go);
}

static bool sidr_reply(struct drill_run *run, const struct drill_stmt *st, struct drill_object *c)
{
    struct private_data w;
    uint64_t status, qpn, qkey;
    bool go;
    if (!private_of(run, st, &w) || !drill_number(run, st, CMF_STATUS, 0, &status) ||
        !drill_number(run, st, CMF_QPN, 0, &qpn) || !drill_number(run, st, CMF_QKEY, 0, &qkey))
        return false;
    int rc = cm_sidr_reply(run->cm, c->conn, (unsigned)status, (uint32_t)qpn, (uint32_t)qkey,
                           w.octets, w.len, run->now);
    return drill_returned(run, st, rc, &go);
}

static bool unlisten(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *o = drill_need(run, st, st->name, KIND_LISTENER);
    if (!o)
        return false;
    cm_unlisten(run->cm, o->listener, run->now);
    o->dead = true;
    return true;
}

static bool on_connection(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *c = drill_need(run, st, st->name, KIND_CONN);
    struct private_data w;
    uint64_t v;
    bool go;
    if (!c)
        return false;
    run->last = run->now;
    switch (st->verb->kind) {
    case DO_ACCEPT:
        return do_accept(run, st, c);
    case DO_RTU:
        return rtu(run, st, c);
    case DO_REJECT:
        return reject(run, st, c);
    case DO_SIDR_REPLY:
        return sidr_reply(run, st, c);
    case DO_MRA:
        if (!drill_number(run, st, CMF_SERVICE_TIMEOUT, 20, &v))
            return false;
        return drill_returned(run, st, cm_mra(run->cm, c->conn, (unsigned)v, run->now), &go);
    case DO_DISCONNECT:
        if (!private_of(run, st, &w))
            return false;
        return drill_returned(run, st, cm_disconnect(run->cm, c->conn, w.octets, w.len, run->now),
                              &go);
    default: /* DO_RELEASE */
        cm_release(run->cm, c->conn, run->now);
        c->dead = true;
        for (struct drill_object *o = run->objects; o; o = o->next)
            if (o->kind == KIND_QP && o->conn == c->conn)
                o->conn = NULL;
        return true;
    }
}

bool drill_do_cm(struct drill_run *run, const struct drill_stmt *st)
{
    bool ok;
    switch (st->verb->kind) {
    case DO_LISTEN:
        ok = listen(run, st);
        break;
    case DO_UNLISTEN:
        ok = unlisten(run, st);
        break;
    case DO_CONNECT:
        ok = do_connect(run, st);
        break;
    case DO_SIDR:
        ok = sidr(run, st);
        break;
    default:
        ok = on_connection(run, st);
    }
    if (ok)
        drill_bench_flush(run);
    return ok && !run->over;
}
