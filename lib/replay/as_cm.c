/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our connection manager in the place of one host, opposite another.
 *
 * It gets the other host's messages at their times. The capture shows the decisions of its own
 * host's application: a REQ is a wish to connect, a REP an acceptance, a REJ a refusal unless it
 * names a fault of the REQ, a DREQ a wish to disconnect; the application's values come from the
 * capture. Each captured message must then be one that our connection manager sends: the same kind,
 * transaction, addressee, agreed values, and reason of refusal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"
#include "stage.h"

#define CONNS      256u
#define SENT_MAX   1024u
#define TIMERS_MAX 64u   /* time-outs run in one step of time */
#define MTU_1024   3     /* a number of wire_mtu_enum, for a SIDR REQ that names none */
#define CM_TCP     0x06u /* the IP protocol number in a service id */
#define CM_UDP     0x11u
#define CM_IB      0x3Fu /* the number for XRC */

/* A connection, by its ids in the capture. */
struct link {
    struct cm_conn *conn;
    uint32_t peer_id; /* the other host's id; 0 = not known */
    uint32_t own_id;  /* the replaced host's id; 0 = not known */
    uint32_t our_id;  /* our connection manager's id instead of own_id */
    struct {
        uint64_t own, our; /* transactions that this host starts: REQ or SIDR REQ, DREQ */
    } tid[2];
    uint64_t req_tid; /* transaction of the captured REQ or SIDR REQ */
    bool decided;
};

struct emitted {
    struct cm_msg msg;
    bool used;
};

struct exchange {
    struct direction *d;
    struct judge *j;
    uint32_t own, other; /* flows of this host's messages and of the other one's */
    struct wire_addr here, there;
    struct cm *cm;
    uint64_t now;
    struct link link[CONNS];
    unsigned links;
    struct emitted *sent;
    unsigned sents;
};

/* ---- the capture ---- */

static bool message_of(const struct packet *p, uint32_t flow, struct cm_msg *m)
{
    return p->usable && p->flow == flow && packet_payload_have(p) == p->payload_len &&
           cm_msg_unpack(m, packet_payload(p), p->payload_len) == 0;
}

/* The newest one: a restarted host may reuse its ids. */
static struct link *link_of(struct exchange *x, uint32_t own_id, uint32_t peer_id)
{
    for (unsigned i = x->links; i-- > 0;) {
        struct link *l = &x->link[i];
        if ((own_id && l->own_id == own_id) || (peer_id && l->peer_id == peer_id))
            return l;
    }
    return NULL;
}

/* Our transaction for one of this host. */
static uint64_t our_tid(const struct link *l, uint64_t own)
{
    for (unsigned i = 0; l && i < 2; i++)
        if (l->tid[i].our && l->tid[i].own == own)
            return l->tid[i].our;
    return own;
}

static void begin_transaction(struct exchange *x, struct link *l, unsigned which, uint64_t own,
                              unsigned before)
{
    if (x->sents > before) {
        l->tid[which].own = own;
        l->tid[which].our = x->sent[before].msg.tid;
    }
}

static bool asks_first(const struct cm_msg *m)
{
    return m->attr == CM_REQ || m->attr == CM_SIDR_REQ;
}

/* Is it a first request? A repetition has the same transaction id. */
static bool is_new(const struct link *l, const struct cm_msg *m)
{
    return asks_first(m) && (!l || l->req_tid != m->tid);
}

static struct link *link_new(struct exchange *x, uint32_t own_id, uint32_t peer_id, uint64_t tid)
{
    if (x->links == CONNS)
        return NULL;
    struct link *l = &x->link[x->links++];
    *l = (struct link){.own_id = own_id, .peer_id = peer_id, .req_tid = tid};
    return l;
}

/* The captured answer of this host to a request of the other one; false: there is none. */
static bool answer_to(const struct exchange *x, size_t at, uint32_t peer_id, struct cm_msg *m)
{
    for (size_t i = at + 1; i < x->d->packets; i++)
        if (message_of(&x->d->packet[i], x->own, m) &&
            ((m->attr == CM_SIDR_REP && m->local_id == peer_id) ||
             ((m->attr == CM_REP || m->attr == CM_REJ) && m->remote_id == peer_id)))
            return true;
    return false;
}

/* ---- our connection manager ---- */

static void collect(struct exchange *x)
{
    struct cm_out out;
    while (cm_tx(x->cm, &out))
        if (x->sents < SENT_MAX &&
            cm_msg_unpack(&x->sent[x->sents].msg, out.mad, sizeof(out.mad)) == 0)
            x->sent[x->sents++].used = false;
}

static void pass_time(struct exchange *x, uint64_t now)
{
    for (unsigned i = 0; i < TIMERS_MAX && cm_deadline(x->cm) <= now; i++) {
        uint64_t due = cm_deadline(x->cm);
        x->now = due > x->now ? due : x->now;
        cm_expire(x->cm, x->now);
        collect(x);
    }
    x->now = now > x->now ? now : x->now;
}

/* Is the reason private to the host, not visible in the REQ or REP that it refuses? Our connection
 * manager must also find every visible reason. */
static bool own_reason(unsigned reason)
{
    switch (reason) {
    case CM_REJ_NO_EEC:
    case CM_REJ_INVALID_SERVICE_ID:
    case CM_REJ_INVALID_TRANSPORT:
    case CM_REJ_NO_RDC:
    case CM_REJ_CLASS_VERSION:
        return false;
    default:
        return reason && reason <= CM_REJ_LAST;
    }
}

/* Listen where the capture shows a listener. */
static void listen_for(struct exchange *x, size_t at, const struct cm_msg *req)
{
    unsigned protocol = req->service_id >> 16 & 0xFF;
    struct cm_listener *l;
    struct cm_msg answer;
    if (req->service_id >> 24 != 1 ||
        (protocol != CM_TCP && protocol != CM_UDP && protocol != CM_IB) ||
        !answer_to(x, at, req->local_id, &answer) ||
        (answer.attr == CM_REJ && !own_reason(answer.reason)))
        return;
    (void)cm_listen(x->cm, 0x0100u | protocol, &(struct wire_addr){{0}}, (uint16_t)req->service_id,
                    0, NULL, &l);
}

static void take_events(struct exchange *x, struct link *l)
{
    struct cm_event ev;
    while (cm_event(x->cm, &ev))
        if (l && (ev.type == CM_EV_REQ || ev.type == CM_EV_SIDR_REQ))
            l->conn = ev.conn;
    collect(x);
}

/* A message of the other host arrives. */
static void give(struct exchange *x, size_t at)
{
    const struct packet *p = &x->d->packet[at];
    uint8_t mad[CM_MAD_LEN];
    struct cm_msg m;
    if (!message_of(p, x->other, &m))
        return;
    bool asks = asks_first(&m);
    struct link *l = link_of(x, m.remote_id, m.local_id);
    if (is_new(l, &m)) {
        l = link_new(x, 0, m.local_id, m.tid);
        if (l)
            listen_for(x, at, &m);
    }
    if (m.attr == CM_SIDR_REP)
        l = link_of(x, m.local_id, 0);
    if (l && !asks && m.attr != CM_SIDR_REP) {
        l->peer_id = m.local_id ? m.local_id : l->peer_id;
        if (m.remote_id)
            m.remote_id = l->our_id;
    }
    if (l && m.attr == CM_SIDR_REP)
        m.local_id = l->our_id;
    m.tid = our_tid(l, m.tid);
    if (cm_msg_pack(mad, &m))
        return;
    cm_rx(x->cm, mad, sizeof(mad), &x->there, &x->here, WIRE_QPN_GSI, p->pkey, x->now);
    take_events(x, l);
    x->j->out->fed++;
}

static void connect_as(struct exchange *x, const struct cm_msg *m)
{
    struct cm_ip_hdr ip = {0};
    bool sidr = m->attr == CM_SIDR_REQ;
    struct link *l = link_new(x, m->local_id, 0, m->tid);
    unsigned before = x->sents;
    if (!l || cm_ip_hdr_unpack(&ip, m->priv))
        return;
    struct cm_path path = {.local = x->here,
                           .remote = x->there,
                           .mtu = (uint8_t)(m->mtu ? m->mtu : MTU_1024),
                           .hop_limit = (uint8_t)m->hop_limit,
                           .flow_label = m->flow_label,
                           .pkey = (uint16_t)m->pkey};
    if (sidr) {
        cm_sidr_request(x->cm, &path, ip.sport, (uint16_t)m->service_id, m->priv + CM_IP_HDR_LEN,
                        CM_SIDR_REQ_USER_MAX, NULL, x->now, &l->conn);
    } else {
        struct cm_connect_params p = {.path = path,
                                      .ps = (uint16_t)(m->service_id >> 16),
                                      .sport = ip.sport,
                                      .dport = (uint16_t)m->service_id,
                                      .qpn = m->qpn,
                                      .psn = m->psn,
                                      .transport = (uint8_t)m->transport,
                                      .responder_resources = (uint8_t)m->resp_res,
                                      .initiator_depth = (uint8_t)m->init_depth,
                                      .retry_count = (uint8_t)m->retry_count,
                                      .rnr_retry_count = (uint8_t)m->rnr_retry,
                                      .srq = m->srq,
                                      .flow_control = m->flow_control,
                                      .priv = m->priv + CM_IP_HDR_LEN,
                                      .priv_len = CM_REQ_USER_MAX};
        cm_connect(x->cm, &p, NULL, x->now, &l->conn);
    }
    collect(x);
    if (x->sents > before)
        l->our_id = x->sent[before].msg.local_id;
    begin_transaction(x, l, 0, m->tid, before);
}

/* Carry out the decision of this host's application that its captured message shows. */
static void decide(struct exchange *x, const struct cm_msg *m)
{
    bool reply = m->attr == CM_SIDR_REP;
    struct link *l = reply ? link_of(x, 0, m->local_id) : link_of(x, m->local_id, m->remote_id);
    unsigned before = x->sents;
    if (asks_first(m)) {
        if (is_new(l, m))
            connect_as(x, m);
        return;
    }
    if (!l || !l->conn)
        return;
    if (m->local_id && !reply)
        l->own_id = m->local_id;
    if (m->attr == CM_REP && !l->decided) {
        struct cm_accept_params p = {.qpn = m->qpn != 0 ? m->qpn : m->eecn, /* CM-38 */
                                     .psn = m->psn,
                                     .responder_resources = (uint8_t)m->resp_res,
                                     .initiator_depth = (uint8_t)m->init_depth,
                                     .rnr_retry_count = (uint8_t)m->rnr_retry,
                                     .srq = m->srq,
                                     .flow_control = m->flow_control,
                                     .priv = m->priv,
                                     .priv_len = CM_REP_USER_MAX};
        cm_accept(x->cm, l->conn, &p, NULL, x->now);
    } else if (m->attr == CM_REJ && own_reason(m->reason) && !l->decided) {
        cm_reject(x->cm, l->conn, m->reason, m->priv, CM_REJ_USER_MAX, x->now);
    } else if (m->attr == CM_RTU) {
        cm_rtu(x->cm, l->conn, m->priv, m->priv_len, x->now);
    } else if (m->attr == CM_DREQ && m->remote_qpn != CM_CHALLENGE_QPN) {
        cm_disconnect(x->cm, l->conn, m->priv, m->priv_len, x->now);
    } else if (reply && !l->decided) {
        cm_sidr_reply(x->cm, l->conn, m->status, m->qpn, m->qkey, m->priv, CM_SIDR_REP_USER_MAX,
                      x->now);
    }
    l->decided |= m->attr == CM_REP || m->attr == CM_REJ || reply;
    collect(x);
    if (m->attr == CM_DREQ)
        begin_transaction(x, l, 1, m->tid, before);
    if (m->attr == CM_REP && x->sents > before)
        l->our_id = x->sent[before].msg.local_id;
}

/* ---- comparing ---- */

/* The first field of a captured message that differs from ours; NULL = none. */
static const char *differing(const struct cm_msg *a, const struct cm_msg *b, uint64_t tid,
                             const char **rule)
{
    bool answers = b->attr == CM_REP || b->attr == CM_REJ || b->attr == CM_RTU ||
                   b->attr == CM_DREP || b->attr == CM_SIDR_REP;
    const struct {
        bool differs;
        const char *field, *rule;
    } field[] = {
        {answers && a->tid != tid, "transaction id", "CM-14"},
        {b->attr != CM_REJ && a->remote_id != b->remote_id, "remote id", "CM-15"},
        {a->service_id != b->service_id, "service id", "CM-01"},
        {b->attr == CM_DREQ && a->remote_qpn != b->remote_qpn, "remote QPN", "CM-24"},
        {a->transport != b->transport, "transport type", "CM-29"},
        {b->attr == CM_REQ && memcmp(&a->local_gid, &b->local_gid, 16), "local GID", "CM-05"},
        {b->attr == CM_REQ && memcmp(&a->remote_gid, &b->remote_gid, 16), "remote GID", "CM-05"},
        {b->attr == CM_REP && b->resp_res > a->resp_res, "responder resources", "CM-07"},
        {b->attr == CM_REP && b->init_depth > a->init_depth, "initiator depth", "CM-07"},
        {b->attr == CM_REJ && a->reason != b->reason, "reason", "CM-29"},
        {b->attr == CM_REJ && a->msg_id != b->msg_id, "rejected message", "CM-27"},
        {b->attr == CM_SIDR_REP && a->qpn != b->qpn, "QPN", "CM-31"},
        {(b->attr == CM_REQ || b->attr == CM_SIDR_REQ) && memcmp(a->priv, b->priv, CM_IP_HDR_LEN),
         "IP header", "CM-02"},
    };
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
        if (field[i].differs) {
            *rule = field[i].rule;
            return field[i].field;
        }
    return NULL;
}

static void compare(struct exchange *x, const struct packet *p, const struct cm_msg *m)
{
    struct emitted *found = NULL;
    const char *rule = "CM-16", *field = NULL;
    char ours[REPLAY_DUMP_MAX] = "(nothing)";
    struct link *l =
        m->attr == CM_SIDR_REP ? link_of(x, 0, m->local_id) : link_of(x, m->local_id, m->remote_id);
    bool asks = asks_first(m);
    uint64_t tid = our_tid(l, m->tid);
    for (unsigned i = 0; i < x->sents; i++) { /* of the same transaction, or of another */
        struct emitted *e = &x->sent[i];
        bool same = asks                     ? l && e->msg.local_id == l->our_id
                    : m->attr == CM_SIDR_REP ? e->msg.local_id == m->local_id
                                             : e->msg.remote_id == m->remote_id;
        if (!e->used && e->msg.attr == m->attr && same &&
            (!found || (found->msg.tid != tid && e->msg.tid == tid)))
            found = e;
    }
    if (!found) { /* refused for a private reason, repeated, or from before the capture */
        x->j->out->passed++;
        return;
    }
    found->used = true;
    field = differing(&found->msg, m, tid, &rule);
    x->j->out->compared++;
    if (!field) {
        x->j->out->same++;
        return;
    }
    cm_msg_dump(ours, sizeof(ours), &found->msg);
    judge_differ(x->j, p, rule, field, ours, "our connection manager sends another value");
}

/* ---- the whole exchange ---- */

int as_cm(struct direction *d, struct judge *j)
{
    bool responder = j->out->role == REPLAY_RESPONDER;
    struct exchange *x = calloc(1, sizeof(*x));
    const struct cm_params params = {
        .key = {1, 2}, .ca_guid = 1, .max_mtu = 5, .max_rd_atomic = 255};
    uint64_t start = d->packet[0].kept->ns;
    int rc = x ? 0 : -ENOMEM;
    if (!rc) {
        *x = (struct exchange){.d = d,
                               .j = j,
                               .own = responder ? d->answers.id : d->flow.id,
                               .other = responder ? d->flow.id : d->answers.id,
                               .here = responder ? d->flow.dst : d->flow.src,
                               .there = responder ? d->flow.src : d->flow.dst,
                               .cm = cm_create(&params),
                               .sent = calloc(SENT_MAX, sizeof(*x->sent))};
        rc = x->cm && x->sent ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < d->packets && !rc; i++) {
        const struct packet *p = &d->packet[i];
        struct cm_msg m;
        if ((rc = judge_step(j)))
            break;
        uint64_t at = p->kept->ns > start ? p->kept->ns - start : 0;
        pass_time(x, STAGE_BEGIN + (at < STAGE_END ? at : STAGE_END));
        if (p->flow == x->other) {
            give(x, i);
        } else if (message_of(p, x->own, &m)) {
            decide(x, &m);
            compare(x, p, &m);
        }
    }
    if (x && x->cm)
        cm_destroy(x->cm);
    if (x)
        free(x->sent);
    free(x);
    return rc;
}
