/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statements that check numbers: counters, states, attributes of a queue pair.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drill_priv.h"

bool drill_compare(struct drill_run *run, const struct drill_stmt *st, const struct drill_arg *a,
                   uint64_t got, uint64_t mask)
{
    char want[64], text[DRILL_NUMBER_LEN];
    bool fits = true;
    if (a->field->type == TYPE_FLAG)
        fits = !!got != a->off;
    else if (a->field->type == TYPE_WORD || a->field->type == TYPE_WORDS)
        fits = got == a->v.word;
    else if (!drill_fits(run, st, &a->v, a->field->role, got, mask, &fits))
        return false;
    if (fits)
        return true;
    drill_number_text(got, text);
    if (a->field->type == TYPE_FLAG)
        snprintf(want, sizeof(want), "%d", !a->off);
    else if (a->field->type == TYPE_WORDS)
        snprintf(want, sizeof(want), "0x%" PRIx64, a->v.word);
    else if (a->field->type == TYPE_WORD)
        snprintf(want, sizeof(want), "%s", drill_word_name(a->field->words, a->v.word));
    else
        drill_value_text(run, st, &a->v, a->field->role, want, sizeof(want));
    drill_differs(run->r->fields, sizeof(run->r->fields), a->field->name, want,
                  a->field->type == TYPE_WORD ? drill_word_name(a->field->words, got) : text);
    return true;
}

static bool counter(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t got = UINT64_MAX;
    char want[64];
    bool fits;
    for (unsigned i = 1; i < ENGINE_COUNTER_MAX; i++)
        if (!strcmp(engine_counter_names[i], st->name))
            got = engine_counters(run->e)[i];
    for (unsigned i = 0; i < CM_COUNTER_MAX; i++)
        if (!strcmp(cm_counter_names[i], st->name))
            got = cm_counters(run->cm)[i];
    if (got == UINT64_MAX)
        return drill_end(run, DRILL_WRONG, st, "there is no counter '%s'", st->name);
    if (!drill_fits(run, st, &st->args->v, ROLE_VALUE, got, UINT64_MAX, &fits))
        return false;
    run->r->checks++;
    if (fits)
        return true;
    drill_value_text(run, st, &st->args->v, ROLE_VALUE, want, sizeof(want));
    return drill_end(run, DRILL_FAIL, st, "%s is %" PRIu64 ", expected %s", st->name, got, want);
}

/* is SUM NUMBER. A range of all values but one checks that the sum is not that value. */
static bool is(struct drill_run *run, const struct drill_stmt *st)
{
    uint64_t got;
    char want[64], text[32];
    bool fits;
    if (!drill_eval(run, st, &st->expr, ROLE_VALUE, &got) ||
        !drill_fits(run, st, &st->args->v, ROLE_VALUE, got, UINT64_MAX, &fits))
        return false;
    run->r->checks++;
    if (fits)
        return true;
    drill_value_text(run, st, &st->args->v, ROLE_VALUE, want, sizeof(want));
    snprintf(text, sizeof(text), "0x%" PRIx64, got);
    return drill_end(run, DRILL_FAIL, st, "it is %s, expected %s", text, want);
}

static bool state(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    struct engine_qp_attr a;
    struct engine_qp_info info;
    if (!qp)
        return false;
    engine_qp_query(qp->qp, &a, NULL);
    run->r->checks++;
    if (a.state == st->word)
        return true;
    engine_qp_info(run->e, qp->qp, &info);
    return drill_end(run, DRILL_FAIL, st, "the state is %s%s%s",
                     drill_word_name(drill_states, a.state), *info.error ? ": " : "", info.error);
}

static bool info(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    struct engine_qp_info i;
    if (!qp)
        return false;
    engine_qp_info(run->e, qp->qp, &i);
    static const bool psns[INFO_AGREED + 1] = {
        [INFO_EPSN] = true, [INFO_SQ_PSN] = true, [INFO_UNA] = true};
    const uint64_t values[] = {[INFO_EPSN] = (i.epsn - qp->rq_psn) & WIRE_PSN_MASK,
                               [INFO_MSN] = i.msn,
                               [INFO_SQ_PSN] = (i.sq_psn - qp->sq_psn) & WIRE_PSN_MASK,
                               [INFO_UNA] = (i.una_psn - qp->sq_psn) & WIRE_PSN_MASK,
                               [INFO_SQ_USED] = i.sq_used,
                               [INFO_RQ_USED] = i.rq_used,
                               [INFO_INFLIGHT] = i.inflight_packets,
                               [INFO_RD_ATOMIC] = i.rd_atomic_out,
                               [INFO_RETRANSMITS] = i.retransmits,
                               [INFO_TIMEOUTS] = i.timeouts,
                               [INFO_AGREED] = i.recovery_agreed};
    *run->r->fields = 0;
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (!drill_compare(run, st, a, values[a->field->id],
                           psns[a->field->id] ? WIRE_PSN_MASK : UINT64_MAX))
            return false;
    run->r->checks++;
    return !*run->r->fields || drill_end(run, DRILL_FAIL, st, "it is different");
}

/* Check attributes, as ibv_query_qp returns them. */
static bool query(struct drill_run *run, const struct drill_stmt *st)
{
    struct drill_object *qp = drill_need(run, st, st->name, KIND_QP);
    struct engine_qp_attr attr;
    if (!qp)
        return false;
    engine_qp_query(qp->qp, &attr, NULL);
    *run->r->fields = 0;
    for (const struct drill_arg *a = st->args; a; a = a->next) {
        if (!drill_compare(run, st, a, drill_get_member(&attr, a->field), UINT64_MAX))
            return false;
    }
    run->r->checks++;
    return !*run->r->fields || drill_end(run, DRILL_FAIL, st, "it is different");
}

bool drill_do_check(struct drill_run *run, const struct drill_stmt *st)
{
    switch (st->verb->kind) {
    case DO_COUNTER:
        return counter(run, st);
    case DO_INFO:
        return info(run, st);
    case DO_IS:
        return is(run, st);
    case DO_QUERY:
        return query(run, st);
    default:
        return state(run, st);
    }
}
