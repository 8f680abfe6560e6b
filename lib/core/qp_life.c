/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs: create, look up, change, destroy. qp_attr.c checks changes.
 * Rules: QP, SEC-08.
 */
#include "qp_life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq.h"
#include "engine_priv.h"
#include "limiter.h"
#include "mcast.h"
#include "numbers.h"
#include "qp_attr.h"
#include "qp_state.h"
#include "rd_ring.h"
#include "recorder.h"
#include "recovery.h"
#include "resp_life.h"
#include "resp_tx.h"
#include "schedule.h"
#include "send_queue.h"
#include "slot.h"
#include "sr.h"
#include "srq.h"

const char *const engine_recovery_names[] = {"default", "gbn", "sr", "gbn-ooo", NULL};

#define MAX_WR 32768u

/* ---- attributes, in the form that the hot path uses ---- */

static void make_template(struct engine *e, struct qp *qp)
{
    const struct engine_av *av = &qp->attr.av;
    struct wire_pkt p = engine_path(e, av, qp->qpn, qp->attr.dest_qpn);
    p.opcode = WIRE_ACKNOWLEDGE;
    p.pkey = qp->pkey;
    p.migreq = true; /* HDR-04 */
    wire_tmpl_init(&qp->tmpl, &p);
    qp->tclass = av->tclass;
    qp->lip = av->sgid;
    qp->rip = av->dgid;
    qp->dest_qpn = qp->attr.dest_qpn;
}

static void apply(struct engine *e, struct qp *qp)
{
    const struct engine_qp_attr *a = &qp->attr;
    qp->access = (uint8_t)a->access_flags;
    qp->pkey = engine_pkey(e, a->pkey_index);
    qp->qkey = a->qkey;
    /* TMR-01; 31, over two hours, still fits. */
    qp->t_ack = a->timeout ? 4096ull << a->timeout : 0;
    if (qp_connected(qp)) {
        if (a->path_mtu)
            qp->mtu_shift = (uint8_t)(7 + a->path_mtu);
        if (qp->state != QPS_RESET && a->dest_qpn)
            make_template(e, qp);
    } else {
        qp->mtu_shift = (uint8_t)(7 + e->p.mtu);
        qp->tmpl.len = 0; /* of the last datagram */
    }
}

/* ---- states ---- */

static void to_reset(struct engine *e, struct qp *qp)
{
    qp_stop_timers(e, qp);
    engine_deactivate(e, qp);
    record_discard(qp);
    resp_return(e, qp);
    req_reset(e, qp);
    resp_reset(qp);
    qp->attr = (struct engine_qp_attr){.state = QPS_RESET};
    qp->mtu_shift = 0;
    qp->dest_qpn = 0;
    qp->credits = 0;
    qp->ect = 0;
    qp->cnp_at = 0;
    qp->mute = 0;
    limiter_free(qp);
    sr_free(e, qp);
    free(qp->error);
    qp->error = NULL;
    qp_enter(e, qp, QPS_RESET);
}

static int to_rtr(struct engine *e, struct qp *qp, const struct engine_qp_attr *a)
{
    qp->attr.recovery = a->recovery <= RECOVER_GBN_OOO ? a->recovery : RECOVER_GBN;
    qp->attr.recovery_agreed = a->recovery_agreed;
    int err = qp->type == QP_RC ? rd_start(qp, e->now) : 0;
    if (!err)
        err = sr_start(e, qp);
    if (!err)
        err = limiter_begin(e, qp, e->now);
    if (err) {
        rd_free(qp);
        sr_free(e, qp);
        return err;
    }
    qp->credits = qp->type == QP_RC && !qp->xrc && a->e2e_credits;
    resp_start(qp, psn(qp->attr.rq_psn));
    qp_enter(e, qp, QPS_RTR);
    return 0;
}

static void to_sqd(struct engine *e, struct qp *qp)
{
    qp->drain_wanted = qp->attr.en_sqd_async_notify;
    qp->drained = 0;
    qp_enter(e, qp, QPS_SQD);
    qp_activate(e, qp); /* the last packet sent may have to ask for an answer now */
    req_check_drained(e, qp);
}

/* Apply the attributes of a change. -ENOMEM: nothing has changed. */
static int take_attr(struct engine *e, struct qp *qp, enum qp_state to,
                     const struct engine_qp_attr *attr, unsigned mask, uint64_t now)
{
    enum qp_state from = qp->state;
    struct engine_qp_attr before = qp->attr;
    int err = 0;
    if (from == QPS_SQD && (mask & QPA_MAX_DEST_RD_ATOMIC) &&
        rd_grow(qp, attr->max_dest_rd_atomic) < 0)
        return -ENOMEM;
    if (to == QPS_SQD && from == QPS_RTS)
        qp->attr.en_sqd_async_notify = false; /* unless it is asked for this time */
    qp_attr_take(qp, attr, mask);
    apply(e, qp);
    if (from == QPS_INIT && to == QPS_RTR)
        err = to_rtr(e, qp, attr);
    else if (from == QPS_SQD && mask & QPA_AV)
        err = limiter_begin(e, qp, now);
    if (err) {
        qp->attr = before;
        apply(e, qp);
        return err;
    }
    if (mask & QPA_AV && qp->mute)
        engine_qp_mute(e, qp, false); /* GID-04: this address is there */
    if (mask & QPA_RETRY_CNT)
        qp->req.retry_left = qp->attr.retry_cnt;
    if (mask & QPA_RNR_RETRY)
        qp->req.rnr_left = qp->attr.rnr_retry;
    return 0;
}

static int modify(struct engine *e, struct qp *qp, const struct engine_qp_attr *attr, unsigned mask,
                  uint64_t now)
{
    enum qp_state from = qp->state, to = mask & QPA_STATE ? attr->state : from;
    if ((unsigned)to > QPS_ERR)
        return -EINVAL;
    int err = qp_attr_check(e, qp, to, attr, mask);
    if (err)
        return err;
    if (from == QPS_SQD && (to == QPS_RTS || to == QPS_SQD) && !req_drained(qp))
        return -EBUSY; /* QP-08 */
    if (to == QPS_RESET) {
        to_reset(e, qp);
        return 0;
    }
    if (to == QPS_ERR) {
        if (!qp->error)
            recorder_error(e, qp, "QP-10 moved to ERR by its owner");
        qp_to_error(e, qp, true, -1);
        return 0;
    }
    err = take_attr(e, qp, to, attr, mask, now);
    if (err)
        return err;
    if (from == QPS_RTR && to == QPS_RTS)
        req_start(qp, psn(qp->attr.sq_psn));
    if (to == QPS_SQD && from == QPS_RTS)
        to_sqd(e, qp);
    else if (to != from && to != QPS_RTR) /* to_rtr has */
        qp_enter(e, qp, to);
    if (to == QPS_RTS)
        qp_activate(e, qp);
    return 0;
}

int engine_qp_modify(struct engine *e, struct qp *qp, const struct engine_qp_attr *attr,
                     unsigned mask, uint64_t now)
{
    invariant_begin(e);
    invariant_touch(e, qp);
    int err = modify(e, qp, attr, mask, engine_clock(e, now));
    invariant_end(e, "modify");
    return err;
}

int engine_qp_query(const struct qp *qp, struct engine_qp_attr *out, struct engine_qp_params *caps)
{
    *out = qp->attr;
    out->state = out->cur_state = qp->state;
    out->sq_draining = qp->state == QPS_SQD && !req_drained(qp);
    out->e2e_credits = qp->credits;
    out->recovery = recovery_mode(qp);
    if (caps) {
        *caps = (struct engine_qp_params){
            .arg = qp->arg,
            .type = qp_type_of(qp),
            .pd = qp->pd,
            .send_cq = qp->send_cq,
            .recv_cq = qp->recv_cq,
            .srq = qp->srq,
            .max_send_wr = qp->max_send_wr,
            .max_recv_wr = qp->max_recv_wr,
            .max_send_sge = qp->max_send_sge,
            .max_recv_sge = qp->max_recv_sge,
            .max_inline = qp->max_inline,
            .sq_sig_all = qp->sq_sig_all,
        };
    }
    return 0;
}

/* ---- numbers ---- */

struct qp *engine_qp_find(struct engine *e, uint32_t qpn)
{
    if (qpn == WIRE_QPN_GSI)
        return e->gsi;
    unsigned worker;
    uint32_t slot = number_slot(e, qpn, &worker);
    struct qp *qp = worker == e->p.worker && slot < e->table_size ? e->table[slot] : NULL;
    return qp && qp->qpn == qpn ? qp : NULL;
}

uint32_t engine_qp_walk(struct engine *e, uint32_t at, unsigned budget,
                        bool (*fn)(void *arg, struct qp *qp), void *arg)
{
    for (uint32_t slot = at ? at - 1 : 0; slot < e->fresh; slot++) {
        struct qp *qp = e->table[slot];
        if (budget-- == 0 || (qp && !fn(arg, qp)))
            return slot + 1;
        e->qp_looks++;
    }
    return 0;
}

/* ---- create, destroy ---- */

/* XRC-01: a half that is missing has no completion queue. */
static bool good_halves(const struct engine_qp_params *p)
{
    if (p->type == QP_XRC_INI)
        return p->send_cq && !p->recv_cq && !p->srq;
    if (p->type == QP_XRC_TGT)
        return !p->send_cq && !p->recv_cq && !p->srq;
    return (p->type == QP_RC || p->type == QP_UC || p->type == QP_UD || p->type == QP_GSI) &&
           p->send_cq && p->recv_cq;
}

static bool good_params(const struct engine_qp_params *p)
{
    return good_halves(p) && p->max_send_wr <= MAX_WR && p->max_recv_wr <= MAX_WR &&
           p->max_send_sge <= ENGINE_SGE_MAX && p->max_recv_sge <= ENGINE_SGE_MAX &&
           p->max_inline <= ENGINE_INLINE_MAX;
}

int engine_qp_create(struct engine *e, struct engine_qp_params *p, struct qp **out)
{
    if (!good_params(p) || (p->type == QP_GSI && e->gsi))
        return -EINVAL;
    if (e->nqps >= e->p.max_qp)
        return -ENOSPC;
    struct qp *qp = aligned_alloc(64, sizeof(*qp));
    if (!qp)
        return -ENOMEM;
    bool ini = p->type == QP_XRC_INI, tgt = p->type == QP_XRC_TGT;
    if (ini || tgt)
        p->max_recv_wr = p->max_recv_sge = 0;
    if (tgt)
        p->max_send_wr = p->max_send_sge = p->max_inline = 0;
    *qp = (struct qp){
        .type = (uint8_t)(ini || tgt ? QP_RC : p->type),
        .xrc = ini   ? XRC_INI
               : tgt ? XRC_TGT
                     : XRC_NOT,
        .state = QPS_RESET,
        .pd = p->pd,
        .send_cq = p->send_cq,
        .recv_cq = p->recv_cq,
        .srq = p->srq,
        .arg = p->arg,
        .sq_sig_all = p->sq_sig_all,
        .id_step = !e->p.sport,
    };
    int err = mem_pd_hold(e->mem, p->pd) ? -EINVAL : 0;
    if (err)
        goto no_pd;
    err = req_init(e, qp, p);
    if (err)
        goto no_req;
    err = resp_init(qp, p);
    if (err)
        goto no_resp;
    err = number_take(e, qp);
    if (err)
        goto no_number;
    qp->max_send_wr = p->max_send_wr;
    qp->max_recv_wr = p->max_recv_wr;
    qp->max_send_sge = (uint16_t)p->max_send_sge;
    qp->max_recv_sge = (uint16_t)p->max_recv_sge;
    qp->max_inline = p->max_inline;
    qp->cc_conf = e->cc_conf;
    qp->cc_conf->users++;
    if (qp->send_cq)
        qp->send_cq->users++;
    if (qp->recv_cq)
        qp->recv_cq->users++;
    e->nqps++;
    *out = qp;
    invariant_begin(e);
    invariant_touch(e, qp);
    invariant_end(e, "create");
    return 0;
no_number:
    resp_free(qp);
no_resp:
    req_free(qp);
no_req:
    mem_pd_drop(e->mem, p->pd);
no_pd:
    free(qp);
    return err;
}

void qp_free(struct engine *e, struct qp *qp)
{
    invariant_forget(e, qp);
    timer_cancel(&e->wheel, &qp->timer);
    engine_deactivate(e, qp);
    for (unsigned i = 0; i < ENGINE_BURST; i++)
        if (e->tx_qp[i] == qp)
            e->tx_qp[i] = NULL;
    if (!qp_connected(qp))
        mcast_leave_all(e, qp);
    number_give(e, qp);
    req_free(qp);
    resp_free(qp);
    limiter_free(qp);
    limiter_conf_drop(qp);
    sr_free(e, qp);
    if (qp->send_cq)
        qp->send_cq->users--;
    if (qp->recv_cq)
        qp->recv_cq->users--;
    mem_pd_drop(e->mem, qp->pd);
    free(qp->error);
    e->nqps--;
    if (!qp->nrecords) {
        free(qp);
        return;
    }
    qp->dead = 1;
    qp->active_next = e->linger;
    qp->active_at = &e->linger;
    if (e->linger)
        e->linger->active_at = &qp->active_next;
    e->linger = qp;
    e->nlinger++;
}

void engine_qp_destroy(struct engine *e, struct qp *qp)
{
    invariant_begin(e);
    qp_free(e, qp);
    invariant_end(e, "destroy");
}

/* ---- small ones ---- */

uint32_t engine_qp_num(const struct qp *qp)
{
    return qp->qpn;
}

bool engine_qp_owes(const struct qp *qp)
{
    return resp_owes(qp);
}

void engine_qp_set_dmac(struct qp *qp, const uint8_t dmac[6])
{
    memcpy(qp->attr.av.dmac, dmac, 6);
    if (qp->tmpl.len)
        wire_tmpl_set_dmac(&qp->tmpl, dmac);
}

void engine_qp_mute(struct engine *e, struct qp *qp, bool mute)
{
    invariant_begin(e);
    invariant_touch(e, qp);
    qp->mute = mute;
    if (mute) {
        engine_deactivate(e, qp);
    } else {
        qp_activate(e, qp);
        qp_rearm(e, qp);
    }
    invariant_end(e, "mute");
}

bool engine_qp_is_mute(const struct qp *qp)
{
    return qp->mute;
}

void engine_qp_fail(struct engine *e, struct qp *qp, const char *why, uint64_t now)
{
    engine_clock(e, now);
    invariant_begin(e);
    invariant_touch(e, qp);
    recorder_error(e, qp, "%s", why);
    qp_to_error(e, qp, false, EVT_QP_FATAL);
    invariant_end(e, "fail");
}

int engine_post_send(struct engine *e, struct qp *qp, const struct engine_send_wr *wr, uint64_t now)
{
    engine_clock(e, now);
    invariant_begin(e);
    invariant_touch(e, qp);
    int err = req_post(e, qp, wr);
    invariant_end(e, "post send");
    return err;
}

int engine_post_recv(struct engine *e, struct qp *qp, const struct engine_recv_wr *wr)
{
    invariant_begin(e);
    invariant_touch(e, qp);
    int err = resp_post(e, qp, wr);
    invariant_end(e, "post receive");
    return err;
}

uint32_t engine_sq_room(const struct qp *qp)
{
    return qp->req.depth - (qp->req.tail - qp->req.head);
}
