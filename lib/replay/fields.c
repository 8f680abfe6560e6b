/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields that our engine sets in one way only, but that can't be compared packet by packet: a
 * message number counts from an unknown origin, and its range depends on the requests in flight.
 * The tracker of lint follows them; its violations are differences from our engine.
 */
#include "fields.h"

#include <stdlib.h>
#include <string.h>

#define RESPONSES 1u
#define REQUESTS  2u

#define OTHERS_MAX 256u /* findings kept to name a rule */

static const struct field {
    const char *rule, *name, *why;
    unsigned of;
} fields[] = {
    {"ACK-11", "MSN", "our engine counts the messages that are complete", RESPONSES},
    {"REQ-10", "AckReq", "our engine asks for no answer to an answer", RESPONSES},
    {"HDR-03", "SE", "our engine asks for an event at the end of messages only", RESPONSES},
    {"HDR-04", "MigReq", "our engine says so in every packet", RESPONSES | REQUESTS},
    {"HDR-01", "reserved bits", "our engine sends them as 0", RESPONSES | REQUESTS},
};

static const struct field *field_of(const char *rule)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!strcmp(fields[i].rule, rule))
            return &fields[i];
    return NULL;
}

void fields_keep(void *ctx, const struct lint_finding *f)
{
    struct fields *s = ctx;
    if (f->verdict != LINT_VIOLATION || f->flow == LINT_NO_FLOW ||
        (!field_of(f->rule->id) && s->others++ >= OTHERS_MAX))
        return;
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        bool may = held_take(s->held, (room - s->room) * sizeof(*s->found));
        void *more = may ? realloc(s->found, room * sizeof(*s->found)) : NULL;
        s->failed = s->failed || !more;
        if (!more)
            return;
        s->found = more;
        s->room = room;
    }
    struct fields_found *at = &s->found[s->n++];
    *at = (struct fields_found){.number = f->number, .flow = f->flow, .rule = f->rule->id};
    memcpy(at->expected, f->expected, sizeof(at->expected));
}

static int by_number(const void *a, const void *b)
{
    const struct fields_found *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

void fields_sort(struct fields *s)
{
    if (s->n)
        qsort(s->found, s->n, sizeof(*s->found), by_number);
}

/* The first finding about this packet or a later one. */
static size_t from(const struct fields *s, uint64_t number)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->found[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const char *fields_rule(const struct fields *s, const struct packet *p)
{
    size_t k = from(s, p->kept->number);
    return k < s->n && s->found[k].number == p->kept->number ? s->found[k].rule : NULL;
}

void fields_judge(const struct fields *s, const struct direction *d, struct judge *j)
{
    bool responder = j->out->role == REPLAY_RESPONDER;
    uint32_t own = responder ? d->answers.id : d->flow.id;
    for (size_t i = 0; i < d->packets && s->n; i++) {
        const struct packet *p = &d->packet[i];
        if (!p->usable || p->flow != own ||
            !(packet_flags(p) & (responder ? WIRE_F_RESPONSE : WIRE_F_REQUEST)))
            continue;
        for (size_t k = from(s, p->kept->number); k < s->n && s->found[k].number == p->kept->number;
             k++) {
            const struct field *f = field_of(s->found[k].rule);
            if (f && s->found[k].flow == own && f->of & (responder ? RESPONSES : REQUESTS))
                judge_differ(j, p, f->rule, f->name, s->found[k].expected, f->why);
        }
    }
}

void fields_free(struct fields *s)
{
    if (s->found)
        held_give(s->held, s->room * sizeof(*s->found));
    free(s->found);
    *s = (struct fields){0};
}
