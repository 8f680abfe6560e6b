/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A consumer's requests to the connection manager: listen, connect, accept, reject, disconnect,
 * release.
 */
#include "cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

#define PORT_FIRST 32768u
#define PORT_LAST  60999u

/* The defaults for 0 in cm_params; exponents are of 4.096 us. */
#define MAX_CONNS_DEFAULT       65536u
#define CM_TIMEOUT_DEFAULT      18u /* 1.07 s (CM-18) */
#define MAX_RETRIES_DEFAULT     7u
#define ACK_DELAY_DEFAULT       8u /* 1.05 ms (ACK-04) */
#define PACKET_LIFETIME_DEFAULT 13u
#define MAX_MTU_DEFAULT         5u /* 4096 */
#define MAX_RD_ATOMIC_DEFAULT   16u
#define TIMEWAIT_DEFAULT_NS     1000000000u /* CM-26 */

#define BUCKETS_MIN 1024u

const char *const cm_counter_names[CM_COUNTER_MAX] = {
#define X(name, rule) #name,
    CM_COUNTERS(X)
#undef X
};

const char *cm_event_name(unsigned type)
{
    static const char *const names[] = {
        [CM_EV_REQ] = "CONNECT_REQUEST",         [CM_EV_REP] = "CONNECT_RESPONSE",
        [CM_EV_ESTABLISHED] = "ESTABLISHED",     [CM_EV_REJECTED] = "REJECTED",
        [CM_EV_UNREACHABLE] = "UNREACHABLE",     [CM_EV_DISCONNECTED] = "DISCONNECTED",
        [CM_EV_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT", [CM_EV_SIDR_REP] = "SIDR_RESPONSE",
        [CM_EV_SIDR_REQ] = "SIDR_REQUEST",
    };
    return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

const char *cm_conn_state_name(const struct cm_conn *c)
{
    static const char *const names[] = {
#define X(name) #name,
        CM_STATES(X)
#undef X
    };
    return names[c->state];
}

static unsigned or_default(unsigned v, unsigned dflt)
{
    return v ? v : dflt;
}

struct cm *cm_create(const struct cm_params *params)
{
    struct cm *cm = calloc(1, sizeof(*cm));
    if (!cm)
        return NULL;
    struct cm_params *p = &cm->params;
    *p = *params;
    p->max_conns = or_default(p->max_conns, MAX_CONNS_DEFAULT);
    p->cm_timeout = (uint8_t)or_default(p->cm_timeout, CM_TIMEOUT_DEFAULT);
    p->max_retries = (uint8_t)or_default(p->max_retries, MAX_RETRIES_DEFAULT);
    p->ack_delay = (uint8_t)or_default(p->ack_delay, ACK_DELAY_DEFAULT);
    p->packet_lifetime = (uint8_t)or_default(p->packet_lifetime, PACKET_LIFETIME_DEFAULT);
    p->max_mtu = (uint8_t)or_default(p->max_mtu, MAX_MTU_DEFAULT);
    p->max_rd_atomic = (uint8_t)or_default(p->max_rd_atomic, MAX_RD_ATOMIC_DEFAULT);
    if (!p->timewait_ns)
        p->timewait_ns = TIMEWAIT_DEFAULT_NS;

    uint32_t buckets = BUCKETS_MIN;
    while (buckets < p->max_conns / 4)
        buckets *= 2;
    cm->bucket_mask = buckets - 1;
    cm->by_local = calloc(buckets, sizeof(struct cm_conn *));
    cm->by_remote = calloc(buckets, sizeof(struct cm_conn *));
    cm->by_qpn = calloc(buckets, sizeof(struct cm_conn *));
    cm->out = calloc(CM_OUT_RING, sizeof(*cm->out));
    cm->tx_tail = &cm->tx_head;
    cm->ev_tail = &cm->ev_head;
    cm->out_tokens = CM_STATELESS_BURST;
    if (!cm->by_local || !cm->by_remote || !cm->by_qpn || !cm->out) {
        cm_destroy(cm);
        return NULL;
    }
    return cm;
}

void cm_destroy(struct cm *cm)
{
    if (!cm)
        return;
    while (cm->ev_head) {
        struct cm_event_node *n = cm->ev_head;
        cm->ev_head = n->next;
        free(n);
    }
    while (cm->all)
        cm_conn_free(cm, cm->all);
    cm_listeners_free(cm);
    free(cm->heap);
    free(cm->by_local);
    free(cm->by_remote);
    free(cm->by_qpn);
    free(cm->out);
    free(cm);
}

/* ---- connecting ---- */

static uint8_t least(unsigned a, unsigned b)
{
    return (uint8_t)(a < b ? a : b);
}

/* REQ (section 21.2), filled in as rdma_cm does on RoCE (CM-05). */
static void make_req(const struct cm *cm, const struct cm_conn *c,
                     const struct cm_connect_params *p, struct cm_msg *req)
{
    *req = (struct cm_msg){
        .attr = CM_REQ,
        .tid = c->tid,
        .local_id = c->local_id,
        .service_id = c->service_id,
        .ca_guid = cm->params.ca_guid,
        .qpn = c->qpn,
        .resp_res = c->resp_res,
        .init_depth = c->init_depth,
        .remote_timeout = or_default(p->cm_timeout, cm->params.cm_timeout),
        .transport = c->transport,
        .flow_control = c->flow_control,
        .psn = c->psn,
        .local_timeout = or_default(p->cm_timeout, cm->params.cm_timeout),
        .retry_count = p->retry_count,
        .pkey = c->path.pkey,
        .mtu = c->path.mtu,
        .rnr_retry = p->rnr_retry_count,
        .max_retries = c->max_retries,
        .srq = p->srq,
        .local_lid = 0xFFFF,
        .remote_lid = 0xFFFF,
        .local_gid = c->path.local,
        .remote_gid = c->path.remote,
        .flow_label = c->path.flow_label,
        .tclass = c->path.tclass,
        .hop_limit = c->path.hop_limit,
        .sl = c->path.sl,
        .ack_timeout = cm_ack_timeout(cm->params.packet_lifetime,
                                      or_default(p->ack_delay, cm->params.ack_delay)),
        .priv_len = (uint16_t)(CM_IP_HDR_LEN + p->priv_len),
    };
    struct cm_ip_hdr ip = {
        .ip_version = wire_addr_is_v4(&c->path.local) ? 4 : 6,
        .sport = c->lport,
        .src = c->path.local,
        .dst = c->path.remote,
    };
    if (c->transport == CM_TRANSPORT_XRC) { /* CM-38: fields of the half that it lacks are 0 */
        req->ext_transport = CM_EXT_TRANSPORT_XRC;
        req->resp_res = req->retry_count = req->rnr_retry = req->srq = 0;
    }
    cm_ip_hdr_pack(req->priv, &ip);
    if (p->priv_len)
        memcpy(req->priv + CM_IP_HDR_LEN, p->priv, p->priv_len);
}

/* A port of Linux's dynamic range, as a socket gets that was not bound. */
static uint16_t choose_port(struct cm *cm)
{
    return (uint16_t)(PORT_FIRST + cm_random(cm) % (PORT_LAST - PORT_FIRST + 1));
}

static void complete_path(struct cm_path *path, uint16_t sport, uint16_t dport)
{
    if (!path->flow_label)
        path->flow_label = (sport * 31u + dport) & 0xFFFFF; /* CM-05 */
    if (!path->hop_limit)
        path->hop_limit = WIRE_TTL_DEFAULT;
    if (!path->pkey)
        path->pkey = WIRE_PKEY_DEFAULT;
}

int cm_connect(struct cm *cm, const struct cm_connect_params *p, void *arg, uint64_t now,
               struct cm_conn **out)
{
    if (p->priv_len > CM_REQ_USER_MAX || !cm_transport_is_known(p->transport) || p->path.mtu < 1 ||
        p->path.mtu > 5 || p->retry_count > CM_RETRY_MAX || p->rnr_retry_count > CM_RETRY_MAX ||
        p->qpn > WIRE_QPN_MASK || p->psn > WIRE_PSN_MASK ||
        wire_addr_is_v4(&p->path.local) != wire_addr_is_v4(&p->path.remote))
        return -EINVAL;
    if (cm->live >= cm->params.max_conns)
        return -ENOSPC;
    struct cm_conn *c = cm_conn_new(cm, CMS_REQ_SENT, arg);
    if (!c)
        return -ENOMEM;
    c->active = true;
    c->lport = p->sport ? p->sport : choose_port(cm);
    c->rport = p->dport;
    c->path = p->path;
    c->path.mtu = least(p->path.mtu, cm->params.max_mtu);
    complete_path(&c->path, c->lport, c->rport);
    c->qp_pkey = c->path.pkey;
    c->tid = cm_random(cm);
    c->service_id = cm_service_id(p->ps ? p->ps : CM_PS_TCP, p->dport);
    c->qpn = p->qpn;
    c->psn = p->psn;
    c->transport = p->transport;
    c->resp_res = least(p->responder_resources, cm->params.max_rd_atomic);
    c->init_depth = least(p->initiator_depth, cm->params.max_rd_atomic);
    c->retry_cnt = p->retry_count;
    c->flow_control = p->flow_control;
    c->max_retries = least(or_default(p->max_retries, cm->params.max_retries), 15);
    c->resend_ns = cm_wait_ns(or_default(p->cm_timeout, cm->params.cm_timeout));

    struct cm_msg req;
    make_req(cm, c, p, &req);
    cm_send(cm, c, &req, now, true);
    *out = c;
    return 0;
}

/* Fill private data in; false = it doesn't fit this message. */
static bool set_priv(struct cm_msg *msg, const void *priv, size_t len)
{
    if (len > cm_private_len(msg->attr))
        return false;
    msg->priv_len = (uint16_t)len;
    if (len)
        memcpy(msg->priv, priv, len);
    return true;
}

int cm_rtu(struct cm *cm, struct cm_conn *c, const void *priv, uint16_t len, uint64_t now)
{
    struct cm_msg rtu = {
        .attr = CM_RTU, .tid = c->tid, .local_id = c->local_id, .remote_id = c->remote_id};
    if (c->state != CMS_REP_RCVD || !set_priv(&rtu, priv, len))
        return -EINVAL;
    c->state = CMS_ESTABLISHED;
    cm_send(cm, c, &rtu, now, false);
    cm_count(cm, CM_C_cm_established);
    cm_event_push(cm, c, CM_EV_ESTABLISHED);
    return 0;
}

void cm_grant(struct cm *cm, struct cm_conn *c, uint8_t responder_resources,
              uint8_t initiator_depth)
{
    if (c->state != CMS_REQ_RCVD && c->state != CMS_MRA_REQ_SENT)
        return;
    c->resp_res = least(least(responder_resources, cm->params.max_rd_atomic), c->peer_init_depth);
    c->init_depth = least(least(initiator_depth, cm->params.max_rd_atomic), c->peer_resp_res);
}

int cm_may_accept(const struct cm_conn *c)
{
    if (c->state == CMS_CLOSED && c->req_delivered)
        return -ECONNABORTED;
    return c->state == CMS_REQ_RCVD || c->state == CMS_MRA_REQ_SENT ? 0 : -EINVAL;
}

int cm_accept(struct cm *cm, struct cm_conn *c, const struct cm_accept_params *p, void *arg,
              uint64_t now)
{
    int rc = cm_may_accept(c);
    if (rc < 0)
        return rc;
    if (p->rnr_retry_count > CM_RETRY_MAX || p->qpn > WIRE_QPN_MASK || p->psn > WIRE_PSN_MASK ||
        p->priv_len > CM_REP_USER_MAX)
        return -EINVAL;
    c->arg = arg;
    c->qpn = p->qpn;
    c->psn = p->psn;
    cm_grant(cm, c, p->responder_resources, p->initiator_depth);
    c->flow_control = p->flow_control;

    struct cm_msg rep = {
        .attr = CM_REP,
        .tid = c->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .qpn = p->qpn,
        .psn = p->psn,
        .resp_res = c->resp_res,
        .init_depth = c->init_depth,
        .target_ack_delay = or_default(p->ack_delay, cm->params.ack_delay),
        .failover = c->peer_alt_path, /* 1 = not supported (CM-32) */
        .flow_control = p->flow_control,
        .rnr_retry = p->rnr_retry_count,
        .srq = p->srq,
        .ca_guid = cm->params.ca_guid,
    };
    if (c->transport == CM_TRANSPORT_XRC) { /* CM-38 */
        rep.eecn = p->qpn;
        rep.srq = 1;
        rep.qpn = rep.init_depth = rep.flow_control = 0;
    }
    set_priv(&rep, p->priv, p->priv_len);
    c->state = CMS_REP_SENT;
    cm_answered(c);
    c->resend_ns = cm_wait_ns(c->rep_wait);
    if (c->resend_ns > CM_PATIENCE_MAX_NS / (1u + c->max_retries))
        c->resend_ns = CM_PATIENCE_MAX_NS / (1u + c->max_retries);
    if (cm_source_busy(cm, &c->path.remote)) {
        if (c->resend_ns > CM_HURRY_NS)
            c->resend_ns = CM_HURRY_NS;
        c->max_retries = least(c->max_retries, CM_HURRY_RETRIES);
    }
    cm_send(cm, c, &rep, now, true);
    cm_timer_look(cm, c, now + c->resend_ns, now);
    return 0;
}

int cm_reject(struct cm *cm, struct cm_conn *c, unsigned reason, const void *priv, uint16_t len,
              uint64_t now)
{
    if (len > CM_REJ_USER_MAX || reason > UINT16_MAX)
        return -EINVAL;
    enum cm_about about;
    switch (c->state) {
    case CMS_REQ_RCVD:
    case CMS_MRA_REQ_SENT:
        about = CM_ABOUT_REQ;
        break;
    case CMS_REP_RCVD:
        about = CM_ABOUT_REP;
        break;
    default:
        return -EINVAL;
    }
    cm_send_rej(cm, c, or_default(reason, CM_REJ_CONSUMER), about, priv, len, now);
    cm_conn_close(cm, c);
    return 0;
}

int cm_mra(struct cm *cm, struct cm_conn *c, unsigned service_timeout, uint64_t now)
{
    if (c->state != CMS_REQ_RCVD || service_timeout > 31)
        return -EINVAL;
    struct cm_msg mra = {
        .attr = CM_MRA,
        .tid = c->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .msg_id = CM_ABOUT_REQ,
        .service_timeout = service_timeout,
    };
    c->state = CMS_MRA_REQ_SENT;
    c->answer_ns += cm_wait_ns(service_timeout);
    cm_send(cm, c, &mra, now, false);
    cm_timer_look(cm, c, now + c->answer_ns, now);
    return 0;
}

int cm_disconnect(struct cm *cm, struct cm_conn *c, const void *priv, uint16_t len, uint64_t now)
{
    struct cm_msg dreq = {
        .attr = CM_DREQ,
        .tid = c->active ? c->tid : cm_random(cm), /* one of ours (CM-14) */
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .remote_qpn = c->peer_qpn,
    };
    switch (c->state) {
    case CMS_ESTABLISHED:
    case CMS_REP_SENT:
    case CMS_MRA_REP_RCVD:
        break;
    case CMS_DREQ_SENT:
    case CMS_TIMEWAIT:
    case CMS_CLOSED:
        return 0; /* already under way */
    case CMS_REP_RCVD:
        return cm_reject(cm, c, 0, NULL, 0, now);
    default:
        return -EINVAL;
    }
    if (!set_priv(&dreq, priv, len))
        return -EINVAL;
    cm_half_open(cm, c, false);
    c->state = CMS_DREQ_SENT;
    cm_drop_peer(cm, c);
    c->max_retries = cm->params.max_retries;
    c->resend_ns = cm_wait_ns(cm->params.cm_timeout);
    cm_send(cm, c, &dreq, now, true);
    return 0;
}

void cm_release(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    switch (c->state) {
    case CMS_REQ_RCVD:
    case CMS_MRA_REQ_SENT:
    case CMS_REP_RCVD:
        c->released = true;
        cm_reject(cm, c, 0, NULL, 0, now);
        return;
    case CMS_REQ_SENT:
    case CMS_MRA_REQ_RCVD:
        cm_send_rej(cm, c, CM_REJ_TIMEOUT, CM_ABOUT_REQ, NULL, 0, now);
        c->released = true;
        cm_conn_close(cm, c);
        return;
    case CMS_ESTABLISHED:
    case CMS_REP_SENT:
    case CMS_MRA_REP_RCVD:
        cm_disconnect(cm, c, NULL, 0, now);
        c->released = true;
        return;
    case CMS_SIDR_REQ_SENT:
    case CMS_SIDR_REQ_RCVD:
    case CMS_CLOSED:
        c->released = true;
        cm_conn_close(cm, c);
        return;
    default: /* the protocol finishes alone */
        c->released = true;
        return;
    }
}

/* ---- looking inside ---- */

int cm_qp_attr(const struct cm_conn *c, struct cm_qp_attr *out)
{
    if (c->peer_qpn == 0)
        return -EINVAL;
    *out = (struct cm_qp_attr){
        .sgid = c->path.local,
        .dgid = c->path.remote,
        .flow_label = c->path.flow_label,
        .tclass = c->path.tclass,
        .hop_limit = c->path.hop_limit,
        .sl = c->path.sl,
        .pkey = c->qp_pkey,
        .path_mtu = c->path.mtu,
        .timeout = c->ack_timeout,
        .retry_cnt = c->retry_cnt,
        .rnr_retry = c->rnr_retry,
        .dest_qpn = c->peer_qpn,
        .rq_psn = c->psn,
        .sq_psn = c->peer_psn,
        .max_rd_atomic = c->init_depth,
        .max_dest_rd_atomic = c->resp_res,
        .e2e_credits = c->flow_control && c->peer_flow_control,
        .transport = (enum cm_transport)c->transport,
    };
    return 0;
}

void cm_conn_set_arg(struct cm_conn *c, void *arg)
{
    c->arg = arg;
}

void cm_conn_set_account(struct cm_conn *c, void *account)
{
    c->account = account;
}

const uint64_t *cm_counters(const struct cm *cm)
{
    return cm->counters;
}

void cm_set_mtu(struct cm *cm, uint8_t max_mtu)
{
    cm->params.max_mtu = max_mtu;
}

uint32_t cm_live(const struct cm *cm)
{
    return cm->live;
}
