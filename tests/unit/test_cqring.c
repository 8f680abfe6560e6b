/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions on their way from the engine to a client's ring.
 */
#include "cqring.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "unit.h"
#include "worker.h"

#define ENTRIES 8u

struct bed {
    struct worker w;
    struct context c;
    struct client_cq cq;
    struct ipc_cq_view client;
    _Alignas(64) uint8_t ring[sizeof(struct ipc_cq_ring) + ENTRIES * sizeof(struct ipc_cqe)];
};

/* A context whose program is shown completions at once, or at the end of a round (`late`). */
static struct bed *bed_new(bool late)
{
    struct bed *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);
    ck_assert_ptr_nonnull(b);
    memset(b, 0, sizeof(*b));
    b->c.worker = &b->w;
    b->c.late = late;
    LIST_INIT(&b->c.dirty);
    TAILQ_INIT(&b->c.owed);
    b->cq.ctx = &b->c;
    ipc_cq_view_init(&b->cq.view, b->ring, ENTRIES);
    ipc_cq_view_init(&b->client, b->ring, ENTRIES);
    return b;
}

static bool push(struct bed *b, uint64_t number)
{
    const struct engine_wc wc = {.wr_id = number};
    return cqring_push(NULL, &b->cq, &wc);
}

static unsigned seen(struct bed *b)
{
    unsigned n = 0;
    for (const struct ipc_cqe *e; (e = ipc_cq_peek(&b->client)) != NULL; n++) {
        ck_assert_uint_eq(e->cookie, n);
        b->client.index++;
        ipc_cq_consume(&b->client);
    }
    return n;
}

/* CQ-05: a program that sees the error assumes that it has polled all completions before. So these
 * must be visible with the error, also before the round has ended. */
START_TEST(cq_05_what_came_before_the_error)
{
    struct bed *b = bed_new(_i == 1);
    for (unsigned i = 0; i < ENTRIES; i++)
        ck_assert(push(b, i));
    ck_assert_uint_eq(b->cq.view.ring->error, 0);
    ck_assert(!push(b, ENTRIES));
    ck_assert_uint_eq(b->cq.view.ring->error, 1);
    ck_assert_uint_eq(seen(b), ENTRIES);
    free(b);
}
END_TEST

/* Before the end of a round no late completion is visible, and then all are. */
START_TEST(completions_that_are_shown_late)
{
    struct bed *b = bed_new(true);
    ck_assert(push(b, 0) && push(b, 1));
    ck_assert_uint_eq(seen(b), 0);
    cqring_show(&b->c);
    ck_assert_uint_eq(seen(b), 2);
    free(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cqring");
    TCase *t = tcase_create("cqring");
    tcase_add_loop_test(t, cq_05_what_came_before_the_error, 0, 2);
    tcase_add_test(t, completions_that_are_shown_late);
    suite_add_tcase(s, t);
    return unit_run(s);
}
