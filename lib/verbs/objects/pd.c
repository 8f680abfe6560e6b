/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Protection domains, and parent domains, which stand for one of them.
 */
#include <stdlib.h>

#include "verbs_priv.h"

static struct uv_pd *pd_new(struct ibv_context *context, struct urnic_pd *urnic,
                            struct uv_pd *parent)
{
    static _Atomic uint32_t handles;
    struct uv_pd *pd = calloc(1, sizeof(*pd));
    if (pd == NULL)
        return NULL;
    pd->pd.context = context;
    pd->pd.handle = atomic_fetch_add(&handles, 1);
    pd->urnic = urnic;
    pd->parent = parent;
    return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct urnic_pd *urnic;
    int err = urnic_alloc_pd(uv_ctx(context)->urnic, &urnic);
    if (err < 0)
        return uv_null(err);
    struct uv_pd *pd = pd_new(context, urnic, NULL);
    if (pd == NULL) {
        urnic_dealloc_pd(urnic);
        return uv_null(-ENOMEM);
    }
    return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct uv_pd *pd = uv_pd(ibpd);
    if (atomic_load(&pd->uses) != 0)
        return uv_status(-EBUSY);
    if (pd->parent != NULL) {
        atomic_fetch_sub(&pd->parent->uses, 1);
    } else {
        int err = urnic_dealloc_pd(pd->urnic);
        if (err < 0)
            return uv_status(err);
    }
    free(pd);
    return 0;
}

struct ibv_td *uv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask != 0)
        return uv_null(-EINVAL);
    struct uv_td *td = calloc(1, sizeof(*td));
    if (td == NULL)
        return uv_null(-ENOMEM);
    td->td.context = context;
    return &td->td;
}

int uv_dealloc_td(struct ibv_td *td)
{
    free(td);
    return 0;
}

/* Its allocators would provide memory for queues, which the daemon makes: they aren't called, as
 * the manual page allows. */
struct ibv_pd *uv_alloc_parent_domain(struct ibv_context *context,
                                      struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if (attr->pd == NULL)
        return uv_null(-EINVAL);
    if ((attr->comp_mask & ~known) != 0)
        return uv_null(-EOPNOTSUPP);
    struct uv_pd *base = uv_pd(attr->pd);
    struct uv_pd *pd = pd_new(context, base->urnic, base);
    if (pd == NULL)
        return uv_null(-ENOMEM);
    atomic_fetch_add(&base->uses, 1);
    return &pd->pd;
}
