/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First fit over a sorted array of free ranges per slab. Places are given back on the worker, where
 * clearing them would stall all other clients. So they wait until the control thread has cleared
 * them, and can then be used again. A queue that needs more than a slab of the usual size gets a
 * slab of its own, which is freed with it: seals forbid freeing a part (memory_seal).
 */
#include "qslab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "quota.h"
#include "reclaim.h"

#define QSLAB_SIZE  IPC_SLAB_SHARED
#define QSLAB_ALIGN 128u /* two lines: the neighbour-line prefetcher */
#define QSLAB_PAGE  4096u
#define QSLAB_LOOK  256u /* pages checked in one call */

struct range {
    uint64_t off, len;
};

struct queue_slab {
    struct queue_slab *next;
    struct memory *mem;
    uint64_t size;
    uint32_t number;
    uint32_t places; /* places in use, or waiting to be cleared */
    int fd;
    enum { SLAB_UNSEEN, SLAB_ANNOUNCED, SLAB_SEEN } seen; /* has the client the descriptor? */
    struct qslab_list *list;
    struct range *free, *dirty; /* dirty: given back, and not cleared yet */
    unsigned nfree, cap, ndirty, dirty_cap;
};

static int ranges_reserve(struct range **ranges, unsigned *cap, unsigned n)
{
    if (n <= *cap)
        return 0;
    struct range *bigger = realloc(*ranges, (size_t)2 * n * sizeof(*bigger));
    if (!bigger)
        return -ENOMEM;
    *ranges = bigger;
    *cap = 2 * n;
    return 0;
}

static int slab_reserve(struct queue_slab *s, unsigned n)
{
    return ranges_reserve(&s->free, &s->cap, n);
}

/* A slab is a descriptor and a mapping; the engine's copies of its queues are as large. */
#define SLAB_PARTS(size)                                                                           \
    (const struct share_part[]){{SHARE_FDS, 1}, {SHARE_MAPPINGS, 1}, {SHARE_OCTETS, 2 * (size)}}, 3

static int slab_new(struct qslab_list *l, uint64_t size)
{
    struct queue_slab *s = calloc(1, sizeof(*s));
    int rc = -ENOMEM, fd;
    size = size > QSLAB_SIZE ? (size + QSLAB_PAGE - 1) / QSLAB_PAGE * QSLAB_PAGE : QSLAB_SIZE;
    if (s &&
        (l->octets + size > QUOTA_QUEUE_OCTETS || share_take_all(l->share, SLAB_PARTS(size)) < 0)) {
        rc = -EDQUOT;
    } else if (s) {
        if (slab_reserve(s, 8) == 0)
            rc = memory_slab("urnic-queues", size, &s->mem, &fd);
        if (rc < 0)
            share_give_all(l->share, SLAB_PARTS(size));
    }
    if (rc < 0) {
        if (s)
            free(s->free);
        free(s);
        return rc;
    }
    s->mem->keeps_fd = true; /* a client may need it again */
    s->list = l;
    s->size = size;
    s->number = ++l->last_number;
    s->free[0] = (struct range){0, size};
    s->nfree = 1;
    s->next = l->first;
    l->first = s;
    l->octets += size;
    return 0;
}

static bool slab_take(struct queue_slab *s, uint64_t size, struct slab_place *out)
{
    for (unsigned i = 0; i < s->nfree; i++) {
        struct range *r = &s->free[i];
        if (r->len < size)
            continue;
        *out = (struct slab_place){.slab = s, .off = r->off, .size = size};
        s->places++;
        r->off += size;
        r->len -= size;
        if (r->len == 0)
            memmove(r, r + 1, (--s->nfree - i) * sizeof(*r));
        return true;
    }
    return false;
}

/* A slab of one queue is freed with it. So is a slab that its client never named, and that is thus
 * unsealed: holes in it could stall us. */
static bool slab_is_alone(const struct queue_slab *s)
{
    return s->size > QSLAB_SIZE && (s->list->unmaps || !s->mem->sealed);
}

int qslab_alloc(struct qslab_list *l, uint64_t size, struct slab_place *out)
{
    size = (size + QSLAB_ALIGN - 1) / QSLAB_ALIGN * QSLAB_ALIGN;
    for (struct queue_slab *s = l->first; s; s = s->next) {
        if (!slab_is_alone(s) && slab_reserve(s, s->nfree + 1) == 0 && slab_take(s, size, out))
            return 0;
    }
    int rc = slab_new(l, size);
    if (rc < 0)
        return rc;
    return slab_take(l->first, size, out) ? 0 : -ENOMEM;
}

/* Untouched pages are zero, and stay without memory. */
static void slab_clear(struct queue_slab *s, uint64_t off, uint64_t len)
{
    uint8_t *at = s->mem->base + off, *end = at + len;
    unsigned char there[QSLAB_LOOK];
    while (at < end) {
        uint8_t *page = at - (uintptr_t)at % QSLAB_PAGE, *last = page + sizeof(there) * QSLAB_PAGE;
        if (last > end)
            last = end;
        if (mincore(page, (size_t)(last - page), there) < 0)
            memset(there, 1, sizeof(there));
        for (unsigned i = 0; at < last; i++) {
            uint8_t *next = page + (i + 1) * (size_t)QSLAB_PAGE;
            if (next > last)
                next = last;
            if (there[i] & 1)
                memset(at, 0, (size_t)(next - at));
            at = next;
        }
    }
}

struct memory *qslab_memory(const struct slab_place *p)
{
    return p->slab->mem;
}

void *qslab_at(const struct slab_place *p)
{
    return p->slab->mem->base + p->off;
}

static void slab_drop(struct qslab_list *l, struct queue_slab *s)
{
    l->octets -= s->size;
    reclaim(l->share, s->mem, SLAB_PARTS(s->size));
    free(s->free);
    free(s->dirty);
    free(s);
}

/* Without memory for 16 octets, a place is lost until the context ends. */
static void slab_give(struct queue_slab *s, struct range r)
{
    unsigned i = 0;
    while (i < s->nfree && s->free[i].off < r.off)
        i++;
    bool joins_left = i > 0 && s->free[i - 1].off + s->free[i - 1].len == r.off;
    bool joins_right = i < s->nfree && r.off + r.len == s->free[i].off;
    if (joins_left && joins_right) {
        s->free[i - 1].len += r.len + s->free[i].len;
        memmove(&s->free[i], &s->free[i + 1], (--s->nfree - i) * sizeof(s->free[0]));
    } else if (joins_left) {
        s->free[i - 1].len += r.len;
    } else if (joins_right) {
        s->free[i].off = r.off;
        s->free[i].len += r.len;
    } else if (slab_reserve(s, s->nfree + 1) == 0) {
        memmove(&s->free[i + 1], &s->free[i], (s->nfree++ - i) * sizeof(s->free[0]));
        s->free[i] = r;
    }
}

void qslab_free(struct slab_place *p)
{
    struct queue_slab *s = p->slab;
    if (s && ranges_reserve(&s->dirty, &s->dirty_cap, s->ndirty + 1) == 0) {
        s->dirty[s->ndirty++] = (struct range){p->off, p->size};
        s->list->dirty = true;
    }
    *p = (struct slab_place){0};
}

/* Returns the place in the list where the next slab is. */
static struct queue_slab **slab_clean(struct qslab_list *l, struct queue_slab **p)
{
    struct queue_slab *s = *p;
    s->places -= s->ndirty;
    if (s->ndirty > 0 && s->places == 0 && slab_is_alone(s)) {
        *p = s->next;
        slab_drop(l, s);
        return p;
    }
    for (; s->ndirty > 0; s->ndirty--) {
        const struct range r = s->dirty[s->ndirty - 1];
        slab_clear(s, r.off, r.len);
        slab_give(s, r);
    }
    return &s->next;
}

void qslab_clean(struct qslab_list *l)
{
    if (!l->dirty)
        return;
    for (struct queue_slab **p = &l->first; *p;)
        p = slab_clean(l, p);
    l->dirty = false;
}

int qslab_where(struct qslab_list *l, const struct slab_place *p, struct ipc_where *out)
{
    struct queue_slab *s = p->slab;
    out->off = p->off;
    out->slab = s->number;
    out->slab_size = 0;
    if (s->seen != SLAB_UNSEEN)
        return -1;
    out->slab_size = s->size;
    s->seen = SLAB_ANNOUNCED;
    l->announced++;
    return s->mem->fd;
}

void qslab_answered(struct qslab_list *l, bool sent)
{
    for (struct queue_slab *s = l->first; s && l->announced > 0; s = s->next) {
        if (s->seen != SLAB_ANNOUNCED)
            continue;
        s->seen = sent ? SLAB_SEEN : SLAB_UNSEEN;
        l->announced--;
    }
}

void qslab_again(struct qslab_list *l)
{
    for (struct queue_slab *s = l->first; s; s = s->next) {
        if (!memory_is_sealed(s->mem)) /* else it is mapped, for good */
            s->seen = SLAB_UNSEEN;
    }
}

void qslab_fini(struct qslab_list *l)
{
    while (l->first) {
        struct queue_slab *s = l->first;
        l->first = s->next;
        slab_drop(l, s);
    }
}
