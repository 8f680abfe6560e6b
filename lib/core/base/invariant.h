/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Invariants: conditions that hold for a queue pair and its engine whenever no phase is under way.
 * In builds with -Dinvariants=true every phase checks the queue pairs that it touched when it ends,
 * and now and then the whole engine. A broken one is reported in one line on stderr, and the
 * process aborts. In all other builds the three hooks below are empty.
 *
 *     qp_ok.c         of a queue pair
 *     sr_ok.c         of selective repeat, where it has that
 *     engine_ok.c     of the state that queue pairs share: lists, numbers, the pool of records,
 *                     the wheel
 *     invariant.c     the hooks; the engine hands them the checks, which know all of its parts
 */
#ifndef URNIC_INVARIANT_H
#define URNIC_INVARIANT_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;

#define INVARIANT_TEXT 320u /* octets that hold every report, with its NUL */

/* The first invariant that is broken: its name, the queue pair, the values. */
struct invariant_report {
    char text[INVARIANT_TEXT];
};

/* Write the report; printf-like, without the queue pair if that is NULL. Returns false. */
bool invariant_broken(struct invariant_report *out, const struct qp *qp, const char *name,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The conditions. False: one is broken, and *out says which. */
struct invariant_checks {
    /* Of a queue pair; `whole`: also those that take long. */
    bool (*qp)(const struct engine *e, const struct qp *qp, bool whole,
               struct invariant_report *out);
    /* Of the engine and all its queue pairs. */
    bool (*engine)(const struct engine *e, struct invariant_report *out);
};

#ifdef URNIC_INVARIANTS
/* The engine begins. Without memory nothing is checked. */
void invariant_init(struct engine *e, const struct invariant_checks *checks);
/* A phase begins. One may begin within another one: a hook of the engine posts, for instance. */
void invariant_begin(struct engine *e);
/* This phase changes qp. NULL: queue pair 1, or no queue pair. */
void invariant_touch(struct engine *e, struct qp *qp);
/* The queue pair is freed: it is not checked any more. */
void invariant_forget(struct engine *e, const struct qp *qp);
/* The phase ends. The end of the outermost one checks the queue pairs that it touched. */
void invariant_end(struct engine *e, const char *phase);
/* The engine is destroyed. */
void invariant_free(struct engine *e);
#else
static inline void invariant_init(struct engine *e, const struct invariant_checks *checks)
{
    (void)e;
    (void)checks;
}
static inline void invariant_begin(struct engine *e)
{
    (void)e;
}
static inline void invariant_touch(struct engine *e, struct qp *qp)
{
    (void)e;
    (void)qp;
}
static inline void invariant_forget(struct engine *e, const struct qp *qp)
{
    (void)e;
    (void)qp;
}
static inline void invariant_end(struct engine *e, const char *phase)
{
    (void)e;
    (void)phase;
}
static inline void invariant_free(struct engine *e)
{
    (void)e;
}
#endif

#endif
