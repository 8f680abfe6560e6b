/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The attributes that each change of a queue pair needs and allows, as a table, and their valid
 * values. Rules: QP-01..QP-03, QP-17.
 */
#include "qp_attr.h"

#include <errno.h>

#include "address.h"
#include "engine_priv.h"

#define PATH (QPA_ALT_PATH | QPA_PATH_MIG_STATE)

struct need {
    uint32_t required, optional;
};

static const struct transition {
    uint8_t from, to;
    struct need rc, uc, ud, gsi;
} transitions[] = {
    {QPS_RESET, QPS_INIT, .rc = {QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
     .uc = {QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
     .ud = {QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY}, .gsi = {QPA_PKEY_INDEX | QPA_QKEY}},
    {QPS_INIT, QPS_INIT, .rc = {0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
     .uc = {0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
     .ud = {0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY}, .gsi = {0, QPA_PKEY_INDEX | QPA_QKEY}},
    {QPS_INIT, QPS_RTR,
     .rc = {QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
                QPA_MIN_RNR_TIMER,
            QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
     .uc = {QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN,
            QPA_ALT_PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
     .ud = {0, QPA_PKEY_INDEX | QPA_QKEY}, .gsi = {0, QPA_PKEY_INDEX | QPA_QKEY}},
    {QPS_RTR, QPS_RTS,
     .rc = {QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC,
            QPA_CUR_STATE | PATH | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | QPA_RATE_LIMIT},
     .uc = {QPA_SQ_PSN, QPA_CUR_STATE | PATH | QPA_ACCESS_FLAGS | QPA_RATE_LIMIT},
     .ud = {QPA_SQ_PSN, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT},
     .gsi = {QPA_SQ_PSN, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT}},
    {QPS_RTS, QPS_RTS,
     .rc = {0, QPA_CUR_STATE | QPA_ACCESS_FLAGS | PATH | QPA_MIN_RNR_TIMER | QPA_RATE_LIMIT},
     .uc = {0, QPA_CUR_STATE | QPA_ACCESS_FLAGS | PATH | QPA_RATE_LIMIT},
     .ud = {0, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT},
     .gsi = {0, QPA_CUR_STATE | QPA_QKEY | QPA_RATE_LIMIT}},
    {QPS_RTS, QPS_SQD, .rc = {0, QPA_EN_SQD_ASYNC_NOTIFY}, .uc = {0, QPA_EN_SQD_ASYNC_NOTIFY},
     .ud = {0, QPA_EN_SQD_ASYNC_NOTIFY}, .gsi = {0, QPA_EN_SQD_ASYNC_NOTIFY}},
    {QPS_SQD, QPS_RTS, .rc = {0, QPA_CUR_STATE | PATH | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER},
     .uc = {0, QPA_CUR_STATE | PATH | QPA_ACCESS_FLAGS}, .ud = {0, QPA_CUR_STATE | QPA_QKEY},
     .gsi = {0, QPA_CUR_STATE | QPA_QKEY}},
    {QPS_SQD, QPS_SQD,
     .rc = {0, QPA_PORT | QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
                   QPA_MAX_QP_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC | PATH | QPA_ACCESS_FLAGS |
                   QPA_PKEY_INDEX | QPA_MIN_RNR_TIMER},
     .uc = {0, QPA_AV | PATH | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
     .ud = {0, QPA_PKEY_INDEX | QPA_QKEY}, .gsi = {0, QPA_PKEY_INDEX | QPA_QKEY}},
    {QPS_SQE, QPS_RTS, .rc = {QPA_CAP}, /* no such transition: nothing can satisfy it */
     .uc = {0, QPA_CUR_STATE | QPA_ACCESS_FLAGS}, .ud = {0, QPA_CUR_STATE | QPA_QKEY},
     .gsi = {0, QPA_CUR_STATE | QPA_QKEY}},
};

static const struct need *need_of(const struct transition *t, enum qp_type type)
{
    switch (type) {
    case QP_RC:
        return &t->rc;
    case QP_UC:
        return &t->uc;
    case QP_UD:
        return &t->ud;
    default:
        return &t->gsi;
    }
}

/* Does `mask` have the attributes that the transition needs, and no others? */
static int check_mask(const struct qp *qp, unsigned to, unsigned mask)
{
    const unsigned from = qp->state;
    /* XRC-01: attributes of the half that such a queue pair lacks. */
    const unsigned lacks = qp->xrc == XRC_INI ? QPA_MIN_RNR_TIMER | QPA_MAX_DEST_RD_ATOMIC
                           : qp->xrc == XRC_TGT
                               ? QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_QP_RD_ATOMIC
                               : 0;

    mask &= ~QPA_STATE;
    if (to == QPS_RESET || (to == QPS_ERR && from != QPS_RESET))
        return mask ? -EINVAL : 0;
    for (unsigned i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *t = &transitions[i];
        if (t->from != from || t->to != to)
            continue;
        const struct need *n = need_of(t, (enum qp_type)qp->type);
        unsigned required = n->required & ~lacks, optional = n->optional & ~lacks;
        if (required & QPA_CAP || (mask & required) != required || mask & ~(required | optional))
            return -EINVAL;
        return mask & PATH ? -EOPNOTSUPP : 0; /* QP-17 */
    }
    return -EINVAL;
}

static bool good_av(struct engine *e, const struct engine_av *av)
{
    return wire_addr_is_v4(&av->sgid) == wire_addr_is_v4(&av->dgid) &&
           engine_addr_local(e, &av->sgid) && !wire_addr_is_multicast(&av->dgid);
}

/* QP-02, QP-03: the values. */
static bool good_values(struct engine *e, const struct qp *qp, const struct engine_qp_attr *a,
                        unsigned mask)
{
    const struct {
        unsigned attr;
        bool good;
    } check[] = {
        {QPA_CUR_STATE,
         a->cur_state == qp->state && (a->cur_state == QPS_RTR || a->cur_state == QPS_RTS ||
                                       a->cur_state == QPS_SQD || a->cur_state == QPS_SQE)},
        {QPA_PATH_MTU, a->path_mtu >= 1 && a->path_mtu <= e->p.mtu},
        {QPA_TIMEOUT, a->timeout <= 31},
        {QPA_RETRY_CNT, a->retry_cnt <= 7},
        {QPA_RNR_RETRY, a->rnr_retry <= 7},
        {QPA_MIN_RNR_TIMER, a->min_rnr_timer <= 31},
        {QPA_MAX_QP_RD_ATOMIC, a->max_rd_atomic <= ENGINE_RD_MAX},
        {QPA_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic <= ENGINE_RD_MAX},
        {QPA_RQ_PSN, a->rq_psn <= PSN_MASK},
        {QPA_SQ_PSN, a->sq_psn <= PSN_MASK},
        {QPA_DEST_QPN, a->dest_qpn > 1 && a->dest_qpn < WIRE_QPN_MULTICAST},
        {QPA_PKEY_INDEX, engine_pkey(e, a->pkey_index) & 0x7FFF},
        {QPA_PORT, a->port == 1},
        {QPA_AV, good_av(e, &a->av)},
        {QPA_ACCESS_FLAGS,
         !(a->access_flags & ~(MEM_LOCAL_WRITE | MEM_REMOTE_ANY | MEM_MW_BIND | MEM_FLUSH_ANY))},
    };
    for (unsigned i = 0; i < sizeof(check) / sizeof(check[0]); i++)
        if (mask & check[i].attr && !check[i].good)
            return false;
    return true;
}

int qp_attr_check(struct engine *e, const struct qp *qp, enum qp_state to,
                  const struct engine_qp_attr *a, unsigned mask)
{
    int err = check_mask(qp, to, mask);
    if (!err && !good_values(e, qp, a, mask))
        err = -EINVAL;
    return err;
}

void qp_attr_take(struct qp *qp, const struct engine_qp_attr *a, unsigned mask)
{
    struct engine_qp_attr *q = &qp->attr;
    if (mask & QPA_AV)
        q->av = a->av;
#define X(name, verbs, bit)                                                                        \
    if (mask & QPA_##bit)                                                                          \
        q->name = a->name;
    QP_ATTRS(X)
#undef X
}
