/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of ids: their own and their peers'. As with the kernel's rdma_cm, an id belongs to a
 * device once it has one of the device's addresses. An id without a device, bound to any address or
 * to a loopback one, listens on all devices. A loopback destination is the first device's own
 * address, and the program still sees the loopback address.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucma.h"

/* A program asks for the address of one of the daemon's own devices. This is the time-out for
 * asking the other devices for it. If a link joins two of the devices, the answer comes at once.
 * Without a link the device talks to itself. */
#define OTHERS_MS 300

static bool of_all_devices(const union ucma_addr *a)
{
    return ucma_addr_is_zero(a) || ucma_addr_is_loopback(a);
}

/* Bind liburnic's half (an IPv4 address as AF_INET), and learn the port. */
static int bind_leg(struct ucma_leg *leg, const union ucma_addr *addr, uint16_t *port)
{
    int err = urnic_bind_addr(leg->cm, &addr->sa);
    return err < 0 ? err : urnic_id_addr(leg->cm, NULL, port, NULL, NULL);
}

/* ---- bind ---- */

/* One half on each device, all with the first one's port number. */
static int bind_all(struct ucma_id *id, const union ucma_addr *addr)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    int n = ucma_dev_scan(devs), err = n < 0 ? n : n == 0 ? -ENODEV : 0;
    union ucma_addr at = *addr;
    if (err < 0)
        return err;
    id->legs = calloc((size_t)n, sizeof(*id->legs));
    if (id->legs == NULL)
        return -ENOMEM;
    for (int i = 0; i < n && err == 0; i++) {
        uint16_t port = 0;
        uint8_t gid[16];
        if (ucma_addr_is_loopback(addr)) {
            uint16_t wanted = ucma_addr_port(&at);
            if (ucma_dev_address(devs[i], addr->sa.sa_family, gid) < 0)
                continue; /* no peer can reach it: no address of this family */
            ucma_addr_from_gid(&at, gid, wanted);
        }
        err = ucma_leg_make(&id->legs[id->nlegs], devs[i], id);
        if (err < 0)
            break;
        err = bind_leg(&id->legs[id->nlegs++], &at, &port);
        if (err == 0)
            ucma_addr_set_port(&at, port);
    }
    if (err == 0 && id->nlegs == 0)
        err = -EADDRNOTAVAIL;
    if (err < 0) {
        ucma_legs_end(id);
        return err;
    }
    id->src = *addr;
    ucma_addr_set_port(&id->src, ucma_addr_port(&at));
    return 0;
}

static int bind_one(struct ucma_id *id, const union ucma_addr *addr)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    uint8_t gid[16];
    uint16_t port;
    int n = ucma_dev_scan(devs);
    if (n < 0)
        return n;
    ucma_addr_gid(addr, gid);
    struct ucma_dev *d = ucma_dev_by_address(devs, n, gid);
    if (d == NULL)
        return -EADDRNOTAVAIL;
    int err = ucma_leg_make(&id->leg, d, id);
    if (err == 0)
        err = bind_leg(&id->leg, addr, &port);
    if (err != 0) {
        ucma_leg_end(&id->leg);
        return err;
    }
    id->src = *addr;
    ucma_addr_set_port(&id->src, port);
    return 0;
}

static int bind_halves(struct ucma_id *id, const union ucma_addr *addr)
{
    return of_all_devices(addr) ? bind_all(id, addr) : bind_one(id, addr);
}

int ucma_bind(struct ucma_id *id, const union ucma_addr *addr)
{
    if (id->state != UCMA_IDLE)
        return -EINVAL;
    int err = bind_halves(id, addr);
    if (err == 0)
        id->state = UCMA_BOUND;
    return err;
}

/* ---- resolve ---- */

/* The devices that may reach the address, in order of their common prefix with it. The device that
 * has the address itself is last, so that two linked devices of a daemon use their link; *owned:
 * there is such a device. Returns the number of devices. */
static unsigned candidates(struct ucma_dev *to[UCMA_DEVICES], const union ucma_addr *dst,
                           bool *owned)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    struct urnic_gid gids[UCMA_GIDS];
    unsigned bits[UCMA_DEVICES], count = 0;
    uint8_t want[16];
    int n = ucma_dev_scan(devs);
    ucma_addr_gid(dst, want);
    struct ucma_dev *owner = ucma_dev_by_address(devs, n, want);
    for (int i = 0; i < n; i++) {
        if (devs[i] == owner)
            continue;
        int m = ucma_dev_gids(devs[i], gids);
        unsigned best = 0, at = count;
        for (int g = 0; g < m; g++) {
            unsigned common = ucma_common_bits(gids[g].raw, want);
            if (common > best)
                best = common;
        }
        for (; at > 0 && bits[at - 1] < best; at--) {
            bits[at] = bits[at - 1];
            to[at] = to[at - 1];
        }
        bits[at] = best;
        to[at] = devs[i];
        count++;
    }
    *owned = owner != NULL;
    if (owner != NULL)
        to[count++] = owner;
    return count;
}

/* Ask on one device. */
static int resolve_on(struct ucma_id *id, struct ucma_dev *d)
{
    const struct sockaddr *src = NULL;
    union ucma_addr any = {0};
    uint32_t timeout_ms = id->resolve.timeout_ms;
    int err = id->leg.dev == d ? 0 : ucma_leg_make(&id->leg, d, id);
    if (err < 0)
        return err;
    if (id->resolve.src.sa.sa_family != AF_UNSPEC && !of_all_devices(&id->resolve.src)) {
        src = &id->resolve.src.sa;
    } else if (ucma_addr_port(&id->src) != 0 && of_all_devices(&id->src)) {
        any.in.sin_family = AF_INET; /* the port alone */
        ucma_addr_set_port(&any, ucma_addr_port(&id->src));
        err = urnic_bind_addr(id->leg.cm, &any.sa);
    }
    if (id->resolve.owned && id->resolve.nleft > 0 && timeout_ms > OTHERS_MS)
        timeout_ms = OTHERS_MS;
    if (err == 0)
        err = urnic_resolve_addr(id->leg.cm, src, &id->resolve.dst.sa, (int)timeout_ms);
    if (err < 0)
        ucma_leg_end(&id->leg);
    return err;
}

/* Ask the next device. -ENODEV: none left. */
static int resolve_next(struct ucma_id *id)
{
    int err = -ENODEV;
    while (id->resolve.nleft > 0 && err < 0) {
        struct ucma_dev *d = id->resolve.left[0];
        id->resolve.nleft--;
        memmove(id->resolve.left, id->resolve.left + 1, id->resolve.nleft * sizeof(d));
        err = resolve_on(id, d);
    }
    return err;
}

/* The first device's own address stands for the loopback one. */
static int resolve_loopback(struct ucma_id *id)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    union ucma_addr *dst = &id->resolve.dst;
    uint16_t port = ucma_addr_port(dst);
    uint8_t gid[16];
    int n = id->leg.dev != NULL ? 1 : ucma_dev_scan(devs);
    if (id->leg.dev != NULL)
        devs[0] = id->leg.dev;
    for (int i = 0; i < n; i++) {
        if (ucma_dev_address(devs[i], dst->sa.sa_family, gid) < 0)
            continue;
        ucma_addr_loopback(&id->dst, dst->sa.sa_family, port);
        ucma_addr_from_gid(dst, gid, port);
        return resolve_on(id, devs[i]);
    }
    return n < 0 ? n : -EADDRNOTAVAIL;
}

static int resolve_start(struct ucma_id *id)
{
    if (of_all_devices(&id->resolve.dst))
        return resolve_loopback(id);
    if (id->leg.dev != NULL)
        return resolve_on(id, id->leg.dev);
    id->resolve.nleft = candidates(id->resolve.left, &id->resolve.dst, &id->resolve.owned);
    return resolve_next(id);
}

int ucma_resolve(struct ucma_id *id, const union ucma_addr *src, const union ucma_addr *dst,
                 uint32_t timeout_ms)
{
    const enum ucma_state before = id->state;
    int err = 0;
    if (id->state == UCMA_IDLE && src->sa.sa_family != AF_UNSPEC && !ucma_addr_is_zero(src))
        err = ucma_bind(id, src);
    if (err < 0)
        return err;
    if (id->state != UCMA_IDLE && id->state != UCMA_BOUND)
        return -EINVAL;
    if (id->src.sa.sa_family != AF_UNSPEC && id->src.sa.sa_family != dst->sa.sa_family &&
        !ucma_addr_is_zero(&id->src))
        err = -EINVAL;
    if (err == 0) {
        ucma_legs_end(id); /* one half is enough from now on */
        id->dst = *dst;
        id->resolve.src = id->src;
        id->resolve.dst = *dst;
        id->resolve.timeout_ms = timeout_ms;
        id->resolve.owned = false;
        err = resolve_start(id);
    }
    if (err < 0) {
        if (before == UCMA_IDLE) {
            ucma_leg_end(&id->leg);
            memset(&id->src, 0, sizeof(id->src));
        }
        id->state = before;
        return err;
    }
    id->state = UCMA_RESOLVING;
    return 0;
}

/* The id has an address now, which the program sees: a loopback address if the program asked for
 * one. */
static void resolved(struct ucma_id *id)
{
    uint8_t local[16];
    uint16_t port;
    id->state = UCMA_ADDR_RESOLVED;
    if (urnic_id_addr(id->leg.cm, local, &port, NULL, NULL) < 0)
        return;
    if (ucma_addr_is_loopback(&id->dst) && of_all_devices(&id->src))
        ucma_addr_loopback(&id->src, id->dst.sa.sa_family, port);
    else
        ucma_addr_from_gid(&id->src, local, port);
}

bool ucma_resolve_event(struct ucma_id *id, struct urnic_cm_event *ev)
{
    if (ev->event == URNIC_CM_ADDR_RESOLVED) {
        resolved(id);
        return true;
    }
    if (id->resolve.nleft > 0) {
        ucma_leg_end(&id->leg);
        if (resolve_next(id) == 0)
            return false;
    }
    if (of_all_devices(&id->src))
        ucma_leg_end(&id->leg);
    id->state = id->src.sa.sa_family == AF_UNSPEC ? UCMA_IDLE : UCMA_BOUND;
    return true;
}

/* ---- listening, and the path ---- */

int ucma_listen(struct ucma_id *id, int backlog)
{
    union ucma_addr any = {.in.sin_family = AF_INET};
    int err = id->state == UCMA_IDLE ? ucma_bind(id, &any) : 0;
    int family = id->afonly ? id->src.sa.sa_family : AF_UNSPEC;
    if (err < 0)
        return err;
    if (id->state != UCMA_BOUND)
        return -EINVAL;
    if (id->leg.dev == NULL && id->nlegs == 0) { /* resolving an address has failed */
        const union ucma_addr bound = id->src;
        err = bind_halves(id, &bound);
    }
    if (err == 0 && id->leg.dev != NULL)
        err = urnic_listen(id->leg.cm, backlog);
    for (unsigned i = 0; i < id->nlegs && err == 0; i++)
        err = urnic_listen_family(id->legs[i].cm, backlog, family);
    if (err < 0) {
        /* A half that listens already can only be ended, so the id is unbound again. */
        ucma_leg_end(&id->leg);
        ucma_legs_end(id);
        memset(&id->src, 0, sizeof(id->src));
        id->state = UCMA_IDLE;
        return err;
    }
    id->state = UCMA_LISTEN;
    return 0;
}

void ucma_path(const struct ucma_id *id, struct ucma_path *path)
{
    *path = (struct ucma_path){.tclass = id->tos};
    if (id->leg.dev == NULL)
        return;
    path->mtu = (uint8_t)id->leg.dev->port.active_mtu;
    if (id->leg.cm == NULL || urnic_id_addr(id->leg.cm, path->sgid, NULL, path->dgid, NULL) < 0)
        ucma_addr_gid(&id->src, path->sgid);
    path->resolved =
        id->state == UCMA_ROUTE_RESOLVED || id->state == UCMA_CONNECT || id->state == UCMA_REQUEST;
}
