/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each invariant of a context's rings and lists notices its violation, by name.
 */
#include "context_ok.h"

#include <stdio.h>
#include <string.h>

#include "quota.h"
#include "unit.h"

#define ENTRIES 8u

/* Two queues, of which the second one is active, a number that is free again, a completion queue
 * with news and an event that is owed. */
struct bed {
    struct context c;
    struct queue q[2];
    struct queue *by_number[3];
    struct client_qp qp;
    struct client_cq cq;
    struct channel channel;
    struct freed_number freed[QUOTA_QUEUES];
    _Alignas(64) uint8_t ring[2][sizeof(struct ipc_queue) + ENTRIES * IPC_UNIT];
    _Alignas(64) uint8_t cq_ring[sizeof(struct ipc_cq_ring) + ENTRIES * sizeof(struct ipc_cqe)];
};

static struct bed *bed_new(void)
{
    struct bed *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);
    memset(b, 0, sizeof(*b));
    struct context *c = &b->c;
    c->queue = b->by_number;
    c->freed = b->freed;
    c->nqueue = 3;
    c->nfreed = 1;
    b->freed[0] = (struct freed_number){2, 0};
    TAILQ_INIT(&c->active);
    LIST_INIT(&c->dirty);
    TAILQ_INIT(&c->owed);
    for (uint32_t i = 0; i < 2; i++) {
        struct queue *q = &b->q[i];
        *q = (struct queue){.kind = QUEUE_SEND, .number = i, .ctx = c, .qp = &b->qp};
        ipc_ring_init(&q->ring, b->ring[i], ENTRIES, IPC_UNIT, false);
        b->by_number[i] = q;
    }
    b->q[1].active = true;
    TAILQ_INSERT_TAIL(&c->active, &b->q[1], next);
    b->cq = (struct client_cq){.ctx = c, .channel = &b->channel, .dirty = true, .owed = true};
    ipc_cq_view_init(&b->cq.view, b->cq_ring, ENTRIES);
    LIST_INSERT_HEAD(&c->dirty, &b->cq, next_dirty);
    TAILQ_INSERT_TAIL(&c->owed, &b->cq, next_owed);
    return b;
}

#define SPOILS(X)                                                                                  \
    X("queue-number", b->q[0].number = 1)                                                          \
    X("queue-number", b->q[0].ctx = NULL)                                                          \
    X("queue-numbers", b->c.nfreed = 4)                                                            \
    X("queue-numbers", b->c.nqueue = QUOTA_QUEUES + 1)                                             \
    X("queue-freed", b->freed[0].number = 1)                                                       \
    X("queue-freed", b->freed[0].number = 3)                                                       \
    X("ring-view", b->q[0].ring.entries = 0)                                                       \
    X("ring-view", b->q[0].ring.entries = ENTRIES - 1)                                             \
    X("ring-view", b->q[0].ring.stride = 48)                                                       \
    X("ring-view", b->q[0].ring.stride = 0)                                                        \
    X("ring-view", b->q[0].ring.base += 8)                                                         \
    X("ring-view", b->cq.view.entries = ENTRIES + 1)                                               \
    X("ring-view", b->cq.view.base++)                                                              \
    X("active-queues", b->q[1].active = false)                                                     \
    X("active-queues", b->by_number[1] = NULL)                                                     \
    X("news-of-cqs", b->cq.dirty = false)                                                          \
    X("events-owed", b->cq.owed = false)                                                           \
    X("events-owed", b->cq.channel = NULL)

static const char *const names[] = {
#define X(name, ...) name,
    SPOILS(X)
#undef X
};
#define ROWS (int)(sizeof(names) / sizeof(names[0]))

enum { COUNTED = __COUNTER__ };

static void spoil(int row, struct bed *b)
{
    switch (row) {
#define X(name, ...)                                                                               \
    case __COUNTER__ - COUNTED - 1:                                                                \
        (void)(__VA_ARGS__);                                                                       \
        break;
        SPOILS(X)
#undef X
    default:
        ck_abort();
    }
}

START_TEST(each_invariant_notices)
{
    struct bed *b = bed_new();
    char text[256] = "nothing", want[64];
    ck_assert_msg(context_ok(&b->c, 0, 64, text, sizeof(text)), "before: %s", text);
    spoil(_i, b);
    snprintf(want, sizeof(want), "invariant %s: ", names[_i]);
    bool ok = context_ok(&b->c, 0, 64, text, sizeof(text));
    ck_assert_msg(!ok && !strncmp(text, want, strlen(want)), "row %d, %s: %s", _i, names[_i],
                  ok ? "nothing is noticed" : text);
    free(b);
}
END_TEST

/* Each queue has its turn, wherever a look begins. */
START_TEST(looks_go_on)
{
    struct bed *b = bed_new();
    char text[256];
    b->q[0].ring.stride = 0;
    ck_assert(context_ok(&b->c, 1, 2, text, sizeof(text)));
    ck_assert(!context_ok(&b->c, 2, 2, text, sizeof(text)));
    ck_assert(!context_ok(&b->c, 0, 1, text, sizeof(text)));
    free(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context ok");
    TCase *each = tcase_create("each_invariant_notices");
    TCase *look = tcase_create("looks_go_on");
    tcase_add_loop_test(each, each_invariant_notices, 0, ROWS);
    tcase_add_test(look, looks_go_on);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, look);
    return unit_run(suite);
}
