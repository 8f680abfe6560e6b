/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a peer's messages and the passing of time do to connections: one function per message, a
 * table that picks it, and the time-outs. CM-16..CM-30, SEC-20, SEC-21.
 */
#include <errno.h>
#include <string.h>

#include "cm_priv.h"

#define TICK_NS          4096ull      /* of exponents */
#define SEEN_MIN_NS      500000000ull /* SEC-20: when a REQ may come again */
#define SEEN_MAX_NS      60000000000ull
#define MRA_EXPONENT_MAX 24u /* CM-19 */
#define TIMEWAIT_MAX_NS  60000000000ull
#define ACK_TIMEOUT_MIN  8u /* SEC-24 */
#define ACK_TIMEOUT_MAX  24u
#define WAIT_MIN         4u /* SEC-24: exponents of response timeouts */
#define WAIT_MAX         28u
#define ANSWER_MIN_NS    1000000000ull /* for the consumer, however soon the peer gives up */
#define AR_UNSUPPORTED   2u            /* status of an APR (CM-32) */
#define GUID_LEN         8u            /* in the ARI of a REJ (CM-28) */

static void count(struct cm *cm, enum cm_counter which)
{
    cm->counters[which]++;
}

static unsigned clamp(unsigned v, unsigned lo, unsigned hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

uint64_t cm_wait_ns(unsigned exponent)
{
    return TICK_NS << clamp(exponent, WAIT_MIN, WAIT_MAX);
}

/* ---- sending ---- */

void cm_send(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now,
             bool expects_answer)
{
    if (cm_msg_pack(c->mad, msg) < 0)
        return;
    cm_tx_queue(cm, c);
    if (expects_answer)
        c->retries_left = c->max_retries;
    cm_timer_set(cm, c, expects_answer ? now + c->resend_ns : UINT64_MAX);
}

void cm_send_stateless(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg,
                       uint64_t now)
{
    uint64_t fresh = (now - cm->out_tokens_at) / (1000000000u / CM_STATELESS_PER_S);
    if (fresh) {
        uint64_t tokens = cm->out_tokens + fresh;
        cm->out_tokens = tokens > CM_STATELESS_BURST ? CM_STATELESS_BURST : (uint32_t)tokens;
        cm->out_tokens_at = now;
    }
    if (cm->out_tokens == 0 || cm->out_tail - cm->out_head >= CM_OUT_RING) {
        count(cm, CM_C_cm_rx_rate_limited);
        return;
    }
    struct cm_out *out = &cm->out[cm->out_tail % CM_OUT_RING];
    *out = (struct cm_out){
        .src = path->local,
        .dst = path->remote,
        .tclass = path->tclass,
        .hop_limit = path->hop_limit,
        .pkey = path->pkey,
    };
    if (cm_msg_pack(out->mad, msg) < 0)
        return;
    cm->out_tokens--;
    cm->out_tail++;
}

static void send_rej_to(struct cm *cm, const struct cm_path *path, const struct cm_msg *to,
                        uint32_t local_id, unsigned reason, enum cm_about about, uint8_t ari0,
                        uint64_t now)
{
    struct cm_msg rej = {
        .attr = CM_REJ,
        .tid = to->tid,
        .local_id = local_id,
        .remote_id = to->local_id,
        .msg_id = about,
        .reason = reason,
        .ari_len = ari0 ? 1 : 0,
        .ari = {ari0},
    };
    cm_send_stateless(cm, path, &rej, now);
}

void cm_send_rej(struct cm *cm, const struct cm_conn *c, unsigned reason, enum cm_about about,
                 const void *priv, size_t len, uint64_t now)
{
    struct cm_msg rej = {
        .attr = CM_REJ,
        .tid = c->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .msg_id = about,
        .reason = reason,
        .priv_len = (uint16_t)len,
    };
    if (reason == CM_REJ_TIMEOUT) { /* CM-28: our GUID tells who we are */
        rej.ari_len = GUID_LEN;
        for (unsigned i = 0; i < GUID_LEN; i++)
            rej.ari[i] = (uint8_t)(cm->params.ca_guid >> (56 - 8 * i));
    }
    if (len)
        memcpy(rej.priv, priv, len);
    cm_send_stateless(cm, &c->path, &rej, now);
}

static void enter_timewait(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    uint64_t wait = TICK_NS << clamp(c->ack_timeout, 0, ACK_TIMEOUT_MAX);
    if (wait < cm->params.timewait_ns)
        wait = cm->params.timewait_ns;
    if (wait > TIMEWAIT_MAX_NS)
        wait = TIMEWAIT_MAX_NS;
    cm_half_open(cm, c, false);
    c->state = CMS_TIMEWAIT;
    cm_timer_set(cm, c, now + wait);
}

static void disconnected(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    struct cm_event *ev = cm_event_push(cm, c, CM_EV_DISCONNECTED);
    if (msg) {
        ev->priv_len = msg->priv_len;
        memcpy(ev->priv, msg->priv, msg->priv_len);
    }
    enter_timewait(cm, c, now);
}

/* ---- receiving ---- */

struct cm_listener *cm_find_listener(const struct cm *cm, uint64_t service_id,
                                     const struct wire_addr *addr)
{
    static const struct wire_addr any;
    for (struct cm_listener *l = cm->listeners; l; l = l->next)
        if (l->service_id == service_id &&
            (!addr || cm_addr_eq(&l->addr, &any) || cm_addr_eq(&l->addr, addr)))
            return l;
    return NULL;
}

/* Above half of the half-open limit a source must repeat itself, identically, before it gets state
 * here: forged sources don't (SEC-20). */
static bool first_sight(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                        uint64_t now)
{
    struct {
        struct wire_addr src;
        uint64_t guid, tid, service;
        uint32_t id, qpn, psn, pad;
    } k = {*src, msg->ca_guid, msg->tid, msg->service_id, msg->local_id, msg->qpn, msg->psn, 0};
    uint64_t h = cm_hash(cm, &k, sizeof(k));
    size_t at = h % CM_SEEN;
    if (cm->seen[at].hash == h && now - cm->seen[at].at >= SEEN_MIN_NS &&
        now - cm->seen[at].at <= SEEN_MAX_NS)
        return false;
    if (cm->seen[at].hash != h) {
        cm->seen[at].hash = h;
        cm->seen[at].at = now;
    }
    return true;
}

static void dup_req(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    count(cm, CM_C_cm_dup_req);
    switch (c->state) {
    case CMS_MRA_REQ_SENT:
        cm_tx_queue(cm, c); /* the same again, and the peer waits as long again */
        cm_timer_set(cm, c, now + c->answer_ns);
        break;
    case CMS_REP_SENT:
        cm_tx_queue(cm, c);
        break;
    case CMS_TIMEWAIT:
        send_rej_to(cm, &c->path, msg, 0, CM_REJ_STALE_CONN, CM_ABOUT_REQ, 0, now);
        break;
    default:
        break;
    }
}

/* CM-21: the peer has given its QPN to a new connection, so the old one is dead there. */
static void hang_up_stale(struct cm *cm, struct cm_conn *old, uint64_t now)
{
    count(cm, CM_C_cm_stale);
    if (old->state == CMS_ESTABLISHED || old->state == CMS_REP_SENT ||
        old->state == CMS_MRA_REP_RCVD)
        cm_disconnect(cm, old, NULL, 0, now);
}

static bool is_live(const struct cm_conn *c)
{
    return c->state != CMS_TIMEWAIT && c->state != CMS_DREQ_SENT && c->state != CMS_SIDR_DONE;
}

/* Why a REQ is rejected, whoever else asks; 0 = it isn't: *l and *ip are set. */
static unsigned refusal(const struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                        struct cm_listener **l, struct cm_ip_hdr *ip)
{
    if (msg->transport > 1)
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

/* A connection for a REQ, if the limits allow one more; NULL = counted and dropped. */
static struct cm_conn *admit(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                             const struct cm_listener *l, uint64_t now)
{
    if (l->pending >= l->backlog || cm_source_full(cm, src)) {
        count(cm, CM_C_cm_req_backlog_drop);
        return NULL;
    }
    if (cm->half_open > cm->params.max_conns / 2 && first_sight(cm, msg, src, now)) {
        count(cm, CM_C_cm_rx_rate_limited);
        return NULL;
    }
    struct cm_conn *c = cm_conn_new(cm, CMS_REQ_RCVD, NULL);
    if (!c)
        count(cm, CM_C_cm_req_backlog_drop);
    return c;
}

/* What a REQ says of the connection. */
static void take_req(struct cm_conn *c, const struct cm_msg *msg)
{
    static const struct wire_addr no_addr;
    c->lport = (uint16_t)msg->service_id;
    c->tid = msg->tid;
    c->service_id = msg->service_id;
    c->qp_pkey = (uint16_t)msg->pkey;
    c->peer_psn = msg->psn;
    c->peer_resp_res = (uint8_t)msg->resp_res;
    c->peer_init_depth = (uint8_t)msg->init_depth;
    c->retry_cnt = (uint8_t)msg->retry_count;
    c->rnr_retry = (uint8_t)msg->rnr_retry;
    c->transport = (uint8_t)msg->transport;
    c->ack_timeout = (uint8_t)clamp(msg->ack_timeout, ACK_TIMEOUT_MIN, ACK_TIMEOUT_MAX);
    c->rep_wait = (uint8_t)msg->local_timeout;
    c->max_retries = (uint8_t)msg->max_retries;
    c->answer_ns = (1u + msg->max_retries) * cm_wait_ns(msg->remote_timeout); /* CM-18 */
    if (c->answer_ns < ANSWER_MIN_NS)
        c->answer_ns = ANSWER_MIN_NS;
    c->peer_flow_control = msg->flow_control;
    c->peer_srq = msg->srq;
    c->peer_alt_path = !cm_addr_eq(&msg->alt_remote_gid, &no_addr);
}

static void rx_req(struct cm *cm, const struct cm_msg *msg, const struct wire_addr *src,
                   const struct wire_addr *dst, uint16_t pkey, uint64_t now)
{
    /* A REQ names the address it was sent to only inside the MAD, which nobody checks: the packet's
     * own destination is what we answer from, and on the P_Key that it came with (CM-06). */
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
        send_rej_to(cm, &path, msg, 0, reason, CM_ABOUT_REQ, ari, now);
        return;
    }
    c = cm_find_qpn(cm, src, msg->ca_guid, msg->qpn, NULL);
    if (c && is_live(c)) {
        send_rej_to(cm, &path, msg, 0, CM_REJ_STALE_CONN, CM_ABOUT_REQ, 0, now);
        hang_up_stale(cm, c, now);
        return;
    }
    c = admit(cm, msg, src, l, now);
    if (!c)
        return;
    c->listener = l;
    c->path = path;
    c->rport = ip.sport;
    take_req(c, msg);
    cm_conn_set_remote(cm, c, msg->ca_guid, msg->local_id);
    cm_conn_set_peer_qpn(cm, c, msg->qpn);
    cm_half_open(cm, c, true);
    cm_timer_set(cm, c, now + c->answer_ns);

    struct cm_event *ev = cm_event_push(cm, c, CM_EV_REQ);
    ev->listener = l;
    ev->arg = l->arg;
    ev->responder_resources = msg->init_depth; /* CM-36 */
    ev->initiator_depth = msg->resp_res;
    ev->priv_len = CM_REQ_USER_MAX;
    memcpy(ev->priv, msg->priv + CM_IP_HDR_LEN, CM_REQ_USER_MAX);
}

static void rx_mra(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                   const struct wire_addr *src, uint64_t now)
{
    (void)src;
    unsigned s = msg->service_timeout > MRA_EXPONENT_MAX ? MRA_EXPONENT_MAX : msg->service_timeout;
    if (msg->msg_id == CM_ABOUT_REQ && (c->state == CMS_REQ_SENT || c->state == CMS_MRA_REQ_RCVD))
        c->state = CMS_MRA_REQ_RCVD;
    else if (msg->msg_id == CM_ABOUT_REP &&
             (c->state == CMS_REP_SENT || c->state == CMS_MRA_REP_RCVD))
        c->state = CMS_MRA_REP_RCVD;
    else
        return;
    cm_timer_set(cm, c, now + c->resend_ns + cm_wait_ns(s));
}

static void rx_rep(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                   const struct wire_addr *src, uint64_t now)
{
    if (c->state == CMS_ESTABLISHED && c->active) { /* our RTU was lost (CM-22) */
        count(cm, CM_C_cm_dup_rep);
        if (msg->local_id == c->remote_id)
            cm_tx_queue(cm, c);
        return;
    }
    if (c->state != CMS_REQ_SENT && c->state != CMS_MRA_REQ_RCVD) {
        count(cm, c->state == CMS_REP_RCVD ? CM_C_cm_dup_rep : CM_C_cm_rx_bad_id);
        return;
    }
    struct cm_conn *old = cm_find_qpn(cm, src, msg->ca_guid, msg->qpn, c);
    if (old && is_live(old) && old->local_id != msg->local_id) {
        c->remote_id = msg->local_id;
        cm_send_rej(cm, c, CM_REJ_STALE_CONN, CM_ABOUT_REP, NULL, 0, now);
        hang_up_stale(cm, old, now);
        cm_event_push(cm, c, CM_EV_REJECTED)->reason = CM_REJ_STALE_CONN;
        cm_conn_close(cm, c);
        return;
    }
    c->state = CMS_REP_RCVD;
    c->peer_psn = msg->psn;
    c->peer_resp_res = (uint8_t)msg->resp_res;
    c->peer_init_depth = (uint8_t)msg->init_depth;
    c->rnr_retry = (uint8_t)msg->rnr_retry; /* CM-10 */
    c->peer_flow_control = msg->flow_control;
    c->peer_srq = msg->srq;
    c->ack_timeout =
        (uint8_t)clamp(cm_ack_timeout(cm->params.packet_lifetime, msg->target_ack_delay),
                       ACK_TIMEOUT_MIN, ACK_TIMEOUT_MAX);
    if (c->init_depth > c->peer_resp_res)
        c->init_depth = c->peer_resp_res; /* CM-07 */
    cm_conn_set_remote(cm, c, msg->ca_guid, msg->local_id);
    cm_conn_set_peer_qpn(cm, c, msg->qpn);
    cm_timer_set(cm, c, UINT64_MAX);

    struct cm_event *ev = cm_event_push(cm, c, CM_EV_REP);
    ev->responder_resources = msg->init_depth;
    ev->initiator_depth = msg->resp_res;
    ev->priv_len = msg->priv_len;
    memcpy(ev->priv, msg->priv, msg->priv_len);
}

static void established(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg)
{
    c->state = CMS_ESTABLISHED;
    cm_half_open(cm, c, false);
    cm_timer_set(cm, c, UINT64_MAX);
    count(cm, CM_C_cm_established);
    struct cm_event *ev = cm_event_push(cm, c, CM_EV_ESTABLISHED);
    if (msg) {
        ev->priv_len = msg->priv_len;
        memcpy(ev->priv, msg->priv, msg->priv_len);
    }
}

static void rx_rtu(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                   const struct wire_addr *src, uint64_t now)
{
    (void)src;
    (void)now;
    if (c->state == CMS_REP_SENT || c->state == CMS_MRA_REP_RCVD)
        established(cm, c, msg);
}

void cm_comm_est(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    (void)now;
    if (c->state == CMS_REP_SENT || c->state == CMS_MRA_REP_RCVD)
        established(cm, c, NULL); /* CM-23 */
}

/* CM-12: the peer's ports carry less than ours, and it says how much: ask again for that. Every
 * round asks for less, so there are four at most. A REJ of an earlier round has another TID
 * (CM-14). */
static bool ask_for_less(struct cm *cm, struct cm_conn *c, const struct cm_msg *rej, uint64_t now)
{
    struct cm_msg req;
    uint8_t mtu = rej->ari_len > 0 ? rej->ari[0] >> 4 : 0;

    if (rej->reason != CM_REJ_INVALID_MTU || c->state != CMS_REQ_SENT)
        return false;
    if (rej->tid != c->tid)
        return true;
    if (mtu < 1 || mtu >= c->path.mtu || cm_msg_unpack(&req, c->mad, sizeof c->mad) < 0)
        return false;
    c->path.mtu = mtu;
    c->tid = cm_random(cm);
    req.mtu = mtu;
    req.tid = c->tid;
    cm_send(cm, c, &req, now, true);
    return true;
}

static void rx_rej(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                   const struct wire_addr *src, uint64_t now)
{
    (void)src;
    if (ask_for_less(cm, c, msg, now))
        return;
    switch (c->state) {
    case CMS_REQ_RCVD: /* the peer has given up before we answered */
    case CMS_MRA_REQ_SENT:
        if (!c->req_delivered) {
            c->released = true; /* the consumer has never heard of it */
            cm_conn_close(cm, c);
            break;
        }
        /* fall through */
    case CMS_REQ_SENT:
    case CMS_MRA_REQ_RCVD:
    case CMS_REP_RCVD:
    case CMS_REP_SENT:
    case CMS_MRA_REP_RCVD: {
        struct cm_event *ev = cm_event_push(cm, c, CM_EV_REJECTED);
        ev->reason = msg->reason;
        ev->priv_len = msg->priv_len;
        memcpy(ev->priv, msg->priv, msg->priv_len);
        count(cm, CM_C_cm_rejected);
        if (c->state == CMS_REP_SENT || c->state == CMS_MRA_REP_RCVD)
            enter_timewait(cm, c, now); /* the QPN was on the wire */
        else
            cm_conn_close(cm, c);
        break;
    }
    case CMS_ESTABLISHED: /* CM-28 */
        disconnected(cm, c, NULL, now);
        break;
    default:
        break;
    }
}

static void send_drep(struct cm *cm, struct cm_conn *c, const struct cm_msg *dreq, uint64_t now)
{
    struct cm_msg drep = {
        .attr = CM_DREP, .tid = dreq->tid, .local_id = c->local_id, .remote_id = c->remote_id};
    cm_send(cm, c, &drep, now, false);
}

static void rx_dreq(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                    const struct wire_addr *src, uint64_t now)
{
    (void)src;
    if (msg->remote_qpn != c->qpn) {
        count(cm, CM_C_cm_rx_bad_id);
        return;
    }
    switch (c->state) {
    case CMS_REP_RCVD:
    case CMS_REP_SENT:
    case CMS_MRA_REP_RCVD:
    case CMS_ESTABLISHED:
    case CMS_DREQ_SENT: /* both sides close at once */
        send_drep(cm, c, msg, now);
        disconnected(cm, c, msg, now);
        break;
    case CMS_REQ_SENT: /* the peer accepted, its REP was lost, and it has given up */
    case CMS_MRA_REQ_RCVD: {
        struct cm_msg drep = {
            .attr = CM_DREP, .tid = msg->tid, .local_id = c->local_id, .remote_id = msg->local_id};
        cm_send_stateless(cm, &c->path, &drep, now);
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
        cm_conn_close(cm, c);
        break;
    }
    case CMS_TIMEWAIT: {
        uint64_t deadline = c->deadline;
        send_drep(cm, c, msg, now);
        cm_timer_set(cm, c, deadline);
        break;
    }
    default:
        break;
    }
}

static void rx_drep(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                    const struct wire_addr *src, uint64_t now)
{
    (void)src;
    if (c->state == CMS_DREQ_SENT)
        disconnected(cm, c, msg, now);
}

static void rx_lap(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg,
                   const struct wire_addr *src, uint64_t now)
{
    (void)src;
    struct cm_msg apr = {
        .attr = CM_APR,
        .tid = msg->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .reason = AR_UNSUPPORTED,
    };
    if (c->lap_answered) {
        count(cm, CM_C_cm_rx_unsupported);
        return;
    }
    c->lap_answered = true; /* CM-32 */
    cm_send_stateless(cm, &c->path, &apr, now);
}

/* A REJ with reason "timeout" may come from a side that never learned our id (CM-28). */
static struct cm_conn *find_by_ari(const struct cm *cm, const struct cm_msg *msg,
                                   const struct wire_addr *src)
{
    if (msg->attr != CM_REJ || msg->reason != CM_REJ_TIMEOUT || msg->ari_len < GUID_LEN)
        return NULL;
    uint64_t guid = 0;
    for (unsigned i = 0; i < GUID_LEN; i++)
        guid = guid << 8 | msg->ari[i];
    return cm_find_remote(cm, src, guid, msg->local_id);
}

/* SEC-21: our id, the peer's id and the peer's address must all fit. The peer's id is not known
 * before its REP, and a REJ may come from a side that had none yet. */
static bool ids_match(const struct cm_conn *c, const struct cm_msg *msg,
                      const struct wire_addr *src)
{
    if (!cm_addr_eq(&c->path.remote, src))
        return false;
    if (c->state == CMS_REQ_SENT || c->state == CMS_MRA_REQ_RCVD)
        return true;
    return msg->local_id == c->remote_id;
}

typedef void (*rx_fn)(struct cm *, struct cm_conn *, const struct cm_msg *,
                      const struct wire_addr *, uint64_t);

static const rx_fn rx_table[] = {
    [CM_MRA] = rx_mra,   [CM_REJ] = rx_rej,   [CM_REP] = rx_rep, [CM_RTU] = rx_rtu,
    [CM_DREQ] = rx_dreq, [CM_DREP] = rx_drep, [CM_LAP] = rx_lap,
};

void cm_rx(struct cm *cm, const uint8_t *mad, size_t len, const struct wire_addr *src,
           const struct wire_addr *dst, uint32_t sqpn, uint16_t pkey, uint64_t now)
{
    struct cm_msg msg;
    count(cm, CM_C_cm_rx);
    int rc = sqpn == WIRE_QPN_GSI ? cm_msg_unpack(&msg, mad, len) : -EMSGSIZE;
    if (rc == -EPROTO && msg.attr == CM_REQ) {
        struct cm_path path = {.local = *dst, .remote = *src, .pkey = pkey};
        send_rej_to(cm, &path, &msg, 0, CM_REJ_CLASS_VERSION, CM_ABOUT_REQ, 0, now);
    }
    if (rc < 0) {
        count(cm, rc == -EPROTONOSUPPORT || rc == -ENOMSG ? CM_C_cm_rx_unsupported
                                                          : CM_C_cm_rx_bad_mad);
        return;
    }

    switch (msg.attr) {
    case CM_REQ:
        rx_req(cm, &msg, src, dst, pkey, now);
        return;
    case CM_SIDR_REQ:
        cm_sidr_rx_req(cm, &msg, src, dst, pkey, now);
        return;
    case CM_SIDR_REP:
        cm_sidr_rx_rep(cm, &msg, src);
        return;
    default:
        break;
    }
    rx_fn fn = msg.attr < sizeof(rx_table) / sizeof(rx_table[0]) ? rx_table[msg.attr] : NULL;
    if (!fn) {
        count(cm, CM_C_cm_rx_unsupported);
        return;
    }
    struct cm_conn *c = cm_find_local(cm, msg.remote_id);
    if (!c)
        c = find_by_ari(cm, &msg, src);
    if (c && ids_match(c, &msg, src)) {
        fn(cm, c, &msg, src, now);
        return;
    }
    count(cm, CM_C_cm_rx_bad_id);
    if (msg.attr == CM_DREQ && !c) { /* CM-24: the peer still remembers what we have forgotten */
        struct cm_path path = {.local = *dst, .remote = *src, .pkey = pkey};
        struct cm_msg drep = {
            .attr = CM_DREP, .tid = msg.tid, .local_id = msg.remote_id, .remote_id = msg.local_id};
        cm_send_stateless(cm, &path, &drep, now);
    }
}

/* ---- time ---- */

/* The peer has stopped waiting for our consumer's answer. */
static void unanswered(struct cm *cm, struct cm_conn *c)
{
    if (c->req_delivered)
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
    else
        c->released = true; /* the consumer has never heard of it */
    cm_conn_close(cm, c);
}

/* Timers by state: REQ_SENT, REP_SENT, DREQ_SENT, SIDR_REQ_SENT and MRA_*_RCVD wait for an answer
 * and repeat; REQ_RCVD, MRA_REQ_SENT and SIDR_REQ_RCVD wait for the consumer (SEC-20); TIMEWAIT and
 * SIDR_DONE wait for the end. */
static void timer_fired(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    cm_timer_set(cm, c, UINT64_MAX);
    switch (c->state) {
    case CMS_TIMEWAIT:
        cm_event_push(cm, c, CM_EV_TIMEWAIT_EXIT);
        cm_conn_close(cm, c);
        return;
    case CMS_SIDR_DONE:
        cm_conn_close(cm, c);
        return;
    case CMS_REQ_RCVD:
    case CMS_MRA_REQ_SENT:
    case CMS_SIDR_REQ_RCVD:
        unanswered(cm, c);
        return;
    default:
        break;
    }
    if (c->retries_left > 0) {
        c->retries_left--;
        count(cm, CM_C_cm_retries);
        if (c->state == CMS_MRA_REQ_RCVD)
            c->state = CMS_REQ_SENT;
        else if (c->state == CMS_MRA_REP_RCVD)
            c->state = CMS_REP_SENT;
        cm_tx_queue(cm, c);
        cm_timer_set(cm, c, now + c->resend_ns);
        return;
    }
    switch (c->state) {
    case CMS_DREQ_SENT:
        disconnected(cm, c, NULL, now); /* CM-25 */
        break;
    case CMS_REP_SENT:
    case CMS_MRA_REP_RCVD:
        cm_send_rej(cm, c, CM_REJ_TIMEOUT, CM_ABOUT_REP, NULL, 0, now);
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
        enter_timewait(cm, c, now);
        break;
    case CMS_REQ_SENT:
    case CMS_MRA_REQ_RCVD:
        cm_send_rej(cm, c, CM_REJ_TIMEOUT, CM_ABOUT_REQ, NULL, 0, now);
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
        cm_conn_close(cm, c);
        break;
    default: /* SIDR_REQ_SENT */
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
        cm_conn_close(cm, c);
        break;
    }
}

void cm_expire(struct cm *cm, uint64_t now)
{
    while (cm->heap_len && cm->heap[0]->deadline <= now)
        timer_fired(cm, cm->heap[0], now);
}
