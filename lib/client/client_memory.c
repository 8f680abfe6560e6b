/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Protection domains, memory from the daemon, registration, and the slabs in which queues lie.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "client_mapping.h"
#include "ipc_map.h"

/* Octets of a slab that get huge pages at once: 2 MiB take a millisecond or more. */
#define SLAB_HUGE_MAX ((size_t)256 << 20)

int urnic_alloc_pd(struct urnic_context *ctx, struct urnic_pd **out)
{
    struct ipc_hdr req = {.type = IPC_PD_ALLOC};
    struct ipc_handle reply;
    struct urnic_pd *pd = calloc(1, sizeof(*pd));
    if (pd == NULL)
        return -ENOMEM;
    int err = client_call(ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0) {
        free(pd);
        return err;
    }
    *pd = (struct urnic_pd){.ctx = ctx, .handle = reply.handle};
    client_count(ctx, 1);
    *out = pd;
    return 0;
}

int urnic_dealloc_pd(struct urnic_pd *pd)
{
    int err = client_destroy(pd->ctx, IPC_PD_FREE, pd->handle);
    if (err < 0)
        return err;
    client_count(pd->ctx, -1);
    free(pd);
    return 0;
}

/* Map a slab and remember it. Takes the descriptor. */
static struct client_slab *slab_map(struct urnic_context *ctx, int fd, size_t size, uint32_t number,
                                    bool data)
{
    struct client_slab *s = malloc(sizeof(*s));
    void *p = MAP_FAILED;
    if (s != NULL)
        p = client_map(ctx, fd, size, PROT_READ | PROT_WRITE);
    client_close_fds(&fd, 0, 1);
    if (p == MAP_FAILED) {
        free(s);
        return NULL;
    }
    if (!data)
        madvise(p, size, MADV_DONTFORK);
    *s = (struct client_slab){.number = number, .addr = p, .size = size, .data = data};
    pthread_mutex_lock(&ctx->lock);
    s->next = ctx->slabs;
    ctx->slabs = s;
    pthread_mutex_unlock(&ctx->lock);
    return s;
}

/* The slab with this number, or the data slab that holds [addr, addr+len). */
static struct client_slab *slab_find(struct urnic_context *ctx, bool data, uint32_t number,
                                     const void *addr, size_t len)
{
    struct client_slab *s;
    uintptr_t a = (uintptr_t)addr;
    pthread_mutex_lock(&ctx->lock);
    for (s = ctx->slabs; s != NULL; s = s->next) {
        if (s->data != data)
            continue;
        uintptr_t base = (uintptr_t)s->addr;
        if (data ? a >= base && a - base <= s->size && len <= s->size - (a - base)
                 : s->number == number)
            break;
    }
    pthread_mutex_unlock(&ctx->lock);
    return s;
}

void client_unmake(struct urnic_context *ctx, enum ipc_type undo, uint32_t handle)
{
    struct ipc_hdr req = {.type = IPC_SLABS_AGAIN}, reply;
    if (handle != 0)
        client_conn_handle(&ctx->conn, undo, handle);
    client_call(ctx, &req, sizeof(req), &reply, sizeof(reply));
}

int client_make(struct urnic_context *ctx, void *req, size_t len, enum ipc_type undo, void *reply,
                size_t size, int *fds, unsigned *nfds)
{
    struct ipc_handle made;
    int err = client_conn_call(&ctx->conn, req, len, reply, size, fds, nfds);
    if (err == -EMFILE) {
        memcpy(&made, reply, sizeof(made));
        client_unmake(ctx, undo, made.handle);
    }
    return err;
}

void *client_where(struct urnic_context *ctx, const struct ipc_where *w, size_t need, int *fds,
                   unsigned nfds, unsigned *used)
{
    struct client_slab *s = slab_find(ctx, false, w->slab, NULL, 0);
    errno = EPROTO;
    if (w->entries == 0 || (w->entries & (w->entries - 1)) != 0 || w->off % IPC_LINE != 0)
        return NULL;
    if (w->slab_size != 0) {
        if (*used >= nfds)
            return NULL;
        int fd = fds[(*used)++];
        if (s != NULL) {
            client_close_fds(&fd, 0, 1); /* it has come again */
        } else if ((s = slab_map(ctx, fd, w->slab_size, w->slab, false)) == NULL) {
            errno = ENOMEM;
            return NULL;
        }
    }
    if (s == NULL || w->off > s->size || need > s->size - w->off)
        return NULL;
    return s->addr + w->off;
}

void client_unmap(struct urnic_context *ctx, const void *at)
{
    if (!(ctx->conn.features & IPC_FEAT_UNMAP))
        return;
    pthread_mutex_lock(&ctx->lock);
    struct client_slab *s, **p = &ctx->slabs;
    while ((s = *p) != NULL && (s->data || s->addr != at))
        p = &s->next;
    if (s != NULL && s->size <= IPC_SLAB_SHARED)
        s = NULL;
    if (s != NULL)
        *p = s->next;
    pthread_mutex_unlock(&ctx->lock);
    if (s == NULL)
        return;
    munmap(s->addr, s->size);
    free(s);
}

int urnic_alloc(struct urnic_context *ctx, size_t size, void **addr)
{
    struct ipc_slab_alloc req = {.hdr.type = IPC_SLAB_ALLOC, .size = size};
    struct ipc_slab reply;
    int fd;
    unsigned nfds = 1;
    if (size == 0)
        return -EINVAL;
    int err = client_make(ctx, &req, sizeof(req), IPC_SLAB_FREE, &reply, sizeof(reply), &fd, &nfds);
    if (err < 0)
        return err;
    if (nfds != 1)
        return -EPROTO;
    struct client_slab *s = slab_map(ctx, fd, reply.size, reply.slab, true);
    if (s == NULL) {
        client_conn_handle(&ctx->conn, IPC_SLAB_FREE, reply.slab);
        return -ENOMEM;
    }
    ipc_map_huge(s->addr, size < SLAB_HUGE_MAX ? size : SLAB_HUGE_MAX);
    client_count(ctx, 1);
    *addr = s->addr;
    return 0;
}

int urnic_free(struct urnic_context *ctx, void *addr)
{
    if (addr == NULL)
        return 0;
    struct client_slab *s = slab_find(ctx, true, 0, addr, 1);
    if (s == NULL || s->addr != addr)
        return -EINVAL;
    int err = client_destroy(ctx, IPC_SLAB_FREE, s->number);
    if (err < 0)
        return err;
    pthread_mutex_lock(&ctx->lock);
    struct client_slab **p = &ctx->slabs;
    while (*p != s)
        p = &(*p)->next;
    *p = s->next;
    ctx->objects--;
    pthread_mutex_unlock(&ctx->lock);
    munmap(s->addr, s->size);
    free(s);
    return 0;
}

static int mr_register(struct urnic_pd *pd, struct ipc_mr_reg *req, const int *fd, void *addr,
                       struct urnic_mr **out)
{
    struct urnic_context *ctx = pd->ctx;
    _Alignas(8) uint8_t buf[256];
    struct ipc_mr reply;
    struct urnic_mr *mr = malloc(sizeof(*mr));
    if (mr == NULL)
        return -ENOMEM;
    req->hdr.type = IPC_MR_REG;
    req->pd = pd->handle;
    ssize_t n = client_conn_raw(&ctx->conn, req, sizeof(*req), fd, fd != NULL, buf, sizeof(buf),
                                NULL, NULL);
    if (n >= 0)
        n = ipc_msg_unpack(&reply, sizeof(reply), sizeof(reply), buf, (size_t)n, false);
    if (n < 0) {
        free(mr);
        return (int)n;
    }
    *mr = (struct urnic_mr){
        .context = ctx,
        .pd = pd,
        .addr = addr,
        .iova = req->access & URNIC_ACCESS_ZERO_BASED ? 0 : req->iova,
        .length = req->len,
        .lkey = reply.lkey,
        .rkey = reply.rkey,
        .handle = reply.mr,
    };
    client_count(ctx, 1);
    *out = mr;
    return 0;
}

/* A part of a shared object of the program's own: the daemon maps it, too. */
static int mr_hand_over(struct urnic_pd *pd, void *addr, size_t length, uint64_t iova,
                        unsigned access, struct urnic_mr **mr)
{
    uint64_t off;
    int fd = client_mapping_open(addr, length, (access & URNIC_ACCESS_LOCAL_WRITE) != 0, &off);
    if (fd < 0)
        return -EOPNOTSUPP;
    struct ipc_mr_reg req = {
        .kind = IPC_MR_FD,
        .access = access,
        .off = off,
        .len = length,
        .iova = iova,
    };
    int err = mr_register(pd, &req, &fd, addr, mr);
    close(fd);
    return err;
}

/* Memory of any kind, for the engine in this process; no octets, for any. */
static int mr_of_process(struct urnic_pd *pd, void *addr, size_t length, uint64_t iova,
                         unsigned access, struct urnic_mr **mr)
{
    struct ipc_mr_reg req = {
        .kind = IPC_MR_PROCESS,
        .access = access,
        .off = (uintptr_t)addr,
        .len = length,
        .iova = iova,
    };
    return mr_register(pd, &req, NULL, addr, mr);
}

/* May a region with these rights lie there? */
static int mr_check(const struct urnic_context *ctx, const void *addr, size_t length,
                    unsigned access)
{
    bool write = (access & URNIC_ACCESS_LOCAL_WRITE) != 0;
    return ctx->conn.engine != NULL ? client_mapping_rights(addr, length, write)
                                    : client_mapping_check(addr, length, write);
}

int urnic_reg_mr_iova(struct urnic_pd *pd, void *addr, size_t length, uint64_t iova,
                      unsigned access, struct urnic_mr **mr)
{
    struct client_slab *s = slab_find(pd->ctx, true, 0, addr, length);
    if (s != NULL) {
        struct ipc_mr_reg req = {
            .kind = IPC_MR_SLAB,
            .obj = s->number,
            .access = access,
            .off = (uint64_t)((uint8_t *)addr - s->addr),
            .len = length,
            .iova = iova,
        };
        return mr_register(pd, &req, NULL, addr, mr);
    }
    int err = mr_check(pd->ctx, addr, length, access);
    if (err < 0)
        return err;
    if (pd->ctx->conn.engine != NULL || length == 0)
        return mr_of_process(pd, addr, length, iova, access, mr);
    return mr_hand_over(pd, addr, length, iova, access, mr);
}

int urnic_reg_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned access,
                 struct urnic_mr **mr)
{
    return urnic_reg_mr_iova(pd, addr, length, (uint64_t)(uintptr_t)addr, access, mr);
}

int urnic_rereg_mr(struct urnic_mr *mr, struct urnic_pd *pd, unsigned access)
{
    struct urnic_context *ctx = mr->context;
    struct ipc_mr reply;
    if (pd == NULL)
        pd = mr->pd;
    if (pd->ctx != ctx)
        return -EINVAL;
    struct client_slab *s = slab_find(ctx, true, 0, mr->addr, mr->length);
    int err = 0;
    if (s == NULL && mr->addr != NULL)
        err = mr_check(ctx, mr->addr, mr->length, access);
    if (err < 0)
        return err;
    struct ipc_mr_rereg req = {
        .hdr.type = IPC_MR_REREG,
        .mr = mr->handle,
        .pd = pd->handle,
        .access = access,
    };
    err = client_call(ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0)
        return err == -ENOTSUP ? -EOPNOTSUPP : err;
    mr->pd = pd;
    mr->rkey = reply.rkey;
    return 0;
}

int urnic_reg_mr_fd(struct urnic_pd *pd, int fd, uint64_t offset, size_t length, uint64_t iova,
                    unsigned access, struct urnic_mr **mr)
{
    struct ipc_mr_reg req = {
        .kind = IPC_MR_FD,
        .access = access,
        .off = offset,
        .len = length,
        .iova = iova,
    };
    if (fd < 0)
        return -EBADF;
    return mr_register(pd, &req, &fd, NULL, mr);
}

int urnic_alloc_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned max_segs,
                   struct urnic_mr **out)
{
    struct client_slab *s = slab_find(pd->ctx, true, 0, addr, length);
    if (s == NULL || !(pd->ctx->conn.features & IPC_FEAT_REG_MR))
        return -EOPNOTSUPP;
    struct ipc_mr_alloc req = {
        .hdr.type = IPC_MR_ALLOC,
        .pd = pd->handle,
        .obj = s->number,
        .max_segs = max_segs,
        .off = (uint64_t)((uint8_t *)addr - s->addr),
        .len = length,
    };
    struct ipc_mr reply;
    struct urnic_mr *mr = malloc(sizeof(*mr));
    if (mr == NULL)
        return -ENOMEM;
    int err = client_call(pd->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0) {
        free(mr);
        return err;
    }
    *mr = (struct urnic_mr){
        .context = pd->ctx,
        .pd = pd,
        .addr = addr,
        .length = length,
        .lkey = reply.lkey,
        .rkey = reply.rkey,
        .handle = reply.mr,
    };
    client_count(pd->ctx, 1);
    *out = mr;
    return 0;
}

int urnic_alloc_mw(struct urnic_pd *pd, int type, struct urnic_mw **out)
{
    struct ipc_mw_alloc req = {
        .hdr.type = IPC_MW_ALLOC, .pd = pd->handle, .mw_type = (uint32_t)type};
    struct ipc_mr reply;
    struct urnic_mw *mw = malloc(sizeof(*mw));
    if (mw == NULL)
        return -ENOMEM;
    int err = client_call(pd->ctx, &req, sizeof(req), &reply, sizeof(reply));
    if (err < 0) {
        free(mw);
        return err;
    }
    *mw = (struct urnic_mw){
        .context = pd->ctx, .pd = pd, .rkey = reply.rkey, .handle = reply.mr, .type = type};
    client_count(pd->ctx, 1);
    *out = mw;
    return 0;
}

int urnic_dealloc_mw(struct urnic_mw *mw)
{
    int err = client_destroy(mw->context, IPC_MW_DEALLOC, mw->handle);
    if (err < 0)
        return err;
    client_count(mw->context, -1);
    free(mw);
    return 0;
}

int urnic_dereg_mr(struct urnic_mr *mr)
{
    int err = client_destroy(mr->context, IPC_MR_DEREG, mr->handle);
    if (err < 0)
        return err;
    client_count(mr->context, -1);
    free(mr);
    return 0;
}
