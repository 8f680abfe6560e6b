/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Buffers for the waiting room; returned ones are reused.
 */
#include "bump_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int bump_queue_init(struct bump_queue *q, uint32_t max, uint32_t room)
{
    *q = (struct bump_queue){.max = max, .room = room};
    q->hold = fault_hold_new(max);
    q->spare = calloc(max, sizeof(*q->spare));
    if (q->hold && q->spare)
        return 0;
    bump_queue_free(q);
    return -ENOMEM;
}

void bump_queue_free(struct bump_queue *q)
{
    struct bump_kept *k;
    if (q->hold && q->spare) {
        while ((k = bump_queue_take(q, UINT64_MAX)) != NULL)
            bump_queue_give(q, k);
        while (q->nspare)
            free(q->spare[--q->nspare]);
    }
    free(q->spare);
    fault_hold_free(q->hold);
    *q = (struct bump_queue){0};
}

bool bump_queue_put(struct bump_queue *q, enum fault_dir dir, const uint8_t *data, uint32_t len,
                    const struct fault_out *out, uint64_t now)
{
    if (bump_queue_len(q) == q->max || len > q->room)
        return false;
    struct bump_kept *k = q->nspare ? q->spare[--q->nspare] : malloc(sizeof(*k) + q->room);
    if (!k)
        return false;
    k->len = len;
    memcpy(k->data, data, len);
    if (fault_hold_add(q->hold, k, dir, out, now))
        return true;
    bump_queue_give(q, k);
    return false;
}

struct bump_kept *bump_queue_take(struct bump_queue *q, uint64_t now)
{
    return fault_hold_take(q->hold, now, NULL);
}

void bump_queue_give(struct bump_queue *q, struct bump_kept *k)
{
    q->spare[q->nspare++] = k; /* never more than `max` of them exist */
}
