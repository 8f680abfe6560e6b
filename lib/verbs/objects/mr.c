/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory regions and windows.
 */
#include <stdlib.h>

#include "verbs_priv.h"

/* Rights with the same numbers in liburnic. */
#define ACCESS_KNOWN                                                                               \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                       \
     IBV_ACCESS_FLUSH_GLOBAL)
/* Hints, which a device may ignore silently. */
#define ACCESS_IGNORED (IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB)
/* Rights that this device doesn't support. */
#define ACCESS_OTHERS (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_FLUSH_PERSISTENT)
#ifndef IBV_ACCESS_FLUSH_GLOBAL
#define IBV_ACCESS_FLUSH_GLOBAL     (1u << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1u << 9)
#endif

_Static_assert((unsigned)IBV_ACCESS_LOCAL_WRITE == URNIC_ACCESS_LOCAL_WRITE &&
                   (unsigned)IBV_ACCESS_REMOTE_WRITE == URNIC_ACCESS_REMOTE_WRITE &&
                   (unsigned)IBV_ACCESS_REMOTE_READ == URNIC_ACCESS_REMOTE_READ &&
                   (unsigned)IBV_ACCESS_REMOTE_ATOMIC == URNIC_ACCESS_REMOTE_ATOMIC &&
                   (unsigned)IBV_ACCESS_MW_BIND == URNIC_ACCESS_MW_BIND &&
                   (unsigned)IBV_ACCESS_ZERO_BASED == URNIC_ACCESS_ZERO_BASED &&
                   (unsigned)IBV_ACCESS_FLUSH_GLOBAL == URNIC_ACCESS_FLUSH_GLOBAL,
               "rights are passed on as they are");

/* The rights in liburnic's terms. 0 or -errno. */
static int access_of(unsigned wanted, unsigned *access)
{
    *access = wanted & ~(unsigned)ACCESS_IGNORED;
    if (*access & ACCESS_OTHERS)
        return -EOPNOTSUPP;
    return *access & ~(unsigned)ACCESS_KNOWN ? -EINVAL : 0;
}

static int reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned wanted,
               struct urnic_mr **mr)
{
    unsigned access;
    int err = access_of(wanted, &access);
    if (err == 0 && (length == 0 || (uintptr_t)addr + length < (uintptr_t)addr))
        err = -EINVAL;
    return err < 0 ? err : urnic_reg_mr_iova(uv_pd(pd)->urnic, addr, length, iova, access, mr);
}

/* Fill the public members of a region. */
static void show(struct uv_mr *mr, struct ibv_pd *pd, struct urnic_mr *urnic, void *addr)
{
    mr->urnic = urnic;
    mr->mr.context = pd->context;
    mr->mr.pd = pd;
    mr->mr.addr = addr;
    mr->mr.length = urnic->length;
    mr->mr.handle = urnic->handle;
    mr->mr.lkey = urnic->lkey;
    /* Without a remote right there is no rkey yet; programs may add a right later (ibv_rereg_mr).
     */
    mr->mr.rkey = urnic->rkey != 0 ? urnic->rkey : urnic->lkey;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    struct urnic_mr *urnic;
    struct uv_mr *mr = calloc(1, sizeof(*mr));
    int err = mr == NULL ? -ENOMEM : reg(pd, addr, length, iova, access, &urnic);
    if (err < 0) {
        free(mr);
        return uv_null(err);
    }
    mr->access = access;
    show(mr, pd, urnic, addr);
    return &mr->mr;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

/* If only rights or domain change, the region keeps its keys. -EOPNOTSUPP: it can't. */
static int rereg_in_place(struct uv_mr *mr, struct ibv_pd *pd, unsigned rights)
{
    unsigned access;
    int err = access_of(rights, &access);
    if (err == 0)
        err = urnic_rereg_mr(mr->urnic, uv_pd(pd)->urnic, access);
    if (err == 0)
        show(mr, pd, mr->urnic, mr->mr.addr);
    return err;
}

/* A region at another address replaces the old one and has other keys; programs read them again. */
int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                 int access)
{
    struct uv_mr *mr = (struct uv_mr *)ibmr;
    struct urnic_mr *fresh;
    const int known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    if (flags == 0 || (flags & ~known) != 0 || ((flags & IBV_REREG_MR_CHANGE_PD) && pd == NULL) ||
        ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == NULL || length == 0))) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    struct ibv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : ibmr->pd;
    unsigned rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->access;
    uint64_t iova = mr->urnic->iova;
    void *at = ibmr->addr;
    size_t len = ibmr->length;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        at = addr;
        len = length;
        iova = (uintptr_t)addr;
    }
    int err =
        flags & IBV_REREG_MR_CHANGE_TRANSLATION ? -EOPNOTSUPP : rereg_in_place(mr, new_pd, rights);
    if (err == 0) {
        mr->access = rights;
        return 0;
    }
    if (err == -EOPNOTSUPP)
        err = reg(new_pd, at, len, iova, rights, &fresh);
    if (err == 0 && (err = urnic_dereg_mr(mr->urnic)) < 0)
        urnic_dereg_mr(fresh);
    if (err != 0) {
        errno = uv_errno(err);
        return IBV_REREG_MR_ERR_CMD;
    }
    mr->access = rights;
    show(mr, new_pd, fresh, at);
    return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct uv_mr *mr = (struct uv_mr *)ibmr;
    int err = urnic_dereg_mr(mr->urnic);
    if (err < 0)
        return uv_status(err);
    free(mr);
    return 0;
}

/* ---- windows ---- */

struct ibv_mw *uv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct uv_mw *mw = calloc(1, sizeof(*mw));
    int err = mw == NULL ? -ENOMEM : urnic_alloc_mw(uv_pd(pd)->urnic, (int)type, &mw->urnic);
    if (err < 0) {
        free(mw);
        return uv_null(err);
    }
    mw->mw = (struct ibv_mw){.context = pd->context,
                             .pd = pd,
                             .rkey = mw->urnic->rkey,
                             .handle = mw->urnic->handle,
                             .type = type};
    return &mw->mw;
}

int uv_dealloc_mw(struct ibv_mw *ibmw)
{
    struct uv_mw *mw = (struct uv_mw *)ibmw;
    int err = urnic_dealloc_mw(mw->urnic);
    if (err < 0)
        return uv_status(err);
    free(mw);
    return 0;
}

/* Windows of type 1: the key of the next bind is the device's to choose. */
int uv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    const struct ibv_mw_bind_info *info = &bind->bind_info;
    if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
        return uv_status(-EINVAL);
    if (info->mr != NULL && (mw->pd != info->mr->pd || qp->pd != mw->pd))
        return uv_status(-EPERM);
    if (info->mr == NULL && info->length != 0)
        return uv_status(-EINVAL);
    struct urnic_send_wr wr = {
        .wr_id = bind->wr_id,
        .opcode = URNIC_WR_BIND_MW,
        .send_flags = bind->send_flags,
        .bind_mw = {.mw_rkey = mw->rkey,
                    .new_rkey = urnic_inc_rkey(mw->rkey),
                    .mr_lkey = info->mr != NULL ? info->mr->lkey : 0,
                    .access = info->mw_access_flags & ~(unsigned)IBV_ACCESS_LOCAL_WRITE,
                    .addr = info->addr,
                    .length = info->length},
    };
    int err = urnic_post_send(uv_qp(qp)->urnic, &wr, NULL);
    if (err < 0)
        return uv_status(err);
    mw->rkey = wr.bind_mw.new_rkey;
    return 0;
}
