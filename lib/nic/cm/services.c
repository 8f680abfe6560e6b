/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See services.h. A table with a lock: a request takes long compared with a look-up.
 */
#include "services.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_BUCKETS 1024u
#define SERVICE_ENDED   1024u /* ended services remembered */

struct entry {
    struct entry *next;
    struct service s;
    const void *owner; /* NULL = it has ended */
};

struct services {
    pthread_mutex_t lock;
    struct entry *bucket[SERVICE_BUCKETS];
    unsigned ended;
};

struct services *services_new(void)
{
    struct services *s = calloc(1, sizeof(*s));
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

void services_free(struct services *s)
{
    for (unsigned i = 0; s && i < SERVICE_BUCKETS; i++) {
        while (s->bucket[i]) {
            struct entry *e = s->bucket[i];
            s->bucket[i] = e->next;
            free(e);
        }
    }
    free(s);
}

static struct entry **bucket_of(struct services *s, uint64_t id)
{
    return &s->bucket[(id ^ id >> 16) % SERVICE_BUCKETS];
}

static unsigned family_of(const struct service *s)
{
    return s->any ? s->family : wire_addr_is_v4(&s->addr) ? 4 : 6;
}

static bool same_addr(const struct service *s, const struct wire_addr *addr)
{
    return !s->any && memcmp(s->addr.b, addr->b, sizeof(addr->b)) == 0;
}

static bool takes(const struct service *s, const struct wire_addr *addr)
{
    return s->any ? s->family == 0 || s->family == (wire_addr_is_v4(addr) ? 4u : 6u)
                  : same_addr(s, addr);
}

/* May both listen? Two addresses, or two families. */
static bool clash(const struct service *a, const struct service *b)
{
    if (!a->any && !b->any)
        return same_addr(a, &b->addr);
    unsigned fa = family_of(a), fb = family_of(b);
    return fa == 0 || fb == 0 || fa == fb;
}

/* The ended listeners of this service. */
static void forget(struct services *s, uint64_t id)
{
    for (struct entry **p = bucket_of(s, id); *p;) {
        struct entry *e = *p;
        if (e->owner || e->s.id != id) {
            p = &e->next;
            continue;
        }
        *p = e->next;
        s->ended--;
        free(e);
    }
}

int services_add(struct services *s, const struct service *one, const void *owner)
{
    struct entry *e = calloc(1, sizeof(*e));
    int rc = e ? 0 : -ENOMEM;
    pthread_mutex_lock(&s->lock);
    for (const struct entry *o = *bucket_of(s, one->id); o && rc == 0; o = o->next) {
        if (o->owner && o->s.id == one->id && o->s.member != one->member && clash(&o->s, one))
            rc = -EADDRINUSE;
    }
    if (rc == 0) {
        forget(s, one->id);
        *e = (struct entry){.next = *bucket_of(s, one->id), .s = *one, .owner = owner};
        *bucket_of(s, one->id) = e;
    }
    pthread_mutex_unlock(&s->lock);
    if (rc < 0)
        free(e);
    return rc;
}

void services_del(struct services *s, const void *owner)
{
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < SERVICE_BUCKETS; i++) {
        for (struct entry **p = &s->bucket[i]; *p;) {
            struct entry *e = *p;
            if (e->owner != owner) {
                p = &e->next;
                continue;
            }
            e->owner = NULL;
            if (s->ended < SERVICE_ENDED) {
                s->ended++;
                p = &e->next;
            } else {
                *p = e->next;
                free(e);
            }
        }
    }
    pthread_mutex_unlock(&s->lock);
}

int services_find(struct services *s, uint64_t id, const struct wire_addr *addr)
{
    int member = -1;
    bool alive = false, exact = false;
    pthread_mutex_lock(&s->lock);
    for (const struct entry *e = *bucket_of(s, id); e; e = e->next) {
        if (e->s.id != id || !takes(&e->s, addr))
            continue;
        bool better = member < 0 || (e->owner && !alive) ||
                      ((e->owner != NULL) == alive && !e->s.any && !exact);
        if (better) {
            member = (int)e->s.member;
            alive = e->owner != NULL;
            exact = !e->s.any;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return member;
}

bool services_has(struct services *s, uint64_t id)
{
    bool has = false;
    pthread_mutex_lock(&s->lock);
    for (const struct entry *e = *bucket_of(s, id); e && !has; e = e->next)
        has = e->owner && e->s.id == id;
    pthread_mutex_unlock(&s->lock);
    return has;
}
