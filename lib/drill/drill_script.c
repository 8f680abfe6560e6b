/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A parsed script: its memory, and queries of it and of its statements.
 */
#include "drill_script.h"

#include <stdlib.h>

/* ---- memory ---- */

#define CHUNK_LEN 16384u /* octets at a time; a longer piece has a chunk of its own */

struct drill_chunk {
    struct drill_chunk *next;
    size_t used, size;
    max_align_t octets[];
};

void *drill_alloc(struct drill_script *s, size_t size)
{
    struct drill_chunk *c = s->arena;
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!c || c->size - c->used < size) {
        size_t room = size > CHUNK_LEN ? size : CHUNK_LEN;
        c = calloc(1, sizeof(*c) + room);
        if (!c)
            return NULL;
        c->size = room;
        c->next = s->arena;
        s->arena = c;
    }
    void *p = (char *)c->octets + c->used;
    c->used += size;
    return p;
}

void drill_free(struct drill_script *s)
{
    if (!s)
        return;
    for (struct drill_chunk *c = s->arena, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(s);
}

/* ---- queries ---- */

const char *drill_rules(const struct drill_script *s)
{
    return s->rules;
}

const char *drill_purpose(const struct drill_script *s)
{
    return s->purpose;
}

const struct drill_arg *drill_arg(const struct drill_stmt *st, int id)
{
    for (const struct drill_arg *a = st->args; a; a = a->next)
        if (a->field && a->field->id == id)
            return a;
    return NULL;
}

bool drill_flag(const struct drill_stmt *st, int id)
{
    const struct drill_arg *a = drill_arg(st, id);
    return a && !a->off;
}
