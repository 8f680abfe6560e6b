/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See client_capture.h. Threads of captures report by an eventfd of the daemon that they have
 * started or are done.
 */
#include "client_capture.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "clients.h"
#include "clock.h"
#include "device.h"
#include "log.h"
#include "quota.h"
#include "team.h"
#include "worker.h"

#define CLIENT_CAPTURE_HANDLE  0xCA97u         /* of its own kind; a connection has at most one */
#define CLIENT_CAPTURE_LAST_NS (3 * CLOCK_SEC) /* for files, when the daemon ends */

struct client_capture_job {
    struct capture *capture;
    struct device *member;
};

static void client_capture_on(void *arg, uint64_t now)
{
    struct client_capture_job *job = arg;
    (void)now;
    capture_attach(job->capture, job->member);
}

static void client_capture_off(void *arg, uint64_t now)
{
    struct client_capture_job *job = arg;
    (void)now;
    capture_detach(job->capture, job->member);
}

/* On each worker of the device. */
static void client_capture_each(struct client_capture *cc, void (*fn)(void *arg, uint64_t now))
{
    const struct team *t = capture_device(cc->capture)->team;
    for (unsigned k = 0; k < t->n; k++) {
        struct client_capture_job job = {cc->capture, t->member[k]};
        worker_call(t->member[k]->worker, fn, &job);
    }
}

int client_capture_open(struct client *c, struct device *d, const struct capture_params *p,
                        const struct ipc_hdr *request)
{
    struct clients *all = c->all;
    unsigned left = 0;
    if (c->capture)
        return -EBUSY;
    for (const struct client_capture *o = all->captures; o; o = o->next)
        left += !o->client;
    if (left >= QUOTA_CAPTURES)
        return -EDQUOT;
    struct client_capture *cc = calloc(1, sizeof(*cc));
    if (!cc)
        return -ENOMEM;
    int rc = capture_open(d, p, &cc->capture);
    if (rc < 0) {
        free(cc);
        return rc;
    }
    cc->request = *request;
    cc->client = c;
    c->capture = cc;
    cc->next = all->captures;
    all->captures = cc;
    client_capture_each(cc, client_capture_on);
    return 0;
}

/* With this status. */
static void client_capture_started(struct client_capture *cc, int status)
{
    struct ipc_handle out = {.handle = CLIENT_CAPTURE_HANDLE};
    cc->state = CAPTURE_RUNS;
    cc->client->all->answer(cc->client, &cc->request, status, &out,
                            status < 0 ? sizeof(out.hdr) : sizeof(out));
}

static void client_capture_end(struct client_capture *cc)
{
    client_capture_each(cc, client_capture_off);
    capture_stop(cc->capture);
    cc->state = CAPTURE_ENDS;
}

int client_capture_stop(struct client *c, uint32_t handle, const struct ipc_hdr *request)
{
    struct client_capture *cc = c->capture;
    if (!cc || cc->state == CAPTURE_ENDS || handle != CLIENT_CAPTURE_HANDLE)
        return -EINVAL;
    if (cc->state == CAPTURE_STARTS)
        client_capture_started(cc, -ECANCELED);
    cc->request = *request;
    client_capture_end(cc);
    client_capture_service(c->all); /* it may have been finished before */
    return 0;
}

void client_capture_leave(struct client *c)
{
    struct client_capture *cc = c->capture;
    if (!cc)
        return;
    c->capture = NULL;
    cc->client = NULL;
    if (cc->state != CAPTURE_ENDS)
        client_capture_end(cc);
    client_capture_service(c->all);
}

static void client_capture_close(struct client_capture *cc)
{
    struct ipc_captured out = {0};
    struct capture_result res;
    if (cc->state != CAPTURE_ENDS)
        client_capture_end(cc); /* it could not start: its start gets the error */
    int status = capture_close(cc->capture, &res);

    out.packets = res.packets;
    out.octets = res.octets;
    out.lost = res.lost;
    if (cc->client) {
        /* The counts are reported even if the end failed, but not to a request that waits for the
         * start. */
        bool counts = cc->request.type == IPC_CAPTURE_STOP;
        cc->client->capture = NULL;
        cc->client->all->answer(cc->client, &cc->request, status, &out,
                                counts ? sizeof(out) : sizeof(out.hdr));
    }
    free(cc);
}

void client_capture_service(struct clients *all)
{
    uint64_t n;
    (void)!read(all->captures_fd, &n, sizeof(n));
    for (struct client_capture **p = &all->captures; *p;) {
        struct client_capture *cc = *p;
        if (capture_is_done(cc->capture)) {
            *p = cc->next;
            client_capture_close(cc);
            continue;
        }
        if (cc->state == CAPTURE_STARTS && capture_has_started(cc->capture))
            client_capture_started(cc, 0);
        p = &cc->next;
    }
}

void client_capture_fini(struct clients *all)
{
    uint64_t until = clock_now() + CLIENT_CAPTURE_LAST_NS;
    while (all->captures && clock_now() < until) {
        poll(&(struct pollfd){all->captures_fd, POLLIN, 0}, 1,
             (int)(CLIENT_CAPTURE_LAST_NS / CLOCK_MS));
        client_capture_service(all);
    }
    if (all->captures)
        log_warn("daemon", "a capture isn't whole: its file takes nothing");
}
