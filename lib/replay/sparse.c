/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash table of pages that have been written to.
 */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096u

struct sparse_page {
    struct sparse_page *next;
    uint64_t number;
    uint8_t data[SPARSE_PAGE];
};

static uint32_t bucket_of(uint64_t number)
{
    return (uint32_t)(number * 0x9E3779B97F4A7C15ull >> 52) % BUCKETS;
}

static struct sparse_page *find(const struct sparse *s, uint64_t number)
{
    struct sparse_page *p = s->bucket ? s->bucket[bucket_of(number)] : NULL;
    while (p && p->number != number)
        p = p->next;
    return p;
}

static struct sparse_page *make(struct sparse *s, uint64_t number)
{
    if (!s->bucket)
        s->bucket = calloc(BUCKETS, sizeof(struct sparse_page *));
    if (!s->bucket || s->pages == SPARSE_PAGES_MAX ||
        !held_take(s->held, sizeof(struct sparse_page)))
        return NULL;
    struct sparse_page *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    struct sparse_page **head = &s->bucket[bucket_of(number)];
    p->number = number;
    p->next = *head;
    *head = p;
    s->pages++;
    return p;
}

void sparse_free(struct sparse *s)
{
    for (uint32_t i = 0; s->bucket && i < BUCKETS; i++)
        for (struct sparse_page *p = s->bucket[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    free(s->bucket);
    *s = (struct sparse){.held = s->held};
}

void sparse_write(struct sparse *s, uint64_t at, const void *data, uint32_t len)
{
    const uint8_t *from = data;
    while (len) {
        uint32_t off = (uint32_t)(at % SPARSE_PAGE), n = SPARSE_PAGE - off;
        struct sparse_page *p = find(s, at / SPARSE_PAGE);
        if (n > len)
            n = len;
        if (p || (p = make(s, at / SPARSE_PAGE)))
            memcpy(p->data + off, from, n);
        at += n;
        from += n;
        len -= n;
    }
}

void sparse_read(const struct sparse *s, uint64_t at, void *to, uint32_t len)
{
    uint8_t *out = to;
    while (len) {
        uint32_t off = (uint32_t)(at % SPARSE_PAGE), n = SPARSE_PAGE - off;
        const struct sparse_page *p = find(s, at / SPARSE_PAGE);
        if (n > len)
            n = len;
        if (p)
            memcpy(out, p->data + off, n);
        else
            memset(out, 0, n);
        at += n;
        out += n;
        len -= n;
    }
}
