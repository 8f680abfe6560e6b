/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ccctl.h.
 */
#include "ccctl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "cclog.h"
#include "log.h"
#include "progctl.h"
#include "qpn.h"
#include "quota.h"
#include "team.h"

#define MEMBER  20u                 /* bits of `at` below the number of the device's worker */
#define PAGE    64u                 /* queue pairs of an answer; their longest values fit */
#define AT_ONCE (IPC_MSG_MAX / 64u) /* queue pairs: more than an answer holds */

struct cc_job {
    struct request *r;
    const char *text; /* parameters to set; NULL = none */
    struct device *device;
    bool set, list, paged;
    struct cc_conf conf;
    uint32_t qpn; /* queue pair; 0 = the device */
    uint32_t at;  /* next place in the list; 0 = the end */
    json_t *out;
    int rc;
};

static json_t *rate_json(uint64_t rate)
{
    return rate == CC_UNLIMITED ? json_null() : json_integer((json_int_t)rate);
}

/* Is there room for one more? */
static bool have_room(const struct cc_job *job)
{
    return json_array_size(json_object_get(job->out, "qps")) < (job->paged ? PAGE : AT_ONCE);
}

struct qp_facts {
    uint32_t qpn;
    const char *cc;
    uint64_t rate, target;
    double alpha;
    unsigned recovery;
    bool agreed;
};

static void add_qp(struct cc_job *job, const struct qp_facts *f)
{
    json_array_append_new(
        json_object_get(job->out, "qps"),
        json_pack("{s:i,s:s,s:o,s:o,s:f,s:s,s:b}", "qpn", (int)f->qpn, "cc", f->cc, "rate",
                  rate_json(f->rate), "target", rate_json(f->target), "alpha", f->alpha, "recovery",
                  engine_recovery_names[f->recovery], "agreed", f->agreed ? 1 : 0));
}

static bool qp_visit(void *arg, struct qp *qp)
{
    struct cc_job *job = arg;
    struct engine_qp_info info;
    if (!have_room(job))
        return false;
    engine_qp_info(job->device->engine, qp, &info);
    const struct qp_facts f = {
        .qpn = info.qpn,
        .cc = info.cc->type->name,
        .rate = info.cc_rate,
        .target = info.cc_target,
        .alpha = (double)info.cc_alpha / CC_ONE,
        .recovery = info.recovery,
        .agreed = info.recovery_agreed,
    };
    add_qp(job, &f);
    return true;
}

/* ---- engines in programs ---- */

/* Queue pairs from the answer of the program that has this block. */
static void add_asked(struct cc_job *job, unsigned block)
{
    struct ipc_asked_qp q;
    for (unsigned i = 0; progctl_qp(job->r, job->device, block, i, &q); i++) {
        const struct qp_facts f = {
            .qpn = q.info.qpn,
            .cc = q.info.cc,
            .rate = q.info.cc_rate,
            .target = q.cc_target,
            .alpha = (double)q.info.cc_alpha / (1u << IPC_ALPHA_BITS),
            .recovery = q.info.recovery,
            .agreed = q.info.recovery_agreed,
        };
        if (f.qpn && (!job->qpn || job->qpn == f.qpn))
            add_qp(job, &f);
    }
}

/* One queue pair of a program: send the request, and then take its answer. */
static void cc_of_program(struct cc_job *job)
{
    struct ipc_asked_cc a;
    if (!job->r->ask) {
        job->rc = progctl_ask_cc(job->r, job->device, job->qpn, 0, job->text);
        return;
    }
    const struct switch_ask *got = &job->r->ask->of[0];
    job->rc = got->status < 0 ? got->status : got->len == sizeof(a) ? 0 : -EPROTO;
    if (job->rc < 0)
        return;
    memcpy(&a, got->data, sizeof(a));
    a.cc[sizeof(a.cc) - 1] = '\0';
    json_t *cc = json_string(a.cc); /* NULL if it is not text */
    json_object_set_new(job->out, "cc", cc ? cc : json_string("?"));
    json_object_set_new(job->out, "qps", json_array());
    add_asked(job, qpn_block(job->qpn));
}

/* A page of a program's queue pairs. */
static void cc_list_program(struct cc_job *job)
{
    const uint32_t at = job->at;
    if (!job->r->ask) {
        job->rc = progctl_ask_cc(job->r, job->device, 0, at, NULL);
        if (job->rc == -ENOENT) { /* it has gone */
            job->rc = 0;
            job->at = progctl_first(job->device, progctl_block(at) + 1);
        }
        return;
    }
    add_asked(job, progctl_block(at));
    if (job->r->ask->of[0].status == -ETIMEDOUT)
        json_object_set_new(job->out, "silent", json_integer(1));
    job->at = progctl_next(job->r, job->device, at);
}

/* ---- on the worker ---- */

static void cc_run_job(void *arg, uint64_t now)
{
    struct cc_job *job = arg;
    struct engine *e = job->device->engine;
    const struct cc_conf *conf;
    struct qp *qp = job->qpn ? engine_qp_find(e, job->qpn) : NULL;
    char text[CC_TEXT];
    job->r->now = now;
    if (job->qpn && progctl_has(job->device, job->qpn)) {
        cc_of_program(job);
        return;
    }
    if (job->qpn && !qp) {
        job->rc = -ENOENT;
        return;
    }
    if (job->set)
        job->rc = qp ? engine_qp_set_cc(e, qp, &job->conf, now) : engine_set_cc(e, &job->conf, now);
    if (qp) {
        struct engine_qp_info info;
        engine_qp_info(e, qp, &info);
        conf = info.cc;
    } else {
        conf = engine_cc(e);
    }
    cc_conf_format(conf, text, sizeof(text));
    json_object_set_new(job->out, "cc", json_string(text));
    if (job->list || qp)
        json_object_set_new(job->out, "qps", json_array());
    if (qp && qp != engine_qp_find(e, WIRE_QPN_GSI))
        qp_visit(job, qp);
}

/* Run on each worker of the device, or on that of the queue pair. */
static void cc_each(struct cc_job *job)
{
    const struct team *t = job->device->team;
    const unsigned its = progctl_worker_of(job->device, job->qpn);
    for (unsigned k = 0; k < t->n && job->rc == 0; k++) {
        job->device = t->member[k];
        if (job->qpn == 0 || k == its)
            worker_call(job->device->worker, cc_run_job, job);
    }
    if (job->qpn && its >= t->n)
        job->rc = -ENOENT;
    job->device = t->member[0];
}

/* SHM-12: the worker looks at a bounded number of queue pairs at a time. */
static void cc_list_job(void *arg, uint64_t now)
{
    struct cc_job *job = arg;
    const struct device *d = job->device;
    job->r->now = now;
    if (job->at & PROGCTL_FIRST) {
        cc_list_program(job);
        return;
    }
    uint32_t next = device_list(job->device, job->at & ((1u << MEMBER) - 1), qp_visit, job);
    job->at = next                         ? d->member << MEMBER | next
              : d->member + 1 < d->team->n ? (d->member + 1) << MEMBER
              : job->paged                 ? progctl_begin(d)
                                           : 0;
}

/* The worker that the next part of the list is on; perhaps the device has fewer. */
static unsigned cc_worker(const struct cc_job *job)
{
    return job->at & PROGCTL_FIRST ? progctl_worker(job->at) : job->at >> MEMBER;
}

/* Run on all workers of the device, one after the other. */
static void cc_list(struct cc_job *job)
{
    const struct team *t = job->device->team;
    do {
        job->device = t->member[cc_worker(job)];
        worker_call(job->device->worker, cc_list_job, job);
    } while (job->at && !job->paged && have_room(job));
    if (job->rc < 0)
        return;
    if (job->at && job->paged)
        json_object_set_new(job->out, "next", json_integer(job->at));
    else if (job->at)
        job->rc = -EMSGSIZE; /* a too long list ends here, so that it does not delay data */
}

/* Read the queue pair's number; 0 = none given. A wrong one must not count as none, which means the
 * device. */
static int qpn_of(const json_t *in, uint32_t *out)
{
    const json_t *qpn = json_object_get(in, "qpn");
    json_int_t n = json_integer_value(qpn);
    if (qpn && (!json_is_integer(qpn) || n < 0 || n > WIRE_QPN_MASK))
        return -EINVAL;
    *out = (uint32_t)n;
    return 0;
}

/* Read the start of the list of queue pairs, if it comes in pieces. */
static int first_of(const json_t *in, struct cc_job *job)
{
    const json_t *first = json_object_get(in, "first");
    json_int_t n = json_integer_value(first);
    if (!first)
        return 0;
    if (!json_is_integer(first) || n < 0 || n > UINT32_MAX ||
        (!(n & PROGCTL_FIRST) && n >= TEAM_MAX << MEMBER) || !json_object_get(in, "device"))
        return -EINVAL;
    job->paged = true;
    job->at = (uint32_t)n;
    return 0;
}

int ccctl_admin(struct request *r, const json_t *in, char *out, size_t size)
{
    const char *device = json_string_value(json_object_get(in, "device"));
    const char *set = json_string_value(json_object_get(in, "set"));
    struct cc_job job = {
        .r = r,
        .text = set,
        .set = set != NULL,
        .list = json_is_true(json_object_get(in, "qps")),
    };
    char err[CONFIG_ERR];
    size_t used = 0;
    bool found = false;
    if (set && !client_is_admin(r->client))
        return -EPERM;
    if (qpn_of(in, &job.qpn) < 0 || first_of(in, &job) < 0)
        return -EINVAL;
    if (set && cc_conf_parse(&job.conf, set, err, sizeof(err)) < 0) {
        log_warn("cc", "%s", err);
        return -EINVAL;
    }
    for (unsigned i = 0; i < r->nic->ndevice; i++) {
        job.device = r->nic->device[i];
        if (device && strcmp(device, job.device->name) != 0)
            continue;
        job.out = json_pack("{s:s}", "device", job.device->name);
        job.rc = 0;
        const struct team *team = job.device->team;
        if (job.paged && cc_worker(&job) >= team->n)
            job.rc = -EINVAL;
        else
            cc_each(&job);
        if (job.rc == 0 && job.list && !job.qpn)
            cc_list(&job);
        job.device = team->member[0];
        if (job.rc == -ENOENT && !device) { /* another device may have the queue pair */
            json_decref(job.out);
            continue;
        }
        if (found && used < size)
            out[used++] = '\n';
        size_t room = used < size ? size - used : 0;
        size_t n = job.rc < 0 ? 0 : json_dumpb(job.out, out + used, room, JSON_COMPACT);
        json_decref(job.out);
        if (job.rc < 0)
            return job.rc;
        if (n > room)
            return -EMSGSIZE;
        used += n;
        found = true;
        if (set && job.qpn)
            cclog_qp(job.device, job.qpn, &job.conf);
        else if (set)
            cclog_device(job.device);
    }
    return found ? (int)used : job.qpn && !device ? -ENOENT : -ENODEV;
}
