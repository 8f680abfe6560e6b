/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Administrators' requests: counters, queue pairs, captures, addresses, emulated links. Every
 * client may read, except facts with which one user could send in another's name (SEC-33). Changes
 * are for root and the daemon's own user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_capture.h"
#include "client_qp.h"
#include "control.h"
#include "device_addr.h"
#include "linkctl.h"
#include "progctl.h"
#include "qp_info.h"
#include "qpn.h"
#include "request.h"
#include "stats.h"
#include "team.h"

/* ---- counters ---- */

/* The counters of all workers of the device, and of one. */
struct stats_sum {
    unsigned n;
    struct stats_entry all[STATS_MAX], one[STATS_MAX];
};

static int prep_stats(struct request *r)
{
    r->prepared = calloc(1, sizeof(struct stats_sum));
    return r->prepared ? 0 : -ENOMEM;
}

static int req_stats(struct request *r)
{
    struct stats_sum *s = r->prepared;
    if (request_in(r, struct ipc_by_device)->first == 0) {
        int rc = progctl_count(r);
        if (rc < 0)
            return rc;
    }
    if (r->device->member == 0)
        s->n = stats_collect(r->device, s->all);
    else
        stats_merge(s->all, s->n, s->one, stats_collect(r->device, s->one));
    return 0;
}

static int finish_stats(struct request *r)
{
    const uint32_t first = request_in(r, struct ipc_by_device)->first;
    const uint32_t max = (IPC_MSG_MAX - sizeof(struct ipc_stats)) / sizeof(struct ipc_counter);
    struct stats_sum *s = r->prepared;
    if (!s)
        return 0;
    struct stats_entry *all = s->all;
    unsigned n = s->n;

    /* of the daemon */
    all[n++] = (struct stats_entry){"clients", r->nic->clients.n};
    all[n++] = (struct stats_entry){"clients_refused", urnicd_of(r->nic)->refused};
    for (unsigned i = SHARE_FIRST_OF_DAEMON; i < SHARE_KINDS; i++)
        all[n++] =
            (struct stats_entry){share_counters[i], share_refusals(&r->nic->clients.share, i)};
    uint32_t count = first < n ? n - first : 0;

    if (count > max)
        count = max;
    struct ipc_stats *out = request_reply(r, sizeof(*out) + count * sizeof(struct ipc_counter));
    for (uint32_t i = 0; i < count; i++) {
        strncpy(out->counter[i].name, all[first + i].name, sizeof(out->counter[i].name) - 1);
        out->counter[i].value = all[first + i].value;
    }
    out->count = count;
    out->next = first + count < n ? first + count : 0;
    free(s);
    return 0;
}

/* ---- queue pairs ---- */

struct qp_walk {
    const struct ipc_qp_filter *filter;
    struct device *device;
    const struct client *client; /* the requesting client */
    struct ipc_qp_list *out;
    uint32_t max;
};

static bool qp_visit(void *arg, struct qp *qp)
{
    struct qp_walk *w = arg;
    const struct ipc_qp_filter *f = w->filter;
    struct ipc_asked_qp info;
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    if (engine_qp_query(qp, &attr, &caps) < 0 || !caps.arg)
        return true; /* QP1 belongs to no client */
    const struct client_qp *cqp = caps.arg;
    if ((f->pid != 0 && f->pid != (uint32_t)cqp->ctx->client->pid) ||
        (f->states != 0 && !(f->states & (1u << attr.state))) ||
        (f->types != 0 && !(f->types & (1u << caps.type))))
        return true;
    if (w->out->count == w->max)
        return false; /* the first one of the next answer */
    qp_info(w->device, cqp, &info);
    struct ipc_qp_info *q = &w->out->qp[w->out->count++];
    *q = info.info;
    if (!qp_info_is_for(w->client, cqp->ctx->client))
        qp_info_hide(q);
    return true;
}

/* The position of a listing: the worker of the device, and the place there. */
#define LIST_MEMBER 20u

/* The worker that has the queue pair, or the next part of the listing. */
static int prep_qp(struct request *r)
{
    const struct ipc_qp_filter *in = request_in(r, struct ipc_qp_filter);
    const struct team *t = r->device->team;
    unsigned k = in->qpn                     ? progctl_worker_of(r->device, in->qpn)
                 : in->first & PROGCTL_FIRST ? progctl_worker(in->first)
                                             : in->first >> LIST_MEMBER;
    if (k >= t->n)
        return in->qpn ? 0 : -EINVAL; /* no queue pair has that number */
    r->device = t->member[k];
    return 0;
}

static int req_qp_list(struct request *r)
{
    const uint32_t max = (IPC_MSG_MAX - sizeof(struct ipc_qp_list)) / sizeof(struct ipc_qp_info);
    struct ipc_qp_list *out = request_reply(r, IPC_MSG_MAX);
    struct qp_walk w = {.filter = request_in(r, struct ipc_qp_filter),
                        .device = r->device,
                        .client = r->client,
                        .out = out,
                        .max = max};

    if (r->ask || (!w.filter->qpn && w.filter->first & PROGCTL_FIRST) ||
        progctl_has(r->device, w.filter->qpn))
        return progctl_list(r, out, max);
    /* SHM-12: an answer looks at a bounded number of queue pairs, and may hold none. */
    if (w.filter->qpn) {
        struct qp *qp = engine_qp_find(r->device->engine, w.filter->qpn);
        if (qp)
            qp_visit(&w, qp);
    } else {
        const uint32_t k = r->device->member, mask = (1u << LIST_MEMBER) - 1;
        out->next = device_list(r->device, w.filter->first & mask, qp_visit, &w);
        if (out->next)
            out->next |= k << LIST_MEMBER;
        else if (k + 1 < r->device->team->n)
            out->next = (k + 1) << LIST_MEMBER;
        else
            out->next = progctl_begin(r->device);
    }
    r->out_len = sizeof(*out) + out->count * sizeof(struct ipc_qp_info);
    return 0;
}

static int req_qp_history(struct request *r)
{
    const struct ipc_qp_filter *in = request_in(r, struct ipc_qp_filter);
    if (r->ask || progctl_has(r->device, in->qpn))
        return progctl_history(r);
    struct qp *qp = engine_qp_find(r->device->engine, in->qpn);
    struct ipc_text *out = request_reply(r, IPC_MSG_MAX);
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    if (!qp)
        return -ENOENT;
    bool owned = engine_qp_query(qp, &attr, &caps) == 0 && caps.arg;
    const struct client_qp *cqp = owned ? caps.arg : NULL;
    if (!(cqp ? qp_info_is_for(r->client, cqp->ctx->client) : client_is_admin(r->client)))
        return -EPERM;
    out->len =
        (uint32_t)engine_qp_history(r->device->engine, qp, out->text, IPC_MSG_MAX - sizeof(*out));
    r->out_len = sizeof(*out) + out->len;
    return 0;
}

/* ---- captures ---- */

static int req_capture_start(struct request *r)
{
    const struct ipc_capture *in = request_in(r, struct ipc_capture);
    if (r->nfd != 1)
        return -EBADF;
    const struct capture_params p = {
        .fd = r->fd[0],
        .news = r->nic->clients.captures_fd,
        .snaplen = in->snaplen,
        .qpn = in->qpn,
        .comments = (in->flags & IPC_CAPTURE_DROPS) != 0,
        .limit = in->limit,
    };
    int rc = client_capture_open(r->client, r->device, &p, &in->hdr);
    if (rc < 0)
        return rc;
    r->fd[0] = -1;
    r->deferred = true;
    return 0;
}

static int req_capture_stop(struct request *r)
{
    const struct ipc_handle *in = request_in(r, struct ipc_handle);
    int rc = client_capture_stop(r->client, in->handle, &in->hdr);
    r->deferred = rc == 0;
    return rc;
}

/* ---- addresses, links ---- */

static int req_addr_add(struct request *r)
{
    const struct ipc_addr_admin *in = request_in(r, struct ipc_addr_admin);
    struct config_addr a = {.prefix = (uint8_t)in->prefix_len};
    memcpy(a.ip.b, in->ip, 16);
    if (in->prefix_len > (wire_addr_is_v4(&a.ip) ? 32u : 128u) || wire_addr_is_multicast(&a.ip))
        return -EINVAL;
    return device_addr_add(r->device, &a);
}

static int req_addr_del(struct request *r)
{
    struct wire_addr ip;
    memcpy(ip.b, request_in(r, struct ipc_addr_admin)->ip, 16);
    return device_addr_del(r->device, &ip, r->now);
}

static int req_link_set(struct request *r)
{
    return linkctl_set(r->device, request_in(r, struct ipc_link_admin), r->now);
}

static int req_admin(struct request *r)
{
    const struct ipc_text *in = request_in(r, struct ipc_text);
    struct ipc_text *out = request_reply(r, IPC_MSG_MAX);
    size_t room = IPC_MSG_MAX - sizeof(*out);
    if (in->len > r->in_len - sizeof(*in))
        return -EBADMSG;
    int rc = linkctl_admin(r, in->text, in->len, out->text, room);
    if (rc < 0)
        return rc;
    out->len = (uint32_t)rc;
    r->out_len = sizeof(*out) + out->len;
    return 0;
}

const struct request_type request_admin[IPC_TYPE_MAX] = {
    [IPC_STATS] = {REQ_MEMBERS, false, BY_DEVICE, .prepare = prep_stats, .run = req_stats,
                   .finish = finish_stats},
    [IPC_QP_LIST] = {REQ_DEVICE, false, WHOLE(ipc_qp_filter), .prepare = prep_qp,
                     .run = req_qp_list},
    [IPC_QP_HISTORY] = {REQ_DEVICE, false, WHOLE(ipc_qp_filter), .prepare = prep_qp,
                        .run = req_qp_history},
    [IPC_CAPTURE_START] = {REQ_OF_DEVICE, true, SINCE(ipc_capture, qpn), .run = req_capture_start},
    [IPC_CAPTURE_STOP] = {REQ_CONTROL, true, BY_HANDLE, .run = req_capture_stop},
    [IPC_ADDR_ADD] = {REQ_MEMBERS, true, WHOLE(ipc_addr_admin), .run = req_addr_add,
                      .undo = req_addr_del},
    [IPC_ADDR_DEL] = {REQ_MEMBERS, true, WHOLE(ipc_addr_admin), .run = req_addr_del},
    [IPC_LINK_SET] = {REQ_DEVICE, true, WHOLE(ipc_link_admin), .run = req_link_set},
    [IPC_ADMIN] = {REQ_CONTROL, false, sizeof(struct ipc_text), IPC_MSG_MAX, .run = req_admin},
};
