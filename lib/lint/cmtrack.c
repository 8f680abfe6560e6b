/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections made by CM messages: REQ and REP name both queue pairs, their first PSNs, the MTU and
 * the limits, so that none of these has to be guessed.
 */
#include <string.h>

#include "lint_priv.h"

static struct lint_cm *cm_make(struct lint *l)
{
    struct lint_cm *e = &l->cm[l->cms++ % LINT_CM_CONNS];
    *e = (struct lint_cm){.on = true};
    return e;
}

static bool same_addr(const struct wire_addr *a, const struct wire_addr *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* The exchange of a message. The `id`s are its sender's and its receiver's. */
static struct lint_cm *cm_find(struct lint_ctx *c)
{
    const struct cm_msg *m = c->cm;
    const struct wire_addr *s = &c->p.sip, *d = &c->p.dip;
    uint32_t n = c->l->cms < LINT_CM_CONNS ? c->l->cms : LINT_CM_CONNS;
    for (uint32_t i = 1; i <= n; i++) {
        struct lint_cm *e = &c->l->cm[(c->l->cms - i) % LINT_CM_CONNS];
        bool active = same_addr(s, &e->a) && same_addr(d, &e->b) && m->local_id == e->a_id;
        bool passive = same_addr(s, &e->b) && same_addr(d, &e->a) && m->remote_id == e->a_id &&
                       (!e->rep || m->local_id == e->b_id);
        if (m->attr == CM_REQ ? active : active && e->rep && m->remote_id == e->b_id) {
            c->from_active = true;
            return e;
        }
        if (m->attr != CM_REQ && passive)
            return e;
    }
    return NULL;
}

static struct lint_flow *announce(struct lint_ctx *c, const struct wire_addr *src,
                                  const struct wire_addr *dst, uint32_t qpn, uint32_t psn)
{
    struct wire_pkt p = c->p;
    p.sip = *src;
    p.dip = *dst;
    struct lint_flow *f = lint_flow_get(c->l, &p, qpn, 0, true);
    if (f && (f->info.packets || f->info.by_cm))
        f = lint_flow_renew(c->l, f);
    if (!f)
        return NULL;
    f->info.by_cm = true;
    f->start_known = true;
    f->first = f->announced = psn;
    f->info.last_ns = c->in->ns;
    return f;
}

/* Both queue pairs are known now. */
static void connect(struct lint_ctx *c, const struct lint_cm *e)
{
    if (!e->a_qpn || !e->b_qpn || e->service > WIRE_UC)
        return;
    /* Each message names the first PSN that its sender expects (CM-08). */
    struct lint_flow *ab = announce(c, &e->a, &e->b, e->b_qpn, e->b_psn);
    struct lint_flow *ba = announce(c, &e->b, &e->a, e->a_qpn, e->a_psn);
    if (!ab || !ba)
        return;
    uint32_t mtu = wire_mtu_octets(e->mtu);
    ab->info.service = ba->info.service = e->service;
    ab->retry = ba->retry = e->retry;
    ab->read_limit = c->cm->resp_res;
    ba->read_limit = e->resp_res;
    lint_flow_pair(ab, ba);
    if (mtu) {
        lint_mtu_learned(ab, mtu);
        lint_mtu_learned(ba, mtu);
    }
}

static void on_req(struct lint_ctx *c, bool good)
{
    const struct cm_msg *m = c->cm;
    if (c->conn)
        return; /* repeated */
    struct lint_cm *e = cm_make(c->l);
    e->a = c->p.sip;
    e->b = c->p.dip;
    e->a_id = m->local_id;
    e->a_qpn = m->qpn;
    e->a_psn = m->psn;
    e->tid = m->tid;
    e->service = (uint8_t)m->transport;
    e->mtu = m->mtu;
    e->retry = m->retry_count;
    e->resp_res = m->resp_res;
    e->req_crc = c->mad_crc;
    e->req_number = good ? c->in->number : 0;
}

static void on_rep(struct lint_ctx *c, bool good)
{
    const struct cm_msg *m = c->cm;
    struct lint_cm *e = c->conn;
    if (!e || e->rep)
        return;
    e->rep = true;
    e->b_id = m->local_id;
    e->b_qpn = cm_rep_qpn(m, e->service);
    e->b_psn = m->psn;
    e->rep_crc = c->mad_crc;
    e->rep_number = good ? c->in->number : 0;
    connect(c, e);
}

/* A REQ with the id of a closed connection, or with another TID, starts a new connection. */
static bool another(const struct lint_ctx *c)
{
    const struct lint_cm *e = c->conn;
    return c->cm->attr == CM_REQ && e && (e->closed || (e->tid != c->cm->tid && e->rep));
}

void lint_cm(struct lint_ctx *c)
{
    struct cm_msg msg;
    c->l->totals.cm++;
    if (c->cut)
        return;
    c->mad = c->in->data + c->p.payload_off;
    c->mad_len = c->p.payload_len;
    c->cm_rc = cm_msg_unpack(&msg, c->mad, c->mad_len);
    c->cm = &msg;
    c->mad_crc = wire_icrc_update(0, c->mad, c->mad_len);
    c->conn = c->cm_rc ? NULL : cm_find(c);
    if (another(c))
        c->conn = NULL;
    c->repeat = c->conn && (msg.attr == CM_REQ || (msg.attr == CM_REP && c->conn->rep));
    bool good = lint_run(c, LINT_S_CM) == 0;
    if (c->cm_rc)
        return;
    switch (msg.attr) {
    case CM_REQ:
        on_req(c, good);
        break;
    case CM_REP:
        on_rep(c, good);
        break;
    case CM_DREQ:
        if (c->conn)
            c->conn->dreq_tid[!c->from_active] = msg.tid;
        break;
    case CM_DREP:
    case CM_REJ:
        if (c->conn)
            c->conn->closed = true;
        break;
    default:
        break;
    }
}
