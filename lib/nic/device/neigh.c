/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib/net answers a frame with at most one frame; answers wait here for room in the port. Queue
 * pairs send without resolving their neighbour again. So their next hop is watched, and a new MAC
 * is put into each of them (WIRE-07).
 */
#include "neigh.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "device.h"
#include "device_switch.h"
#include "kneigh.h"
#include "log.h"
#include "loop.h"
#include "net.h"
#include "quota.h"
#include "share.h"
#include "team.h"

#define NEIGH_REPLIES 16u
#define NEIGH_BUCKETS 4096u /* buckets of next hops: as many as neighbours */
#define NEIGH_POLL_NS (1 * CLOCK_MS)

static const uint8_t kernel_mac[6] = IO_PEER_MAC;

struct neigh_reply {
    uint32_t len;
    uint8_t frame[IO_FRAME_MAX];
};

/* A user of a next hop: it has queue pairs that send there, or waits for the MAC. */
struct neigh_user {
    LIST_ENTRY(neigh_user) next;
    struct share *share;
    uint32_t holds;
};

/* A next hop with its users and queue pairs. Queue pairs that lack its current MAC come first. */
struct neigh_hop {
    LIST_ENTRY(neigh_hop) next;
    struct wire_addr addr;
    uint8_t mac[6];
    uint32_t change; /* changes of its MAC */
    bool due;        /* in the list of hops whose queue pairs need the new MAC */
    TAILQ_ENTRY(neigh_hop) next_due;
    TAILQ_HEAD(, neigh_watcher) watchers;
    LIST_HEAD(, neigh_user) users;
};

struct neigh {
    LIST_HEAD(, neigh_hop) hops[NEIGH_BUCKETS];
    TAILQ_HEAD(, neigh_hop) due;
    struct device *device;
    struct net_port *port;
    struct kneigh *kernel; /* neigh=kernel; or NULL */
    uint64_t poll_at;      /* time of the next look at its answers, if there are waiters */
    TAILQ_HEAD(, neigh_waiter) waiters;
    uint32_t nwaiters;
    uint32_t to_try;       /* waiters not yet tried since the last news */
    uint64_t give_up_at;   /* the waiters' first deadline, or earlier */
    uint64_t give_up_next; /* the same for the waiters already tried again */
    bool dirty;            /* net_tx or net_next_change may have something */
    unsigned first, count; /* replies that wait for room */
    struct neigh_reply reply[NEIGH_REPLIES];
};

struct neigh *neigh_create(struct device *d, char *err)
{
    struct neigh *n = calloc(1, sizeof(*n));
    struct net_config conf = {.vlan = d->conf->vlan,
                              .mtu = (uint16_t)d->ip_mtu,
                              .quiet = d->conf->kernel_if[0] != '\0' || d->io->caps.kernel_ip,
                              .neighbours = LIMIT_NEIGH + LIMIT_NEIGH_RESERVE};
    snprintf(err, CONFIG_ERR, "device %s: out of memory", d->name);
    if (!n)
        return NULL;
    memcpy(conf.mac, d->mac, 6);
    n->device = d;
    TAILQ_INIT(&n->due);
    TAILQ_INIT(&n->waiters);
    n->give_up_at = n->give_up_next = UINT64_MAX;
    n->port = net_port_new(&conf, clock_now());
    if (!n->port ||
        (d->conf->kernel_if[0] && kneigh_open(&n->kernel, d->conf->kernel_if, err) < 0)) {
        neigh_destroy(n);
        return NULL;
    }
    for (unsigned i = 0; i < d->conf->ngw; i++)
        net_gateway_set(n->port, &d->conf->gw[i]);
    n->dirty = true;
    return n;
}

static bool kernel_ip(const struct neigh *n)
{
    return n->device->io->caps.kernel_ip;
}

/* Does the kernel, or the daemon of a program's device, resolve the neighbours? */
static bool elsewhere(const struct neigh *n)
{
    return kernel_ip(n) || n->device->uplink;
}

void neigh_destroy(struct neigh *n)
{
    kneigh_close(n->kernel);
    net_port_free(n->port);
    free(n);
}

static void neigh_poll(struct neigh *n, uint64_t now)
{
    struct wire_addr addr;
    while (net_next_request(n->port, &addr))
        kneigh_ask(n->kernel, &addr);
    kneigh_poll(n->kernel, n->port, now);
    n->poll_at = now + NEIGH_POLL_NS;
}

void neigh_service(struct neigh *n, uint64_t now)
{
    if (!n->kernel)
        return;
    neigh_poll(n, now);
    n->dirty = true;
}

int neigh_addr_add(struct neigh *n, const struct config_addr *a)
{
    if (elsewhere(n))
        return 0;
    n->dirty = true;
    int rc = net_addr_add(n->port, &a->ip, a->prefix, clock_now());
    if (n->kernel)
        kneigh_ask_addresses(n->kernel);
    return rc == -EEXIST ? 0 : rc; /* lib/net has the link-local address from the start */
}

void neigh_addr_del(struct neigh *n, const struct wire_addr *ip)
{
    net_addr_del(n->port, ip);
    n->dirty = true;
}

void neigh_link_up(struct neigh *n, uint64_t now)
{
    if (elsewhere(n))
        return;
    net_announce(n->port, now);
    n->dirty = true;
}

void neigh_mac(struct neigh *n, uint64_t now)
{
    if (elsewhere(n))
        return;
    net_mac_set(n->port, n->device->mac, now);
    n->dirty = true;
}

void neigh_mtu(struct neigh *n, uint32_t mtu)
{
    net_mtu_set(n->port, (uint16_t)mtu);
}

/* ---- frames ---- */

void neigh_rx(struct neigh *n, const uint8_t *frame, uint32_t len, uint64_t now)
{
    struct neigh_reply *r = &n->reply[(n->first + n->count) % NEIGH_REPLIES];
    /* Without room *r is the oldest waiting reply, which stays. Only one of a device's workers
     * answers. */
    bool room = n->count < NEIGH_REPLIES && n->device->member == 0;
    uint64_t too_big = net_counter(n->port, NET_RX_TOO_BIG);
    size_t answer = net_rx(n->port, frame, len, now, r->frame, room ? sizeof(r->frame) : 0);
    if (room && answer > 0) {
        r->len = (uint32_t)answer;
        n->count++;
    }
    if (net_counter(n->port, NET_RX_TOO_BIG) != too_big)
        log_warn("neigh",
                 "%s: a router or host says that our packets are too big for it (ICMP); "
                 "connections keep their path MTU",
                 n->device->name);
    n->dirty = true;
}

bool neigh_tx_ready(const struct neigh *n)
{
    return !elsewhere(n) && (n->count > 0 || n->dirty);
}

uint32_t neigh_tx(struct neigh *n, uint8_t *buf, uint32_t cap, uint64_t now)
{
    if (elsewhere(n))
        return 0;
    while (n->count > 0) {
        struct neigh_reply *r = &n->reply[n->first];
        n->first = (n->first + 1) % NEIGH_REPLIES;
        n->count--;
        if (r->len <= cap) {
            memcpy(buf, r->frame, r->len);
            return r->len;
        }
    }
    uint32_t len = (uint32_t)net_tx(n->port, buf, cap, now);
    if (len == 0)
        n->dirty = false;
    return len;
}

/* ---- the next hop's MAC ---- */

int neigh_source(const struct neigh *n, const struct wire_addr *dst, struct wire_addr *src)
{
    if (n->device->uplink)
        return -ENETUNREACH;
    if (!kernel_ip(n))
        return net_source(n->port, dst, src);
    struct io_port *io = n->device->io;
    struct io_addr to, from;
    memcpy(to.b, dst->b, sizeof(to.b));
    int rc = io->ops->source(io, &to, &from);
    if (rc == 0)
        memcpy(src->b, from.b, sizeof(src->b));
    return rc;
}

unsigned neigh_path_mtu(const struct neigh *n, const uint8_t dst[16])
{
    const struct device *d = n->device;
    struct io_addr to;
    uint32_t room = 0;
    memcpy(to.b, dst, sizeof(to.b));
    if (kernel_ip(n) && d->io->ops->path_room)
        room = d->io->ops->path_room(d->io, &to);
    unsigned path = room ? wire_mtu_for_ip(room) : d->path_mtu;
    if (path == 0)
        path = 1;
    return path < d->path_mtu ? path : d->path_mtu;
}

bool neigh_is_new(const struct neigh *n, const struct wire_addr *dst)
{
    struct wire_addr addr;
    return !wire_addr_is_multicast(dst) && net_next_hop(n->port, dst, &addr) == 0 &&
           net_neigh_state(n->port, &addr) == NET_NONE;
}

int neigh_lookup(struct neigh *n, struct share *s, const struct wire_addr *dst, uint8_t mac[6],
                 uint64_t now)
{
    struct device *d = n->device;
    if (d->uplink)
        return -EHOSTUNREACH; /* the program asks the daemon */
    if (gid_find(&d->gids, dst) >= 0) {
        memcpy(mac, d->mac, 6);
        return loop_start(d);
    }
    if (kernel_ip(n)) {
        struct wire_addr src;
        memcpy(mac, kernel_mac, 6);
        if (wire_addr_is_multicast(dst))
            wire_mcast_mac(dst, mac);
        return neigh_source(n, dst, &src);
    }
    if (!share_has_room(s, SHARE_NEIGH, 1) && neigh_is_new(n, dst))
        return share_refuse(s, SHARE_NEIGH);
    int rc = net_resolve(n->port, dst, now, mac);
    if (rc == 0)
        return 0;
    n->dirty = true;
    if (rc == -EINPROGRESS || rc == -ENOBUFS)
        return -EAGAIN;
    return rc;
}

static void neigh_keep(struct neigh *n, struct neigh_waiter *w)
{
    if (w->deadline < n->give_up_at)
        n->give_up_at = w->deadline;
    if (w->deadline < n->give_up_next)
        n->give_up_next = w->deadline;
    w->waits = true;
    TAILQ_INSERT_TAIL(&n->waiters, w, next);
    n->nwaiters++;
}

static void neigh_unkeep(struct neigh *n, struct neigh_waiter *w)
{
    w->waits = false;
    TAILQ_REMOVE(&n->waiters, w, next);
    n->nwaiters--;
}

/* Call w->done if there is an answer, or else keep it on the list. */
static void neigh_try(struct neigh *n, struct neigh_waiter *w, uint64_t now)
{
    uint8_t mac[6];
    struct neigh_hop *hop = w->hop;
    struct share *s = w->share;
    int rc = neigh_lookup(n, NULL, &w->dst, mac, now);
    if (rc == -EAGAIN && now < w->deadline) {
        neigh_keep(n, w);
        return;
    }
    w->done(w, rc == -EAGAIN ? -ETIMEDOUT : rc, mac, now); /* may free the waiter */
    neigh_let_go(n, s, hop);
}

int neigh_wait(struct neigh *n, struct neigh_waiter *w, uint64_t timeout_ns, uint64_t now)
{
    int rc = neigh_hold(n, w->share, &w->dst, &w->hop);
    if (rc < 0)
        return rc;
    w->deadline = now + timeout_ns;
    neigh_try(n, w, now);
    return 0;
}

void neigh_cancel(struct neigh *n, struct neigh_waiter *w)
{
    if (!w->waits)
        return;
    neigh_unkeep(n, w);
    neigh_let_go(n, w->share, w->hop);
}

/* After news: try all waiters again, a bounded number of them in one round (SHM-12). */
static void neigh_waiters(struct neigh *n, bool news, uint64_t now)
{
    struct budget_stats *job = n->device->stats.job;
    unsigned left = budget_of[BUDGET_waiter];
    if (news) {
        n->to_try = n->nwaiters;
        n->give_up_next = UINT64_MAX;
    }
    for (; n->to_try > 0 && !TAILQ_EMPTY(&n->waiters); n->to_try--) {
        struct neigh_waiter *w = TAILQ_FIRST(&n->waiters);
        if (left-- == 0) {
            budget_over(job, BUDGET_waiter);
            return;
        }
        budget_spend(job, BUDGET_waiter, 1);
        neigh_unkeep(n, w);
        neigh_try(n, w, now);
    }
    n->to_try = 0;
    n->give_up_at = n->give_up_next;
}

/* ---- groups ---- */

static bool neigh_attached(const struct neigh *n, const struct wire_addr *group)
{
    struct wire_addr g;
    for (unsigned i = 0; device_group_get(n->device, i, &g); i++) {
        if (memcmp(g.b, group->b, sizeof(g.b)) == 0)
            return true;
    }
    return false;
}

/* Tell the kernel and the other workers of the device: neither lib/net nor the engine does. */
static int neigh_tell_groups(struct neigh *n)
{
    struct device *d = n->device;
    struct io_addr groups[NET_GROUPS_MAX];
    struct wire_addr g;
    unsigned m = 0;
    int rc = 0;
    for (unsigned i = 0; device_group_get(n->device, i, &g); i++) {
        if (m == NET_GROUPS_MAX)
            rc = -ENOSPC;
        else
            memcpy(groups[m++].b, g.b, sizeof(g.b));
    }
    int one = 0;
    if (d->shared)
        one = team_set_groups(d, groups, m);
    else if (kernel_ip(n))
        one = d->io->ops->groups(d->io, groups, m);
    return one < 0 ? one : rc;
}

int neigh_groups(struct neigh *n, uint64_t now)
{
    struct wire_addr g;
    bool member;
    int rc = 0;
    if (n->device->uplink)
        return 0;
    if (kernel_ip(n))
        return neigh_tell_groups(n);
    if (n->device->shared)
        neigh_tell_groups(n);
    for (unsigned i = 0; net_group_get(n->port, i, &g, &member);) {
        const bool leaves = member && !neigh_attached(n, &g);
        if (leaves && n->device->shared && team_in_group(n->device->team, &g)) {
            net_group_forget(n->port, &g); /* the last member says that the device leaves */
            continue;                      /* the i-th group is another one now */
        }
        if (leaves)
            net_group_leave(n->port, &g, now);
        i++;
    }
    for (unsigned i = 0; device_group_get(n->device, i, &g); i++) {
        int one = net_group_join(n->port, &g, now);
        if (one < 0 && one != -EEXIST)
            rc = one;
    }
    n->dirty = true;
    return rc;
}

/* ---- queue pairs ---- */

static struct neigh_hop *neigh_hop_find(const struct neigh *n, const struct wire_addr *addr,
                                        unsigned *bucket)
{
    uint32_t h = 2166136261u;
    struct neigh_hop *hop;
    for (unsigned i = 0; i < sizeof(addr->b); i++)
        h = (h ^ addr->b[i]) * 16777619u;
    *bucket = (h ^ h >> 16) % NEIGH_BUCKETS;
    LIST_FOREACH(hop, &n->hops[*bucket], next)
    {
        if (memcmp(hop->addr.b, addr->b, sizeof(addr->b)) == 0)
            break;
    }
    return hop;
}

static struct neigh_hop *neigh_hop_get(struct neigh *n, const struct wire_addr *addr)
{
    unsigned bucket;
    struct neigh_hop *hop = neigh_hop_find(n, addr, &bucket);
    if (hop)
        return hop;
    hop = calloc(1, sizeof(*hop));
    if (!hop)
        return NULL;
    hop->addr = *addr;
    TAILQ_INIT(&hop->watchers);
    LIST_INSERT_HEAD(&n->hops[bucket], hop, next);
    return hop;
}

static void neigh_hop_free(struct neigh *n, struct neigh_hop *hop)
{
    if (hop->due)
        TAILQ_REMOVE(&n->due, hop, next_due);
    LIST_REMOVE(hop, next);
    free(hop);
}

static struct neigh_user *neigh_user_find(const struct neigh_hop *hop, const struct share *s)
{
    struct neigh_user *u;
    LIST_FOREACH(u, &hop->users, next)
    {
        if (u->share == s)
            break;
    }
    return u;
}

/* One more user of this hop. */
static int neigh_user_new(struct neigh_hop *hop, struct share *s, struct neigh_user **out)
{
    int rc = share_take(s, SHARE_NEIGH, 1);
    if (rc < 0)
        return rc;
    *out = calloc(1, sizeof(**out));
    if (!*out) {
        share_give(s, SHARE_NEIGH, 1);
        return -ENOMEM;
    }
    (*out)->share = share_hold(s);
    LIST_INSERT_HEAD(&hop->users, *out, next);
    return 0;
}

int neigh_hold(struct neigh *n, struct share *s, const struct wire_addr *dst,
               struct neigh_hop **hop)
{
    struct wire_addr addr;
    *hop = NULL;
    if (elsewhere(n) || gid_find(&n->device->gids, dst) >= 0)
        return 0; /* our own address: no neighbour to ask */
    if (net_next_hop(n->port, dst, &addr) < 0 || wire_addr_is_multicast(&addr))
        return 0;
    struct neigh_hop *h = neigh_hop_get(n, &addr);
    if (!h)
        return -ENOMEM;
    struct neigh_user *u = neigh_user_find(h, s);
    int rc = u ? 0 : neigh_user_new(h, s, &u);
    if (rc < 0) {
        if (LIST_EMPTY(&h->users))
            neigh_hop_free(n, h);
        return rc;
    }
    u->holds++;
    *hop = h;
    return 0;
}

void neigh_let_go(struct neigh *n, struct share *s, struct neigh_hop *hop)
{
    struct neigh_user *u = hop ? neigh_user_find(hop, s) : NULL;
    if (!u || --u->holds > 0)
        return;
    LIST_REMOVE(u, next);
    share_give(s, SHARE_NEIGH, 1);
    share_leave(s);
    free(u);
    if (LIST_EMPTY(&hop->users))
        neigh_hop_free(n, hop);
}

void neigh_watch(struct neigh *n, struct share *s, struct neigh_watcher *w, struct qp *qp,
                 struct neigh_hop *hop, uint64_t now)
{
    neigh_unwatch(n, s, w);
    if (!hop)
        return;
    int rc = net_watch(n->port, &hop->addr, now);
    n->dirty = true;
    if (rc == -ENETUNREACH || rc == -ENOBUFS) {
        neigh_let_go(n, s, hop);
        return;
    }
    w->qp = qp;
    w->hop = hop;
    w->change = hop->change;
    TAILQ_INSERT_TAIL(&hop->watchers, w, next);
}

void neigh_unwatch(struct neigh *n, struct share *s, struct neigh_watcher *w)
{
    struct neigh_hop *hop = w->hop;
    if (!hop)
        return;
    net_unwatch(n->port, &hop->addr);
    TAILQ_REMOVE(&hop->watchers, w, next);
    w->hop = NULL;
    neigh_let_go(n, s, hop);
}

bool neigh_attend(struct neigh *n, struct neigh_hop *hop, uint64_t now)
{
    if (!hop)
        return false;
    int rc = net_watch(n->port, &hop->addr, now);
    n->dirty = true;
    return rc != -ENETUNREACH && rc != -ENOBUFS;
}

void neigh_unattend(struct neigh *n, struct neigh_hop *hop)
{
    net_unwatch(n->port, &hop->addr);
}

/* Have the queue pairs of this neighbour send to its new MAC. */
static void neigh_moved(struct neigh *n, const struct net_change *c)
{
    unsigned bucket;
    struct neigh_hop *hop = neigh_hop_find(n, &c->addr, &bucket);
    if (!hop)
        return;
    memcpy(hop->mac, c->mac, 6);
    hop->change++;
    if (!hop->due)
        TAILQ_INSERT_TAIL(&n->due, hop, next_due);
    hop->due = true;
}

/* Give queue pairs their new MAC, a bounded number of them in one round (SHM-12). */
static void neigh_tell(struct neigh *n)
{
    struct budget_stats *job = n->device->stats.job;
    for (unsigned left = budget_of[BUDGET_neigh]; !TAILQ_EMPTY(&n->due);) {
        struct neigh_hop *hop = TAILQ_FIRST(&n->due);
        struct neigh_watcher *w = TAILQ_FIRST(&hop->watchers);
        if (!w || w->change == hop->change) {
            TAILQ_REMOVE(&n->due, hop, next_due);
            hop->due = false;
            continue;
        }
        if (left-- == 0) {
            budget_over(job, BUDGET_neigh);
            return;
        }
        engine_qp_set_dmac(w->qp, hop->mac);
        budget_spend(job, BUDGET_neigh, 1);
        w->change = hop->change;
        TAILQ_REMOVE(&hop->watchers, w, next);
        TAILQ_INSERT_TAIL(&hop->watchers, w, next);
    }
}

static void neigh_changes(struct neigh *n)
{
    struct net_change c;
    char text[64];
    while (net_next_change(n->port, &c)) {
        log_debug("neigh", "%s: %s is at %02x:%02x:%02x:%02x:%02x:%02x%s", n->device->name,
                  wire_addr_str(&c.addr, text, sizeof(text)), c.mac[0], c.mac[1], c.mac[2],
                  c.mac[3], c.mac[4], c.mac[5], c.reachable ? "" : " no more");
        if (c.reachable)
            neigh_moved(n, &c);
    }
    neigh_tell(n);
}

/* WIRE-34 */
static void neigh_conflicts(struct neigh *n)
{
    struct net_conflict c;
    char text[64];
    while (net_next_conflict(n->port, &c))
        log_warn("neigh",
                 "%s: another host, %02x:%02x:%02x:%02x:%02x:%02x, uses our address %s%s: give one "
                 "of the two another address",
                 n->device->name, c.mac[0], c.mac[1], c.mac[2], c.mac[3], c.mac[4], c.mac[5],
                 wire_addr_str(&c.addr, text, sizeof(text)),
                 c.defended ? "; we announce once that it is ours" : "");
}

/* ---- time ---- */

unsigned neigh_run(struct neigh *n, uint64_t now)
{
    bool due = net_deadline(n->port) <= now;
    bool look = n->kernel && (n->dirty || (n->nwaiters > 0 && now >= n->poll_at));
    bool late = n->nwaiters > 0 && now >= n->give_up_at;
    if (due)
        net_expire(n->port, now);
    if (look || (due && n->kernel))
        neigh_poll(n, now);
    if (due || n->dirty || look || late || !TAILQ_EMPTY(&n->due)) {
        n->dirty = true; /* net_tx may have more */
        neigh_changes(n);
        neigh_conflicts(n);
        neigh_waiters(n, true, now);
    } else if (n->to_try > 0) {
        neigh_waiters(n, false, now);
    }
    return due ? 1 : 0;
}

uint64_t neigh_deadline(const struct neigh *n)
{
    if (!TAILQ_EMPTY(&n->due) || n->to_try > 0)
        return 0;
    uint64_t at = net_deadline(n->port);

    if (n->kernel && n->nwaiters > 0 && n->poll_at < at)
        at = n->poll_at;
    return n->nwaiters > 0 && n->give_up_at < at ? n->give_up_at : at;
}

void neigh_counters(const struct neigh *n, struct neigh_counter out[NET_COUNTERS])
{
    for (unsigned i = 0; i < NET_COUNTERS; i++) {
        out[i].name = net_counter_name((enum net_counter)i);
        out[i].value = net_counter(n->port, (enum net_counter)i);
    }
}
