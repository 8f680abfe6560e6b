/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First fit over a sorted array of free ranges per slab. Freed places are cleared at once (large
 * ones by punching holes, which gives the pages back), so that a new queue starts with zeros.
 */
#include "qslab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "limits.h"

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
    struct range *free;
    unsigned nfree, cap;
};

static int slab_reserve(struct queue_slab *s, unsigned n)
{
    if (n <= s->cap)
        return 0;
    struct range *bigger = realloc(s->free, (size_t)2 * n * sizeof(*bigger));
    if (!bigger)
        return -ENOMEM;
    s->free = bigger;
    s->cap = 2 * n;
    return 0;
}

static int slab_new(struct qslab_list *l, uint64_t size)
{
    struct queue_slab *s = calloc(1, sizeof(*s));
    int rc = -ENOMEM;

    size = size > QSLAB_SIZE ? (size + QSLAB_PAGE - 1) / QSLAB_PAGE * QSLAB_PAGE : QSLAB_SIZE;
    if (s && l->octets + size > QUOTA_QUEUE_OCTETS)
        rc = -EDQUOT;
    else if (s && slab_reserve(s, 8) == 0)
        rc = memory_slab("urnic-queues", size, &s->mem, &s->fd);
    if (rc < 0) {
        if (s)
            free(s->free);
        free(s);
        return rc;
    }
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

void qslab_free(struct slab_place *p)
{
    struct queue_slab *s = p->slab;
    unsigned i = 0;

    if (!s)
        return;
    slab_clear(s, p->off, p->size);
    while (i < s->nfree && s->free[i].off < p->off)
        i++;
    bool joins_left = i > 0 && s->free[i - 1].off + s->free[i - 1].len == p->off;
    bool joins_right = i < s->nfree && p->off + p->size == s->free[i].off;
    if (joins_left && joins_right) {
        s->free[i - 1].len += p->size + s->free[i].len;
        memmove(&s->free[i], &s->free[i + 1], (--s->nfree - i) * sizeof(s->free[0]));
    } else if (joins_left) {
        s->free[i - 1].len += p->size;
    } else if (joins_right) {
        s->free[i].off = p->off;
        s->free[i].len += p->size;
    } else if (slab_reserve(s, s->nfree + 1) == 0) {
        memmove(&s->free[i + 1], &s->free[i], (s->nfree++ - i) * sizeof(s->free[0]));
        s->free[i] = (struct range){p->off, p->size};
    } /* else: out of memory for 16 octets; the place is lost until the context goes */
    *p = (struct slab_place){0};
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

void qslab_fini(struct qslab_list *l)
{
    while (l->first) {
        struct queue_slab *s = l->first;
        l->first = s->next;
        memory_free(s->mem);
        close(s->fd);
        free(s->free);
        free(s);
    }
    l->octets = 0;
}
