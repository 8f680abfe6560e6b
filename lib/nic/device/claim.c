/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See claim.h.
 */
#include "claim.h"

#include <stddef.h>
#include <string.h>

void claims_init(struct claims *t, uint64_t seed)
{
    memset(t, 0, sizeof(*t));
    t->seed = seed;
    pthread_mutex_init(&t->lock, NULL);
}

static size_t claim_bucket(const struct claims *t, const struct claim_key *key)
{
    uint64_t word[5] = {0}, h = t->seed;
    memcpy(word, key->local.b, 16);
    memcpy(word + 2, key->peer.b, 16);
    word[4] = key->qpn;
    for (unsigned i = 0; i < 5; i++) {
        h = (h ^ word[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
        h *= 0xBF58476D1CE4E5B9ull;
        h ^= h >> 32;
    }
    return h % CLAIM_BUCKETS;
}

static bool claim_same(const struct claim *c, const struct claim_key *key)
{
    return c->key.qpn == key->qpn && memcmp(&c->key.peer, &key->peer, sizeof(key->peer)) == 0 &&
           memcmp(&c->key.local, &key->local, sizeof(key->local)) == 0;
}

/* Of another user than this one, and of this kind. */
static struct claim *claim_of_others(const struct claims *t, const struct claim_key *key, uid_t uid,
                                     bool connections, bool queue_pairs)
{
    struct claim *c;
    LIST_FOREACH(c, &t->bucket[claim_bucket(t, key)], next)
    {
        if (claim_same(c, key) && c->uid != uid && (c->doubt ? connections : queue_pairs))
            break;
    }
    return c;
}

/* The worker that has this claim is to look at it. */
static void claim_tell(struct claims *t, struct claim *c)
{
    if (c->has_news)
        return;
    c->has_news = true;
    LIST_INSERT_HEAD(&t->news[c->member], c, next_news);
    atomic_store_explicit(&t->waits[c->member], true, memory_order_relaxed);
    if (t->wake)
        t->wake(t->wake_arg, c->member);
}

bool claim_refuses(struct claims *t, const struct claim_key *key, uid_t uid, unsigned member,
                   uid_t *owner, uint64_t now)
{
    pthread_mutex_lock(&t->lock);
    struct claim *c = claim_of_others(t, key, uid, true, false);
    bool ours = c && c->member == member;
    if (c) {
        t->count.refused++;
        *owner = c->uid;
        if (!ours)
            claim_tell(t, c);
    }
    pthread_mutex_unlock(&t->lock);
    if (ours)
        c->doubt(c, now); /* only this worker can end it */
    return c != NULL;
}

/* Out of its bucket. */
static void claim_unlink(struct claim *c)
{
    if (c->first) {
        if (c->to != c) {
            c->to->first = true;
            LIST_INSERT_AFTER(c, c->to, next);
        }
        LIST_REMOVE(c, next);
    }
    c->to->fro = c->fro;
    c->fro->to = c->to;
    c->to = c->fro = c;
    c->first = false;
}

static bool claim_others_share(const struct claim *c)
{
    return c->in && claim_of_others(c->in, &c->key, c->uid, true, true);
}

/* Claim nothing any more. With the lock. */
static void claim_forget(struct claim *c)
{
    claim_unlink(c);
    if (c->has_news)
        LIST_REMOVE(c, next_news);
    c->has_news = false;
    c->in = NULL;
}

/* With the lock; `c` claims nothing. */
static void claim_link(struct claims *t, struct claim *c, const struct claim_key *key)
{
    struct claim *first;
    size_t bucket = claim_bucket(t, key);
    c->in = t;
    c->key = *key;
    c->to = c->fro = c;
    LIST_FOREACH(first, &t->bucket[bucket], next)
    {
        if (claim_same(first, key) && first->uid == c->uid && !first->doubt == !c->doubt)
            break;
    }
    c->first = !first;
    if (first) {
        c->to = first->to;
        c->fro = first;
        c->to->fro = first->to = c;
    } else {
        LIST_INSERT_HEAD(&t->bucket[bucket], c, next);
    }
}

enum claim_result claim_set(struct claims *t, struct claim *c, const struct claim_key *key)
{
    enum claim_result result = CLAIM_SET;
    pthread_mutex_lock(&t->lock);
    if (!c->in || !claim_same(c, key) || c->has_news) {
        if (c->in)
            claim_forget(c);
        if (claim_of_others(t, key, c->uid, true, false)) {
            result = CLAIM_OWNED;
        } else {
            claim_link(t, c, key);
            if (!c->doubt && claim_others_share(c))
                result = CLAIM_SHARED;
        }
        t->count.shared += result == CLAIM_SHARED;
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

void claim_drop(struct claim *c)
{
    struct claims *t = c->in;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    claim_forget(c);
    pthread_mutex_unlock(&t->lock);
}

bool claim_is_shared(const struct claim *c)
{
    struct claims *t = c->in;
    if (!t)
        return false;
    pthread_mutex_lock(&t->lock);
    bool shared = claim_others_share(c);
    pthread_mutex_unlock(&t->lock);
    return shared;
}

struct claim *claim_displace(const struct claim *c, unsigned *left)
{
    struct claims *t = c->in;
    struct claim *other, *lost = NULL;
    if (!t)
        return NULL;
    pthread_mutex_lock(&t->lock);
    while (!lost && *left > 0 &&
           (other = claim_of_others(t, &c->key, c->uid, false, true)) != NULL) {
        --*left;
        t->count.displaced++;
        claim_unlink(other);
        if (other->member == c->member) {
            other->in = NULL;
            lost = other;
        } else {
            claim_tell(t, other);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return lost;
}

struct claim *claim_news(struct claims *t, unsigned member)
{
    pthread_mutex_lock(&t->lock);
    struct claim *c = LIST_FIRST(&t->news[member]);
    if (c) {
        LIST_REMOVE(c, next_news);
        c->has_news = false;
        if (!c->doubt)
            c->in = NULL; /* claim_displace has taken it */
    } else {
        atomic_store_explicit(&t->waits[member], false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&t->lock);
    return c;
}

void claim_counts(struct claims *t, struct claim_counters *out)
{
    pthread_mutex_lock(&t->lock);
    *out = t->count;
    pthread_mutex_unlock(&t->lock);
}
