/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multicast by connection ids: an id's datagram queue pair joins a group. Ethernet has no subnet
 * manager: a group is its IP address, and only the switches learn of a member.
 */
#include "cmid_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_qp.h"
#include "cmgr_priv.h"
#include "cmid_channel.h"
#include "cmid_qp.h"
#include "device.h"
#include "engine_channel.h"

#define CMID_GROUPS 16u /* of one id */

static int cmid_group_find(const struct cm_id *id, const struct wire_addr *group)
{
    for (unsigned i = 0; i < id->ngroups; i++) {
        if (memcmp(id->groups[i].b, group->b, sizeof(group->b)) == 0)
            return (int)i;
    }
    return -1;
}

int cmgr_join(struct cm_id *id, const struct ipc_sockaddr *group, uint32_t qpn, uint64_t now)
{
    struct client_qp *qp = cmid_qp(id);
    const bool apart = !qp && engine_channel_has(id->client, qpn);
    struct ipc_cm_event ev = {.event = IPC_CM_MULTICAST_JOIN, .ref = id->ref, .id = id->handle};
    struct wire_addr g, local;
    memcpy(g.b, group->ip, sizeof(g.b));
    if (id->ps != IPC_PS_UDP || (qp ? qp->type != QP_UD : !apart) || !wire_addr_is_multicast(&g))
        return -EINVAL;
    if (cmid_group_find(id, &g) >= 0)
        return -EADDRINUSE;
    memcpy(local.b, id->src.ip, sizeof(local.b));
    int index = gid_find(&id->device->gids, &local);
    /* Not bound to an address: one of the group's family. */
    if (index < 0 && neigh_source(id->device->neigh, &g, &local) == 0)
        index = gid_find(&id->device->gids, &local);
    if (index < 0)
        return -EADDRNOTAVAIL;
    if (id->ngroups == CMID_GROUPS)
        return -ENOSPC;
    struct wire_addr *grown = realloc(id->groups, (id->ngroups + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    id->groups = grown;
    int rc = apart ? 0 : client_qp_attach(id->client, qp, &g, now);
    if (rc < 0)
        return rc;
    id->groups[id->ngroups++] = g;
    ev.src = id->src;
    ev.dst = *group;
    ev.param.qpn = WIRE_QPN_MULTICAST;
    ev.param.qkey = CMID_UD_QKEY;
    memcpy(ev.av.dgid, g.b, sizeof(ev.av.dgid));
    wire_mcast_mac(&g, ev.av.dmac);
    ev.av.hop_limit = 1;
    ev.av.sgid_index = (uint16_t)index;
    cmid_event(id, &ev);
    return 0;
}

unsigned cmgr_groups(const struct cm_id *id)
{
    return id->ngroups;
}

int cmgr_leave(struct cm_id *id, const struct ipc_sockaddr *group, uint64_t now)
{
    struct client_qp *qp = cmid_qp(id);
    struct wire_addr g;
    memcpy(g.b, group->ip, sizeof(g.b));
    int i = cmid_group_find(id, &g);
    if (i < 0)
        return -EINVAL;
    id->groups[i] = id->groups[--id->ngroups];
    if (qp) /* else it has left with the queue pair */
        client_qp_detach(id->client, qp, &g, now);
    return 0;
}

void cmid_leave_all(struct cm_id *id, uint64_t now)
{
    struct client_qp *qp = cmid_qp(id);
    while (id->ngroups > 0) {
        id->ngroups--;
        if (qp)
            client_qp_detach(id->client, qp, &id->groups[id->ngroups], now);
    }
    free(id->groups);
    id->groups = NULL;
}
