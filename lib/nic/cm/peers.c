/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See peers.h. A table with a lock: making a connection takes long compared with a look-up.
 */
#include "peers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "team.h"

#define PEER_BUCKETS 4096u
#define PEER_DOUBTS  64u /* that wait for a worker */

struct peers {
    pthread_mutex_t lock; /* guards all but `waits` */
    uint64_t seed;        /* random, so that attackers can't choose a bucket */
    unsigned bits;
    void (*wake)(void *arg, unsigned member);
    void *wake_arg;
    struct cm_peer *bucket[PEER_BUCKETS];
    struct cm_peer doubt[TEAM_MAX][PEER_DOUBTS];
    unsigned ndoubts[TEAM_MAX];
    _Atomic bool waits[TEAM_MAX];
};

struct peers *peers_new(unsigned bits, void (*wake)(void *arg, unsigned member), void *arg)
{
    struct peers *t = calloc(1, sizeof(*t));
    if (t && getrandom(&t->seed, sizeof(t->seed), 0) != (ssize_t)sizeof(t->seed)) {
        free(t);
        return NULL;
    }
    if (!t)
        return NULL;
    t->bits = bits;
    t->wake = wake;
    t->wake_arg = arg;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void peers_free(struct peers *t)
{
    free(t);
}

static struct cm_peer **peers_bucket(struct peers *t, const struct cm_peer *p)
{
    uint64_t word[4], h = t->seed;
    memcpy(word, p->addr.b, 16);
    word[2] = p->guid;
    word[3] = p->qpn;
    for (unsigned i = 0; i < 4; i++) {
        h = (h ^ word[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        h ^= h >> 32;
    }
    return &t->bucket[h % PEER_BUCKETS];
}

static bool peers_same(const struct cm_peer *a, const struct cm_peer *b)
{
    return a->qpn == b->qpn && a->guid == b->guid &&
           memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}

/* With the lock. */
static void peers_tell(struct peers *t, unsigned member, const struct cm_peer *p)
{
    for (unsigned i = 0; i < t->ndoubts[member]; i++) {
        if (peers_same(&t->doubt[member][i], p))
            return;
    }
    if (t->ndoubts[member] == PEER_DOUBTS)
        return;
    t->doubt[member][t->ndoubts[member]++] = *p;
    atomic_store_explicit(&t->waits[member], true, memory_order_relaxed);
    if (t->wake)
        t->wake(t->wake_arg, member);
}

bool peers_hold(void *peers, struct cm_peer *p, uint32_t except)
{
    struct peers *t = peers;
    pthread_mutex_lock(&t->lock);
    struct cm_peer **bucket = peers_bucket(t, p), *other = *bucket;
    while (other && !peers_same(other, p))
        other = other->next;
    const bool free = !other || other->id == except;
    if (!other) {
        p->next = *bucket;
        *bucket = p;
        p->held = true;
    } else if (!free) {
        peers_tell(t, other->id >> (32 - t->bits), p);
    }
    pthread_mutex_unlock(&t->lock);
    return free;
}

void peers_drop(void *peers, struct cm_peer *p)
{
    struct peers *t = peers;
    pthread_mutex_lock(&t->lock);
    struct cm_peer **at = peers_bucket(t, p);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    pthread_mutex_unlock(&t->lock);
}

bool peers_doubts(const struct peers *t, unsigned member)
{
    return t && atomic_load_explicit(&t->waits[member], memory_order_relaxed);
}

bool peers_next(struct peers *t, unsigned member, struct cm_peer *out)
{
    pthread_mutex_lock(&t->lock);
    const bool any = t->ndoubts[member] > 0;
    if (any)
        *out = t->doubt[member][--t->ndoubts[member]];
    else
        atomic_store_explicit(&t->waits[member], false, memory_order_relaxed);
    pthread_mutex_unlock(&t->lock);
    return any;
}
