/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels that carry the events of clients' connection ids. Events for which a socket has no room
 * are kept.
 */
#include "cmid_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "cmgr_priv.h"
#include "cmid.h"
#include "device.h"
#include "log.h"

#define CMID_OWED_MAX 4096u /* events that a client may leave unread; more are lost */

struct cm_owed {
    struct cm_owed *next;
    struct share *share; /* of the channel's user */
    struct ipc_cm_event ev;
};

static void channel_forget(struct cm_channel *ch)
{
    struct cm_owed *o = ch->first;
    ch->first = o->next;
    share_give(o->share, SHARE_EVENT, 1);
    share_leave(o->share);
    free(o);
}

static bool channel_send(const struct cm_channel *ch, const struct ipc_cm_event *ev)
{
    return send(ch->fd, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

static void channel_owed(struct cm_channel *ch)
{
    if (!ch->first)
        return;
    while (ch->first && channel_send(ch, &ch->first->ev)) {
        channel_forget(ch);
        ch->owed--;
    }
    if (!ch->first) {
        ch->last = &ch->first;
        ch->owner->nfull--;
    }
}

static void channel_object_free(struct client_object *o, uint64_t now)
{
    (void)now;
    cmgr_channel_free((struct cm_channel *)o);
}

void cmgr_channel_add(struct cmgr *m, struct cm_channel *ch)
{
    ch->object.free = channel_object_free;
    ch->owner = m;
    ch->next = m->channels;
    m->channels = ch;
}

void cmgr_service(struct gsi *g)
{
    struct cmgr *m = (struct cmgr *)g;
    for (struct cm_channel *ch = m->channels; ch && m->nfull > 0; ch = ch->next)
        channel_owed(ch);
}

bool cmgr_owes(const struct gsi *g)
{
    return ((const struct cmgr *)g)->nfull > 0;
}

void cmgr_channel_free(struct cm_channel *ch)
{
    for (struct cm_channel **p = ch->owner ? &ch->owner->channels : NULL; p && *p;
         p = &(*p)->next) {
        if (*p == ch) {
            *p = ch->next;
            break;
        }
    }
    if (ch->first && ch->owner)
        ch->owner->nfull--;
    while (ch->first)
        channel_forget(ch);
    close(ch->fd);
    free(ch);
}

static void cmid_lost(const struct cm_id *id)
{
    id->device->stats.cm_lost++;
    if (!share_may_log(id->client->of_device, clock_now()))
        return;
    log_warn("client", "%s[%d] doesn't read its connection events: one is lost", id->client->comm,
             (int)id->client->pid);
}

bool cmid_hears(const struct cm_id *id)
{
    channel_owed(id->channel);
    if (id->channel->owed < CMID_OWED_MAX &&
        (!id->channel->first || share_has_room(id->client->of_device, SHARE_EVENT, 1)))
        return true;
    cmid_lost(id);
    return false;
}

/* Events of one channel keep their order. */
bool cmid_event(struct cm_id *id, const struct ipc_cm_event *ev)
{
    struct cm_channel *ch = id->channel;
    channel_owed(ch);
    if (!ch->first && channel_send(ch, ev)) {
        id->events++;
        return true;
    }
    struct share *s = id->client->of_device;
    struct cm_owed *o = NULL;
    if (ch->owed < CMID_OWED_MAX && share_take(s, SHARE_EVENT, 1) == 0) {
        o = malloc(sizeof(*o));
        if (!o)
            share_give(s, SHARE_EVENT, 1);
    }
    if (!o) {
        cmid_lost(id);
        return false;
    }
    id->events++;
    if (!ch->first)
        ch->owner->nfull++;
    *o = (struct cm_owed){.share = share_hold(s), .ev = *ev};
    *ch->last = o;
    ch->last = &o->next;
    ch->owed++;
    return true;
}
