/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delayed frames are a binary heap by time; frames held for a reordering are few and are scanned.
 */
#include "bump_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bump_queue_init(struct bump_queue *q, uint32_t max, uint32_t room)
{
    *q = (struct bump_queue){.max = max, .room = room};
    q->heap = calloc(max, sizeof(*q->heap));
    q->held = calloc(max, sizeof(*q->held));
    q->spare = calloc(max, sizeof(*q->spare));
    if (q->heap && q->held && q->spare)
        return 0;
    bump_queue_free(q);
    return -ENOMEM;
}

void bump_queue_free(struct bump_queue *q)
{
    for (uint32_t i = 0; i < q->n; i++)
        free(q->heap[i].data);
    for (uint32_t i = 0; i < q->nheld; i++)
        free(q->held[i].data);
    for (uint32_t i = 0; i < q->nspare; i++)
        free(q->spare[i]);
    free(q->heap);
    free(q->held);
    free(q->spare);
    *q = (struct bump_queue){0};
}

static bool before(const struct bump_kept *a, const struct bump_kept *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_add(struct bump_queue *q, struct bump_kept k)
{
    uint32_t i = q->n++;

    while (i && before(&k, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = k;
}

static void heap_remove_first(struct bump_queue *q)
{
    struct bump_kept last = q->heap[--q->n];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < q->n) {
        if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
}

bool bump_queue_put(struct bump_queue *q, const uint8_t *data, uint32_t len, uint32_t hold,
                    uint64_t due)
{
    if (bump_queue_len(q) == q->max || len > q->room)
        return false;
    uint8_t *copy = q->nspare ? q->spare[--q->nspare] : malloc(q->room);
    if (!copy)
        return false;
    memcpy(copy, data, len);
    struct bump_kept k = {.due = due, .order = q->order++, .hold = hold, .len = len, .data = copy};
    if (hold)
        q->held[q->nheld++] = k;
    else
        heap_add(q, k);
    return true;
}

/* Held frames whose time is over before enough others came. */
static void give_up_holding(struct bump_queue *q, uint64_t now)
{
    for (uint32_t i = 0; i < q->nheld;) {
        if (q->held[i].due > now) {
            i++;
            continue;
        }
        heap_add(q, q->held[i]);
        q->held[i] = q->held[--q->nheld];
    }
}

const struct bump_kept *bump_queue_due(struct bump_queue *q, uint64_t now)
{
    if (q->nheld)
        give_up_holding(q, now);
    return q->n && q->heap[0].due <= now ? &q->heap[0] : NULL;
}

void bump_queue_pop(struct bump_queue *q)
{
    q->spare[q->nspare++] = q->heap[0].data;
    heap_remove_first(q);
}

void bump_queue_passed(struct bump_queue *q, uint64_t now)
{
    for (uint32_t i = 0; i < q->nheld;) {
        if (--q->held[i].hold) {
            i++;
            continue;
        }
        q->held[i].due = now;
        heap_add(q, q->held[i]);
        q->held[i] = q->held[--q->nheld];
    }
}

uint64_t bump_queue_deadline(const struct bump_queue *q)
{
    uint64_t at = q->n ? q->heap[0].due : UINT64_MAX;

    for (uint32_t i = 0; i < q->nheld; i++)
        at = q->held[i].due < at ? q->held[i].due : at;
    return at;
}
