/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Delayed frames are in a heap by time; frames that wait to be overtaken are in a short list.
 * Frames with equal times leave in the order in which they came.
 */
#include "fault_hold.h"

#include <stdlib.h>

struct held {
    uint64_t at, order;
    void *frame;
    enum fault_dir dir;
};

struct gap { /* waits until `left` others have passed, or until held.at */
    struct held held;
    uint64_t flow, delay;
    uint32_t left;
};

struct fault_hold {
    struct held *heap; /* [1..n] */
    unsigned n, slots, ngaps;
    uint64_t order;
    struct gap gap[FAULT_GAPS];
};

struct fault_hold *fault_hold_new(unsigned slots)
{
    struct fault_hold *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->slots = slots;
    h->heap = calloc((size_t)slots + 1, sizeof(*h->heap));
    if (!h->heap) {
        free(h);
        return NULL;
    }
    return h;
}

void fault_hold_free(struct fault_hold *h)
{
    if (!h)
        return;
    free(h->heap);
    free(h);
}

static bool earlier(const struct held *a, const struct held *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct fault_hold *h, struct held x)
{
    unsigned i = ++h->n;
    for (; i > 1 && earlier(&x, &h->heap[i / 2]); i /= 2)
        h->heap[i] = h->heap[i / 2];
    h->heap[i] = x;
}

static struct held pop(struct fault_hold *h)
{
    struct held first = h->heap[1], x = h->heap[h->n--];
    unsigned i = 1;
    for (unsigned k; (k = 2 * i) <= h->n; i = k) {
        if (k < h->n && earlier(&h->heap[k + 1], &h->heap[k]))
            k++;
        if (!earlier(&h->heap[k], &x))
            break;
        h->heap[i] = h->heap[k];
    }
    h->heap[i] = x;
    return first;
}

bool fault_hold_add(struct fault_hold *h, void *frame, enum fault_dir dir,
                    const struct fault_out *out, uint64_t now)
{
    struct held x = {now + out->delay, h->order++, frame, dir};
    if (h->n + h->ngaps == h->slots || (out->gap && h->ngaps == FAULT_GAPS))
        return false;
    if (!out->gap) {
        push(h, x);
        return true;
    }
    x.at += out->within;
    h->gap[h->ngaps++] = (struct gap){x, out->flow, out->delay, out->gap};
    return true;
}

/* Move the i-th frame of the list to the heap, with the time `at`. */
static void release(struct fault_hold *h, unsigned i, uint64_t at)
{
    struct held x = h->gap[i].held;
    h->ngaps--;
    for (; i < h->ngaps; i++)
        h->gap[i] = h->gap[i + 1];
    x.at = at;
    push(h, x);
}

void fault_hold_passed(struct fault_hold *h, enum fault_dir dir, uint64_t flow, uint64_t now)
{
    for (unsigned i = 0; i < h->ngaps;) {
        struct gap *g = &h->gap[i];
        if (g->held.dir != dir || g->flow != flow || --g->left > 0)
            i++;
        else
            release(h, i, now + g->delay < g->held.at ? now + g->delay : g->held.at);
    }
}

void *fault_hold_take(struct fault_hold *h, uint64_t now, enum fault_dir *dir)
{
    for (unsigned i = 0; i < h->ngaps;) {
        if (h->gap[i].held.at <= now)
            release(h, i, h->gap[i].held.at);
        else
            i++;
    }
    if (!h->n || h->heap[1].at > now)
        return NULL;
    struct held x = pop(h);
    if (dir)
        *dir = x.dir;
    return x.frame;
}

uint64_t fault_hold_deadline(const struct fault_hold *h)
{
    uint64_t at = h->n ? h->heap[1].at : UINT64_MAX;
    for (unsigned i = 0; i < h->ngaps; i++)
        if (h->gap[i].held.at < at)
            at = h->gap[i].held.at;
    return at;
}

unsigned fault_hold_count(const struct fault_hold *h)
{
    return h->n + h->ngaps;
}
