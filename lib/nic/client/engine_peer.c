/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See engine_peer.h. A peer counts as a queue pair of its user, and its next hop as a neighbour.
 */
#include "engine_peer.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "claim.h"
#include "client.h"
#include "client_qp.h"
#include "device.h"
#include "engine_channel.h"
#include "log.h"
#include "neigh.h"
#include "pair.h"
#include "switch_news.h"
#include "team.h"

struct engine_peer {
    struct switch_pair pair;
    struct claim claim;
    struct neigh_hop *hop;
    bool attended; /* the hop is */
    struct client *client;
    struct engine_peer *next, **fro; /* of the client's */
};

static struct engine_peer *peer_of(const struct client *c, uint32_t qpn)
{
    const struct switch_channel *ch = engine_channel_at(c);
    struct switch_pair *p = ch ? switch_pair_of(ch, qpn) : NULL;
    return p ? (struct engine_peer *)(void *)((char *)p - offsetof(struct engine_peer, pair))
             : NULL;
}

/* It sends to this hop from now on, and takes over the caller's hold. */
static void peer_hop(struct engine_peer *e, struct neigh_hop *hop, uint64_t now)
{
    const struct client *c = e->client;
    struct neigh *n = c->ctx.device->neigh;
    if (e->attended)
        neigh_unattend(n, e->hop);
    neigh_let_go(n, c->of_device, e->hop);
    e->hop = hop;
    e->attended = neigh_attend(n, hop, now);
}

static void peer_free(struct engine_peer *e)
{
    struct client *c = e->client;
    *e->fro = e->next;
    if (e->next)
        e->next->fro = e->fro;
    claim_drop(&e->claim);
    peer_hop(e, NULL, 0);
    switch_pair_remove(engine_channel_at(c), &e->pair);
    share_give(c->of_device, SHARE_QP, 1);
    free(e);
}

/* The connection manager has given the peer to another user: the program's engine learns that the
 * connection is over, and its frames to that peer are dropped. */
static void peer_displaced(struct claim *claim, uint64_t now)
{
    struct engine_peer *e =
        (struct engine_peer *)(void *)((char *)claim - offsetof(struct engine_peer, claim));
    struct client *c = e->client;
    const uint32_t qpn = e->pair.qpn;
    if (share_may_log(c->of_device, now))
        log_warn("qp",
                 "%s: queue pair 0x%06x of uid %u ends: the connection manager has given its peer, "
                 "queue pair 0x%06x, to another user",
                 c->ctx.device->name, qpn, (unsigned)c->uid, e->pair.peer_qpn);
    peer_free(e);
    (void)switch_news_over(c->ctx.device->sw, qpn);
}

static struct engine_peer *peer_new(struct client *c, uint32_t qpn, int *rc)
{
    struct engine_peer *e = calloc(1, sizeof(*e));
    *rc = e ? share_take(c->of_device, SHARE_QP, 1) : -ENOMEM;
    if (*rc < 0) {
        free(e);
        return NULL;
    }
    e->pair.qpn = qpn;
    *rc = switch_pair_add(engine_channel_at(c), &e->pair);
    if (*rc < 0) {
        share_give(c->of_device, SHARE_QP, 1);
        free(e);
        return NULL;
    }
    e->client = c;
    e->claim.uid = c->uid;
    e->claim.member = c->ctx.device->member;
    e->claim.displaced = peer_displaced;
    e->next = c->peers;
    if (e->next)
        e->next->fro = &e->next;
    e->fro = &c->peers;
    c->peers = e;
    return e;
}

/* Claim the peer for its user. 0, or -EADDRINUSE: it belongs to another user. A connection on
 * another worker may have got it since client_may_name: then a queue pair that has had a peer (not
 * `fresh`) ends, as if the connection had displaced it. */
static int peer_claim(struct engine_peer *e, const struct claim_key *key, bool fresh, uint64_t now)
{
    struct client *c = e->client;
    struct device *d = c->ctx.device;
    if (client_may_name(c, key, now) < 0)
        return -EADDRINUSE;
    const enum claim_result result = claim_set(&d->team->claims, &e->claim, key);
    if (result == CLAIM_OWNED) {
        client_may_name(c, key, now); /* counts it, and asks the owner */
        if (!fresh)
            peer_displaced(&e->claim, now);
        return -EADDRINUSE;
    }
    if (result == CLAIM_SHARED && share_may_log(c->of_device, now))
        log_info("qp", "%s: queue pairs of several users name the peer's queue pair 0x%06x",
                 d->name, key->qpn);
    return 0;
}

int engine_peer_set(struct client *c, uint32_t qpn, uint32_t peer_qpn, const struct engine_av *av,
                    uint64_t now)
{
    struct device *d = c->ctx.device;
    struct switch_channel *ch = engine_channel_at(c);
    struct engine_peer *e = peer_of(c, qpn);
    struct neigh_hop *hop = NULL;
    const bool fresh = !e;
    if (!ch || ch->ending || switch_owner(d->sw, qpn) != ch || (fresh && peer_qpn == 0) ||
        qpn > WIRE_QPN_MASK || peer_qpn > WIRE_QPN_MASK || (av->dmac[0] & 1))
        return -EINVAL;
    int rc = neigh_hold(d->neigh, c->of_device, &av->dgid, &hop);
    if (rc == 0 && fresh)
        e = peer_new(c, qpn, &rc);
    if (rc == 0) {
        const struct claim_key key = {av->sgid, av->dgid, peer_qpn ? peer_qpn : e->pair.peer_qpn};
        rc = peer_claim(e, &key, fresh, now);
    }
    if (rc < 0) {
        if (fresh && e)
            peer_free(e);
        neigh_let_go(d->neigh, c->of_device, hop);
        return rc;
    }
    peer_hop(e, hop, now);
    e->pair.local = av->sgid;
    e->pair.peer = av->dgid;
    e->pair.peer_qpn = peer_qpn ? peer_qpn : e->pair.peer_qpn;
    memcpy(e->pair.mac, av->dmac, sizeof(e->pair.mac));
    return 0;
}

void engine_peer_drop(struct client *c, uint32_t qpn)
{
    struct engine_peer *e = peer_of(c, qpn);
    if (e)
        peer_free(e);
}

bool engine_peer_drop_some(struct client *c)
{
    struct budget_stats *job = c->ctx.device->stats.job;
    unsigned n = 0;
    for (; c->peers && n < ENGINE_PEERS_DROP; n++)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): peer_free takes it off the list
        peer_free(c->peers);
    budget_spend(job, BUDGET_teardown, n);
    if (c->peers)
        budget_over(job, BUDGET_teardown);
    return c->peers != NULL;
}

bool engine_peer_is_shared(const struct client *owner, uint32_t qpn)
{
    const struct engine_peer *e = peer_of(owner, qpn);
    return e && claim_is_shared(&e->claim);
}
