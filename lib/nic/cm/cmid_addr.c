/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients' connection ids: their addresses, their destinations, and listeners.
 */
#include "cmid_addr.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "client.h"
#include "clock.h"
#include "cmgr_priv.h"
#include "cmid_channel.h"
#include "device.h"
#include "services.h"

#define CMID_RESOLVE_MS 2000u
#define CMID_PORT_FIRST 49152u /* of the unregistered ones (RFC 6335) */

static void cmid_simple(struct cm_id *id, enum ipc_cm_event_type type, int status)
{
    const struct ipc_cm_event ev = {
        .event = type,
        .status = status,
        .ref = id->ref,
        .id = id->handle,
        .src = id->src,
        .dst = id->dst,
    };
    cmid_event(id, &ev);
}

static bool sockaddr_any(const struct ipc_sockaddr *a)
{
    static const uint8_t none[16];
    /* "any" is :: or, mapped, 0.0.0.0 */
    return memcmp(a->ip, none, 16) == 0 ||
           (memcmp(a->ip, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF", 12) == 0 &&
            memcmp(a->ip + 12, none, 4) == 0);
}

/* On any worker of the device. */
static bool cmid_listens(const struct cm_id *id, uint16_t port)
{
    const struct cmgr *m = cmgr_of(id->device);
    return m->services ? services_has(m->services, cm_service_id(id->ps, port))
                       : cm_listens(m->cm, id->ps, port);
}

/* A port without a listener. Steps are random, too, so that no attacker can lead the search into a
 * row of taken ports, each of which costs a look at all listeners. */
static uint16_t cmid_port(const struct cm_id *id)
{
    const unsigned ports = 65536u - CMID_PORT_FIRST;
    uint16_t r[2] = {0}, port;
    _Static_assert(((65536u - CMID_PORT_FIRST) & (65535u - CMID_PORT_FIRST)) == 0,
                   "an odd step reaches all of a power of two");
    (void)!getrandom(r, sizeof(r), 0);
    for (unsigned i = 0; i < ports; i++) {
        port = (uint16_t)(CMID_PORT_FIRST + (r[0] + i * (r[1] | 1u)) % ports);
        if (!cmid_listens(id, port))
            break;
    }
    return port;
}

int cmgr_bind(struct cm_id *id, const struct ipc_sockaddr *src)
{
    struct wire_addr a;
    if (id->state != CM_ID_IDLE)
        return -EINVAL;
    memcpy(a.b, src->ip, 16);
    if (!sockaddr_any(src) && gid_find(&id->device->gids, &a) < 0)
        return -EADDRNOTAVAIL;
    id->src = *src;
    if (id->src.port == 0)
        id->src.port = cmid_port(id);
    id->state = CM_ID_BOUND;
    return 0;
}

static void cmid_resolved(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t now)
{
    struct cm_id *id = (struct cm_id *)(void *)((char *)w - offsetof(struct cm_id, waiter));
    (void)now;
    id->resolving = false;
    if (status == 0) {
        memcpy(id->dmac, mac, 6);
        id->state = CM_ID_RESOLVED;
        cmid_simple(id, id->with_route ? IPC_CM_ROUTE_RESOLVED : IPC_CM_ADDR_RESOLVED, 0);
    } else {
        if (id->src_chosen) /* another destination may need another one */
            memset(id->src.ip, 0, sizeof(id->src.ip));
        cmid_simple(id, IPC_CM_ADDR_ERROR, status);
    }
}

int cmgr_resolve(struct cm_id *id, const struct ipc_cm_addr *req, uint64_t now)
{
    const struct ipc_sockaddr *dst = &req->dst;
    struct ipc_sockaddr src = sockaddr_any(&req->src) ? id->src : req->src;
    struct wire_addr remote, local;
    if ((id->state != CM_ID_IDLE && id->state != CM_ID_BOUND) || id->resolving)
        return -EINVAL;
    memcpy(remote.b, dst->ip, 16);
    /* A datagram's id may go on to join the group; to a group there is no connection. */
    if (id->ps != IPC_PS_UDP && wire_addr_is_multicast(&remote))
        return -EINVAL;
    bool choose = sockaddr_any(&src);
    if (choose) {
        int rc = neigh_source(id->device->neigh, &remote, &local);
        if (rc < 0) {
            cmid_simple(id, IPC_CM_ADDR_ERROR, rc);
            return 0;
        }
        memcpy(src.ip, local.b, 16);
    }
    memcpy(local.b, src.ip, 16);
    if (gid_find(&id->device->gids, &local) < 0)
        return -EADDRNOTAVAIL;
    if (wire_addr_is_v4(&local) != wire_addr_is_v4(&remote))
        return -EINVAL;
    id->src = src;
    id->src_chosen = choose;
    if (id->src.port == 0)
        id->src.port = cmid_port(id);
    id->dst = *dst;
    id->with_route = (req->flags & IPC_CM_F_ROUTE) != 0;
    id->resolving = true;
    id->waiter =
        (struct neigh_waiter){.dst = remote, .share = id->client->of_device, .done = cmid_resolved};
    int rc = neigh_wait(id->device->neigh, &id->waiter,
                        (req->timeout_ms ? req->timeout_ms : CMID_RESOLVE_MS) * CLOCK_MS, now);
    if (rc < 0) {
        id->resolving = false;
        if (choose)
            memset(id->src.ip, 0, sizeof(id->src.ip));
    }
    return rc;
}

int cmgr_route(struct cm_id *id)
{
    if (id->state != CM_ID_RESOLVED)
        return -EINVAL;
    cmid_simple(id, IPC_CM_ROUTE_RESOLVED, 0);
    return 0;
}

int cmgr_listen(struct cm_id *id, uint32_t backlog, uint32_t family)
{
    static const struct ipc_sockaddr any;
    struct wire_addr local = {0};
    int rc = id->state == CM_ID_IDLE ? cmgr_bind(id, &any) : 0;
    if (rc < 0)
        return rc;
    if (id->state != CM_ID_BOUND || (family != 0 && family != 4 && family != 6))
        return -EINVAL;
    bool all = sockaddr_any(&id->src);
    if (!all)
        memcpy(local.b, id->src.ip, 16);
    rc = share_take(id->client->of_device, SHARE_LISTENER, 1);
    if (rc < 0)
        return rc;
    struct cm *cm = cmgr_of(id->device)->cm;
    const struct service s = {.id = cm_service_id(id->ps, id->src.port),
                              .addr = local,
                              .any = all,
                              .family = family,
                              .member = id->device->member};
    if (cmgr_of(id->device)->services) {
        rc = services_add(cmgr_of(id->device)->services, &s, id);
        if (rc < 0) {
            share_give(id->client->of_device, SHARE_LISTENER, 1);
            return rc;
        }
    }
    rc = all ? cm_listen_family(cm, id->ps, family, id->src.port, backlog, id, &id->listener)
             : cm_listen(cm, id->ps, &local, id->src.port, backlog, id, &id->listener);
    if (rc == 0) {
        id->state = CM_ID_LISTEN;
        return 0;
    }
    if (cmgr_of(id->device)->services)
        services_del(cmgr_of(id->device)->services, id);
    share_give(id->client->of_device, SHARE_LISTENER, 1);
    return rc;
}
