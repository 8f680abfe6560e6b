/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See share.h. Users are few: a list does.
 */
#include "share.h"

#include <errno.h>
#include <stdlib.h>

#define SHARE_PART 8u /* the part kept for users with little, and each one's part of that */

const char *const share_names[SHARE_KINDS] = {
    [SHARE_PD] = "protection domains",     [SHARE_MR] = "memory regions",
    [SHARE_MW] = "memory windows",         [SHARE_CQ] = "completion queues",
    [SHARE_SRQ] = "shared receive queues", [SHARE_QP] = "queue pairs",
    [SHARE_CM_ID] = "connection ids",      [SHARE_LISTENER] = "listeners",
    [SHARE_GROUP] = "multicast groups",    [SHARE_CONN] = "connections under way or just over",
    [SHARE_NEIGH] = "neighbours",          [SHARE_EVENT] = "unread events",
    [SHARE_FDS] = "descriptors",           [SHARE_UNREAD] = "descriptors not received yet",
    [SHARE_MAPPINGS] = "mappings",         [SHARE_OCTETS] = "octets of memory",
    [SHARE_LINES] = "lines of the log",    [SHARE_BLOCK] = "channels of programs",
};

const char *const share_counters[SHARE_KINDS] = {
    [SHARE_PD] = "refused_pds",           [SHARE_MR] = "refused_mrs",
    [SHARE_MW] = "refused_mws",           [SHARE_CQ] = "refused_cqs",
    [SHARE_SRQ] = "refused_srqs",         [SHARE_QP] = "refused_qps",
    [SHARE_CM_ID] = "refused_cm_ids",     [SHARE_LISTENER] = "refused_listeners",
    [SHARE_GROUP] = "refused_groups",     [SHARE_CONN] = "refused_connections",
    [SHARE_NEIGH] = "refused_neighbours", [SHARE_BLOCK] = "refused_channels",
    [SHARE_EVENT] = "refused_events",     [SHARE_FDS] = "refused_descriptors",
    [SHARE_UNREAD] = "refused_unread",    [SHARE_MAPPINGS] = "refused_mappings",
    [SHARE_OCTETS] = "refused_octets",    [SHARE_LINES] = "refused_log_lines",
};

static void share_lock(struct share_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
}

static void share_unlock(struct share_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

struct share *share_join(struct share_pool *pool, uid_t uid, bool all)
{
    share_lock(pool);
    struct share *s = pool->first;
    while (s && (s->uid != uid || s->all != all))
        s = s->next;
    if (!s) {
        s = calloc(1, sizeof(*s));
        if (s) {
            *s = (struct share){
                .next = pool->first, .pool = pool, .uid = uid, .all = all, .lacked = SHARE_KINDS};
            pool->first = s;
        }
    }
    if (s)
        s->members++;
    share_unlock(pool);
    return s;
}

struct share *share_hold(struct share *s)
{
    if (!s)
        return NULL;
    share_lock(s->pool);
    s->members++;
    share_unlock(s->pool);
    return s;
}

void share_leave(struct share *s)
{
    if (!s)
        return;
    struct share_pool *pool = s->pool;
    share_lock(pool);
    bool last = --s->members == 0;
    for (struct share **p = &pool->first; last && *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
    share_unlock(pool);
    if (last)
        free(s);
}

void share_fini(struct share_pool *pool)
{
    while (pool->first) {
        struct share *s = pool->first;
        pool->first = s->next;
        free(s);
    }
}

static bool has_room(const struct share *s, enum share_kind kind, uint64_t n)
{
    if (s->all || s->pool->limit[kind] == 0)
        return true;
    uint64_t limit = s->pool->limit[kind], used = s->pool->used[kind], own = s->used[kind];
    if (used >= limit || n > limit - used) /* administrators may have taken more than there is */
        return false;
    return used + n <= limit - limit / SHARE_PART || own + n <= (limit - (used - own)) / SHARE_PART;
}

bool share_has_room(const struct share *s, enum share_kind kind, uint64_t n)
{
    if (!s)
        return true;
    share_lock(s->pool);
    bool room = has_room(s, kind, n);
    share_unlock(s->pool);
    return room;
}

static int refuse(struct share *s, enum share_kind kind)
{
    s->pool->refused[kind]++;
    s->lacked = kind;
    return -EDQUOT;
}

int share_refuse(struct share *s, enum share_kind kind)
{
    share_lock(s->pool);
    int rc = refuse(s, kind);
    share_unlock(s->pool);
    return rc;
}

int share_take(struct share *s, enum share_kind kind, uint64_t n)
{
    int rc = 0;
    if (!s)
        return 0;
    share_lock(s->pool);
    if (has_room(s, kind, n)) {
        s->used[kind] += n;
        s->pool->used[kind] += n;
    } else {
        rc = refuse(s, kind);
    }
    share_unlock(s->pool);
    return rc;
}

bool share_lacked(struct share *s, struct share_lack *out)
{
    share_lock(s->pool);
    enum share_kind kind = s->lacked;
    bool any = kind != SHARE_KINDS;
    if (any)
        *out = (struct share_lack){kind, s->used[kind], s->pool->used[kind], s->pool->limit[kind]};
    s->lacked = SHARE_KINDS;
    share_unlock(s->pool);
    return any;
}

uint64_t share_refusals(struct share_pool *pool, enum share_kind kind)
{
    share_lock(pool);
    uint64_t n = pool->refused[kind];
    share_unlock(pool);
    return n;
}

static bool may_log(struct share *s, uint64_t now)
{
    uint64_t old = now > s->lines_at ? (now - s->lines_at) / SHARE_LOG_NS : 0;
    s->lines = old < s->lines ? s->lines - (uint32_t)old : 0;
    s->lines_at = s->lines ? s->lines_at + old * SHARE_LOG_NS : now;
    if (s->lines >= SHARE_LOG_BURST) {
        s->pool->refused[SHARE_LINES]++;
        return false;
    }
    s->lines++;
    return true;
}

bool share_may_log(struct share *s, uint64_t now)
{
    if (!s || s->all)
        return true;
    share_lock(s->pool);
    bool may = may_log(s, now);
    share_unlock(s->pool);
    return may;
}

/* `until`: when the events that were allowed so far have used up the rate. */
static bool within(struct share *s, uint64_t *until, uint32_t rate, uint32_t burst, uint64_t now)
{
    const uint64_t each = 1000000000u / rate;
    share_lock(s->pool);
    const uint64_t from = *until > now ? *until : now;
    const bool may = from - now <= (burst - 1) * each;
    if (may)
        *until = from + each;
    share_unlock(s->pool);
    return may;
}

bool share_may_notify(struct share *s, uint64_t now)
{
    return !s || within(s, &s->cnps_until, SHARE_CNPS, SHARE_CNP_BURST, now);
}

bool share_may_ask(struct share *s, uint64_t now)
{
    return !s || within(s, &s->asks_until, SHARE_ASKS, SHARE_ASK_BURST, now);
}

void share_give(struct share *s, enum share_kind kind, uint64_t n)
{
    if (!s)
        return;
    share_lock(s->pool);
    s->used[kind] -= n;
    s->pool->used[kind] -= n;
    share_unlock(s->pool);
}

int share_take_all(struct share *s, const struct share_part *part, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int rc = share_take(s, part[i].kind, part[i].n);
        if (rc < 0) {
            share_give_all(s, part, i);
            return rc;
        }
    }
    return 0;
}

void share_give_all(struct share *s, const struct share_part *part, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        share_give(s, part[i].kind, part[i].n);
}
