/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer's request to connect: find the listener, check the request, look for room.
 * CM-01..CM-12, CM-20, CM-21, CM-34, SEC-20.
 */
#include <string.h>

#include "cm_priv.h"

#define NS_PER_MS     1000000u
#define SEEN_MIN_MS   500u          /* SEC-20: least time to a repetition of a REQ */
#define ANSWER_MIN_NS 1000000000ull /* for the consumer, however soon the peer gives up */

/* The identity of a REQ: its repetitions have the same. */
static uint64_t hash_of(const struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src)
{
    struct {
        struct wire_addr src;
        uint64_t guid, tid, service;
        uint32_t id, qpn, psn, pad;
    } k = {*src, msg->ca_guid, msg->tid, msg->service_id, msg->local_id, msg->qpn, msg->psn, 0};
    return cm_hash(cm, &k, sizeof(k));
}

/* When half of the listener's or of the table's room is taken, a source must repeat its request
 * identically before it gets state here: forged sources don't (SEC-20). */
static bool first_sight(struct cm *cm, uint64_t hash, uint64_t now)
{
    size_t at = hash % CM_SEEN;
    uint32_t tag = (uint32_t)(hash >> 32) | 1, ms = (uint32_t)(now / NS_PER_MS);
    if (cm->seen[at].tag == tag)
        return ms - cm->seen[at].at_ms < SEEN_MIN_MS;
    cm->seen[at].tag = tag;
    cm->seen[at].at_ms = ms;
    return true;
}

bool cm_has_room(struct cm *cm, const struct cm_listener *l, const struct wire_addr *src,
                 uint64_t hash, uint64_t now)
{
    uint32_t most = cm->params.max_conns;
    if (l->pending >= l->backlog || cm_source_full(cm, l, src) || cm->half_open > most - most / 4) {
        cm_count(cm, CM_C_cm_req_backlog_drop);
        return false;
    }
    bool crowded = l->pending > l->backlog / 2 || cm->half_open > most / 2;
    if (crowded && first_sight(cm, hash, now)) {
        cm_count(cm, CM_C_cm_rx_rate_limited);
        return false;
    }
    return true;
}

static void dup_req(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    cm_count(cm, CM_C_cm_dup_req);
    switch (c->state) {
    case CMS_MRA_REQ_SENT:
        cm_tx_queue(cm, c); /* the same MRA again: the peer then waits once more */
        cm_timer_look(cm, c, now + c->answer_ns, now);
        break;
    case CMS_REP_SENT:
        cm_tx_queue(cm, c);
        break;
    case CMS_TIMEWAIT:
        cm_send_rej_to(cm, &c->path, msg, 0, CM_REJ_STALE_CONN, CM_ABOUT_REQ, 0, now);
        break;
    default:
        break;
    }
}

/* The reason to reject a REQ, independent of the table; 0 = none: *l and *ip are set. */
static unsigned refusal(const struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                        struct cm_listener **l, struct cm_ip_hdr *ip)
{
    if (!cm_transport_is_known(msg->transport) ||
        (msg->transport == CM_TRANSPORT_XRC && msg->ext_transport != CM_EXT_TRANSPORT_XRC))
        return CM_REJ_INVALID_TRANSPORT;
    if (!cm_find_listener(cm, msg->service_id, NULL))
        return CM_REJ_INVALID_SERVICE_ID;
    if (cm_ip_hdr_unpack(ip, msg->priv) < 0)
        return CM_REJ_UNSUPPORTED;
    *l = cm_find_listener(cm, msg->service_id, &ip->dst);
    if (!*l)
        return CM_REJ_INVALID_SERVICE_ID;
    if (!cm->params.lenient_addr &&
        (!cm_addr_eq(&ip->src, src) || !cm_addr_eq(&msg->local_gid, src)))
        return CM_REJ_INVALID_GID; /* CM-04 */
    if (msg->mtu < 1 || msg->mtu > cm->params.max_mtu)
        return CM_REJ_INVALID_MTU; /* CM-12 */
    return 0;
}

/* The connection's values in a REQ. */
static void take_req(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg)
{
    static const struct wire_addr no_addr;
    c->lport = (uint16_t)msg->service_id;
    c->tid = msg->tid;
    c->service_id = msg->service_id;
    c->qp_pkey = (uint16_t)msg->pkey;
    c->peer_psn = msg->psn;
    c->peer_resp_res = (uint8_t)msg->resp_res;
    c->peer_init_depth = (uint8_t)msg->init_depth;
    cm_grant(cm, c, UINT8_MAX, UINT8_MAX);
    c->retry_cnt = (uint8_t)msg->retry_count;
    c->rnr_retry = (uint8_t)msg->rnr_retry;
    c->transport = (uint8_t)msg->transport;
    c->ack_timeout = cm_ack_clamp(msg->ack_timeout);
    c->rep_wait = (uint8_t)msg->local_timeout;
    c->max_retries = (uint8_t)msg->max_retries;
    c->answer_ns = (1u + msg->max_retries) * cm_wait_ns(msg->remote_timeout); /* CM-18 */
    if (c->answer_ns < ANSWER_MIN_NS)
        c->answer_ns = ANSWER_MIN_NS;
    if (c->answer_ns > CM_PATIENCE_MAX_NS)
        c->answer_ns = CM_PATIENCE_MAX_NS;
    c->peer_flow_control = msg->flow_control;
    c->peer_srq = msg->srq;
    c->peer_alt_path = !cm_addr_eq(&msg->alt_remote_gid, &no_addr);
}

/* A connection that is in no table yet. NULL: there is no room, or another manager of the device
 * has a connection with the queue pair (CM-21). */
static struct cm_conn *new_passive(struct cm *cm, const struct cm_path *path,
                                   const struct cm_msg *msg, uint64_t now)
{
    struct cm_conn *c = cm_conn_new(cm, CMS_REQ_RCVD, NULL);
    if (!c) {
        cm_count(cm, CM_C_cm_req_backlog_drop);
        return NULL;
    }
    c->path = *path;
    if (cm_hold_peer(cm, c, msg->ca_guid, msg->qpn, 0))
        return c;
    cm_send_rej_to(cm, path, msg, 0, CM_REJ_STALE_CONN, CM_ABOUT_REQ, 0, now);
    c->released = true;
    cm_conn_close(cm, c);
    return NULL;
}

void cm_rx_req(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
               const struct wire_addr *dst, uint16_t pkey, uint64_t now)
{
    /* The address inside the MAD is not checked. We answer from the packet's own destination, on
     * the packet's P_Key (CM-06). */
    struct cm_path path = {
        .local = *dst,
        .remote = *src,
        .mtu = (uint8_t)msg->mtu,
        .tclass = (uint8_t)msg->tclass,
        .hop_limit = (uint8_t)msg->hop_limit,
        .sl = (uint8_t)msg->sl,
        .flow_label = msg->flow_label,
        .pkey = pkey,
    };
    struct cm_conn *c = cm_find_remote(cm, src, msg->ca_guid, msg->local_id);
    if (c) {
        dup_req(cm, c, msg, now);
        return;
    }
    struct cm_listener *l = NULL;
    struct cm_ip_hdr ip;
    unsigned reason = refusal(cm, msg, src, &l, &ip);
    if (reason) {
        uint8_t ari = reason == CM_REJ_INVALID_MTU ? (uint8_t)(cm->params.max_mtu << 4) : 0;
        cm_send_rej_to(cm, &path, msg, 0, reason, CM_ABOUT_REQ, ari, now);
        return;
    }
    if (!cm_has_room(cm, l, src, hash_of(cm, msg, src), now))
        return;
    c = cm_find_qpn(cm, src, msg->ca_guid, msg->qpn);
    if (c && cm_is_live(c)) {
        cm_send_rej_to(cm, &path, msg, 0, CM_REJ_STALE_CONN, CM_ABOUT_REQ, 0, now);
        cm_challenge(cm, c, now);
        return;
    }
    c = new_passive(cm, &path, msg, now);
    if (!c)
        return;
    c->listener = l;
    c->rport = ip.sport;
    take_req(cm, c, msg);
    cm_conn_set_remote(cm, c, msg->ca_guid, msg->local_id);
    cm_conn_set_peer_qpn(cm, c, msg->qpn);
    cm_half_open(cm, c, true);
    c->look_at = now + CM_LOOK_NS;
    cm_timer_look(cm, c, now + c->answer_ns, now);

    struct cm_event *ev = cm_event_push(cm, c, CM_EV_REQ);
    ev->listener = l;
    ev->arg = l->arg;
    ev->responder_resources = msg->init_depth; /* CM-36 */
    ev->initiator_depth = msg->resp_res;
    ev->priv_len = CM_REQ_USER_MAX;
    memcpy(ev->priv, msg->priv + CM_IP_HDR_LEN, CM_REQ_USER_MAX);
}
