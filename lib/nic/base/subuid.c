/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See subuid.h.
 */
#include "subuid.h"

#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number up to UINT32_MAX that ends where `end` says. */
static bool subuid_number(const char *text, uint32_t *out, const char *end)
{
    char *stop;
    unsigned long long v = strtoull(text, &stop, 10);
    *out = (uint32_t)v;
    return stop != text && strchr(end, *stop) && v <= UINT32_MAX;
}

static bool subuid_line(char *line, struct subuid_range *r)
{
    char *first = strchr(line, ':');
    char *count = first ? strchr(first + 1, ':') : NULL;
    uint32_t start, owner;
    if (!count)
        return false;
    *first++ = *count++ = '\0';
    if (!subuid_number(first, &start, "") || !subuid_number(count, &r->count, "\n") ||
        r->count == 0 || start > UINT32_MAX - (r->count - 1))
        return false;
    r->first = start;
    const struct passwd *pw = getpwnam(line);
    if (pw)
        owner = pw->pw_uid;
    else if (!subuid_number(line, &owner, ""))
        return false;
    r->owner = owner;
    return true;
}

void subuids_read(struct subuids *s, FILE *f)
{
    struct subuid_range r;
    char line[256];
    while (fgets(line, sizeof(line), f)) {
        if (!subuid_line(line, &r))
            continue;
        struct subuid_range *more = realloc(s->range, (s->n + 1) * sizeof(*more));
        if (!more)
            return;
        s->range = more;
        s->range[s->n++] = r;
    }
}

void subuids_free(struct subuids *s)
{
    free(s->range);
    *s = (struct subuids){0};
}

uid_t subuids_owner(const struct subuids *s, uid_t uid)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (uid >= s->range[i].first && uid - s->range[i].first < s->range[i].count)
            return s->range[i].owner;
    }
    return uid;
}
