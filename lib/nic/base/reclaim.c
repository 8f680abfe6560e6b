/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See reclaim.h. Shares are the control thread's, so it looks for what is done.
 */
#include "reclaim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "foreign.h"

struct reclaimed {
    struct reclaimed *next;
    struct memory *mem;
    struct share *share;
    struct share_part part[RECLAIM_PARTS];
    unsigned nparts;
};

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reclaimed *reclaim_done;
static unsigned reclaim_waiting; /* not done yet */

static void reclaim_one(void *arg)
{
    struct reclaimed *r = arg;
    memory_free(r->mem);
    pthread_mutex_lock(&reclaim_lock);
    r->next = reclaim_done;
    reclaim_done = r;
    reclaim_waiting--;
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
        reclaim_waiting++;
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
    struct reclaimed *r = reclaim_done;
    reclaim_done = NULL;
    pthread_mutex_unlock(&reclaim_lock);
    while (r) {
        struct reclaimed *next = r->next;
        share_give_all(r->share, r->part, r->nparts);
        share_leave(r->share);
        free(r);
        r = next;
    }
}

bool reclaim_busy(void)
{
    pthread_mutex_lock(&reclaim_lock);
    bool busy = reclaim_waiting > 0 || reclaim_done;
    pthread_mutex_unlock(&reclaim_lock);
    return busy;
}
