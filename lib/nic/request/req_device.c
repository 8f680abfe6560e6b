/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about devices, and opening one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "quota.h"
#include "request.h"
#include "team.h"

#define FEATURES                                                                                   \
    (IPC_FEAT_CM | IPC_FEAT_SRQ | IPC_FEAT_MW | IPC_FEAT_UD | IPC_FEAT_DRIVE | IPC_FEAT_REG_MR |   \
     IPC_FEAT_CLASS | IPC_FEAT_UNMAP)

static int req_hello(struct request *r)
{
    struct ipc_hello theirs;
    memcpy(&theirs, r->in, sizeof(theirs));
    struct ipc_hello *ours = request_out(r, struct ipc_hello);
    ipc_hello_fill(ours, FEATURES & theirs.features);
    r->client->greeted = true;
    r->client->minor = theirs.minor;
    r->client->qslabs.unmaps = (theirs.features & IPC_FEAT_UNMAP) != 0;
    return 0;
}

static int req_version(struct request *r)
{
    struct ipc_version *out = request_out(r, struct ipc_version);
    snprintf(out->text, sizeof(out->text), "urnicd " URNIC_VERSION);
    out->pid = (uint32_t)getpid();
    out->workers = r->nic->nworker;
    out->uptime_ns = clock_now() - r->nic->started_at;
    return 0;
}

static void device_fill(const struct device *d, struct ipc_device *out)
{
    memcpy(out->name, d->name, sizeof(d->name));
    out->guid = d->guid;
    out->index = d->index;
    out->workers = d->team->n;
}

static int req_device_list(struct request *r)
{
    const struct nic *u = r->nic;
    size_t len = sizeof(struct ipc_device_list) + u->ndevice * sizeof(struct ipc_device);
    struct ipc_device_list *out = request_reply(r, len);
    out->count = u->ndevice;
    for (unsigned i = 0; i < u->ndevice; i++)
        device_fill(u->device[i], &out->dev[i]);
    return 0;
}

static int req_device_query(struct request *r)
{
    struct ipc_device_attr *out = request_out(r, struct ipc_device_attr);
    device_fill(r->device, &out->dev);
    snprintf(out->fw_ver, sizeof(out->fw_ver), URNIC_VERSION);
    snprintf(out->port_spec, sizeof(out->port_spec), "%.127s", r->device->conf->port);
    out->max_mr_size = LIMIT_MR_SIZE;
    /* The limits of one context, for objects that count by context. */
    out->max_qp = QUOTA_QP;
    out->max_qp_wr = LIMIT_QP_WR;
    out->max_send_sge = LIMIT_SGE;
    out->max_recv_sge = LIMIT_SGE;
    out->max_inline = LIMIT_INLINE;
    out->max_cq = QUOTA_CQ;
    out->max_cqe = LIMIT_CQE;
    out->max_mr = QUOTA_MR;
    out->max_pd = QUOTA_PD;
    out->max_mw = QUOTA_MW;
    out->max_ah = LIMIT_QP;
    out->max_srq = QUOTA_SRQ;
    out->max_srq_wr = LIMIT_SRQ_WR;
    out->max_srq_sge = LIMIT_SGE;
    out->max_qp_rd_atom = LIMIT_RD_ATOM;
    out->max_qp_init_rd_atom = LIMIT_RD_ATOM;
    out->max_mcast_grp = LIMIT_MCAST;
    out->max_mcast_qp_attach = LIMIT_MCAST;
    out->max_pkeys = 1;
    out->local_ca_ack_delay = 8;
    out->atomic_cap = 2; /* IBV_ATOMIC_GLOB (ATM-05) */
    out->num_comp_vectors = 1;
    out->cap_flags = IPC_CAP_FLUSH_GLOBAL | IPC_CAP_ATOMIC_WRITE;
    return 0;
}

/* A violation counter as a port attribute: it stays at its largest value (KEY-03, KEY-06). */
static void violations(uint16_t *sum, const struct device *d, enum engine_counter which)
{
    uint64_t n = *sum + engine_counters(d->engine)[which];
    *sum = n < UINT16_MAX ? (uint16_t)n : UINT16_MAX;
}

static int req_port_query(struct request *r)
{
    const struct device *d = r->device;
    struct ipc_port_attr *out = (struct ipc_port_attr *)(void *)r->out;
    struct io_link link;
    if (d->member == 0)
        out = request_out(r, struct ipc_port_attr);
    violations(&out->bad_pkey_cntr, d, ENGINE_C_rx_bad_pkey);
    violations(&out->qkey_viol_cntr, d, ENGINE_C_rx_bad_qkey);
    if (d->member > 0)
        return 0;
    d->io->ops->link(d->io, &link);
    out->state = link.up ? IPC_PORT_ACTIVE : IPC_PORT_DOWN;
    out->max_mtu = IPC_MTU_4096;
    out->active_mtu = d->path_mtu;
    out->gid_tbl_len = GID_ENTRIES;
    out->pkey_tbl_len = 1;
    out->max_msg_sz = 1u << 31;
    out->ifindex = d->ifindex;
    out->mtu = d->ip_mtu;
    out->line_rate = d->io->caps.rate_bps;
    memcpy(out->mac, d->mac, 6);
    out->vlan = d->conf->vlan;
    out->dscp = d->conf->dscp;
    out->pkeys[0] = WIRE_PKEY_DEFAULT;
    return 0;
}

static int req_gid_table(struct request *r)
{
    struct ipc_gid_table *out =
        request_reply(r, sizeof(*out) + (size_t)GID_ENTRIES * sizeof(struct ipc_gid));
    for (unsigned i = 0; i < GID_ENTRIES; i++) {
        const struct gid_entry *e = gid_at(&r->device->gids, i);
        if (!e)
            continue;
        struct ipc_gid *g = &out->gid[out->count++];
        memcpy(g->gid, e->addr.b, 16);
        g->index = i;
        g->type = i % 2 == 0 ? IPC_GID_V1 : IPC_GID_V2;
    }
    r->out_len = sizeof(*out) + out->count * sizeof(struct ipc_gid);
    return 0;
}

static int ctx_open_resources(struct request *r, struct context *ctx, uint64_t *slab_size)
{
    size_t size = sizeof(struct ipc_doorbell) + QUOTA_QUEUES * sizeof(uint32_t);
    int slab_fd, kick = -1, async = -1;
    int rc = memory_slab("urnic-doorbells", size, &ctx->doorbell_mem, &slab_fd);
    if (rc < 0)
        return rc;
    *slab_size = ctx->doorbell_mem->len;
    ctx->doorbell = (struct ipc_doorbell *)(void *)ctx->doorbell_mem->base;
    request_reply_fd(r, slab_fd, false);
    request_reply_fd(r, ctx->worker->page_fd, false);
    rc = socket_pair(SOCK_STREAM, &ctx->kick_fd, &kick);
    if (rc < 0)
        return rc;
    request_reply_fd(r, kick, true);
    rc = socket_pair(SOCK_SEQPACKET, &ctx->async_fd, &async);
    if (rc < 0)
        return rc;
    request_reply_fd(r, async, true);
    return 0;
}

static int req_ctx_open(struct request *r)
{
    struct client *c = r->client;
    const struct ipc_ctx_open *in = request_in(r, struct ipc_ctx_open);
    char name[IPC_NAME_MAX];
    if (c->open)
        return -EISCONN;
    memcpy(name, in->device, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    struct device *dev = nic_device(r->nic, name);
    if (!dev)
        return -ENODEV;
    dev = in->worker >= 0 ? team_on_worker(dev->team, (unsigned)in->worker) : client_place(c, dev);
    if (!dev)
        return -EINVAL;
    int rc = client_open(c, dev);
    if (rc < 0)
        return rc;
    struct ipc_ctx_opened *out = request_out(r, struct ipc_ctx_opened);
    rc = ctx_open_resources(r, &c->ctx, &out->slab_size);
    if (rc < 0) {
        client_unopen(c);
        return rc;
    }
    out->worker_size = WORKER_PAGE_SIZE;
    out->doorbells = QUOTA_QUEUES;
    out->worker = c->ctx.worker->index;
    out->device_index = dev->index;
    client_start(c);
    return 0;
}

const struct request_type request_device[IPC_TYPE_MAX] = {
    [IPC_HELLO] = {REQ_CONTROL, false, WHOLE(ipc_hello), .run = req_hello},
    [IPC_VERSION] = {REQ_CONTROL, false, PLAIN, .run = req_version},
    [IPC_DEVICE_LIST] = {REQ_CONTROL, false, PLAIN, .run = req_device_list},
    [IPC_DEVICE_QUERY] = {REQ_DEVICE, false, BY_DEVICE, .run = req_device_query},
    [IPC_PORT_QUERY] = {REQ_MEMBERS, false, BY_DEVICE, .run = req_port_query},
    [IPC_GID_TABLE] = {REQ_DEVICE, false, BY_DEVICE, .run = req_gid_table},
    [IPC_CTX_OPEN] = {REQ_CONTROL, false, SINCE(ipc_ctx_open, worker), .run = req_ctx_open,
                      .fds = true},
};
