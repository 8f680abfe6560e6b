/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Service ID resolution (CM-31): asking for, and answering with, the QPN and Q_Key of a datagram
 * service. Two messages; the asker repeats its question; the answerer keeps its answer for a while,
 * so that a repeated question gets the same one.
 */
#include <errno.h>
#include <string.h>

#include "cm_priv.h"

#define ANSWER_KEPT_NS 10000000000ull
#define ASKER_WAITS_NS 60000000000ull /* SEC-20: Linux repeats a SIDR_REQ for this long */

int cm_sidr_request(struct cm *cm, const struct cm_path *path, uint16_t sport, uint16_t dport,
                    const void *priv, uint16_t len, void *arg, uint64_t now, struct cm_conn **out)
{
    if (len > CM_SIDR_REQ_USER_MAX ||
        wire_addr_is_v4(&path->local) != wire_addr_is_v4(&path->remote))
        return -EINVAL;
    struct cm_conn *c = cm_conn_new(cm, CMS_SIDR_REQ_SENT, arg);
    if (!c)
        return cm->live >= cm->params.max_conns ? -ENOSPC : -ENOMEM;
    c->path = *path;
    if (!c->path.pkey)
        c->path.pkey = WIRE_PKEY_DEFAULT;
    c->lport = sport;
    c->rport = dport;
    c->tid = cm_random(cm);
    c->service_id = cm_service_id(CM_PS_UDP, dport);
    c->max_retries = cm->params.max_retries;
    c->resend_ns = cm_wait_ns(cm->params.cm_timeout);

    struct cm_msg req = {
        .attr = CM_SIDR_REQ,
        .tid = c->tid,
        .local_id = c->local_id, /* the RequestID */
        .pkey = c->path.pkey,
        .service_id = c->service_id,
        .priv_len = (uint16_t)(CM_IP_HDR_LEN + len),
    };
    struct cm_ip_hdr ip = {
        .ip_version = wire_addr_is_v4(&path->local) ? 4 : 6,
        .sport = sport,
        .src = path->local,
        .dst = path->remote,
    };
    cm_ip_hdr_pack(req.priv, &ip);
    if (len)
        memcpy(req.priv + CM_IP_HDR_LEN, priv, len);
    cm_send(cm, c, &req, now, true);
    *out = c;
    return 0;
}

int cm_sidr_reply(struct cm *cm, struct cm_conn *c, unsigned status, uint32_t qpn, uint32_t qkey,
                  const void *priv, uint16_t len, uint64_t now)
{
    if (c->state != CMS_SIDR_REQ_RCVD || status > UINT8_MAX || qpn > WIRE_QPN_MASK ||
        len > CM_SIDR_REP_USER_MAX)
        return -EINVAL;
    struct cm_msg rep = {
        .attr = CM_SIDR_REP,
        .tid = c->tid,
        .local_id = c->remote_id,
        .status = status,
        .qpn = qpn,
        .service_id = c->service_id,
        .qkey = qkey,
        .priv_len = len,
    };
    if (len)
        memcpy(rep.priv, priv, len);
    cm_half_open(cm, c, false);
    c->state = CMS_SIDR_DONE;
    cm_send(cm, c, &rep, now, false);
    cm_timer_set(cm, c, now + ANSWER_KEPT_NS);
    return 0;
}

void cm_sidr_rx_req(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                    const struct wire_addr *dst, uint16_t pkey, uint64_t now)
{
    struct cm_conn *c = cm_find_remote(cm, src, 0, msg->local_id);
    if (c) {
        cm_count(cm, CM_C_cm_dup_req);
        if (c->state == CMS_SIDR_DONE)
            cm_tx_queue(cm, c);
        return;
    }
    struct cm_path path = {.local = *dst, .remote = *src, .pkey = pkey};
    struct cm_ip_hdr ip;
    bool good = cm_ip_hdr_unpack(&ip, msg->priv) == 0 &&
                (cm->params.lenient_addr || cm_addr_eq(&ip.src, src));
    struct cm_listener *l = good ? cm_find_listener(cm, msg->service_id, &ip.dst) : NULL;
    if (!l) { /* any host can send any request: keep no state (SEC-20) */
        struct cm_msg rep = {
            .attr = CM_SIDR_REP,
            .tid = msg->tid,
            .local_id = msg->local_id,
            .status = CM_SIDR_UNSUPPORTED,
            .service_id = msg->service_id,
        };
        cm_send_stateless(cm, &path, &rep, now);
        return;
    }
    struct {
        struct wire_addr src;
        uint64_t tid, service, id;
    } k = {*src, msg->tid, msg->service_id, msg->local_id};
    if (!cm_has_room(cm, l, src, cm_hash(cm, &k, sizeof(k)), now))
        return;
    c = cm_conn_new(cm, CMS_SIDR_REQ_RCVD, NULL);
    if (!c) {
        cm_count(cm, CM_C_cm_req_backlog_drop);
        return;
    }
    c->path = path;
    c->tid = msg->tid;
    c->service_id = msg->service_id;
    c->lport = (uint16_t)msg->service_id;
    c->rport = ip.sport;
    c->listener = l;
    cm_conn_set_remote(cm, c, 0, msg->local_id);
    cm_half_open(cm, c, true);
    c->look_at = now + CM_LOOK_NS;
    cm_timer_look(cm, c, now + ASKER_WAITS_NS, now);
    struct cm_event *ev = cm_event_push(cm, c, CM_EV_SIDR_REQ);
    ev->listener = l;
    ev->arg = l->arg;
    ev->priv_len = CM_SIDR_REQ_USER_MAX;
    memcpy(ev->priv, msg->priv + CM_IP_HDR_LEN, CM_SIDR_REQ_USER_MAX);
}

void cm_sidr_rx_rep(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src)
{
    struct cm_conn *c = cm_find_local(cm, msg->local_id);
    if (!c || c->state != CMS_SIDR_REQ_SENT || !cm_addr_eq(&c->path.remote, src) ||
        msg->tid != c->tid) {
        cm_count(cm, CM_C_cm_rx_bad_id);
        return;
    }
    c->peer_qpn = msg->qpn;
    struct cm_event *ev = cm_event_push(cm, c, CM_EV_SIDR_REP);
    ev->reason = msg->status;
    ev->qkey = msg->qkey;
    ev->priv_len = msg->priv_len;
    memcpy(ev->priv, msg->priv, msg->priv_len);
    cm_conn_close(cm, c);
}
