/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See group.h. A device has few groups, so a list suffices.
 */
#include "group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct group_user **group_find(struct group_user **list, const struct share *s,
                                      const struct wire_addr *group)
{
    while (*list &&
           ((*list)->share != s || memcmp((*list)->group.b, group->b, sizeof(group->b)) != 0))
        list = &(*list)->next;
    return list;
}

/* Guards all lists. They change rarely, but perhaps on several workers of one device. */
static pthread_mutex_t group_lock = PTHREAD_MUTEX_INITIALIZER;

static int join_locked(struct group_user **list, struct share *s, const struct wire_addr *group)
{
    struct group_user *u = *group_find(list, s, group);
    if (!u) {
        int rc = share_take(s, SHARE_GROUP, 1);
        if (rc < 0)
            return rc;
        u = calloc(1, sizeof(*u));
        if (!u) {
            share_give(s, SHARE_GROUP, 1);
            return -ENOMEM;
        }
        *u = (struct group_user){.next = *list, .share = s, .group = *group};
        *list = u;
    }
    u->n++;
    return 0;
}

static void leave_locked(struct group_user **list, struct share *s, const struct wire_addr *group)
{
    struct group_user **p = group_find(list, s, group), *u = *p;
    if (!u || --u->n > 0)
        return;
    *p = u->next;
    share_give(s, SHARE_GROUP, 1);
    free(u);
}

int group_join(struct group_user **list, struct share *s, const struct wire_addr *group)
{
    pthread_mutex_lock(&group_lock);
    int rc = join_locked(list, s, group);
    pthread_mutex_unlock(&group_lock);
    return rc;
}

void group_leave(struct group_user **list, struct share *s, const struct wire_addr *group)
{
    pthread_mutex_lock(&group_lock);
    leave_locked(list, s, group);
    pthread_mutex_unlock(&group_lock);
}
