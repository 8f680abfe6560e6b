/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See claim.h.
 */
#include "claim.h"

#include <stddef.h>
#include <string.h>

void claims_init(struct claims *t, uint64_t seed)
{
    *t = (struct claims){.seed = seed};
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
        if (claim_same(c, key) && c->uid != uid &&
            ((connections && c->doubt) || (queue_pairs && c->qp)))
            break;
    }
    return c;
}

struct claim *claim_owner(const struct claims *t, const struct claim_key *key, uid_t uid)
{
    return claim_of_others(t, key, uid, true, false);
}

void claim_set(struct claims *t, struct claim *c, const struct claim_key *key)
{
    struct claim *first;
    size_t bucket = claim_bucket(t, key);
    if (c->in && claim_same(c, key))
        return;
    claim_drop(c);
    c->in = t;
    c->key = *key;
    c->to = c->fro = c;
    LIST_FOREACH(first, &t->bucket[bucket], next)
    {
        if (claim_same(first, key) && first->uid == c->uid && !first->qp == !c->qp)
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
    if (c->qp && claim_is_shared(c))
        t->shared++;
}

void claim_drop(struct claim *c)
{
    if (!c->in)
        return;
    if (c->first) {
        if (c->to != c) {
            c->to->first = true;
            LIST_INSERT_AFTER(c, c->to, next);
        }
        LIST_REMOVE(c, next);
    }
    c->to->fro = c->fro;
    c->fro->to = c->to;
    c->in = NULL;
}

bool claim_is_shared(const struct claim *c)
{
    return c->in && claim_of_others(c->in, &c->key, c->uid, true, true);
}

struct client_qp *claim_rival(const struct claim *c)
{
    const struct claim *other = c->in ? claim_of_others(c->in, &c->key, c->uid, false, true) : NULL;
    return other ? other->qp : NULL;
}
