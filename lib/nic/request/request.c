/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dispatch: the common part of all requests, so that a handler gets one checked struct and returns
 * 0 or -errno.
 */
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "engine_channel.h"
#include "foreign.h"
#include "log.h"
#include "seal.h"
#include "settle.h"
#include "team.h"

void *request_reply(struct request *r, size_t len)
{
    memset(r->out, 0, len);
    r->out_len = len;
    return r->out;
}

void request_reply_fd(struct request *r, int fd, bool close_after)
{
    r->out_fd[r->nout] = fd;
    r->out_close[r->nout] = close_after;
    r->nout++;
}

/* Our end never blocks. */
int socket_pair(int type, int *ours, int *theirs)
{
    int sv[2];
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    fcntl(sv[0], F_SETFL, O_NONBLOCK); /* of our own file description: the client can't undo it */
    if (type == SOCK_SEQPACKET)
        shutdown(sv[0], SHUT_RD); /* events go one way only */
    *ours = sv[0];
    *theirs = sv[1];
    return 0;
}

int request_channel(struct request *r, enum handle_kind kind, int *ours)
{
    int theirs = -1;
    if (handle_full(&r->client->handles, kind))
        return -EDQUOT;
    int rc = socket_pair(SOCK_SEQPACKET, ours, &theirs);
    if (rc == 0)
        request_reply_fd(r, theirs, true);
    return rc;
}

static void answer_header(struct ipc_hdr *hdr, const struct ipc_hdr *request, int status)
{
    *hdr = (struct ipc_hdr){
        .type = request->type, .flags = IPC_F_REPLY, .id = request->id, .status = status};
}

int request_defer(struct request *r, size_t len, const struct wire_addr *dst,
                  int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now))
{
    int rc = deferred_start(r->client, r->in, len, dst, act, r->now);
    r->deferred = rc == 0;
    return rc;
}

void request_answer(struct client *c, const struct ipc_hdr *request, int status, void *msg,
                    size_t len)
{
    answer_header(msg, request, status);
    /* A client that doesn't read its answers loses them. */
    ipc_send(c->fd, msg, len, NULL, 0, MSG_DONTWAIT);
}

static const struct request_type *request_find(const struct nic *n, unsigned type)
{
    const struct request_type *const tables[] = {
        request_device, request_memory, request_queue, request_cm, request_engine, n->more,
    };
    for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (tables[i] && type < IPC_TYPE_MAX && tables[i][type].where != REQ_NOWHERE)
            return &tables[i][type];
    }
    return NULL;
}

/* All messages that name a device have its name right after the header. */
static int request_device_of(struct request *r)
{
    char name[IPC_NAME_MAX];
    memcpy(name, r->in + sizeof(struct ipc_hdr), sizeof(name));
    name[sizeof(name) - 1] = '\0';
    if (name[0] != '\0')
        r->device = nic_device(r->nic, name);
    else if (r->client->open)
        r->device = r->client->ctx.device->team->member[0];
    return r->device ? 0 : -ENODEV;
}

struct request_job {
    struct request *r;
    request_fn fn;
    int status;
};

static void request_on_worker(void *arg, uint64_t now)
{
    struct request_job *job = arg;
    job->r->now = now;
    job->status = job->fn(job->r);
}

/* A worker failed: undo the request on the n workers before it. */
static void request_undo(struct request *r, const struct request_type *t, unsigned n)
{
    struct request_job job = {.r = r, .fn = t->undo};
    struct device *failed = r->device;
    while (t->undo && n-- > 0) {
        r->device = failed->team->member[n];
        worker_call(r->device->worker, request_on_worker, &job);
    }
    r->device = failed;
}

static int request_run(struct request *r, const struct request_type *t)
{
    struct request_job job = {.r = r, .fn = t->run};
    int rc = 0;
    if (t->where == REQ_DEVICE || t->where == REQ_MEMBERS || t->where == REQ_OF_DEVICE)
        rc = request_device_of(r);
    else if (t->where == REQ_CONTEXT)
        rc = r->client->open ? 0 : -ENOTCONN;
    if (rc == 0 && t->where == REQ_CONTEXT) {
        r->device = r->client->ctx.device;
        rc = seal_mapped(r, r->client->ctx.doorbell_mem);
    }
    if (rc == 0 && t->where == REQ_CONTEXT && !settle_now(r)) {
        r->unsettled = true;
        return -EINPROGRESS;
    }
    if (rc == 0 && t->fds)
        rc = unread_room(&r->client->all->unread, &r->client->unread);
    if (rc == 0 && t->prepare)
        rc = t->prepare(r);
    if (rc < 0)
        return rc;
    if (t->where == REQ_CONTROL || t->where == REQ_OF_DEVICE)
        return t->run(r);
    const struct team *team = r->device->team;
    for (unsigned k = 0; k < (t->where == REQ_MEMBERS ? team->n : 1); k++) {
        if (t->where == REQ_MEMBERS)
            r->device = team->member[k];
        worker_call(r->device->worker, request_on_worker, &job);
        if (job.status < 0) {
            request_undo(r, t, k);
            break;
        }
    }
    return job.status;
}

static int request_checked(struct request *r)
{
    struct ipc_hdr hdr;
    uint8_t raw[IPC_MSG_MAX];
    memcpy(&hdr, r->in, sizeof(hdr));
    const struct request_type *t = request_find(r->nic, hdr.type);
    if (!t)
        return -ENOTSUP;
    if (t->admin && !client_is_admin(r->client))
        return -EPERM;
    memcpy(raw, r->in, r->in_len);
    int rc = ipc_msg_unpack(r->in, t->size, t->min, raw, r->in_len, t->size < IPC_MSG_MAX);
    if (rc < 0)
        return rc;
    rc = request_run(r, t);
    if (rc == -EINPROGRESS && r->unsettled)
        return settle_wait(r, t->size);
    if (rc == -EINPROGRESS && r->deferred) /* waits for programs' answers */
        rc = 0;
    if (rc == -EINPROGRESS && r->unsealed >= 0)
        rc = seal_wait(r, t->size);
    if (t->finish) {
        int late = t->finish(r);
        if (rc == 0)
            rc = late;
    }
    return rc;
}

void request_close_fds(struct request *r)
{
    for (unsigned i = 0; i < r->nfd; i++) {
        if (r->fd[i] >= 0 && r->client->own)
            close(r->fd[i]);
        else if (r->fd[i] >= 0)
            foreign_close(r->client->uid, r->fd[i]);
    }
    r->nfd = 0;
}

/* Log which kind of object the user has too many of, and a remedy. */
static void request_over_share(struct request *r, unsigned type)
{
    struct share *of[] = {r->client->share, r->client->of_device};
    struct share_lack lack;
    for (unsigned i = 0; i < 2; i++) {
        struct share *s = of[i];
        if (!s || !share_lacked(s, &lack) || !share_may_log(r->client->share, clock_now()))
            continue;
        log_warn("client",
                 "%s[%d]: %s refused: uid %u has its share of %s (%llu; all users %llu of %llu): "
                 "destroy some, or end other programs of that user",
                 r->client->comm, (int)r->client->pid, ipc_type_name(type), (unsigned)s->uid,
                 share_names[lack.kind], (unsigned long long)lack.own,
                 (unsigned long long)lack.used, (unsigned long long)lack.limit);
    }
}

int request_act(struct request *r)
{
    struct ipc_hdr request;
    r->out_len = sizeof(struct ipc_hdr);
    memset(r->out, 0, r->out_len);
    r->nout = 0;
    r->device = NULL;
    r->prepared = NULL;
    r->unmap = NULL;
    r->unsealed = -1;
    r->unsettled = false;
    r->deferred = false;
    memcpy(&request, r->in, sizeof(request));

    int status = request_checked(r);
    if (status == -EDQUOT)
        request_over_share(r, request.type);
    memory_free(r->unmap);
    if (status == -EDQUOT && r->device)
        r->device->stats.client_over_quota++;
    if (status < 0)
        log_debug("control", "%s[%d]: %s: %s", r->client->comm, (int)r->client->pid,
                  ipc_type_name(request.type), strerror(-status));
    if (status < 0)
        r->out_len = sizeof(request);
    answer_header((struct ipc_hdr *)(void *)r->out, &request, status);
    return status;
}

void request_end(struct request *r, bool answered)
{
    for (unsigned i = 0; i < r->nout; i++) {
        if (r->out_close[i])
            close(r->out_fd[i]);
    }
    qslab_answered(&r->client->qslabs, answered);
    qslab_clean(&r->client->qslabs);
    request_close_fds(r);
}

void request_serve(struct request *r)
{
    int status = request_act(r);
    if (!r->deferred) {
        /* The socket's buffer holds many answers: a client that lets it fill is not listening. */
        int rc = ipc_send(r->client->fd, r->out, r->out_len, r->out_fd, status < 0 ? 0 : r->nout,
                          MSG_DONTWAIT);
        if (rc < 0 && rc != -EPIPE)
            r->client->gone = true;
        else if (rc == 0 && status >= 0)
            unread_sent(&r->client->unread, r->nout);
    }
    request_end(r, status >= 0);
}
