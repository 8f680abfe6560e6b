/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams and time in and out of lib/cm. Outgoing datagrams wait here for their neighbour's MAC
 * and for room in the port; they are few, and lib/cm repeats lost ones.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "cmgr_priv.h"
#include "cmid.h"
#include "cmid_channel.h"
#include "cmid_news.h"
#include "cmid_qp.h"
#include "device.h"
#include "log.h"
#include "peers.h"
#include "quota.h"
#include "services.h"
#include "stats.h"
#include "team.h"

#define CMGR_WAIT_NS  (1 * CLOCK_SEC) /* for a neighbour; then the datagram is dropped */
#define CMGR_RETRY_NS (1 * CLOCK_MS)

static struct cmgr *cmgr_at(struct gsi *g)
{
    return (struct cmgr *)g;
}

static const struct cmgr *cmgr_in(const struct gsi *g)
{
    return (const struct cmgr *)g;
}

/* A connection has ended. `account`: the share of the user that it counted for (cmid_charge). */
static void cmgr_conn_left(void *account)
{
    share_give(account, SHARE_CONN, 1);
    share_leave(account);
}

/* A REQ made our side ask for the neighbour CM_LOOK_NS ago (cmid_on_request): an existing host has
 * answered by now. */
static bool cmgr_silent(void *arg, const struct wire_addr *addr)
{
    const struct cmgr *m = arg;
    uint8_t mac[6];
    return neigh_lookup(m->device->neigh, NULL, addr, mac, m->now) < 0;
}

/* ---- in ---- */

static void cmgr_rx(struct gsi *g, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len)
{
    struct cmgr *m = cmgr_at(g);
    cm_rx(m->cm, mad, len, &pkt->sip, &pkt->dip, pkt->sqpn, pkt->pkey, m->now);
    m->dirty = true;
}

static int cmgr_member(const struct gsi *g, const uint8_t *mad, uint32_t len,
                       const struct wire_addr *dip)
{
    const struct cmgr *m = cmgr_in(g);
    const struct cm_target target = cm_msg_target(mad, len);
    if (target.what == CM_FOR_ID)
        return (int)(target.id >> (32 - m->device->team->bits));
    if (target.what == CM_FOR_PEER)
        return GSI_ALL;
    return target.what == CM_FOR_SERVICE ? services_find(m->services, target.service_id, dip) : -1;
}

static void cmgr_comm_est(struct gsi *g, void *qp_arg)
{
    struct cmgr *m = cmgr_at(g);
    const struct client_qp *qp = qp_arg;
    if (qp && qp->cm_id && qp->cm_id->conn) {
        cm_comm_est(m->cm, qp->cm_id->conn, m->now);
        m->dirty = true;
    }
}

/* Frames of programs are being sent: the next round continues. */
static void cmgr_program_comm_est(struct gsi *g, uint32_t qpn)
{
    struct cmgr *m = cmgr_at(g);
    const struct cm_id *id = cmid_awaiting(m, qpn);
    if (id && id->conn) {
        cm_comm_est(m->cm, id->conn, m->now);
        m->dirty = m->comm_est = true;
    }
}

/* ---- out ---- */

static bool cmgr_address(struct cmgr *m, struct mad_out *o, uint64_t now, bool *drop)
{
    int rc = neigh_lookup(m->device->neigh, NULL, &o->out.dst, o->mac, now);
    *drop = rc < 0 && (rc != -EAGAIN || now >= o->give_up);
    return rc == 0;
}

/* Datagrams whose neighbour has answered meanwhile move on. */
static void cmgr_retry(struct cmgr *m, uint64_t now)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < m->nwaiting; i++) {
        struct mad_out *o = &m->waiting[i];
        bool drop = false;
        if (m->nready < CMGR_READY && cmgr_address(m, o, now, &drop))
            m->ready[(m->first_ready + m->nready++) % CMGR_READY] = *o;
        else if (!drop)
            m->waiting[kept++] = *o;
    }
    m->nwaiting = kept;
    m->retry_at = now + CMGR_RETRY_NS;
}

static void cmgr_drain(struct cmgr *m, uint64_t now)
{
    struct mad_out o;
    bool drop;
    while (m->nready < CMGR_READY && cm_tx(m->cm, &o.out)) {
        o.give_up = now + CMGR_WAIT_NS;
        if (cmgr_address(m, &o, now, &drop))
            m->ready[(m->first_ready + m->nready++) % CMGR_READY] = o;
        else if (!drop && m->nwaiting < CMGR_WAITING)
            m->waiting[m->nwaiting++] = o;
    }
}

static bool cmgr_tx_ready(const struct gsi *g)
{
    return cmgr_in(g)->nready > 0;
}

static bool cmgr_busy(const struct gsi *g)
{
    const struct cmgr *m = cmgr_in(g);
    return m->dirty || m->nready > 0;
}

static bool cmgr_tx(struct gsi *g, struct engine_slot *slot)
{
    struct cmgr *m = cmgr_at(g);
    while (m->nready > 0) {
        const struct mad_out *o = &m->ready[m->first_ready];
        struct engine_av av = {
            .sgid = o->out.src,
            .dgid = o->out.dst,
            .tclass = o->out.tclass,
            .hop_limit = o->out.hop_limit,
            .sl = o->out.sl,
        };
        memcpy(av.dmac, o->mac, 6);
        int rc = engine_gsi_emit(m->device->engine, slot, &av, o->out.pkey, o->out.mad, CM_MAD_LEN);
        m->first_ready = (m->first_ready + 1) % CMGR_READY;
        m->nready--;
        if (rc == 0) {
            slot->status = 0;
            wire_icrc_seal(slot->buf, slot->len, slot->ip_off, slot->bth_off);
            return true;
        }
        log_debug("cm", "%s: can't send a datagram: %s", m->device->name, strerror(-rc));
    }
    return false;
}

/* ---- time ---- */

/* Another worker got a request that names a peer of this worker's connections (CM-21). */
static void cmgr_doubt(struct cmgr *m, uint64_t now)
{
    struct cm_peer peer;
    while (peers_next(m->peers, m->device->member, &peer))
        cm_doubt_peer(m->cm, &peer, now);
    m->dirty = true;
}

static unsigned cmgr_run(struct gsi *g, uint64_t now)
{
    struct cmgr *m = cmgr_at(g);
    unsigned n = 0;
    m->now = now;
    m->comm_est = false;
    if (cm_deadline(m->cm) <= now) {
        cm_expire(m->cm, now);
        m->dirty = true;
    }
    if (m->nwaiting > 0 && now >= m->retry_at)
        cmgr_retry(m, now);
    if (claim_has_news(&m->device->team->claims, m->device->member))
        cmid_hear_claims(m, now);
    if (peers_doubts(m->peers, m->device->member))
        cmgr_doubt(m, now);
    if (!LIST_EMPTY(&m->displacing))
        cmid_displace(LIST_FIRST(&m->displacing), now);
    if (!m->dirty)
        return 0;
    struct cm_event ev;
    m->dirty = false;
    while (cm_event(m->cm, &ev)) {
        cmgr_on_event(m, &ev, now);
        n++;
    }
    cmgr_drain(m, now);
    m->dirty = m->nready == CMGR_READY; /* perhaps more are left */
    return n;
}

static uint64_t cmgr_deadline(const struct gsi *g)
{
    const struct cmgr *m = cmgr_in(g);
    uint64_t at = LIST_EMPTY(&m->displacing) ? cm_deadline(m->cm) : 0;
    if (m->comm_est || claim_has_news(&m->device->team->claims, m->device->member) ||
        peers_doubts(m->peers, m->device->member))
        return 0;
    return m->nwaiting > 0 && m->retry_at < at ? m->retry_at : at;
}

/* ---- the device's table ---- */

static void cmgr_set_mtu(struct gsi *g, unsigned path_mtu)
{
    cm_set_mtu(cmgr_at(g)->cm, (uint8_t)path_mtu);
}

static void cmgr_refused(struct gsi *g, const struct wire_addr *addr)
{
    struct cmgr *m = cmgr_at(g);
    if (cm_refused(m->cm, addr) > 0)
        m->dirty = true;
}

static void cmgr_count(const struct gsi *g, struct stats_list *list)
{
    const struct cmgr *m = cmgr_in(g);
    const uint64_t *c = cm_counters(m->cm);
    for (unsigned i = 0; i < CM_COUNTER_MAX; i++)
        stats_add(list, cm_counter_names[i], c[i]);
    stats_add(list, "cm_live", cm_live(m->cm));
}

static void cmgr_free(struct cmgr *m)
{
    cm_destroy(m->cm);
    if (m->device->member == 0) {
        services_free(m->services);
        peers_free(m->peers);
    }
    free(m);
}

static void cmgr_destroy(struct gsi *g)
{
    cmgr_free(cmgr_at(g));
}

static const struct gsi_ops cmgr_ops = {
    .rx = cmgr_rx,
    .member = cmgr_member,
    .comm_est = cmgr_comm_est,
    .program_comm_est = cmgr_program_comm_est,
    .busy = cmgr_busy,
    .tx_ready = cmgr_tx_ready,
    .tx = cmgr_tx,
    .run = cmgr_run,
    .deadline = cmgr_deadline,
    .service = cmgr_service,
    .owes = cmgr_owes,
    .set_mtu = cmgr_set_mtu,
    .refused = cmgr_refused,
    .counters = cmgr_count,
    .destroy = cmgr_destroy,
};

static void cmgr_wake(void *team, unsigned member)
{
    team_wake(team, member);
}

/* State shared by the connection managers of a device with several workers. */
static bool cmgr_join(struct cmgr *m)
{
    const struct device *d = m->device;
    if (!d->shared)
        return true;
    if (d->member > 0) {
        const struct cmgr *first = cmgr_of(d->team->member[0]);
        m->services = first->services;
        m->peers = first->peers;
    } else {
        m->services = services_new();
        m->peers = peers_new(d->team->bits, cmgr_wake, d->team);
    }
    return m->services && m->peers;
}

struct cmgr *cmgr_create(struct device *d)
{
    struct cmgr *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->gsi.ops = &cmgr_ops;
    m->device = d;
    struct cm_params p = {.max_rd_atomic = LIMIT_RD_ATOM,
                          .ca_guid = d->guid,
                          .max_mtu = (uint8_t)d->path_mtu,
                          .max_conns = LIMIT_CM_ID,
                          .left = cmgr_conn_left,
                          .silent = cmgr_silent,
                          .silent_arg = m,
                          .part_bits = (uint8_t)d->team->bits,
                          .part = (uint8_t)d->member};
    if (cmgr_join(m) && getrandom(p.key, sizeof(p.key), 0) == (ssize_t)sizeof(p.key)) {
        p.hold = m->peers ? peers_hold : NULL;
        p.drop = peers_drop;
        p.peers = m->peers;
        m->cm = cm_create(&p);
    }
    if (!m->cm) {
        cmgr_free(m);
        return NULL;
    }
    d->gsi = &m->gsi;
    return m;
}

struct cmgr *cmgr_of(const struct device *d)
{
    assert(d->gsi->ops == &cmgr_ops);
    return cmgr_at(d->gsi);
}

uint32_t cmgr_live(const struct cmgr *m)
{
    return cm_live(m->cm);
}
