/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices and contexts: finding, opening, asking, closing; and whether the daemon still lives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_engine.h"

#define GIDS_MAX 256 /* of a port */

static void device_from(struct urnic_device *dev, const struct ipc_device *d)
{
    memcpy(dev->name, d->name, sizeof(dev->name));
    dev->name[sizeof(dev->name) - 1] = '\0';
    dev->guid = d->guid;
    dev->index = d->index;
}

/* The list over an open connection. */
static int list_devices(struct client_conn *c, struct urnic_device **list, int *n)
{
    _Alignas(8) uint8_t buf[IPC_MSG_MAX];
    struct ipc_hdr req = {.type = IPC_DEVICE_LIST};
    ssize_t len = client_conn_raw(c, &req, sizeof(req), NULL, 0, buf, sizeof(buf), NULL, NULL);
    if (len < 0)
        return (int)len;
    const struct ipc_device_list *reply = (const void *)buf;
    if ((size_t)len < sizeof(*reply) ||
        (size_t)len < sizeof(*reply) + reply->count * sizeof(reply->dev[0]))
        return -EPROTO;
    *list = calloc(reply->count + 1, sizeof(**list));
    if (*list == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < reply->count; i++)
        device_from(&(*list)[i], &reply->dev[i]);
    *n = (int)reply->count;
    return 0;
}

int urnic_get_device_list(struct urnic_device **list, int *n)
{
    struct client_conn c;
    int err = client_conn_open(&c, NULL);
    *n = 0;
    *list = NULL;
    if (err == 0) {
        err = list_devices(&c, list, n);
        client_conn_close(&c);
    }
    return err == -ENODEV ? 0 : err;
}

void urnic_free_device_list(struct urnic_device *list)
{
    free(list);
}

/* Queue memory stays out of children: two processes posting on one queue would corrupt it. */
static void *map_shared(const struct urnic_context *ctx, int fd, size_t size, int prot)
{
    void *p = client_map(ctx, fd, size, prot);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, size, MADV_DONTFORK);
    return p;
}

/* Map the opened context, and make its views. */
static int use_context(struct urnic_context *ctx, const struct ipc_ctx_opened *opened,
                       const int *fds, unsigned nfds)
{
    static const struct ipc_life unknown;
    uint64_t need = offsetof(struct ipc_doorbell, slot) + opened->doorbells * sizeof(uint32_t);
    bool sane = nfds == 4 && opened->doorbells != 0 &&
                (opened->doorbells & (opened->doorbells - 1)) == 0 && opened->slab_size >= need &&
                opened->worker_size >= sizeof(struct ipc_worker);
    if (ctx->life == NULL)
        ctx->life = &unknown;
    if (sane) {
        ctx->db_size = opened->slab_size;
        ctx->db_slots = opened->doorbells;
        ctx->worker_size = opened->worker_size;
        ctx->db = map_shared(ctx, fds[0], ctx->db_size, PROT_READ | PROT_WRITE);
        ctx->worker = map_shared(ctx, fds[1], ctx->worker_size, PROT_READ);
        if (ctx->daemon == NULL && ctx->worker != NULL &&
            ctx->worker_size >= sizeof(*ctx->worker) + sizeof(*ctx->life))
            ctx->life = (const struct ipc_life *)(const void *)(ctx->worker + 1);
        ctx->kick_fd = client_fd(fds[2]);
        ctx->async.fd = client_fd(fds[3]);
        ctx->kick_mark = client_mark(ctx->kick_fd);
        ctx->async.mark = client_mark(ctx->async.fd);
    }
    for (unsigned i = 0; i < nfds; i++)
        if (!sane || i < 2)
            client_close_fds(fds, i, i + 1);
    if (!sane)
        return -EPROTO;
    return ctx->db != NULL && ctx->worker != NULL ? 0 : -ENOMEM;
}

/* Keep the parts of the daemon's context that are needed next to the engine's context. */
static int keep_daemon(struct urnic_context *ctx, const struct ipc_ctx_opened *reply,
                       const int *fds)
{
    ctx->daemon_size = reply->worker_size;
    ctx->daemon = map_shared(ctx, fds[1], ctx->daemon_size, PROT_READ);
    if (ctx->daemon == NULL)
        return -ENOMEM;
    if (ctx->daemon_size >= sizeof(*ctx->daemon) + sizeof(*ctx->life))
        ctx->life = (const struct ipc_life *)(const void *)(ctx->daemon + 1);
    return 0;
}

/* Open the engine in this program. Its context is used for all but the check that the daemon lives.
 */
static int open_engine(struct urnic_context *ctx, const char *device, const char *options)
{
    struct ipc_ctx_open req = {.hdr.type = IPC_CTX_OPEN, .worker = -1};
    struct ipc_ctx_opened reply = {0};
    int fds[IPC_FD_MAX] = {0};
    unsigned nfds = IPC_FD_MAX;
    int err = client_engine_open(&ctx->conn, device, options);
    if (err < 0)
        return err;
    memcpy(req.device, device, strlen(device));
    ssize_t n = client_conn_engine(&ctx->conn, &req, sizeof(req), NULL, 0, &reply, sizeof(reply),
                                   fds, &nfds);
    err = n < 0 ? (int)n : use_context(ctx, &reply, fds, nfds);
    if (err == 0)
        client_engine_join(ctx);
    return err;
}

static int open_device(struct urnic_context *ctx, const char *device, int worker)
{
    struct ipc_ctx_open req = {.hdr.type = IPC_CTX_OPEN, .worker = worker};
    struct ipc_ctx_opened reply = {0};
    int fds[IPC_FD_MAX] = {0};
    unsigned nfds = IPC_FD_MAX;
    char name[IPC_NAME_MAX];
    struct urnic_device *list = NULL;
    if (device == NULL) {
        int n, err = list_devices(&ctx->conn, &list, &n);
        if (err < 0)
            return err;
        if (n == 0) {
            free(list);
            return -ENODEV;
        }
        device = list[0].name;
    }
    size_t len = strlen(device);
    if (len < sizeof(req.device))
        memcpy(req.device, device, len);
    free(list);
    if (len >= sizeof(req.device))
        return -ENODEV;

    int err = 0;
    const char *options = ctx->conn.sock >= 0 ? client_engine_wanted(ctx->place, &err) : NULL;
    if (err == 0)
        err = client_conn_call(&ctx->conn, &req, sizeof(req), &reply, sizeof(reply), fds, &nfds);
    if (err < 0)
        return err;
    if (options == NULL)
        return use_context(ctx, &reply, fds, nfds);
    err = nfds == 4 ? keep_daemon(ctx, &reply, fds) : -EPROTO;
    if (err == 0)
        ctx->daemon_kick = client_fd(fds[2]);
    if (err == 0)
        ctx->daemon_mark = client_mark(ctx->daemon_kick);
    for (unsigned i = 0; i < nfds; i++) /* its doorbells and events are of no use */
        if (err < 0 || i != 2)
            close(fds[i]);
    if (err < 0)
        return err;
    memcpy(name, req.device, sizeof(name));
    return open_engine(ctx, name, options);
}

static void unmap(const void *p, size_t size)
{
    void *q;
    memcpy(&q, &p, sizeof(q));
    if (q != NULL)
        munmap(q, size);
}

static void context_free(struct urnic_context *ctx)
{
    if (ctx->conn.engine != NULL)
        client_engine_leave(ctx);
    client_conn_close(&ctx->conn);
    unmap(ctx->db, ctx->db_size);
    unmap(ctx->worker, ctx->worker_size);
    unmap(ctx->daemon, ctx->daemon_size);
    for (struct client_slab *s = ctx->slabs, *next; s != NULL; s = next) {
        next = s->next;
        munmap(s->addr, s->size);
        free(s);
    }
    client_close_own(ctx->kick_fd, &ctx->kick_mark);
    client_close_own(ctx->daemon_kick, &ctx->daemon_mark);
    client_close_own(ctx->async.fd, &ctx->async.mark);
    client_refs_free(&ctx->refs);
    pthread_mutex_destroy(&ctx->making);
    pthread_mutex_destroy(&ctx->lock);
    pthread_cond_destroy(&ctx->acked);
    free(ctx);
}

int client_context_open(struct urnic_context *ctx, const char *device, int worker)
{
    pthread_mutex_init(&ctx->making, NULL);
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_cond_init(&ctx->acked, NULL);
    ctx->kick_fd = ctx->daemon_kick = ctx->async.fd = -1;
    int err = open_device(ctx, device, worker);
    if (err < 0)
        context_free(ctx);
    return err;
}

static int open_at(const char *socket_path, const char *device, int worker, enum client_place place,
                   struct urnic_context **out)
{
    struct urnic_context *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return -ENOMEM;
    int err = client_conn_open(&ctx->conn, socket_path);
    if (err < 0) {
        free(ctx);
        return err;
    }
    ctx->place = place;
    err = client_context_open(ctx, device, worker);
    if (err == 0)
        *out = ctx;
    return err;
}

int urnic_open_at(const char *socket_path, const char *device, int worker,
                  struct urnic_context **out)
{
    return open_at(socket_path, device, worker, CLIENT_PLACE_BY_USER, out);
}

int urnic_open(const char *device, struct urnic_context **ctx)
{
    return urnic_open_at(NULL, device, -1, ctx);
}

int urnic_open_daemon(const char *device, struct urnic_context **out)
{
    return open_at(NULL, device, -1, CLIENT_PLACE_DAEMON, out);
}

int urnic_open_application(const char *device, struct urnic_context **out)
{
    return open_at(NULL, device, -1, CLIENT_PLACE_PROGRAM, out);
}

int urnic_close(struct urnic_context *ctx)
{
    if (client_forked(ctx)) /* the child may have other memory at the queues' addresses */
        return client_conn_fork_error(&ctx->conn);
    pthread_mutex_lock(&ctx->lock);
    bool busy = ctx->objects != 0;
    pthread_mutex_unlock(&ctx->lock);
    if (busy)
        return -EBUSY;
    context_free(ctx);
    return 0;
}

void urnic_hang_up(struct urnic_context *ctx)
{
    if (client_forked(ctx)) /* the connection is its parent's */
        return;
    client_conn_hang_up(&ctx->conn);
}

int urnic_query_device(struct urnic_context *ctx, struct urnic_device_attr *attr)
{
    struct ipc_by_device req = {.hdr.type = IPC_DEVICE_QUERY};
    struct ipc_device_attr a;
    int err = client_call(ctx, &req, sizeof(req), &a, sizeof(a));
    if (err < 0)
        return err;
    *attr = (struct urnic_device_attr){
        .max_mr_size = a.max_mr_size,
        .max_qp = a.max_qp,
        .max_qp_wr = a.max_qp_wr,
        .max_send_sge = a.max_send_sge,
        .max_recv_sge = a.max_recv_sge,
        .max_inline = a.max_inline,
        .max_cq = a.max_cq,
        .max_cqe = a.max_cqe,
        .max_mr = a.max_mr,
        .max_pd = a.max_pd,
        .max_mw = a.max_mw,
        .max_ah = a.max_ah,
        .max_srq = a.max_srq,
        .max_srq_wr = a.max_srq_wr,
        .max_srq_sge = a.max_srq_sge,
        .max_qp_rd_atom = a.max_qp_rd_atom,
        .max_qp_init_rd_atom = a.max_qp_init_rd_atom,
        .max_mcast_grp = a.max_mcast_grp,
        .max_mcast_qp_attach = a.max_mcast_qp_attach,
        .max_pkeys = a.max_pkeys,
        .local_ca_ack_delay = a.local_ca_ack_delay,
        .atomic_cap = a.atomic_cap,
        .num_comp_vectors = a.num_comp_vectors,
        .cap_flags = a.cap_flags,
    };
    if (client_has_channel(&ctx->conn)) {
        if (attr->max_qp > IPC_ENGINE_QPS)
            attr->max_qp = IPC_ENGINE_QPS;
        attr->local_ca_ack_delay = IPC_ENGINE_ACK_DELAY;
    }
    device_from(&attr->dev, &a.dev);
    memcpy(attr->fw_ver, a.fw_ver, sizeof(attr->fw_ver) - 1);
    memcpy(attr->port_spec, a.port_spec, sizeof(attr->port_spec) - 1);
    return 0;
}

int urnic_query_port(struct urnic_context *ctx, struct urnic_port_attr *attr)
{
    struct ipc_by_device req = {.hdr.type = IPC_PORT_QUERY, .port = 1};
    struct ipc_port_attr a;
    int err = client_call(ctx, &req, sizeof(req), &a, sizeof(a));
    if (err < 0)
        return err;
    *attr = (struct urnic_port_attr){
        .state = a.state,
        .max_mtu = a.max_mtu,
        .active_mtu = a.active_mtu,
        .gid_tbl_len = a.gid_tbl_len,
        .pkey_tbl_len = a.pkey_tbl_len,
        .max_msg_sz = a.max_msg_sz,
        .ifindex = a.ifindex,
        .link_mtu = a.mtu,
        .line_rate = a.line_rate,
        .vlan = a.vlan,
        .bad_pkey_cntr = a.bad_pkey_cntr,
        .qkey_viol_cntr = a.qkey_viol_cntr,
        .dscp = a.dscp,
    };
    memcpy(attr->mac, a.mac, sizeof(attr->mac));
    memcpy(attr->pkeys, a.pkeys, sizeof(attr->pkeys));
    return 0;
}

int urnic_query_gid_table(struct urnic_context *ctx, struct urnic_gid *gids, int max)
{
    _Alignas(8) uint8_t buf[IPC_MSG_MAX];
    struct ipc_by_device req = {.hdr.type = IPC_GID_TABLE, .port = 1};
    ssize_t len =
        client_conn_raw(&ctx->conn, &req, sizeof(req), NULL, 0, buf, sizeof(buf), NULL, NULL);
    if (len < 0)
        return (int)len;
    const struct ipc_gid_table *t = (const void *)buf;
    if ((size_t)len < sizeof(*t) || (size_t)len < sizeof(*t) + t->count * sizeof(t->gid[0]))
        return -EPROTO;
    for (int i = 0; i < (int)t->count && i < max; i++) {
        memcpy(gids[i].raw, t->gid[i].gid, sizeof(gids[i].raw));
        gids[i].index = t->gid[i].index;
        gids[i].type = t->gid[i].type;
    }
    return (int)t->count;
}

int urnic_query_gid(struct urnic_context *ctx, uint32_t index, struct urnic_gid *gid)
{
    struct urnic_gid all[GIDS_MAX];
    int n = urnic_query_gid_table(ctx, all, GIDS_MAX);
    if (n < 0)
        return n;
    for (int i = 0; i < n && i < GIDS_MAX; i++) {
        if (all[i].index == index) {
            *gid = all[i];
            return 0;
        }
    }
    return -ENOENT;
}

/* ---- alive? ---- */

void client_ring(struct urnic_context *ctx, uint32_t doorbell)
{
    bool sleeps = ipc_doorbell_push(ctx->db, ctx->db_slots, doorbell, ctx->worker);
    if (ctx->conn.engine != NULL) {
        ctx->conn.engine->posted(ctx->conn.program);
        return;
    }
    if (!sleeps)
        return;
    /* EAGAIN: the socket is full of kicks already. */
    if (send(ctx->kick_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        atomic_store_explicit(&ctx->conn.dead, true, memory_order_relaxed);
}

bool client_gone(struct urnic_context *ctx)
{
    char octet;
    if (client_dead(ctx))
        return true;
    if (atomic_load_explicit(&ctx->life->holder, memory_order_relaxed) & IPC_LIFE_OVER) {
        atomic_store_explicit(&ctx->conn.dead, true, memory_order_relaxed);
        return true;
    }
    ssize_t n = -1;
    errno = EBADF;
    if (client_is(ctx->kick_fd, &ctx->kick_mark))
        n = recv(ctx->kick_fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0 || (n < 0 && errno == EAGAIN)) {
        if (!atomic_load_explicit(&ctx->worker->gone, memory_order_relaxed))
            return false;
    }
    atomic_store_explicit(&ctx->conn.dead, true, memory_order_relaxed);
    return true;
}
