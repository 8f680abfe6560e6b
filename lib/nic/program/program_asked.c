/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_asked.h"

#include <errno.h>
#include <string.h>

#include "cc.h"
#include "client_qp.h"
#include "clock.h"
#include "device.h"
#include "mem.h"
#include "qp_info.h"

_Static_assert(CC_TEXT <= IPC_ASK_CC, "a congestion control has room as text");

/* ---- counters ---- */

static void add_counter(struct ipc_answer *a, uint8_t *data, const char *name, uint64_t value)
{
    struct ipc_asked_counter c = {.value = value};
    if (value == 0 || a->len + sizeof(c) > IPC_ASK_MAX)
        return;
    strncpy(c.name, name, sizeof(c.name) - 1);
    memcpy(data + a->len, &c, sizeof(c));
    a->len += (uint32_t)sizeof(c);
}

static void counters(const struct device *d, struct ipc_answer *a, uint8_t *data)
{
    const uint64_t *c = engine_counters(d->engine);
    struct engine_usage u;
    struct mem_usage m;
    for (unsigned i = 1; i < ENGINE_COUNTER_MAX; i++)
        add_counter(a, data, engine_counter_names[i], c[i]);
    engine_usage(d->engine, &u);
    mem_usage(engine_mem(d->engine), &m);
    add_counter(a, data, "qps", u.qps);
    add_counter(a, data, "cqs", u.cqs);
    add_counter(a, data, "srqs", u.srqs);
    add_counter(a, data, "pds", m.pds);
    add_counter(a, data, "mrs", m.mrs);
    add_counter(a, data, "mws", m.mws);
    add_counter(a, data, "mr_octets", m.octets);
}

/* ---- queue pairs ---- */

struct asked_walk {
    const struct device *device;
    const struct ipc_question *q;
    struct ipc_answer *a;
    uint8_t *data;
};

/* The queue pair of this engine; NULL = none, or QP1. */
static const struct client_qp *owned(const struct qp *qp)
{
    struct engine_qp_params caps;
    struct engine_qp_attr attr;
    return engine_qp_query(qp, &attr, &caps) == 0 ? caps.arg : NULL;
}

static bool visit(void *arg, struct qp *qp)
{
    const struct asked_walk *w = arg;
    const struct client_qp *cqp = owned(qp);
    struct ipc_asked_qp out;
    if (!cqp)
        return true;
    qp_info(w->device, cqp, &out);
    if ((w->q->states && !(w->q->states & (1u << out.info.state))) ||
        (w->q->types && !(w->q->types & (1u << out.info.type))))
        return true;
    if (w->a->len + sizeof(out) > IPC_ASK_MAX)
        return false; /* it is the first queue pair of the next answer */
    memcpy(w->data + w->a->len, &out, sizeof(out));
    w->a->len += (uint32_t)sizeof(out);
    return true;
}

static void qps(struct device *d, struct qp *one, const struct ipc_question *q,
                struct ipc_answer *a, uint8_t *data)
{
    struct asked_walk w = {.device = d, .q = q, .a = a, .data = data};
    if (one)
        visit(&w, one);
    else
        a->next = device_list(d, q->first, visit, &w);
}

static int cc_of(struct device *d, struct qp *qp, const struct ipc_question *q,
                 struct ipc_answer *a, uint8_t *data)
{
    const struct client_qp *cqp = owned(qp);
    struct engine_qp_info info;
    struct ipc_asked_cc out;
    char why[CONFIG_ERR];
    struct cc_conf cc;
    if (!cqp)
        return -ENOENT;
    if (q->cc[0]) {
        int rc = cc_conf_parse(&cc, q->cc, why, sizeof(why));
        if (rc == 0)
            rc = engine_qp_set_cc(d->engine, qp, &cc, clock_now());
        if (rc < 0)
            return rc;
    }
    memset(&out, 0, sizeof(out));
    qp_info(d, cqp, &out.qp);
    engine_qp_info(d->engine, qp, &info);
    cc_conf_format(info.cc, out.cc, sizeof(out.cc));
    memcpy(data, &out, sizeof(out));
    a->len = (uint32_t)sizeof(out);
    return 0;
}

void program_asked(void *arg, const struct ipc_question *q, struct ipc_answer *a, uint8_t *data)
{
    struct device *d = *(struct device **)arg;
    struct qp *qp = q->qpn ? engine_qp_find(d->engine, q->qpn) : NULL;
    if (q->qpn && !qp) {
        a->status = -ENOENT;
        return;
    }
    if (q->kind == IPC_ASK_COUNTERS)
        counters(d, a, data);
    else if (q->kind == IPC_ASK_QPS)
        qps(d, qp, q, a, data);
    else if (q->kind == IPC_ASK_HISTORY && qp)
        a->len = (uint32_t)engine_qp_history(d->engine, qp, (char *)data, IPC_ASK_MAX);
    else if (q->kind == IPC_ASK_CC_OF && qp)
        a->status = cc_of(d, qp, q, a, data);
    else
        a->status = -ENOTSUP;
}
