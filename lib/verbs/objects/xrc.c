/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Domains of extended reliable connections, and their queue pairs, which may have several handles.
 * A domain belongs to this process; a domain with a file is found by the file (device and inode)
 * among the process's own. Rules: XRC-01..XRC-03.
 */
#include "xrc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Guards the lists here and the counts of users. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct uv_xrcd *domains;
static struct uv_qp *targets;

/* ---- domains ---- */

static struct uv_xrcd *find(struct ibv_context *context, const struct stat *file)
{
    struct uv_xrcd *d = domains;
    while (d != NULL && !(d->xrcd.context == context && d->by_file && d->dev == file->st_dev &&
                          d->ino == file->st_ino))
        d = d->next;
    return d;
}

static struct uv_xrcd *domain_new(struct ibv_context *context, const struct stat *file)
{
    struct uv_xrcd *d = calloc(1, sizeof(*d));
    int err = d == NULL ? -ENOMEM : urnic_alloc_pd(uv_ctx(context)->urnic, &d->urnic);
    if (err < 0) {
        free(d);
        return uv_null(err);
    }
    d->xrcd.context = context;
    d->users = 1;
    if (file != NULL) {
        d->by_file = true;
        d->dev = file->st_dev;
        d->ino = file->st_ino;
    }
    d->next = domains;
    domains = d;
    return d;
}

struct ibv_xrcd *uv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct stat file;
    if ((attr->comp_mask & ~both) != 0)
        return uv_null(-EOPNOTSUPP);
    if (attr->comp_mask != both || (attr->oflags & ~(O_CREAT | O_EXCL)) != 0 ||
        (attr->fd == -1 && !(attr->oflags & O_CREAT)))
        return uv_null(-EINVAL);
    if (attr->fd != -1 && fstat(attr->fd, &file) < 0)
        return uv_null(-errno);
    pthread_mutex_lock(&lock);
    struct uv_xrcd *d = attr->fd == -1 ? NULL : find(context, &file);
    if (d != NULL && (attr->oflags & O_EXCL)) {
        errno = EEXIST;
        d = NULL;
    } else if (d != NULL) {
        d->users++;
    } else if (!(attr->oflags & O_CREAT)) {
        errno = EOPNOTSUPP; /* the domain could only be another process's */
    } else {
        d = domain_new(context, attr->fd == -1 ? NULL : &file);
    }
    pthread_mutex_unlock(&lock);
    return d != NULL ? &d->xrcd : NULL;
}

int uv_close_xrcd(struct ibv_xrcd *xrcd)
{
    struct uv_xrcd *d = (struct uv_xrcd *)xrcd;
    int err = 0;
    pthread_mutex_lock(&lock);
    if (d->users == 1) {
        err = urnic_dealloc_pd(d->urnic);
        struct uv_xrcd **at = &domains;
        while (err == 0 && *at != d)
            at = &(*at)->next;
        if (err == 0)
            *at = d->next;
    }
    bool last = err == 0 && --d->users == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        free(d);
    return uv_status(err);
}

int uv_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
    *num = urnic_srq_num(uv_srq(srq)->urnic);
    return *num != 0 ? 0 : uv_status(-EINVAL);
}

/* ---- queue pairs that receive ---- */

void uv_target_add(struct uv_qp *qp, struct ibv_xrcd *xrcd)
{
    pthread_mutex_lock(&lock);
    qp->xrcd = xrcd;
    qp->real = qp;
    qp->handles = 1;
    qp->next = targets;
    targets = qp;
    pthread_mutex_unlock(&lock);
}

struct ibv_qp *uv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    const uint32_t known = need | IBV_QP_OPEN_ATTR_CONTEXT;
    if ((attr->comp_mask & ~known) != 0)
        return uv_null(-EOPNOTSUPP);
    if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV)
        return uv_null(-EINVAL);
    struct uv_qp *qp = calloc(1, sizeof(*qp));
    if (qp == NULL)
        return uv_null(-ENOMEM);
    pthread_mutex_lock(&lock);
    struct uv_qp *real = targets;
    while (real != NULL && !(real->qp.context == context && real->xrcd == attr->xrcd &&
                             real->qp.qp_num == attr->qp_num))
        real = real->next;
    if (real != NULL) {
        real->handles++;
        *qp = (struct uv_qp){.urnic = real->urnic, .cap = real->cap, .real = real};
        qp->qp.context = context;
        qp->qp.qp_num = real->qp.qp_num;
        qp->qp.handle = real->qp.handle;
        qp->qp.state = real->qp.state;
        qp->qp.qp_type = IBV_QPT_XRC_RECV;
        if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
            qp->qp.qp_context = attr->qp_context;
    }
    pthread_mutex_unlock(&lock);
    if (real == NULL) {
        free(qp);
        return uv_null(-EINVAL);
    }
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    return &qp->qp;
}

int uv_target_drop(struct uv_qp *qp)
{
    struct uv_qp *real = qp->real;
    int err = 0;
    pthread_mutex_lock(&lock);
    bool last = real->handles == 1;
    if (last)
        err = urnic_destroy_qp(real->urnic);
    if (err == 0)
        real->handles--;
    struct uv_qp **at = &targets;
    while (last && err == 0 && *at != real)
        at = &(*at)->next;
    if (last && err == 0)
        *at = real->next;
    pthread_mutex_unlock(&lock);
    if (err < 0)
        return err;
    if (qp != real)
        free(qp);
    if (last)
        free(real); /* events may have named it until now */
    return 0;
}
