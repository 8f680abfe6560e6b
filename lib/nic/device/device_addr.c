/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of a device that come and go while it runs (GID-04). Queue pairs that send from an
 * address fall silent when it goes. They continue if it comes back within the hold time, and go to
 * ERR if it doesn't.
 */
#include "device_addr.h"

#include <string.h>

#include "context_ops.h"
#include "device.h"
#include "device_switch.h"
#include "log.h"
#include "neigh.h"
#include "team.h"
#include "uplink.h"
#include "worker.h"

struct addr_pass {
    struct device *device;
    uint64_t now;
};

static struct device_gone *addr_gone(struct device *d, const struct wire_addr *ip)
{
    for (unsigned i = 0; i < d->ngone; i++) {
        if (memcmp(d->gone[i].ip.b, ip->b, sizeof(ip->b)) == 0)
            return &d->gone[i];
    }
    return NULL;
}

/* A queue pair's state follows from the current addresses, so a change during a pass starts the
 * pass anew. */
static bool addr_follow(void *arg, struct qp *qp)
{
    const struct addr_pass *p = arg;
    struct device *d = p->device;
    struct engine_qp_params caps;
    struct engine_qp_attr a;
    budget_spend(d->stats.job, BUDGET_addr, 1);
    /* Datagrams name their source one by one. */
    if (engine_qp_query(qp, &a, &caps) < 0 || caps.type == QP_UD || a.state < QPS_RTR ||
        a.state == QPS_ERR)
        return true;
    bool here = gid_find(&d->gids, &a.av.sgid) >= 0;
    if (!here && !addr_gone(d, &a.av.sgid))
        engine_qp_fail(d->engine, qp, "GID-04 the address it sends from is gone", p->now);
    else if (engine_qp_is_mute(qp) == here)
        engine_qp_mute(d->engine, qp, !here);
    return true;
}

/* Do the next part of a pass. */
static void addr_part(struct device *d, uint32_t at, uint64_t now)
{
    struct addr_pass p = {.device = d, .now = now};
    d->addr_at = engine_qp_walk(d->engine, at, budget_of[BUDGET_addr], addr_follow, &p);
    if (d->addr_at)
        budget_over(d->stats.job, BUDGET_addr);
}

bool device_addr_follows(const struct device *d)
{
    return d->addr_at != 0;
}

void device_addr_run(struct device *d, uint64_t now)
{
    if (d->addr_at)
        addr_part(d, d->addr_at, now);
}

static void addr_forget(struct device *d, struct device_gone *g)
{
    *g = d->gone[--d->ngone];
}

void device_claim(struct device *d)
{
    struct io_addr addrs[GID_PAIRS];
    unsigned n = 0;
    device_switch_follow(d);
    if (!d->io->ops->claim)
        return;
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        if (d->gids.pair[i].used)
            memcpy(addrs[n++].b, d->gids.pair[i].addr.b, sizeof(addrs[0].b));
    }
    d->io->ops->claim(d->io, addrs, n);
}

/* `index`: of its v1 entry, or the error of gid_add. */
static int device_addr_add_at(struct device *d, const struct config_addr *a, int index)
{
    if (index < 0)
        return index;
    d->gids.pair[index / 2] = (struct gid_entry){.addr = a->ip, .used = true};
    int rc = engine_addr_add(d->engine, &a->ip);
    if (rc == 0) {
        rc = neigh_addr_add(d->neigh, a);
        if (rc < 0)
            engine_addr_del(d->engine, &a->ip);
    }
    if (rc < 0) {
        gid_del(&d->gids, &a->ip);
        return rc;
    }
    struct device_gone *g = addr_gone(d, &a->ip);
    if (g) {
        addr_forget(d, g);
        addr_part(d, 0, d->worker->now);
    }
    device_claim(d);
    d->worker->context_ops->event(d, EVT_GID_CHANGE);
    return 0;
}

int device_addr_add(struct device *d, const struct config_addr *a)
{
    return device_addr_add_at(d, a, gid_add(&d->gids, &a->ip));
}

int device_addr_del(struct device *d, const struct wire_addr *ip, uint64_t now)
{
    int rc = gid_del(&d->gids, ip);
    if (rc < 0)
        return rc;
    engine_addr_del(d->engine, ip);
    neigh_addr_del(d->neigh, ip);
    device_claim(d);
    if (d->ngone < GID_PAIRS)
        d->gone[d->ngone++] = (struct device_gone){*ip, now + d->conf->addr_hold};
    /* else the list of removed addresses is full: this one's queue pairs fail at once */
    addr_part(d, 0, now);
    d->worker->context_ops->event(d, EVT_GID_CHANGE);
    return 0;
}

void device_addr_service(struct device *d, uint64_t now)
{
    unsigned before = d->ngone;
    for (unsigned i = d->ngone; i-- > 0;) {
        if (now >= d->gone[i].until)
            addr_forget(d, &d->gone[i]);
    }
    if (d->ngone < before)
        addr_part(d, 0, now);
}

static void addr_tell(const struct device *d, const struct wire_addr *ip, const char *what)
{
    char text[64];
    log_info("port", "%s: %s %s", d->name, wire_addr_str(ip, text, sizeof(text)), what);
}

/* An address has the same index on all members, in whatever order they learn it: member 0 decides.
 * For a program's device the daemon's device decides. */
static void addr_follow_table(struct device *d, const struct gid_table *gids)
{
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        const struct gid_entry *e = &gids->pair[i];
        const struct wire_addr ip = d->gids.pair[i].addr;
        if (d->gids.pair[i].used && (!e->used || memcmp(e->addr.b, ip.b, sizeof(ip.b)) != 0))
            device_addr_del(d, &ip, d->worker->now);
    }
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        const struct config_addr a = {.ip = gids->pair[i].addr};
        if (gids->pair[i].used && !d->gids.pair[i].used)
            device_addr_add_at(d, &a, (int)(2 * i));
    }
}

void device_addr_follow(struct device *d)
{
    struct team_port port;
    struct gid_table gids;
    if (d->uplink) {
        uplink_gids(d->uplink, &gids);
        addr_follow_table(d, &gids);
        return;
    }
    if (d->member > 0) {
        team_port(d->team, &port);
        addr_follow_table(d, &port.gids);
        return;
    }
    struct io_addr now[GID_PAIRS];
    unsigned n = d->io->ops->addrs(d->io, now, GID_PAIRS);
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        const struct wire_addr ip = d->gids.pair[i].addr;
        bool here = !d->gids.pair[i].used;
        for (unsigned k = 0; k < n && !here; k++)
            here = memcmp(now[k].b, ip.b, sizeof(ip.b)) == 0;
        if (!here && device_addr_del(d, &ip, d->worker->now) == 0)
            addr_tell(d, &ip, "is gone from the interface");
    }
    for (unsigned k = 0; k < n; k++) {
        struct config_addr a = {.prefix = 0};
        memcpy(a.ip.b, now[k].b, sizeof(a.ip.b));
        if (gid_find(&d->gids, &a.ip) < 0 && device_addr_add(d, &a) >= 0)
            addr_tell(d, &a.ip, "is an address of the device");
    }
}
