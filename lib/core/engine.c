/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's start and end, and time-outs. engine_rx.c receives, engine_tx.c sends.
 */
#include "engine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cnp.h"
#include "engine_ok.h"
#include "engine_priv.h"
#include "guess.h"
#include "limiter.h"
#include "numbers.h"
#include "qp_life.h"
#include "qp_ok.h"
#include "resp_recovery.h"
#include "retransmit.h"
#include "schedule.h"

#define MAX_QP_DEFAULT 1024u

const char *const engine_counter_names[ENGINE_COUNTER_MAX] = {
#define X(name, rule) #name,
    ENGINE_COUNTERS(X)
#undef X
};

const char *const engine_counter_rules[ENGINE_COUNTER_MAX] = {
#define X(name, rule) rule,
    ENGINE_COUNTERS(X)
#undef X
};

void engine_set_window(struct engine *e, uint32_t window)
{
    if (window > e->p.window)
        e->p.window = window;
    if (e->p.read_window && window > e->p.read_window)
        e->p.read_window = window;
}

/* ---- life ---- */

static const struct invariant_checks checks = {.qp = qp_ok, .engine = engine_ok};

struct engine *engine_create(const struct engine_params *params, uint64_t now)
{
    struct engine *e = aligned_alloc(64, sizeof(*e));
    if (!e)
        return NULL;
    memset(e, 0, sizeof(*e));
    e->p = *params;
    engine_clock(e, now);
    if (!e->p.max_qp)
        e->p.max_qp = MAX_QP_DEFAULT;
    if (!e->p.mtu)
        e->p.mtu = 5;
    if (!e->p.records)
        e->p.records = ENGINE_RECORDS;
    if (!e->p.window)
        e->p.window = REQ_WINDOW_DEFAULT;
    if (e->p.window < REQ_WINDOW_MIN)
        e->p.window = REQ_WINDOW_MIN;
    bool no_pkey = true;
    for (unsigned i = 0; i < ENGINE_PKEYS; i++)
        no_pkey &= !e->p.pkeys[i];
    if (no_pkey)
        e->p.pkeys[0] = WIRE_PKEY_DEFAULT;
    if (e->p.block)
        number_block(e, e->p.block - 1u, e->p.key);
    else
        qpn_map_init(&e->qpns, e->p.key, e->p.worker, e->p.worker_bits, e->p.programs, e->p.max_qp);
    timer_wheel_init(&e->wheel, e->now);
    e->active_tail = &e->active;
    e->mem = mem_create(&e->p.mem);
    if (!e->p.cc.type)
        cc_conf_init(&e->p.cc, &cc_none);
    e->cc_conf = limiter_conf_new(e, &e->p.cc);
    e->cnp = calloc(1, sizeof(*e->cnp));
    e->guess = calloc(1, sizeof(*e->guess));
    if (!e->mem || !e->cc_conf || !e->cnp || !e->guess ||
        record_pool_init(&e->records, e->p.records)) {
        mem_destroy(e->mem);
        free(e->guess);
        free(e->cnp);
        free(e->cc_conf);
        free(e);
        return NULL;
    }
    e->guess->key = e->p.key[0] ^ (e->p.key[1] << 32 | e->p.key[1] >> 32);
    invariant_init(e, &checks);
    return e;
}

static bool free_qp(void *arg, struct qp *qp)
{
    struct engine *e = arg;
    qp_free(e, qp);
    return true;
}

void engine_destroy(struct engine *e)
{
    if (!e)
        return;
    e->p.hooks = (struct engine_hooks){0};
    engine_qp_walk(e, 0, UINT_MAX, free_qp, e);
    invariant_free(e);
    if (e->gsi)
        qp_free(e, e->gsi);
    while (e->linger) {
        struct qp *next = e->linger->active_next;
        free(e->linger);
        e->linger = next;
    }
    while (e->srqs)
        engine_srq_destroy(e, e->srqs);
    while (e->cqs)
        engine_cq_destroy(e, e->cqs);
    free(e->xrc_srqs);
    record_pool_free(&e->records);
    mem_destroy(e->mem);
    free(e->guess);
    free(e->cnp);
    free(e->cc_conf); /* the last one: all queue pairs are gone */
    free(e->cc_confs);
    free(e->table);
    free(e->life);
    free(e->free_fifo);
    free(e->freed_at);
    free(e);
}

struct mem *engine_mem(struct engine *e)
{
    return e->mem;
}

const uint64_t *engine_counters(const struct engine *e)
{
    return e->counters;
}

void engine_usage(const struct engine *e, struct engine_usage *out)
{
    *out = (struct engine_usage){
        .qps = e->nqps + e->nlinger,
        .cqs = e->ncqs,
        .srqs = e->nsrqs,
        .records = e->p.records - e->records.nfree,
    };
}

/* ---- time ---- */

uint64_t engine_deadline(const struct engine *e)
{
    return timer_next(&e->wheel);
}

void engine_expire(struct engine *e, uint64_t now)
{
    struct timer *t;
    now = engine_clock(e, now);
    invariant_begin(e);
    while ((t = timer_pop(&e->wheel, now))) {
        struct qp *qp = (struct qp *)(void *)((char *)t - offsetof(struct qp, timer));
        invariant_touch(e, qp);
        if (t->next) { /* likely the next one: many paced queue pairs wake at the same tick */
            const uint8_t *next = (const uint8_t *)t->next - offsetof(struct qp, timer);
            __builtin_prefetch(next);
            __builtin_prefetch(next + offsetof(struct qp, req.ack_at));
            __builtin_prefetch(next + offsetof(struct qp, lim));
        }
        if (qp->mute)
            continue;
        rtx_expire(e, qp, now);
        if (qp->lim && qp->lim->waiting && qp->lim->next <= now) {
            qp->lim->waiting = false;
            qp_activate(e, qp);
        }
        recovery_expire(e, qp, now);
        qp_rearm(e, qp);
    }
    invariant_end(e, "timers");
}
