/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hooks of the invariants: which queue pairs a phase touched, and when all are looked at.
 */
#include "invariant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_priv.h"

bool invariant_broken(struct invariant_report *out, const struct qp *qp, const char *name,
                      const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(out->text, sizeof(out->text), "invariant %s", name);
    if (qp)
        n += snprintf(out->text + n, sizeof(out->text) - (size_t)n, ", qp 0x%06x (type %u, %s)",
                      qp->qpn, qp->type, qp_state_names[qp->state]);
    n += snprintf(out->text + n, sizeof(out->text) - (size_t)n, ": ");
    va_start(ap, fmt);
    vsnprintf(out->text + n, sizeof(out->text) - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

#ifdef URNIC_INVARIANTS

#define TOUCHED_FIRST 64u
#define ALL_EVERY     64u /* phases at least between two looks at everything */

struct invariants {
    const struct invariant_checks *checks;
    struct qp **touched;
    unsigned n, size;
    unsigned depth;
    uint64_t phases; /* since the last look at everything */
};

static void fail(const char *phase, const struct invariant_report *report)
{
    fprintf(stderr, "urnic: after %s: %s\n", phase, report->text);
    abort();
}

void invariant_init(struct engine *e, const struct invariant_checks *checks)
{
    e->invariants = malloc(sizeof(*e->invariants));
    if (e->invariants)
        *e->invariants = (struct invariants){.checks = checks};
}

void invariant_begin(struct engine *e)
{
    if (e->invariants)
        e->invariants->depth++;
}

void invariant_touch(struct engine *e, struct qp *qp)
{
    struct invariants *s = e->invariants;
    if (!s || !qp || (s->n && s->touched[s->n - 1] == qp))
        return;
    if (s->n == s->size) {
        unsigned size = s->size ? s->size * 2 : TOUCHED_FIRST;
        struct qp **more = realloc(s->touched, size * sizeof(struct qp *));
        if (!more)
            return;
        s->touched = more;
        s->size = size;
    }
    s->touched[s->n++] = qp;
}

void invariant_forget(struct engine *e, const struct qp *qp)
{
    struct invariants *s = e->invariants;
    for (unsigned i = 0; s && i < s->n; i++)
        if (s->touched[i] == qp)
            s->touched[i] = NULL;
}

/* The approximate cost of a check of everything. */
static uint64_t everything(const struct engine *e)
{
    return (uint64_t)e->fresh + e->p.records - e->records.nfree + e->nsrqs + e->ncqs + ALL_EVERY;
}

void invariant_end(struct engine *e, const char *phase)
{
    struct invariants *s = e->invariants;
    struct invariant_report report;
    if (!s || --s->depth > 0)
        return;
    for (unsigned i = 0; i < s->n; i++)
        if (s->touched[i] && !s->checks->qp(e, s->touched[i], false, &report))
            fail(phase, &report);
    s->n = 0;
    /* As many phases as there are things: the cost of a phase doesn't grow with their number. */
    if (++s->phases < everything(e))
        return;
    s->phases = 0;
    if (!s->checks->engine(e, &report))
        fail(phase, &report);
}

void invariant_free(struct engine *e)
{
    if (e->invariants)
        free(e->invariants->touched);
    free(e->invariants);
    e->invariants = NULL;
}

#endif
