/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See reclaim.h. A freed mapping stays in the list until its shares are given back, so a pool can
 * wait for all of its own.
 */
#include "reclaim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "foreign.h"

#define RECLAIM_NAP_NS 1000000

struct reclaimed {
    struct reclaimed *next;
    struct memory *mem;
    struct share *share;
    struct share_part part[RECLAIM_PARTS];
    unsigned nparts;
    bool freed;
};

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reclaimed *reclaim_list; /* of mappings whose shares are not given back */

static void reclaim_one(void *arg)
{
    struct reclaimed *r = arg;
    memory_free(r->mem);
    pthread_mutex_lock(&reclaim_lock);
    r->freed = true;
    pthread_mutex_unlock(&reclaim_lock);
}

void reclaim(struct share *s, struct memory *m, const struct share_part *part, unsigned n)
{
    reclaim_service();
    if (!m)
        return;
    struct reclaimed *r = s && memory_is_slow_to_free(m) ? malloc(sizeof(*r)) : NULL;
    if (r) {
        *r = (struct reclaimed){.mem = m, .share = share_hold(s), .nparts = n};
        memcpy(r->part, part, n * sizeof(*part));
        pthread_mutex_lock(&reclaim_lock);
        r->next = reclaim_list;
        reclaim_list = r;
        pthread_mutex_unlock(&reclaim_lock);
        if (!foreign_run(s->uid, reclaim_one, r))
            reclaim_one(r);
        return;
    }
    memory_free(m);
    share_give_all(s, part, n);
}

void reclaim_service(void)
{
    pthread_mutex_lock(&reclaim_lock);
    for (struct reclaimed **at = &reclaim_list; *at;) {
        struct reclaimed *r = *at;
        if (!r->freed) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        share_give_all(r->share, r->part, r->nparts);
        share_leave(r->share);
        free(r);
    }
    pthread_mutex_unlock(&reclaim_lock);
}

bool reclaim_busy(void)
{
    pthread_mutex_lock(&reclaim_lock);
    bool busy = reclaim_list != NULL;
    pthread_mutex_unlock(&reclaim_lock);
    return busy;
}

static bool waits_for(const struct share_pool *pool)
{
    pthread_mutex_lock(&reclaim_lock);
    const struct reclaimed *r = reclaim_list;
    while (r && r->share->pool != pool)
        r = r->next;
    pthread_mutex_unlock(&reclaim_lock);
    return r != NULL;
}

void reclaim_finish(const struct share_pool *pool)
{
    for (reclaim_service(); waits_for(pool); reclaim_service())
        nanosleep(&(struct timespec){.tv_nsec = RECLAIM_NAP_NS}, NULL);
}
