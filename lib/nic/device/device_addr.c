/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of a device that come and go while it runs (GID-04): queue pairs that send from an
 * address fall silent when it goes, go on when it comes back within the hold time, and to ERR
 * when it doesn't.
 */
#include "device_addr.h"

#include <string.h>

#include "context_ops.h"
#include "device.h"
#include "neigh.h"
#include "worker.h"

/* What to do with the queue pairs that send from an address. */
struct addr_walk {
    struct device *device;
    const struct wire_addr *ip;
    enum { ADDR_MUTE, ADDR_UNMUTE, ADDR_FAIL } act;
    uint64_t now;
};

static bool addr_visit(void *arg, struct qp *qp)
{
    const struct addr_walk *w = arg;
    struct engine *e = w->device->engine;
    struct engine_qp_params caps;
    struct engine_qp_attr a;

    /* Datagrams name their source one by one. */
    if (engine_qp_query(qp, &a, &caps) < 0 || caps.type == QP_UD || a.state < QPS_RTR ||
        a.state == QPS_ERR || memcmp(a.av.sgid.b, w->ip->b, sizeof(w->ip->b)) != 0)
        return true;
    if (w->act == ADDR_FAIL)
        engine_qp_fail(e, qp, "GID-04 the address it sends from is gone", w->now);
    else
        engine_qp_mute(e, qp, w->act == ADDR_MUTE);
    return true;
}

static struct device_gone *addr_gone(struct device *d, const struct wire_addr *ip)
{
    for (unsigned i = 0; i < d->ngone; i++) {
        if (memcmp(d->gone[i].ip.b, ip->b, sizeof(ip->b)) == 0)
            return &d->gone[i];
    }
    return NULL;
}

static void addr_forget(struct device *d, struct device_gone *g)
{
    *g = d->gone[--d->ngone];
}

void device_claim(struct device *d)
{
    struct io_addr addrs[GID_PAIRS];
    unsigned n = 0;

    if (!d->io->ops->claim)
        return;
    for (unsigned i = 0; i < GID_PAIRS; i++) {
        if (d->gids.pair[i].used)
            memcpy(addrs[n++].b, d->gids.pair[i].addr.b, sizeof(addrs[0].b));
    }
    d->io->ops->claim(d->io, addrs, n);
}

int device_addr_add(struct device *d, const struct config_addr *a)
{
    int index = gid_add(&d->gids, &a->ip);

    if (index < 0)
        return index;
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
        struct addr_walk w = {.device = d, .ip = &a->ip, .act = ADDR_UNMUTE};
        engine_qp_each(d->engine, addr_visit, &w);
        addr_forget(d, g);
    }
    device_claim(d);
    d->worker->context_ops->event(d, EVT_GID_CHANGE);
    return 0;
}

int device_addr_del(struct device *d, const struct wire_addr *ip, uint64_t now)
{
    struct addr_walk w = {.device = d, .ip = ip, .act = ADDR_MUTE, .now = now};
    int rc = gid_del(&d->gids, ip);

    if (rc < 0)
        return rc;
    engine_addr_del(d->engine, ip);
    neigh_addr_del(d->neigh, ip);
    device_claim(d);
    if (d->ngone < GID_PAIRS)
        d->gone[d->ngone++] = (struct device_gone){*ip, now + d->conf->addr_hold};
    else
        w.act = ADDR_FAIL; /* addresses go faster than we can remember */
    engine_qp_each(d->engine, addr_visit, &w);
    d->worker->context_ops->event(d, EVT_GID_CHANGE);
    return 0;
}

void device_addr_service(struct device *d, uint64_t now)
{
    for (unsigned i = d->ngone; i-- > 0;) {
        if (now < d->gone[i].until)
            continue;
        struct addr_walk w = {.device = d, .ip = &d->gone[i].ip, .act = ADDR_FAIL, .now = now};
        engine_qp_each(d->engine, addr_visit, &w);
        addr_forget(d, &d->gone[i]);
    }
}
