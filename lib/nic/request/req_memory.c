/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests about protection domains, slabs, regions and windows. Mapping and unmapping is done on
 * the control thread: it may take long, and the worker has others to serve.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_mapping.h"
#include "guard_signal.h"
#include "log.h"
#include "quota.h"
#include "request.h"
#include "seal.h"

static int req_pd_alloc(struct request *r)
{
    struct mem *mem = engine_mem(r->device->engine);
    struct ipc_handle *out = request_out(r, struct ipc_handle);
    uint32_t pd;
    int rc = mem_pd_alloc(mem, &pd);
    if (rc < 0)
        return rc;
    rc = handle_add(&r->client->handles, HANDLE_PD, (void *)(uintptr_t)pd, &out->handle);
    if (rc < 0)
        mem_pd_free(mem, pd);
    return rc;
}

static int req_pd_free(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    uintptr_t pd = (uintptr_t)handle_get(&r->client->handles, HANDLE_PD, h);
    if (!pd)
        return -EINVAL;
    int rc = mem_pd_free(engine_mem(r->device->engine), (uint32_t)pd);
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

/* SEC-22: mapped memory counts from then on, on the control thread. */
static int quota_take(struct request *r, uint64_t *octets, uint64_t len, uint64_t quota)
{
    nic_memory(r->nic);
    return client_map_take(r->client, octets, len, quota);
}

/* A sealed slab no longer needs its descriptor. */
static int slab_mapped(struct request *r, struct memory *m)
{
    bool had = m->fd >= 0;
    int rc = seal_mapped(r, m);
    if (had && m->fd < 0)
        share_give(r->client->share, SHARE_FDS, 1);
    return rc;
}

/* ---- slabs ---- */

static int prep_slab_alloc(struct request *r)
{
    const struct ipc_slab_alloc *in = request_in(r, struct ipc_slab_alloc);
    struct client *c = r->client;
    uint64_t page = in->flags & IPC_SLAB_HUGE ? MEMORY_HUGE_PAGE : MEMORY_PAGE;
    struct memory *mem;
    int fd;
    if (in->size == 0 || (in->flags & ~IPC_SLAB_HUGE) != 0)
        return -EINVAL;
    if (in->size > QUOTA_SLAB_OCTETS) /* before it is rounded up, which could wrap */
        return -EDQUOT;
    uint64_t size = (in->size + page - 1) / page * page;
    int rc = quota_take(r, &c->slab_octets, size, QUOTA_SLAB_OCTETS);
    if (rc < 0)
        return rc;
    rc = memory_slab("urnic-slab", size, &mem, &fd);
    if (rc < 0) {
        client_map_give(c, &c->slab_octets, size);
        return rc;
    }
    if (in->flags & IPC_SLAB_HUGE)
        madvise(mem->base, mem->len, MADV_HUGEPAGE); /* only a hint */
    r->prepared = mem;
    request_reply_fd(r, fd, false);
    return 0;
}

static int req_slab_alloc(struct request *r)
{
    struct memory *mem = r->prepared;
    struct app_slab *slab = calloc(1, sizeof(*slab));
    struct ipc_slab *out = request_out(r, struct ipc_slab);
    int rc = slab ? handle_add(&r->client->handles, HANDLE_SLAB, slab, &out->slab) : -ENOMEM;
    if (rc < 0) {
        free(slab);
        r->unmap = mem;
        return rc;
    }
    slab->mem = mem;
    out->size = mem->len;
    return 0;
}

static int req_slab_free(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct app_slab *slab = handle_get(&r->client->handles, HANDLE_SLAB, h);
    if (!slab)
        return -EINVAL;
    if (slab->users > 0)
        return -EBUSY;
    handle_del(&r->client->handles, h);
    r->unmap = slab->mem;
    free(slab);
    return 0;
}

static int finish_slab(struct request *r)
{
    if (r->unmap)
        client_unmap(r->client, &r->client->slab_octets, r->unmap);
    r->unmap = NULL;
    return 0;
}

/* ---- regions ---- */

/* A region anywhere in the memory of the client's process, which is this process, or a region
 * without octets. A copy from or to another process could block the worker for ever
 * (doc/traps.md). */
static int prep_mr_process(struct request *r)
{
    const struct ipc_mr_reg *in = request_in(r, struct ipc_mr_reg);
    struct memory *mem;
    if (r->nfd != 0)
        return -EBADF;
    if (!r->client->own)
        return in->len == 0 ? 0 : -EOPNOTSUPP;
    if (in->len > LIMIT_MR_SIZE || in->off > UINT64_MAX - in->len)
        return -EINVAL;
    int rc =
        memory_own((void *)(uintptr_t)in->off, in->len, (in->access & MEM_LOCAL_WRITE) != 0, &mem);
    if (rc == 0)
        r->prepared = mem;
    return rc;
}

static int prep_mr_reg(struct request *r)
{
    const struct ipc_mr_reg *in = request_in(r, struct ipc_mr_reg);
    struct memory *mem;
    if (r->client->own)
        (void)guard_signal_on_top();
    if (in->kind == IPC_MR_PROCESS)
        return prep_mr_process(r);
    if (in->kind != IPC_MR_FD)
        return in->kind == IPC_MR_SLAB ? 0 : -ENOTSUP;
    if (r->nfd != 1)
        return -EBADF;
    if (in->len > LIMIT_MR_SIZE)
        return -EINVAL;
    struct client *c = r->client;
    int rc = quota_take(r, &c->foreign_octets, in->len, QUOTA_FOREIGN_OCTETS);
    if (rc < 0)
        return rc;
    /* Remote rights that write need local write (MR-02), so this covers every kind of writing. */
    rc = memory_foreign(r->fd[0], in->off, in->len, (in->access & MEM_LOCAL_WRITE) != 0,
                        client_is_admin(c), &mem);
    if (rc == 0)
        r->prepared = mem;
    else
        client_map_give(c, &c->foreign_octets, in->len);
    if (rc == -EPERM)
        r->device->stats.client_unsealed++;
    return rc;
}

static int finish_mr(struct request *r)
{
    if (r->unmap)
        client_unmap(r->client, &r->client->foreign_octets, r->unmap);
    r->unmap = NULL;
    return 0;
}

/* The memory of the region. */
static int mr_backing(struct request *r, const struct ipc_mr_reg *in, struct region *mr,
                      struct mem_seg *seg)
{
    if (r->prepared) {
        mr->own = r->prepared;
        *seg = (struct mem_seg){.obj = mr->own, .off = 0, .len = in->len};
        return 0;
    }
    if (in->kind == IPC_MR_PROCESS) {
        *seg = (struct mem_seg){0};
        return 0;
    }
    mr->slab = handle_get(&r->client->handles, HANDLE_SLAB, in->obj);
    if (!mr->slab)
        return -EINVAL;
    if (!memory_holds(mr->slab->mem, in->off, in->len))
        return -EFAULT;
    *seg = (struct mem_seg){.obj = mr->slab->mem, .off = in->off, .len = in->len};
    return slab_mapped(r, mr->slab->mem);
}

static int req_mr_reg(struct request *r)
{
    const struct ipc_mr_reg *in = request_in(r, struct ipc_mr_reg);
    struct ipc_mr *out = request_out(r, struct ipc_mr);
    struct client *c = r->client;
    struct mem *mem = engine_mem(r->device->engine);
    uintptr_t pd = (uintptr_t)handle_get(&c->handles, HANDLE_PD, in->pd);
    struct region *mr = calloc(1, sizeof(*mr));
    struct mem_seg seg;
    int rc = !mr ? -ENOMEM : !pd ? -EINVAL : mr_backing(r, in, mr, &seg);
    if (rc == 0)
        rc = mem_mr_reg(mem, (uint32_t)pd, in->iova, in->len, in->access, &seg, in->len ? 1 : 0, mr,
                        &out->lkey, &out->rkey);
    if (rc < 0) {
        r->unmap = r->prepared;
        free(mr);
        return rc;
    }
    mr->lkey = out->lkey;
    rc = handle_add(&c->handles, HANDLE_MR, mr, &out->mr);
    if (rc < 0) {
        mem_mr_dereg(mem, mr->lkey);
        r->unmap = r->prepared;
        free(mr);
        return rc;
    }
    if (mr->slab)
        mr->slab->users++;
    return 0;
}

static int req_mr_rereg(struct request *r)
{
    const struct ipc_mr_rereg *in = request_in(r, struct ipc_mr_rereg);
    struct ipc_mr *out = request_out(r, struct ipc_mr);
    struct client *c = r->client;
    struct region *mr = handle_get(&c->handles, HANDLE_MR, in->mr);
    uintptr_t pd = (uintptr_t)handle_get(&c->handles, HANDLE_PD, in->pd);
    if (!mr || !pd)
        return -EINVAL;
    bool own = mr->own && memory_is_own(mr->own);
    if (mr->own && !own && !mr->own->writable && (in->access & MEM_LOCAL_WRITE))
        return -EOPNOTSUPP;
    int rc =
        mem_mr_rereg(engine_mem(r->device->engine), mr->lkey, (uint32_t)pd, in->access, &out->rkey);
    if (rc == 0 && own)
        mr->own->writable = (in->access & MEM_LOCAL_WRITE) != 0;
    out->mr = in->mr;
    out->lkey = mr->lkey;
    return rc;
}

static int req_mr_dereg(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    struct region *mr = handle_get(&r->client->handles, HANDLE_MR, h);
    int rc = mr ? client_mr_dereg(r->client, mr, &r->unmap) : -EINVAL;
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

/* A region that work requests register, in a slab. */
static int req_mr_alloc(struct request *r)
{
    const struct ipc_mr_alloc *in = request_in(r, struct ipc_mr_alloc);
    struct ipc_mr *out = request_out(r, struct ipc_mr);
    struct client *c = r->client;
    struct mem *mem = engine_mem(r->device->engine);
    uintptr_t pd = (uintptr_t)handle_get(&c->handles, HANDLE_PD, in->pd);
    struct app_slab *slab = handle_get(&c->handles, HANDLE_SLAB, in->obj);
    if (!pd || !slab)
        return -EINVAL;
    if (!memory_holds(slab->mem, in->off, in->len))
        return -EFAULT;
    int rc = slab_mapped(r, slab->mem);
    if (rc < 0)
        return rc;
    const struct mem_seg within = {.obj = slab->mem, .off = in->off, .len = in->len};
    struct region *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return -ENOMEM;
    rc = mem_fr_alloc_in(mem, (uint32_t)pd, in->max_segs, &within, &out->lkey, &out->rkey);
    if (rc < 0) {
        free(mr);
        return rc;
    }
    *mr = (struct region){.lkey = out->lkey, .slab = slab};
    rc = handle_add(&c->handles, HANDLE_MR, mr, &out->mr);
    if (rc < 0) {
        mem_mr_dereg(mem, mr->lkey);
        free(mr);
        return rc;
    }
    slab->users++;
    return 0;
}

/* ---- windows ---- */

static int req_mw_alloc(struct request *r)
{
    const struct ipc_mw_alloc *in = request_in(r, struct ipc_mw_alloc);
    struct ipc_mr *out = request_out(r, struct ipc_mr);
    struct mem *mem = engine_mem(r->device->engine);
    uintptr_t pd = (uintptr_t)handle_get(&r->client->handles, HANDLE_PD, in->pd);
    int rc = pd ? mem_mw_alloc(mem, (uint32_t)pd, in->mw_type, &out->rkey) : -EINVAL;
    if (rc < 0)
        return rc;
    rc = handle_add(&r->client->handles, HANDLE_MW, (void *)(uintptr_t)out->rkey, &out->mr);
    if (rc < 0)
        mem_mw_dealloc(mem, out->rkey);
    return rc;
}

static int req_mw_dealloc(struct request *r)
{
    uint32_t h = request_in(r, struct ipc_handle)->handle;
    uintptr_t rkey = (uintptr_t)handle_get(&r->client->handles, HANDLE_MW, h);
    if (!rkey)
        return -EINVAL;
    int rc = mem_mw_dealloc(engine_mem(r->device->engine), (uint32_t)rkey);
    if (rc == 0)
        handle_del(&r->client->handles, h);
    return rc;
}

const struct request_type request_memory[IPC_TYPE_MAX] = {
    [IPC_PD_ALLOC] = {REQ_CONTEXT, false, PLAIN, .run = req_pd_alloc},
    [IPC_PD_FREE] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_pd_free},
    [IPC_SLAB_ALLOC] = {REQ_CONTEXT, false, WHOLE(ipc_slab_alloc), .prepare = prep_slab_alloc,
                        .run = req_slab_alloc, .finish = finish_slab, .fds = true},
    [IPC_SLAB_FREE] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_slab_free, .finish = finish_slab},
    [IPC_MR_REG] = {REQ_CONTEXT, false, WHOLE(ipc_mr_reg), .prepare = prep_mr_reg,
                    .run = req_mr_reg, .finish = finish_mr},
    [IPC_MR_REREG] = {REQ_CONTEXT, false, WHOLE(ipc_mr_rereg), .run = req_mr_rereg},
    [IPC_MR_DEREG] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_mr_dereg, .finish = finish_mr},
    [IPC_MR_ALLOC] = {REQ_CONTEXT, false, WHOLE(ipc_mr_alloc), .run = req_mr_alloc},
    [IPC_MW_ALLOC] = {REQ_CONTEXT, false, WHOLE(ipc_mw_alloc), .run = req_mw_alloc},
    [IPC_MW_DEALLOC] = {REQ_CONTEXT, false, BY_HANDLE, .run = req_mw_dealloc},
};
