/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Effects of a peer's messages and of time on connections: one function per message (except REQ,
 * see cm_req.c), a table that chooses it, and the time-outs. CM-16..CM-30, SEC-21.
 */
#include <errno.h>
#include <string.h>

#include "cm_priv.h"

#define TICK_NS          4096ull /* of exponents */
#define MRA_EXPONENT_MAX 24u     /* CM-19 */
#define TIMEWAIT_MAX_NS  60000000000ull
#define ACK_TIMEOUT_MIN  8u /* SEC-24 */
#define ACK_TIMEOUT_MAX  24u
#define WAIT_MIN         4u /* SEC-24: exponents of response timeouts */
#define WAIT_MAX         28u
#define AR_UNSUPPORTED   2u /* status of an APR (CM-32) */
/* CM-21: transmissions of a challenge, the wait of a round, the least time between two challenges.
 */
#define CHALLENGES         3u
#define CHALLENGE_WAIT_NS  1000000000ull
#define CHALLENGE_PAUSE_NS 10000000000ull

static unsigned clamp(unsigned v, unsigned lo, unsigned hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

uint8_t cm_ack_clamp(unsigned exponent)
{
    return (uint8_t)clamp(exponent, ACK_TIMEOUT_MIN, ACK_TIMEOUT_MAX);
}

uint64_t cm_wait_ns(unsigned exponent)
{
    return TICK_NS << clamp(exponent, WAIT_MIN, WAIT_MAX);
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
    cm_drop_peer(cm, c);
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

/* A DREQ with the ids of the connection and the number of a queue pair that it doesn't have: a peer
 * that has the connection ignores it (CM-24); a peer that doesn't know the ids answers with a DREP.
 * So the answer proves the loss, like the RST that answers a challenge ACK of TCP (RFC 5961). A
 * forger sees neither the ids nor the TID, and can't send it. */
static void send_challenge(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    struct cm_msg dreq = {
        .attr = CM_DREQ,
        .tid = c->challenge_tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .remote_qpn = CM_CHALLENGE_QPN,
    };
    cm_count(cm, CM_C_cm_challenges);
    cm_send_stateless(cm, &c->path, &dreq, now);
    if (c->state == CMS_ESTABLISHED) /* before that the timer belongs to the REP */
        cm_timer_set(cm, c, now + CHALLENGE_WAIT_NS);
}

void cm_challenge(struct cm *cm, struct cm_conn *old, uint64_t now)
{
    cm_count(cm, CM_C_cm_stale);
    if (old->state != CMS_ESTABLISHED && old->state != CMS_REP_SENT &&
        old->state != CMS_MRA_REP_RCVD)
        return; /* the peer doesn't know our id yet, so it can't be asked */
    if (old->challenged_at && now - old->challenged_at < CHALLENGE_PAUSE_NS) {
        cm_count(cm, CM_C_cm_rx_rate_limited);
        return;
    }
    old->challenge_tid = cm_random(cm);
    old->challenged_at = now;
    old->challenges_left = CHALLENGES - 1;
    send_challenge(cm, old, now);
}

void cm_doubt(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    cm_challenge(cm, c, now);
}

void cm_doubt_peer(struct cm *cm, const struct cm_peer *peer, uint64_t now)
{
    struct cm_conn *c = cm_find_qpn(cm, &peer->addr, peer->guid, peer->qpn);
    if (c && cm_is_live(c))
        cm_challenge(cm, c, now);
}

/* No answer: the peer still has the connection, or the challenge or its answer is lost. */
static void challenge_unanswered(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    cm_timer_set(cm, c, UINT64_MAX);
    if (c->challenges_left == 0)
        return;
    c->challenges_left--;
    send_challenge(cm, c, now);
}

bool cm_is_live(const struct cm_conn *c)
{
    return c->state != CMS_TIMEWAIT && c->state != CMS_DREQ_SENT;
}

static void rx_mra(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    unsigned s = msg->service_timeout > MRA_EXPONENT_MAX ? MRA_EXPONENT_MAX : msg->service_timeout;
    if (msg->msg_id == CM_ABOUT_REQ && (c->state == CMS_REQ_SENT || c->state == CMS_MRA_REQ_RCVD))
        c->state = CMS_MRA_REQ_RCVD;
    else if (msg->msg_id == CM_ABOUT_REP &&
             (c->state == CMS_REP_SENT || c->state == CMS_MRA_REP_RCVD))
        c->state = CMS_MRA_REP_RCVD;
    else
        return;
    cm_timer_look(cm, c, now + c->resend_ns + cm_wait_ns(s), now);
}

static void rx_rep(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    if (c->state == CMS_ESTABLISHED && c->active) { /* our RTU was lost (CM-22) */
        cm_count(cm, CM_C_cm_dup_rep);
        cm_tx_queue(cm, c);
        return;
    }
    if (c->state != CMS_REQ_SENT && c->state != CMS_MRA_REQ_RCVD) {
        cm_count(cm, c->state == CMS_REP_RCVD ? CM_C_cm_dup_rep : CM_C_cm_rx_bad_id);
        return;
    }
    const uint32_t qpn = cm_rep_qpn(msg, c->transport);
    struct cm_conn *old = cm_find_qpn(cm, &c->path.remote, msg->ca_guid, qpn);
    if (old && (!cm_is_live(old) || old->local_id == msg->local_id))
        old = NULL;
    if (old || !cm_hold_peer(cm, c, msg->ca_guid, qpn, msg->local_id)) {
        c->remote_id = msg->local_id;
        cm_send_rej(cm, c, CM_REJ_STALE_CONN, CM_ABOUT_REP, NULL, 0, now);
        if (old)
            cm_challenge(cm, old, now);
        cm_event_push(cm, c, CM_EV_REJECTED)->reason = CM_REJ_STALE_CONN;
        cm_conn_close(cm, c);
        return;
    }
    c->state = CMS_REP_RCVD;
    c->peer_psn = msg->psn;
    c->peer_resp_res = (uint8_t)msg->resp_res;
    c->rnr_retry = (uint8_t)msg->rnr_retry; /* CM-10 */
    c->peer_flow_control = msg->flow_control;
    c->peer_srq = msg->srq;
    c->ack_timeout =
        cm_ack_clamp(cm_ack_timeout(cm->params.packet_lifetime, msg->target_ack_delay));
    if (c->init_depth > c->peer_resp_res)
        c->init_depth = c->peer_resp_res; /* CM-07 */
    cm_conn_set_remote(cm, c, msg->ca_guid, msg->local_id);
    cm_conn_set_peer_qpn(cm, c, qpn);
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
    cm_count(cm, CM_C_cm_established);
    struct cm_event *ev = cm_event_push(cm, c, CM_EV_ESTABLISHED);
    if (msg) {
        ev->priv_len = msg->priv_len;
        memcpy(ev->priv, msg->priv, msg->priv_len);
    }
}

static void rx_rtu(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
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

/* CM-12: the peer's ports have a smaller MTU, which the REJ names: request again with that. Every
 * round requests a smaller MTU, so there are four at most. A REJ of an earlier round has another
 * TID (CM-14). */
static bool ask_for_less(struct cm *cm, struct cm_conn *c, const struct cm_msg *rej, uint64_t now)
{
    struct cm_msg req;
    uint8_t mtu = rej->ari_len > 0 ? rej->ari[0] >> 4 : 0;
    if (rej->reason != CM_REJ_INVALID_MTU || c->state != CMS_REQ_SENT)
        return false;
    if (rej->tid != c->tid)
        return true;
    if (mtu < 1 || mtu >= c->path.mtu || cm_msg_unpack(&req, c->mad, sizeof(c->mad)) < 0)
        return false;
    c->path.mtu = mtu;
    c->tid = cm_random(cm);
    req.mtu = mtu;
    req.tid = c->tid;
    cm_send(cm, c, &req, now, true);
    return true;
}

static void rx_rej(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    if (ask_for_less(cm, c, msg, now))
        return;
    switch (c->state) {
    case CMS_REQ_RCVD: /* the peer has given up before we answered */
    case CMS_MRA_REQ_SENT:
        if (!c->req_delivered) {
            c->released = true; /* the consumer does not know it */
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
        cm_count(cm, CM_C_cm_rejected);
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

static void rx_dreq(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    if (msg->remote_qpn != c->qpn) {
        cm_count(cm, CM_C_cm_rx_bad_id);
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
        cm_event_push(cm, c, CM_EV_UNREACHABLE)->hung_up = true;
        cm_conn_close(cm, c);
        break;
    }
    case CMS_TIMEWAIT:
        send_drep(cm, c, msg, now);
        break;
    default:
        break;
    }
}

static void rx_drep(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    bool lost = c->challenged_at && msg->tid == c->challenge_tid &&
                now - c->challenged_at < CHALLENGE_PAUSE_NS;
    if (c->state == CMS_DREQ_SENT) {
        disconnected(cm, c, msg, now);
    } else if (lost && (c->state == CMS_ESTABLISHED || c->state == CMS_REP_SENT ||
                        c->state == CMS_MRA_REP_RCVD)) {
        cm_count(cm, CM_C_cm_stale_confirmed);
        disconnected(cm, c, NULL, now); /* CM-21: the peer has confirmed that it lost it */
    }
}

static void rx_lap(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now)
{
    struct cm_msg apr = {
        .attr = CM_APR,
        .tid = msg->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .reason = AR_UNSUPPORTED,
    };
    if (c->lap_answered) {
        cm_count(cm, CM_C_cm_rx_unsupported);
        return;
    }
    c->lap_answered = true; /* CM-32 */
    cm_send_stateless(cm, &c->path, &apr, now);
}

/* A REJ with reason "timeout" may come from a side that never learned our id (CM-28). */
static struct cm_conn *find_by_ari(const struct cm *cm, const struct cm_msg *msg,
                                   const struct wire_addr *src)
{
    if (msg->reason != CM_REJ_TIMEOUT || msg->ari_len < CM_GUID_LEN)
        return NULL;
    uint64_t guid = 0;
    for (unsigned i = 0; i < CM_GUID_LEN; i++)
        guid = guid << 8 | msg->ari[i];
    struct cm_conn *c = cm_find_remote(cm, src, guid, msg->local_id);
    /* Both ends of an established connection know both ids (SEC-21). */
    return c && c->state != CMS_ESTABLISHED ? c : NULL;
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

typedef void (*rx_fn)(struct cm *, struct cm_conn *, const struct cm_msg *, uint64_t);

static const rx_fn rx_table[] = {
    [CM_MRA] = rx_mra,   [CM_REJ] = rx_rej,   [CM_REP] = rx_rep, [CM_RTU] = rx_rtu,
    [CM_DREQ] = rx_dreq, [CM_DREP] = rx_drep, [CM_LAP] = rx_lap,
};

void cm_rx(struct cm *cm, const uint8_t *mad, size_t len, const struct wire_addr *src,
           const struct wire_addr *dst, uint32_t sqpn, uint16_t pkey, uint64_t now)
{
    struct cm_msg msg;
    cm_count(cm, CM_C_cm_rx);
    int rc = sqpn == WIRE_QPN_GSI ? cm_msg_unpack(&msg, mad, len) : -EMSGSIZE;
    if (rc == -EPROTO && msg.attr == CM_REQ) {
        struct cm_path path = {.local = *dst, .remote = *src, .pkey = pkey};
        cm_send_rej_to(cm, &path, &msg, 0, CM_REJ_CLASS_VERSION, CM_ABOUT_REQ, 0, now);
    }
    if (rc < 0) {
        cm_count(cm, rc == -EPROTONOSUPPORT || rc == -ENOMSG ? CM_C_cm_rx_unsupported
                                                             : CM_C_cm_rx_bad_mad);
        return;
    }

    switch (msg.attr) {
    case CM_REQ:
        cm_rx_req(cm, &msg, src, dst, pkey, now);
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
        cm_count(cm, CM_C_cm_rx_unsupported);
        return;
    }
    struct cm_conn *c = cm_find_local(cm, msg.remote_id);
    if (!c)
        c = find_by_ari(cm, &msg, src);
    if (c && ids_match(c, &msg, src)) {
        fn(cm, c, &msg, now);
        return;
    }
    if (cm->params.part_bits && !c && msg.attr == CM_REJ && msg.remote_id == 0)
        return; /* every manager gets it, and another one may know the id */
    cm_count(cm, CM_C_cm_rx_bad_id);
    if (msg.attr == CM_DREQ && !c) { /* CM-24: only the peer still has the connection */
        struct cm_path path = {.local = *dst, .remote = *src, .pkey = pkey};
        struct cm_msg drep = {
            .attr = CM_DREP, .tid = msg.tid, .local_id = msg.remote_id, .remote_id = msg.local_id};
        cm_send_stateless(cm, &path, &drep, now);
    }
}

/* ---- time ---- */

static bool to_look(const struct cm *cm, const struct cm_conn *c)
{
    return c->half_open && !c->looked && cm->params.silent;
}

void cm_timer_look(struct cm *cm, struct cm_conn *c, uint64_t until, uint64_t now)
{
    uint64_t at = c->look_at > now ? c->look_at : now;
    c->until = until;
    cm_timer_set(cm, c, to_look(cm, c) && at < until ? at : until);
}

/* The timer fired to check a request's host. False: the timer itself is due, too, or the host is
 * silent, so that there is no more to wait for. */
static bool only_looked(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    if (!to_look(cm, c) || now < c->look_at)
        return false;
    c->looked = true;
    if (cm->params.silent(cm->params.silent_arg, &c->path.remote)) {
        cm_count(cm, CM_C_cm_silent_peer);
        c->retries_left = 0;
        return false;
    }
    if (c->until <= now)
        return false;
    cm_timer_set(cm, c, c->until);
    return true;
}

/* The peer has stopped waiting for our consumer's answer. */
static void unanswered(struct cm *cm, struct cm_conn *c)
{
    if (c->req_delivered)
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
    else
        c->released = true; /* the consumer does not know it */
    cm_conn_close(cm, c);
}

unsigned cm_refused(struct cm *cm, const struct wire_addr *addr)
{
    struct cm_conn *next;
    unsigned n = 0;
    for (struct cm_conn *c = cm->all; c; c = next) {
        next = c->all_next;
        if ((c->state != CMS_REQ_SENT && c->state != CMS_SIDR_REQ_SENT) ||
            memcmp(c->path.remote.b, addr->b, sizeof(addr->b)) != 0)
            continue;
        cm_event_push(cm, c, CM_EV_UNREACHABLE);
        cm_conn_close(cm, c);
        n++;
    }
    return n;
}

/* Timers by state: REQ_SENT, REP_SENT, DREQ_SENT, SIDR_REQ_SENT and MRA_*_RCVD wait for an answer
 * and repeat; REQ_RCVD, MRA_REQ_SENT and SIDR_REQ_RCVD wait for the consumer (SEC-20); TIMEWAIT and
 * SIDR_DONE wait for the end; ESTABLISHED has a timer while a challenge is under way (CM-21). Each
 * of them then sets another timer, or ends. */
static void timer_fired(struct cm *cm, struct cm_conn *c, uint64_t now)
{
    if (only_looked(cm, c, now))
        return;
    switch (c->state) {
    case CMS_TIMEWAIT:
        cm_event_push(cm, c, CM_EV_TIMEWAIT_EXIT);
        cm_conn_close(cm, c);
        return;
    case CMS_SIDR_DONE:
        cm_conn_close(cm, c);
        return;
    case CMS_ESTABLISHED:
        challenge_unanswered(cm, c, now);
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
        cm_count(cm, CM_C_cm_retries);
        if (c->state == CMS_MRA_REQ_RCVD)
            c->state = CMS_REQ_SENT;
        else if (c->state == CMS_MRA_REP_RCVD)
            c->state = CMS_REP_SENT;
        cm_tx_queue(cm, c);
        cm_timer_look(cm, c, now + c->resend_ns, now);
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
