/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First fit over a sorted array of free ranges per slab. Places are given back on the worker, where
 * clearing them would stall everybody else; so they wait for the control thread to do that (large
 * ones by punching holes, which gives the pages back) and can be used again, with zeros, after it.
 */
#include "qslab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quota.h"

#define QSLAB_SIZE  (1ull << 20)
#define QSLAB_ALIGN 128u /* two lines: the neighbour-line prefetcher */
#define QSLAB_PAGE  4096u
#define QSLAB_PUNCH (64u << 10)

struct range {
    uint64_t off, len;
};

struct queue_slab {
    struct queue_slab *next;
    struct memory *mem;
    uint64_t size;
    uint32_t number;
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

/* A slab is a descriptor and a mapping; the engine's copies of what is in it are as large. */
#define SLAB_PARTS(size)                                                                           \
    (const struct share_part[]){{SHARE_FDS, 1}, {SHARE_MAPPINGS, 1}, {SHARE_OCTETS, 2 * (size)}}, 3

static int slab_new(struct qslab_list *l, uint64_t size)
{
    struct queue_slab *s = calloc(1, sizeof(*s));
    int rc = -ENOMEM;

    size = size > QSLAB_SIZE ? (size + QSLAB_PAGE - 1) / QSLAB_PAGE * QSLAB_PAGE : QSLAB_SIZE;
    if (s &&
        (l->octets + size > QUOTA_QUEUE_OCTETS || share_take_all(l->share, SLAB_PARTS(size)) < 0)) {
        rc = -EDQUOT;
    } else if (s) {
        if (slab_reserve(s, 8) == 0)
            rc = memory_slab("urnic-queues", size, &s->mem, &s->fd);
        if (rc < 0)
            share_give_all(l->share, SLAB_PARTS(size));
    }
    if (rc < 0) {
        if (s)
            free(s->free);
        free(s);
        return rc;
    }
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
        r->off += size;
        r->len -= size;
        if (r->len == 0)
            memmove(r, r + 1, (--s->nfree - i) * sizeof(*r));
        return true;
    }
    return false;
}

int qslab_alloc(struct qslab_list *l, uint64_t size, struct slab_place *out)
{
    size = (size + QSLAB_ALIGN - 1) / QSLAB_ALIGN * QSLAB_ALIGN;
    for (struct queue_slab *s = l->first; s; s = s->next) {
        if (slab_reserve(s, s->nfree + 1) == 0 && slab_take(s, size, out))
            return 0;
    }
    int rc = slab_new(l, size);
    if (rc < 0)
        return rc;
    return slab_take(l->first, size, out) ? 0 : -ENOMEM;
}

static void slab_clear(struct queue_slab *s, uint64_t off, uint64_t len)
{
    uint8_t *base = s->mem->base;
    uint64_t first = (off + QSLAB_PAGE - 1) / QSLAB_PAGE * QSLAB_PAGE;
    uint64_t last = (off + len) / QSLAB_PAGE * QSLAB_PAGE;

    if (len < QSLAB_PUNCH || fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                       (off_t)first, (off_t)(last - first)) < 0) {
        memset(base + off, 0, len);
        return;
    }
    memset(base + off, 0, first - off);
    memset(base + last, 0, off + len - last);
}

void *qslab_at(const struct slab_place *p)
{
    return p->slab->mem->base + p->off;
}

/* Where there is no memory for 16 octets, a place is lost until the context goes. */
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

void qslab_clean(struct qslab_list *l)
{
    for (struct queue_slab *s = l->first; s && l->dirty; s = s->next) {
        for (; s->ndirty > 0; s->ndirty--) {
            const struct range r = s->dirty[s->ndirty - 1];
            slab_clear(s, r.off, r.len);
            slab_give(s, r);
        }
    }
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
    return s->fd;
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
    for (struct queue_slab *s = l->first; s; s = s->next)
        s->seen = SLAB_UNSEEN;
}

void qslab_fini(struct qslab_list *l)
{
    while (l->first) {
        struct queue_slab *s = l->first;
        l->first = s->next;
        memory_free(s->mem);
        close(s->fd);
        share_give_all(l->share, SLAB_PARTS(s->size));
        free(s->free);
        free(s->dirty);
        free(s);
    }
    l->octets = 0;
}
