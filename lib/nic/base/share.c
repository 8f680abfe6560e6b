/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See share.h. Users are few: a list does.
 */
#include "share.h"

#include <errno.h>
#include <stdlib.h>

#define SHARE_PART 8u /* the part that is kept for those who have little, and their part of it */

const char *const share_names[SHARE_KINDS] = {
    [SHARE_PD] = "protection domains",     [SHARE_MR] = "memory regions",
    [SHARE_MW] = "memory windows",         [SHARE_CQ] = "completion queues",
    [SHARE_SRQ] = "shared receive queues", [SHARE_QP] = "queue pairs",
    [SHARE_CM_ID] = "connection ids",      [SHARE_LISTENER] = "listeners",
    [SHARE_GROUP] = "multicast groups",    [SHARE_CONN] = "connections under way or just over",
    [SHARE_NEIGH] = "neighbours",          [SHARE_EVENT] = "unread events",
    [SHARE_FDS] = "descriptors",           [SHARE_UNREAD] = "descriptors not received yet",
    [SHARE_MAPPINGS] = "mappings",         [SHARE_OCTETS] = "octets of memory",
    [SHARE_LINES] = "lines of the log",
};

const char *const share_counters[SHARE_KINDS] = {
    [SHARE_PD] = "refused_pds",
    [SHARE_MR] = "refused_mrs",
    [SHARE_MW] = "refused_mws",
    [SHARE_CQ] = "refused_cqs",
    [SHARE_SRQ] = "refused_srqs",
    [SHARE_QP] = "refused_qps",
    [SHARE_CM_ID] = "refused_cm_ids",
    [SHARE_LISTENER] = "refused_listeners",
    [SHARE_GROUP] = "refused_groups",
    [SHARE_CONN] = "refused_connections",
    [SHARE_NEIGH] = "refused_neighbours",
    [SHARE_EVENT] = "refused_events",
    [SHARE_FDS] = "refused_descriptors",
    [SHARE_UNREAD] = "refused_unread",
    [SHARE_MAPPINGS] = "refused_mappings",
    [SHARE_OCTETS] = "refused_octets",
    [SHARE_LINES] = "refused_log_lines",
};

struct share *share_join(struct share_pool *pool, uid_t uid, bool all)
{
    struct share *s = pool->first;
    while (s && (s->uid != uid || s->all != all))
        s = s->next;
    if (!s) {
        s = calloc(1, sizeof(*s));
        if (!s)
            return NULL;
        *s = (struct share){
            .next = pool->first, .pool = pool, .uid = uid, .all = all, .lacked = SHARE_KINDS};
        pool->first = s;
    }
    return share_hold(s);
}

struct share *share_hold(struct share *s)
{
    if (s)
        s->members++;
    return s;
}

void share_leave(struct share *s)
{
    if (!s || --s->members > 0)
        return;
    for (struct share **p = &s->pool->first; *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
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

bool share_has_room(const struct share *s, enum share_kind kind, uint64_t n)
{
    if (!s || s->all || s->pool->limit[kind] == 0)
        return true;
    uint64_t limit = s->pool->limit[kind], used = s->pool->used[kind], own = s->used[kind];
    if (used >= limit || n > limit - used) /* administrators may have taken more than there is */
        return false;
    return used + n <= limit - limit / SHARE_PART || own + n <= (limit - (used - own)) / SHARE_PART;
}

int share_refuse(struct share *s, enum share_kind kind)
{
    s->pool->refused[kind]++;
    s->lacked = kind;
    return -EDQUOT;
}

int share_take(struct share *s, enum share_kind kind, uint64_t n)
{
    if (!share_has_room(s, kind, n))
        return share_refuse(s, kind);
    if (s) {
        s->used[kind] += n;
        s->pool->used[kind] += n;
    }
    return 0;
}

bool share_may_log(struct share *s, uint64_t now)
{
    if (!s || s->all)
        return true;
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

void share_give(struct share *s, enum share_kind kind, uint64_t n)
{
    if (s) {
        s->used[kind] -= n;
        s->pool->used[kind] -= n;
    }
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
