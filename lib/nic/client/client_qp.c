/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of requests and of the connection manager on a client's queue pair: find, move,
 * destroy it.
 */
#include "client_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "async.h"
#include "cc.h"
#include "client.h"
#include "datapath.h"
#include "device.h"
#include "group.h"
#include "log.h"
#include "loop.h"
#include "neigh.h"
#include "net.h"
#include "queue.h"
#include "quota.h"
#include "team.h"

#define FLOW_LABEL_MAX 0xFFFFFu /* 20 bits (SEC-25) */

int av_from_ipc(const struct device *d, const struct ipc_av *in, struct engine_av *out)
{
    const struct gid_entry *gid = gid_at(&d->gids, in->sgid_index);
    memset(out, 0, sizeof(*out));
    if (!gid || in->flow_label > FLOW_LABEL_MAX || in->sl > CLIENT_SL_MAX)
        return -EINVAL;
    out->sgid = gid->addr;
    memcpy(out->dgid.b, in->dgid, 16);
    if (wire_addr_is_v4(&out->sgid) != wire_addr_is_v4(&out->dgid))
        return -EINVAL;
    memcpy(out->dmac, in->dmac, 6);
    out->tclass = device_tclass(d, in->tclass);
    out->hop_limit = in->hop_limit;
    out->sl = in->sl;
    out->flow_label = in->flow_label;
    return 0;
}

int av_wanted(const struct device *d, const struct ipc_av *in, struct engine_av *out)
{
    int rc = av_from_ipc(d, in, out);
    unsigned whole = wire_addr_is_v4(&out->dgid) ? 32 : 128;
    if (rc == 0 && !wire_addr_is_multicast(&out->dgid) && !net_addr_possible(&out->dgid, whole))
        rc = -EINVAL;
    return rc;
}

void av_to_ipc(const struct device *d, const struct engine_av *in, struct ipc_av *out)
{
    int index = gid_find(&d->gids, &in->sgid);
    memcpy(out->dgid, in->dgid.b, 16);
    memcpy(out->dmac, in->dmac, 6);
    out->tclass = in->tclass;
    out->hop_limit = in->hop_limit;
    out->sl = in->sl;
    out->flow_label = in->flow_label;
    out->sgid_index = index < 0 ? 0 : (uint16_t)index;
}

/* A queue pair on this client's device, of any client. */
static struct client_qp *qp_by_number(struct client *c, uint32_t qpn)
{
    struct qp *qp = c->open ? engine_qp_find(c->ctx.device->engine, qpn) : NULL;
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    if (!qp || engine_qp_query(qp, &attr, &caps) < 0)
        return NULL;
    return caps.arg;
}

struct client_qp *client_qp_of_process(struct client *c, uint32_t qpn)
{
    struct client_qp *qp = qp_by_number(c, qpn);
    if (!qp || qp->ctx == &c->ctx)
        return qp;
    const struct client *owner = qp->ctx->client;
    /* A process of another namespace has no number here. */
    return owner->pid > 0 && owner->pid == c->pid && owner->uid == c->uid ? qp : NULL;
}

static void attr_from_ipc(const struct ipc_qp_attr *in, struct engine_qp_attr *out)
{
    *out = (struct engine_qp_attr){
        .state = (enum qp_state)in->state,
        .cur_state = (enum qp_state)in->cur_state,
#define X(name, verbs, bit) .name = in->name,
        QP_ATTRS(X)
#undef X
            .e2e_credits = in->e2e_credits != 0,
    };
}

static struct cc_conf client_qp_cc(struct device *d, const struct client_qp *qp)
{
    return qp->cc ? *qp->cc : *engine_cc(d->engine);
}

static bool cc_is_fixed(const struct cc_conf *conf)
{
    return conf->type == &cc_none || conf->type == &cc_fixed;
}

static bool client_qp_can_limit(struct device *d, const struct client_qp *qp)
{
    const struct cc_conf conf = client_qp_cc(d, qp);
    return cc_is_fixed(&conf) || (conf.type->uses & CC_BIT(max)) != 0;
}

/* Set a rate limit. Congestion control may choose a lower rate; without it the limit is a fixed
 * rate. */
static int client_qp_limit(struct device *d, struct client_qp *qp, uint32_t kbps, uint64_t now)
{
    const uint64_t rate = (uint64_t)kbps * 1000;
    struct cc_conf conf = client_qp_cc(d, qp);
    uint64_t *most = &conf.v[cc_is_fixed(&conf) ? CC_P_rate : CC_P_max];
    if (kbps == 0)
        return engine_qp_set_cc(d->engine, qp->qp, qp->cc, now);
    if (conf.type == &cc_none)
        cc_conf_init(&conf, &cc_fixed);
    else if (*most > 0 && *most < rate)
        return engine_qp_set_cc(d->engine, qp->qp, &conf, now);
    *most = rate < cc_params[CC_P_max].max ? rate : cc_params[CC_P_max].max;
    return engine_qp_set_cc(d->engine, qp->qp, &conf, now);
}

/* Does this change make it name a peer's queue pair? *key = which one. */
static bool client_qp_names(const struct client_qp *qp, const struct ipc_qp_modify *m,
                            const struct engine_av *av, struct claim_key *key)
{
    struct engine_qp_attr now = {0};
    if (qp->type == QP_UD || !(m->mask & (QPA_AV | QPA_DEST_QPN)))
        return false;
    if (!qp->claim.in && !((m->mask & QPA_STATE) && m->attr.state == QPS_RTR))
        return false;
    if (engine_qp_query(qp->qp, &now, NULL) < 0)
        return false;
    if (m->mask & QPA_AV)
        now.av = *av;
    *key = (struct claim_key){.local = now.av.sgid,
                              .peer = now.av.dgid,
                              .qpn = (m->mask & QPA_DEST_QPN) ? m->attr.dest_qpn : now.dest_qpn};
    return true;
}

int client_may_name(struct client *c, const struct claim_key *key, uint64_t now)
{
    struct device *d = c->ctx.device;
    uid_t owner;
    if (!claim_refuses(&d->team->claims, key, c->uid, d->member, &owner, now))
        return 0;
    if (share_may_log(c->of_device, now))
        log_warn("qp",
                 "%s: uid %u (%s[%d]) may not connect to queue pair 0x%06x: the connection manager "
                 "has given that to uid %u; connect by the connection manager, or end the other "
                 "connection",
                 d->name, (unsigned)c->uid, c->comm, (int)c->pid, key->qpn, (unsigned)owner);
    return -EADDRINUSE;
}

/* Claim the named peer. A connection on another worker may have got it since client_may_name: then
 * the queue pair ends as if the connection had displaced it. */
static int client_qp_claims(struct client *c, struct client_qp *qp, const struct claim_key *key,
                            uint64_t now)
{
    struct device *d = c->ctx.device;
    qp->claim.uid = c->uid;
    qp->claim.member = d->member;
    qp->claim.qp = qp;
    const enum claim_result result = claim_set(&d->team->claims, &qp->claim, key);
    if (result == CLAIM_OWNED) {
        client_may_name(c, key, now); /* counts it, and asks the owner */
        engine_qp_fail(d->engine, qp->qp,
                       "SEC-33 the connection manager has given the peer to another user", now);
        return -EADDRINUSE;
    }
    if (result == CLAIM_SHARED && share_may_log(c->of_device, now))
        log_info("qp", "%s: queue pairs of several users name the peer's queue pair 0x%06x",
                 d->name, key->qpn);
    return 0;
}

int client_qp_modify(struct client *c, struct client_qp *qp, const struct ipc_qp_modify *m,
                     const struct engine_av *av, uint64_t now)
{
    struct device *d = c->ctx.device;
    struct engine_qp_attr attr;
    struct claim_key key;
    const bool names = client_qp_names(qp, m, av, &key);
    attr_from_ipc(&m->attr, &attr);
    if ((m->mask & QPA_QKEY) && attr.qkey >> 31 && !client_is_admin(c))
        return -EPERM; /* KEY-08: a controlled Q_Key, such as that of QP1 */
    if (((m->mask & QPA_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > LIMIT_RD_ATOM) ||
        ((m->mask & QPA_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > LIMIT_RD_ATOM))
        return -EINVAL; /* QP-03 */
    if ((m->mask & QPA_RATE_LIMIT) && m->attr.rate_limit > 0 && !client_qp_can_limit(d, qp))
        return -EOPNOTSUPP;
    if (m->mask & QPA_AV)
        attr.av = *av;
    int rc = names ? client_may_name(c, &key, now) : 0;
    if (rc < 0)
        return rc;
    struct neigh_hop *hop = NULL;
    if (m->mask & QPA_AV)
        rc = neigh_hold(d->neigh, c->of_device, &av->dgid, &hop);
    if (rc < 0)
        return rc;
    rc = engine_qp_modify(d->engine, qp->qp, &attr, m->mask, now);
    if (rc == 0 && (m->mask & QPA_RATE_LIMIT)) {
        rc = client_qp_limit(d, qp, m->attr.rate_limit, now);
        if (rc == 0)
            qp->rate_limit = m->attr.rate_limit;
    }
    if (rc == 0 && names)
        rc = client_qp_claims(c, qp, &key, now);
    if (rc < 0) {
        neigh_let_go(d->neigh, c->of_device, hop);
        return rc;
    }
    if (m->mask & QPA_AV)
        neigh_watch(d->neigh, c->of_device, &qp->watcher, qp->qp, hop, now);
    if ((m->mask & QPA_STATE) && attr.state == QPS_RESET) {
        queue_reset(&qp->sq);
        queue_reset(&qp->rq);
        if (qp->rate_limit > 0)
            client_qp_limit(d, qp, 0, now);
        qp->rate_limit = 0;
        claim_drop(&qp->claim);
        neigh_unwatch(d->neigh, c->of_device, &qp->watcher);
    }
    /* Receives may be posted before the state allows it: look again. */
    if (qp->sq.ring.entries > 0 && !qp->sq.starved)
        context_activate(&c->ctx, &qp->sq);
    if (qp->rq.ring.entries > 0 && !qp->rq.starved)
        context_activate(&c->ctx, &qp->rq);
    return 0;
}

int client_qp_attach(struct client *c, struct client_qp *qp, const struct wire_addr *group,
                     uint64_t now)
{
    struct device *d = c->ctx.device;
    unsigned before = engine_mcast_count(d->engine, qp->qp);
    /* Its own datagrams to the group are for it, too; the daemon's switch brings them. */
    int rc = d->uplink ? 0 : loop_start(d);
    if (rc == 0)
        rc = group_join(&d->team->users, c->of_device, group);
    if (rc < 0)
        return rc;
    rc = engine_mcast_attach(d->engine, qp->qp, group);
    bool joined = engine_mcast_count(d->engine, qp->qp) > before;
    if (rc == 0)
        rc = neigh_groups(d->neigh, now);
    if (rc < 0 && joined) {
        engine_mcast_detach(d->engine, qp->qp, group);
        neigh_groups(d->neigh, now);
        joined = false;
    }
    if (!joined) /* it could not join, or was a member before */
        group_leave(&d->team->users, c->of_device, group);
    return rc;
}

int client_qp_detach(struct client *c, struct client_qp *qp, const struct wire_addr *group,
                     uint64_t now)
{
    struct device *d = c->ctx.device;
    int rc = engine_mcast_detach(d->engine, qp->qp, group);
    if (rc == 0) {
        group_leave(&d->team->users, c->of_device, group);
        neigh_groups(d->neigh, now);
    }
    return rc;
}

/* Start with the last group, because a group without queue pairs is removed. */
static void client_qp_leave_all(struct client *c, struct client_qp *qp)
{
    struct device *d = c->ctx.device;
    struct wire_addr g;
    unsigned n = 0;
    if (engine_mcast_count(d->engine, qp->qp) == 0)
        return;
    while (engine_mcast_get(d->engine, n, &g))
        n++;
    while (n-- > 0) {
        if (engine_mcast_get(d->engine, n, &g) && engine_mcast_detach(d->engine, qp->qp, &g) == 0)
            group_leave(&d->team->users, c->of_device, &g);
    }
}

void client_qp_fail(struct client *c, struct client_qp *qp, uint64_t now)
{
    const struct engine_qp_attr err = {.state = QPS_ERR};
    engine_qp_modify(c->ctx.device->engine, qp->qp, &err, QPA_STATE, now);
}

void client_qp_destroy(struct client *c, struct client_qp *qp, uint64_t now)
{
    struct device *d = c->ctx.device;
    /* Send the ACKs that it owes to its peer before it disappears (QP-11). */
    qp->going = true;
    client_qp_fail(c, qp, now);
    if (engine_qp_owes(qp->qp))
        device_tx(d, now);
    neigh_unwatch(d->neigh, c->of_device, &qp->watcher);
    claim_drop(&qp->claim);
    client_qp_leave_all(c, qp);
    engine_qp_destroy(d->engine, qp->qp);
    async_forget(&c->ctx, qp->ref);
    if (qp->type == QP_UD)
        neigh_groups(d->neigh, now);
    queue_unwait(&qp->sq);
    context_queue_del(&c->ctx, &qp->sq);
    if (qp->rq.ring.entries > 0)
        context_queue_del(&c->ctx, &qp->rq);
    qslab_free(&qp->sq.place);
    qslab_free(&qp->rq.place);
    if (qp->cm_id)
        qp->cm_gone(qp);
    if (qp->srq)
        qp->srq->users--;
    free(qp->cc);
    free(qp);
}
