/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statements that make queue pairs and move them from state to state.
 */
#include <errno.h>
#include <string.h>

#include "drill_priv.h"

struct engine_av drill_av(const struct drill_object *qp)
{
    struct engine_av av = {.sgid = qp->local, .dgid = qp->peer, .hop_limit = WIRE_TTL_DEFAULT};
    memcpy(av.dmac, qp->dmac, 6);
    return av;
}

/* Put the attributes of a statement into *a, and their bits into *mask. */
static bool given(struct drill_run *run, const struct drill_stmt *st, struct engine_qp_attr *a,
                  unsigned *mask)
{
    *mask = 0;
    for (const struct drill_arg *f = st->args; f; f = f->next) {
        bool member = f->field->offset != DRILL_NO_MEMBER;
        uint64_t v;
        if (f->field->id >= QPF_ATTR && (member || !f->off))
            *mask |= 1u << (f->field->id - QPF_ATTR);
        if (!member)
            continue;
        if (!drill_number(run, st, f->field->id, 0, &v))
            return false;
        drill_put_member(a, f->field, v);
    }
    return true;
}

/* The attributes of each step up, and their defaults in scripts. */
static void defaults(const struct drill_object *qp, struct engine_qp_attr *a)
{
    *a = (struct engine_qp_attr){.av = drill_av(qp),
                                 .qkey = qp->qkey,
                                 .rq_psn = qp->rq_psn,
                                 .sq_psn = qp->sq_psn,
                                 .dest_qpn = qp->peer_qpn,
                                 .access_flags = MEM_REMOTE_ANY | MEM_FLUSH_GLOBAL,
                                 .port = 1,
                                 .path_mtu = 3,
                                 .timeout = 14,
                                 .retry_cnt = 7,
                                 .rnr_retry = 7,
                                 .min_rnr_timer = 12,
                                 .max_rd_atomic = 4,
                                 .max_dest_rd_atomic = 4,
                                 .recovery = RECOVER_GBN};
}

unsigned drill_step_mask(enum qp_type type, enum qp_state to)
{
    bool ini = type == QP_RC || type == QP_XRC_INI, ud = type == QP_UD;
    bool tgt = type == QP_RC || type == QP_XRC_TGT;
    if (to == QPS_INIT)
        return QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | (ud ? QPA_QKEY : QPA_ACCESS_FLAGS);
    if (to == QPS_RTR)
        return ud ? QPA_STATE
                  : QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
                        (tgt ? QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER : 0);
    if (to == QPS_RTS)
        return QPA_STATE | QPA_SQ_PSN | (ini || tgt ? QPA_TIMEOUT : 0) |
               (ini ? QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC : 0);
    return QPA_STATE;
}

static void remember(struct drill_object *qp, const struct engine_qp_attr *a)
{
    qp->sq_psn = a->sq_psn;
    qp->rq_psn = a->rq_psn;
    qp->peer_qpn = a->dest_qpn;
    qp->mtu = wire_mtu_octets(a->path_mtu);
    qp->sport = wire_udp_sport(a->av.flow_label, qp->qpn, a->dest_qpn);
    qp->next_psn = 0;
    qp->seen_psn = qp->sq_psn;
    qp->qkey = a->qkey;
}

/* A field that no step has set. */
static const struct drill_arg *unused(const struct drill_stmt *st, unsigned mask)
{
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        unsigned id = a->field->id, needs = 0;
        if (id >= QPF_ATTR)
            needs = 1u << (id - QPF_ATTR);
        else if (id == QPF_TCLASS || id == QPF_HOP_LIMIT || id == QPF_FLOW_LABEL)
            needs = QPA_AV;
        else if (id == QPF_RECOVERY || id == QPF_CREDITS) /* chosen with the step to RTR */
            needs = QPA_RQ_PSN;
        if (st->verb->kind == DO_QP) /* path_of() keeps them for later steps */
            needs &= ~(unsigned)(QPA_SQ_PSN | QPA_RQ_PSN | QPA_DEST_QPN | QPA_QKEY);
        if (needs && !(needs & mask))
            return a;
    }
    return NULL;
}

/* Move a queue pair up to a state with all attributes that this needs. 0 or -errno. */
static int move_up(struct drill_run *run, struct drill_object *qp, const struct drill_stmt *st,
                   enum qp_state to)
{
    static const enum qp_state ladder[] = {QPS_INIT, QPS_RTR, QPS_RTS};
    struct engine_qp_attr a, now;
    unsigned mask, done = QPA_STATE;
    int rc = 0;
    engine_qp_query(qp->qp, &now, NULL);
    a = now;
    if (now.state < QPS_RTR)
        defaults(qp, &a);
    if (now.state == QPS_INIT)
        a.access_flags = now.access_flags;
    if (!given(run, st, &a, &mask))
        return -EINVAL;
    if (to <= now.state || to > QPS_RTS) { /* no step up: only the given attributes change */
        a.state = to;
        done |= mask;
        rc = engine_qp_modify(run->e, qp->qp, &a, done, run->now);
    } else {
        for (unsigned i = 0; i < 3 && !rc && ladder[i] <= to; i++) {
            if (ladder[i] <= now.state)
                continue;
            struct engine_qp_attr step = a;
            step.state = ladder[i];
            done |= drill_step_mask(qp->type, ladder[i]);
            rc = engine_qp_modify(run->e, qp->qp, &step, drill_step_mask(qp->type, ladder[i]),
                                  run->now);
        }
        if (!rc)
            remember(qp, &a);
    }
    const struct drill_arg *f = rc ? NULL : unused(st, done);
    if (f) {
        drill_end(run, DRILL_WRONG, st, "'%s' is no attribute on the way to %s", f->field->name,
                  drill_word_name(drill_states, to));
        return -EINVAL;
    }
    if (to == QPS_RESET && !rc)
        qp->next_psn = qp->message_at = 0;
    return rc;
}

static bool cc_of(struct drill_run *run, const struct drill_stmt *st, struct drill_object *qp)
{
    const struct drill_arg *a = drill_arg(st, QPF_CC);
    struct cc_conf cc;
    if (!a)
        return true;
    if (!drill_cc(run, st, a, &cc))
        return false;
    int rc = engine_qp_set_cc(run->e, qp->qp, &cc, run->now);
    return !rc || drill_end(run, DRILL_WRONG, st, "cc: %s", strerror(-rc));
}

static bool queues_of(struct drill_run *run, const struct drill_stmt *st,
                      struct engine_qp_params *p)
{
    const struct drill_arg *cq = drill_arg(st, QPF_CQ), *rcq = drill_arg(st, QPF_RECV_CQ),
                           *srq = drill_arg(st, QPF_SRQ);
    struct drill_object *send = cq ? drill_need(run, st, cq->v.name, KIND_CQ) : NULL;
    if (cq && !send)
        return false;
    if (!send) {
        static const char own[] = "\1cq"; /* no script can say this name */
        for (send = run->objects; send && !(send->kind == KIND_CQ && send->name == own);)
            send = send->next;
        if (!send && !(send = drill_new_cq(run, st, own, 65536)))
            return false;
    }
    struct drill_object *recv = rcq ? drill_need(run, st, rcq->v.name, KIND_CQ) : send;
    struct drill_object *s = srq ? drill_need(run, st, srq->v.name, KIND_SRQ) : NULL;
    if (!recv || (srq && !s))
        return false;
    p->send_cq = p->type == QP_XRC_TGT ? NULL : send->cq;
    p->recv_cq = p->type == QP_XRC_TGT || p->type == QP_XRC_INI ? NULL : recv->cq;
    p->srq = s ? s->srq : NULL;
    return true;
}

static bool path_of(struct drill_run *run, const struct drill_stmt *st, struct drill_object *qp)
{
    const struct drill_arg *peer = drill_arg(st, QPF_PEER);
    uint64_t sq, rq, dest, qkey;
    qp->local = run->local;
    qp->peer = peer ? peer->v.addr : run->peer;
    memcpy(qp->dmac, drill_peer_mac, 6);
    if (!drill_number(run, st, QPF_SQ_PSN, run->o->psn, &sq) ||
        !drill_number(run, st, QPF_RQ_PSN, (run->o->psn + 1) & WIRE_PSN_MASK, &rq) ||
        !drill_number(run, st, QPF_DEST_QPN, 0x123456u + run->qps, &dest) ||
        !drill_number(run, st, QPF_QKEY, 0x11111111, &qkey))
        return false;
    qp->sq_psn = (uint32_t)sq;
    qp->rq_psn = (uint32_t)rq;
    qp->peer_qpn = (uint32_t)dest;
    qp->qkey = (uint32_t)qkey;
    return true;
}

static bool connect_wire(struct drill_run *run, const struct drill_stmt *st,
                         struct drill_object *qp)
{
    const struct drill_peer *d = &run->device;
    if (run->qps > 1)
        return drill_end(run, DRILL_SKIP, st, "one queue pair at a time on the wire");
    if (st->word != QP_RC)
        return drill_end(run, DRILL_SKIP, st, "only reliable connections on the wire");
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (a->field->id != QPF_PATH_MTU)
            return drill_end(run, DRILL_SKIP, st, "'%s' can't be chosen on the wire",
                             a->field->name);
    qp->qpn = d->device_qpn;
    qp->peer_qpn = d->our_qpn;
    qp->local = d->device;
    qp->peer = d->us;
    qp->rq_psn = d->to_psn;
    qp->sq_psn = qp->seen_psn = d->from_psn;
    qp->mtu = d->mtu;
    qp->sport = d->sport;
    return true;
}

bool drill_make_qp(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_add(run, st, st->name, KIND_QP);
    uint64_t send_wr, recv_wr, sge, inline_max, sig_all;
    bool go;
    if (!qp)
        return false;
    qp->type = (enum qp_type)st->word;
    run->qps++;
    run->qp = qp;
    if (run->wire)
        return connect_wire(run, st, qp);
    struct engine_qp_params p = {.arg = qp, .type = qp->type};
    if (!drill_pd_of(run, st, QPF_PD, &p.pd) || !queues_of(run, st, &p) || !path_of(run, st, qp) ||
        !drill_number(run, st, QPF_MAX_SEND, 1024, &send_wr) ||
        !drill_number(run, st, QPF_MAX_RECV, 1024, &recv_wr) ||
        !drill_number(run, st, QPF_MAX_SGE, 4, &sge) ||
        !drill_number(run, st, QPF_MAX_INLINE, 128, &inline_max) ||
        !drill_number(run, st, QPF_SIG_ALL, 0, &sig_all))
        return false;
    qp->pd = p.pd;
    p.max_send_wr = (uint32_t)send_wr;
    p.max_recv_wr = p.srq ? 0 : (uint32_t)recv_wr;
    p.max_send_sge = p.max_recv_sge = (uint32_t)sge;
    p.max_inline = (uint32_t)inline_max;
    p.sq_sig_all = sig_all;
    int rc = engine_qp_create(run->e, &p, &qp->qp);
    if (rc) {
        qp->dead = true;
        return drill_returned(run, st, rc, &go);
    }
    qp->qpn = engine_qp_num(qp->qp);
    qp->sport = wire_udp_sport(0, qp->qpn, qp->peer_qpn);
    qp->mtu = 1024;
    if (!cc_of(run, st, qp))
        return false;
    if (st->state != QPS_RESET)
        rc = move_up(run, qp, st, (enum qp_state)st->state);
    return !run->over && drill_returned(run, st, rc, &go);
}

bool drill_modify_qp(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    struct engine_qp_attr a;
    unsigned mask;
    bool go;
    if (!qp)
        return false;
    engine_qp_query(qp->qp, &a, NULL);
    a.port = 1;
    if (!a.path_mtu)
        a.path_mtu = 3;
    if (!wire_addr_is_v4(&a.av.dgid) && !a.av.dgid.b[0])
        a.av = drill_av(qp);
    if (!given(run, st, &a, &mask))
        return false;
    int rc = engine_qp_modify(run->e, qp->qp, &a, mask, run->now);
    if (!drill_returned(run, st, rc, &go) || !go)
        return !run->over;
    if (mask & (QPA_RQ_PSN | QPA_SQ_PSN | QPA_DEST_QPN | QPA_PATH_MTU | QPA_QKEY))
        remember(qp, &a);
    return true;
}

bool drill_move_qp(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    bool go;
    if (!qp)
        return false;
    int rc = move_up(run, qp, st, (enum qp_state)st->word);
    return !run->over && drill_returned(run, st, rc, &go);
}
