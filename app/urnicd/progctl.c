/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Only the answers are kept between the two runs: the program may have gone meanwhile, so its
 * channel is looked up again. Answers come from programs, and are checked.
 */
#include "progctl.h"

#include <errno.h>
#include <string.h>

#include "ask.h"
#include "blocks.h"
#include "device.h"
#include "engine.h"
#include "engine_peer.h"
#include "qp_info.h"
#include "switch_counters.h"
#include "team.h"
#include "worker.h"

#define WORKER   26u     /* shift of the worker in a cursor */
#define BLOCK    16u     /* shift of the block, above the place in the program's list */
#define PLACE    0xFFFFu /* mask of that place */
#define RECOVERY 3u      /* greatest value of enum engine_recovery */
#define STATE    6u      /* number of a queue pair's states */
#define COUNTERS ((ENGINE_COUNTER_MAX + SWITCH_USAGE_MAX) * sizeof(struct ipc_asked_counter))

_Static_assert(QPN_BLOCKS << BLOCK <= 1u << WORKER && TEAM_MAX << WORKER <= PROGCTL_FIRST,
               "all blocks and workers fit into a cursor");
_Static_assert(COUNTERS <= IPC_ASK_MAX, "all counters fit into an answer");

static struct switch_channel *owner_of(const struct device *d, unsigned block)
{
    return d->sw && block < QPN_BLOCKS ? d->sw->owner[block] : NULL;
}

bool progctl_has(const struct device *d, uint32_t qpn)
{
    return owner_of(d, qpn_block(qpn)) != NULL;
}

/* Is this the first block of its owner? Each owner is in the list once. */
static bool is_first(const struct device *d, unsigned block)
{
    const struct switch_channel *c = owner_of(d, block);
    for (unsigned i = 0; c && i < block; i++) {
        if (owner_of(d, i) == c)
            return false;
    }
    return c != NULL;
}

static uint32_t cursor_of(unsigned worker, unsigned block)
{
    return PROGCTL_FIRST | worker << WORKER | block << BLOCK;
}

/* The first program of this worker or a later one; 0 = none. */
static uint32_t first_from(const struct team *t, unsigned worker)
{
    for (; worker < t->n; worker++) {
        int block = blocks_first(&t->blocks, worker);
        if (block >= 0)
            return cursor_of(worker, (unsigned)block);
    }
    return 0;
}

uint32_t progctl_begin(const struct device *d)
{
    return first_from(d->team, 0);
}

uint32_t progctl_first(const struct device *d, unsigned block)
{
    while (d->sw && block < QPN_BLOCKS && !is_first(d, block))
        block++;
    return d->sw && block < QPN_BLOCKS ? cursor_of(d->member, block)
                                       : first_from(d->team, d->member + 1);
}

unsigned progctl_block(uint32_t cursor)
{
    return cursor >> BLOCK & (QPN_BLOCKS - 1);
}

unsigned progctl_worker(uint32_t cursor)
{
    return (cursor & ~PROGCTL_FIRST) >> WORKER;
}

unsigned progctl_worker_of(const struct device *d, uint32_t qpn)
{
    const int program = blocks_worker(&d->team->blocks, qpn);
    return program >= 0 ? (unsigned)program : qpn_worker(qpn, d->team->bits);
}

uint32_t progctl_next(const struct request *r, const struct device *d, uint32_t first)
{
    const struct switch_ask *a = &r->ask->of[0];
    bool more = a->status == 0 && a->cursor > (first & PLACE) && a->cursor <= PLACE;
    return more ? (first & ~PLACE) | a->cursor : progctl_first(d, progctl_block(first) + 1);
}

/* ---- answers ---- */

/* Clean text for a terminal. */
static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *c = text; *c; c++) {
        if ((*c < ' ' && *c != '\n') || *c > '~')
            *c = '?';
    }
}

/* Is this a queue pair of the asked program's? Another program's would be shown with that program's
 * name, or to a user who may not see it. */
static bool check(const struct device *d, const struct switch_channel *asked,
                  struct ipc_asked_qp *q)
{
    struct ipc_qp_info *i = &q->info;
    if (!asked || i->qpn > WIRE_QPN_MASK || owner_of(d, qpn_block(i->qpn)) != asked ||
        i->state > STATE || i->recovery > RECOVERY)
        return false;
    const struct client *client = asked->owner;
    clean(i->cc, sizeof(i->cc));
    clean(i->error, sizeof(i->error));
    memcpy(i->comm, client->comm, sizeof(i->comm));
    i->pid = (uint32_t)client->pid;
    i->uid = client->uid;
    i->worker = (uint16_t)d->worker->index;
    i->flags = IPC_QP_F_PROGRAM | (engine_peer_is_shared(client, i->qpn) ? IPC_QP_F_SHARED : 0);
    return true;
}

bool progctl_qp(const struct request *r, const struct device *d, unsigned block, unsigned i,
                struct ipc_asked_qp *out)
{
    const struct switch_ask *a = &r->ask->of[0];
    if (a->status < 0 || (i + 1) * sizeof(*out) > a->len)
        return false;
    memcpy(out, a->data + i * sizeof(*out), sizeof(*out));
    if (!check(d, owner_of(d, block), out))
        out->info.qpn = 0;
    return true;
}

/* ---- requests ---- */

int progctl_count(struct request *r)
{
    const struct ipc_question q = {.kind = IPC_ASK_COUNTERS};
    const struct device *d = r->device;
    if (!d->sw || (r->ask && r->ask->member >= d->member))
        return 0;
    return ask_all(r, d->sw, &q, COUNTERS);
}

/* The single entry of a program that has not answered. */
static void silent(const struct device *d, const struct client *c, uint32_t qpn,
                   struct ipc_qp_info *out)
{
    *out = (struct ipc_qp_info){
        .qpn = qpn,
        .pid = (uint32_t)c->pid,
        .uid = c->uid,
        .worker = (uint16_t)d->worker->index,
        .flags = IPC_QP_F_PROGRAM | IPC_QP_F_SILENT,
    };
    memcpy(out->comm, c->comm, sizeof(out->comm));
}

static void list_answered(struct request *r, const struct ipc_qp_filter *f, struct ipc_qp_list *out,
                          uint32_t max)
{
    const struct switch_ask *a = &r->ask->of[0];
    const unsigned block = f->qpn ? qpn_block(f->qpn) : progctl_block(f->first);
    const struct switch_channel *c = owner_of(r->device, block);
    struct ipc_asked_qp q;
    if (!c)
        return;
    if (a->status == -ETIMEDOUT)
        silent(r->device, c->owner, f->qpn, &out->qp[out->count++]);
    for (unsigned i = 0; out->count < max && progctl_qp(r, r->device, block, i, &q); i++) {
        if (q.info.qpn == 0 || (f->qpn && q.info.qpn != f->qpn))
            continue;
        if (!qp_info_is_for(r->client, c->owner))
            qp_info_hide(&q.info);
        out->qp[out->count++] = q.info;
    }
}

int progctl_list(struct request *r, struct ipc_qp_list *out, uint32_t max)
{
    const struct ipc_qp_filter *f = request_in(r, struct ipc_qp_filter);
    struct switch_channel *c =
        owner_of(r->device, f->qpn ? qpn_block(f->qpn) : progctl_block(f->first));
    const struct client *client = c ? c->owner : NULL;
    const struct ipc_question q = {
        .kind = IPC_ASK_QPS,
        .qpn = f->qpn,
        .first = f->first & PLACE,
        .states = f->states,
        .types = f->types,
    };
    if (!r->ask && client && (f->pid == 0 || f->pid == (uint32_t)client->pid))
        return ask(r, r->device->sw, c, &q, IPC_ASK_MAX);
    if (r->ask)
        list_answered(r, f, out, max);
    if (!f->qpn)
        out->next = r->ask ? progctl_next(r, r->device, f->first)
                           : progctl_first(r->device, progctl_block(f->first) + 1);
    r->out_len = sizeof(*out) + out->count * sizeof(struct ipc_qp_info);
    return 0;
}

int progctl_history(struct request *r)
{
    const struct ipc_qp_filter *in = request_in(r, struct ipc_qp_filter);
    const struct ipc_question q = {.kind = IPC_ASK_HISTORY, .qpn = in->qpn};
    struct switch_channel *c = owner_of(r->device, qpn_block(in->qpn));
    struct ipc_text *out = request_reply(r, IPC_MSG_MAX);
    if (!c)
        return -ENOENT;
    if (!qp_info_is_for(r->client, c->owner))
        return -EPERM;
    if (!r->ask)
        return ask(r, r->device->sw, c, &q, IPC_ASK_MAX);
    const struct switch_ask *a = &r->ask->of[0];
    if (a->status < 0)
        return a->status;
    memcpy(out->text, a->data, a->len);
    out->text[a->len] = '\0';
    clean(out->text, a->len + 1);
    out->len = (uint32_t)strlen(out->text);
    r->out_len = sizeof(*out) + out->len;
    return 0;
}

int progctl_ask_cc(struct request *r, struct device *d, uint32_t qpn, uint32_t first,
                   const char *set)
{
    struct ipc_question q = {
        .kind = qpn ? IPC_ASK_CC_OF : IPC_ASK_QPS, .qpn = qpn, .first = first & PLACE};
    struct switch_channel *c = owner_of(d, qpn ? qpn_block(qpn) : progctl_block(first));
    if (!c)
        return -ENOENT;
    if (set)
        strncpy(q.cc, set, sizeof(q.cc) - 1);
    return ask(r, d->sw, c, &q, IPC_ASK_MAX);
}
