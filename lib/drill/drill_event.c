/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notifications of the device's application: completions, events, events of its connection manager.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "drill_priv.h"

/* Remove taken entries from the front of the list, so that a long script doesn't search all that it
 * has taken. */
#define FORGET(list, list_tail)                                                                    \
    while ((list) && (list)->taken) {                                                              \
        void *first = (list);                                                                      \
        (list) = (list)->next;                                                                     \
        free(first);                                                                               \
        if (!(list))                                                                               \
            (list_tail) = &(list);                                                                 \
    }

/* ---- completions and events ---- */

static struct drill_completion *next_completion(struct drill_run *run,
                                                const struct drill_object *about)
{
    struct drill_completion *c = run->completions;
    while (c && (c->taken || (about->kind == KIND_CQ ? c->cq != about : c->wc.qpn != about->qpn)))
        c = c->next;
    return c;
}

static uint64_t completion_value(const struct engine_wc *wc, int id)
{
    switch (id) {
    case CQE_ID:
        return wc->wr_id;
    case CQE_OPCODE:
        return wc->opcode;
    case CQE_LEN:
        return wc->byte_len;
    case CQE_IMM:
        return drill_imm(wc->imm);
    case CQE_INV:
        return wc->imm;
    case CQE_SRC_QP:
        return wc->src_qpn;
    case CQE_GRH:
        return !!(wc->wc_flags & WC_F_GRH);
    case CQE_SOLICITED:
        return wc->solicited;
    default:
        return wc->pkey_index;
    }
}

/* Does the completion lack this field? A flag tells whether immediate data or an invalidated key is
 * there. */
static bool lacks(const struct engine_wc *wc, int id)
{
    return (id == CQE_IMM && !(wc->wc_flags & WC_F_IMM)) ||
           (id == CQE_INV && !(wc->wc_flags & WC_F_INV));
}

static bool cqe(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    const struct drill_object *about = drill_find(run, st->name);
    if (!about || (about->kind != KIND_QP && about->kind != KIND_CQ))
        return drill_end(run, DRILL_WRONG, st, "'%s' is no queue", st->name);
    struct drill_completion *c = next_completion(run, about);
    *done = c;
    if (!c)
        return true;
    *run->r->fields = 0;
    if (c->wc.status != st->word)
        drill_differs(run->r->fields, sizeof(run->r->fields), "status",
                      drill_word_name(drill_statuses, st->word),
                      drill_word_name(drill_statuses, c->wc.status));
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (lacks(&c->wc, a->field->id))
            drill_differs(run->r->fields, sizeof(run->r->fields), a->field->name, "one", "none");
        else if (!drill_compare(run, st, a, completion_value(&c->wc, a->field->id), UINT64_MAX))
            return false;
    if (*run->r->fields)
        return drill_end(run, DRILL_FAIL, st, "another completion came (id %" PRIu64 ")",
                         c->wc.wr_id);
    uint64_t ns = c->ns;
    c->taken = true;
    c->cq->held--;
    run->r->checks++;
    FORGET(run->completions, run->completions_tail)
    return drill_timely(run, st, ns);
}

static bool event(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    const struct drill_object *about = drill_find(run, st->name);
    if (!about)
        return drill_end(run, DRILL_WRONG, st, "there is no '%s'", st->name);
    if (about->kind != KIND_QP && about->kind != KIND_CQ && about->kind != KIND_SRQ)
        return drill_end(run, DRILL_WRONG, st, "the %s '%s' has no events",
                         drill_object_names[about->kind], st->name);
    struct drill_happening *h = run->events;
    while (h && (h->taken || h->about != about))
        h = h->next;
    *done = h;
    if (!h)
        return true;
    if (h->event != st->word)
        return drill_end(run, DRILL_FAIL, st, "the event was %s",
                         drill_word_name(drill_events, h->event));
    uint64_t ns = h->ns;
    h->taken = true;
    run->r->checks++;
    FORGET(run->events, run->events_tail)
    return drill_timely(run, st, ns);
}

static uint64_t cm_value(const struct cm_event *ev, int id)
{
    switch (id) {
    case CMF_PORT:
        return ev->local_port;
    case CMF_SPORT:
        return ev->remote_port;
    case CMF_RESP_RES:
        return ev->responder_resources;
    case CMF_INIT_DEPTH:
        return ev->initiator_depth;
    case CMF_QPN:
        return ev->qpn;
    case CMF_QKEY:
        return ev->qkey;
    default:
        return ev->reason; /* and status */
    }
}

static bool cm_fields(struct drill_run *run, const struct drill_stmt *st, const struct cm_event *ev)
{
    uint8_t want[CM_PRIVATE_MAX];
    *run->r->fields = 0;
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        if (a->field->id != CMF_PRIVATE) {
            if (!drill_compare(run, st, a, cm_value(ev, a->field->id), UINT64_MAX))
                return false;
            continue;
        }
        uint32_t n;
        if (!drill_octets_len(&a->v.data, &n))
            return drill_end(run, DRILL_WRONG, st, "private: octets with a length of their own");
        if (n > sizeof(want) || !drill_octets(run, st, &a->v.data, 0, want, n))
            return drill_end(run, DRILL_WRONG, st, "private: at most %zu octets", sizeof(want));
        if (n > ev->priv_len)
            return drill_end(run, DRILL_WRONG, st, "private: at most %u octets", ev->priv_len);
        drill_octets_differ(run->r->fields, sizeof(run->r->fields), "private", want, ev->priv, n);
    }
    return !*run->r->fields || drill_end(run, DRILL_FAIL, st, "the event has other values");
}

static bool cm_happened(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    struct drill_object *c = drill_find(run, st->name);
    struct drill_cm_happening *h = run->cm_events;
    bool fresh = st->word == CM_EV_REQ || st->word == CM_EV_SIDR_REQ;
    if (!fresh && (!c || c->kind != KIND_CONN))
        return drill_end(run, DRILL_WRONG, st, "'%s' is no connection", st->name);
    while (h && (h->taken || (fresh ? h->ev.type != st->word : h->ev.conn != c->conn)))
        h = h->next;
    *done = h;
    if (!h)
        return true;
    if (h->ev.type != st->word)
        return drill_end(run, DRILL_FAIL, st, "the event was %s",
                         drill_word_name(drill_cm_events, h->ev.type));
    if (!cm_fields(run, st, &h->ev))
        return false;
    if (fresh) {
        bool again = c && c->kind == KIND_CONN; /* from now on the name means the new connection */
        if (!again && !(c = drill_add(run, st, st->name, KIND_CONN)))
            return false;
        c->dead = false;
        c->conn = h->ev.conn;
    }
    uint64_t ns = h->ns;
    h->taken = true;
    run->r->checks++;
    FORGET(run->cm_events, run->cm_events_tail)
    return drill_timely(run, st, ns);
}

bool drill_happened(struct drill_run *run, const struct drill_stmt *st, bool *done)
{
    switch (st->verb->kind) {
    case DO_CQE:
        return cqe(run, st, done);
    case DO_EVENT:
        return event(run, st, done);
    default:
        return cm_happened(run, st, done);
    }
}
