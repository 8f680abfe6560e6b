/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list, the oldest first: a client's requests keep their order.
 */
#include "settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clients.h"
#include "clock.h"
#include "engine_channel.h"
#include "quota.h"
#include "request.h"

#define SETTLE_NS   (10 * CLOCK_MS) /* longest wait for a full port */
#define SETTLE_LOOK 64u             /* channels looked at in one visit to a worker */

struct settle {
    struct settle *next;
    struct client *client;
    bool ends; /* it waits for its end; else for a request */
    uint64_t until;
    unsigned n; /* channels of its process with frames that have not left */
    struct engine_place *at;
    size_t len;
    uint8_t msg[];
};

static struct settle *settle_list, **settle_last = &settle_list;

/* The next client of this process that has a channel, from `o` on. */
static struct client *kin(const struct client *c, struct client *o)
{
    while (o && !(engine_channel_sends(o) && engine_channel_same_process(c, o)))
        o = o->next;
    return o;
}

/* Are all frames of its process gone that are in the channels now? */
static bool is_settled(const struct client *c)
{
    struct engine_place at[SETTLE_LOOK];
    bool all = true;
    struct client *o = kin(c, c->all->first);
    while (o && all) {
        unsigned n = 0;
        for (; o && n < SETTLE_LOOK; o = kin(c, o->next))
            at[n++].client = o;
        engine_channel_look(at, n, true);
        for (unsigned i = 0; i < n; i++)
            all &= at[i].passed;
    }
    return all;
}

bool settle_now(struct request *r)
{
    const struct client *c = r->client;
    if (r->settled || r->nfd > 0)
        return true;
    /* Requests that wait are served first. */
    return c->nsettling == 0 && is_settled(c);
}

/* Channels whose frames have left, or that are gone, are not looked at again. */
static void settle_drop(struct settle *s, unsigned i)
{
    s->at[i] = s->at[--s->n];
}

static void settle_drop_passed(struct settle *s)
{
    for (unsigned i = s->n; i-- > 0;) {
        if (s->at[i].passed)
            settle_drop(s, i);
    }
}

/* NULL: out of memory. */
static struct settle *settle_add(struct client *c, const void *msg, size_t len)
{
    unsigned n = 0;
    for (struct client *o = kin(c, c->all->first); o; o = kin(c, o->next))
        n++;
    struct settle *s = malloc(sizeof(*s) + len);
    struct engine_place *at = calloc(n + 1, sizeof(*at));
    if (!s || !at) {
        free(s);
        free(at);
        return NULL;
    }
    *s = (struct settle){.client = c, .until = clock_now() + SETTLE_NS, .at = at, .len = len};
    if (len > 0)
        memcpy(s->msg, msg, len);
    for (struct client *o = kin(c, c->all->first); o; o = kin(c, o->next))
        at[s->n++].client = o;
    engine_channel_look(at, s->n, true);
    settle_drop_passed(s);
    *settle_last = s;
    settle_last = &s->next;
    return s;
}

int settle_wait(struct request *r, size_t size)
{
    if (r->client->nsettling >= QUOTA_SETTLING)
        return -EDQUOT;
    if (!settle_add(r->client, r->in, size))
        return -ENOMEM;
    r->client->nsettling++;
    r->deferred = true;
    return 0;
}

static void settle_free(struct settle *s)
{
    free(s->at);
    free(s);
}

/* Take it off the list. */
static struct settle *settle_take(struct settle **p)
{
    struct settle *s = *p;
    *p = s->next;
    if (!*p)
        settle_last = p;
    s->client->nsettling -= !s->ends;
    return s;
}

static bool settle_passed(struct settle *s)
{
    engine_channel_look(s->at, s->n, false);
    settle_drop_passed(s);
    return s->n == 0 || clock_now() >= s->until;
}

static void settle_serve(struct nic *n, struct settle *s)
{
    static struct request r;
    r.nic = n;
    r.client = s->client;
    r.nfd = 0;
    r.in_len = s->len;
    memcpy(r.in, s->msg, s->len);
    r.sealings = 0;
    r.settled = true;
    if (!s->client->gone)
        request_serve(&r);
    settle_free(s);
}

bool settle_service(struct nic *n)
{
    struct settle **p = &settle_list;
    bool waits = false;
    while (*p) {
        struct settle *s = *p;
        if (!s->ends && settle_passed(s)) {
            settle_serve(n, settle_take(p));
        } else {
            waits |= !s->ends;
            p = &s->next;
        }
    }
    return waits;
}

bool settle_ended(struct client *c)
{
    struct settle **p = &settle_list;
    if (!c->ends) {
        c->ends = true;
        engine_channel_end(c);
        struct settle *s = is_settled(c) ? NULL : settle_add(c, NULL, 0);
        if (!s)
            return true;
        s->ends = true;
    }
    while (*p && !((*p)->ends && (*p)->client == c))
        p = &(*p)->next;
    if (*p && !settle_passed(*p))
        return false;
    if (*p)
        settle_free(settle_take(p));
    return true;
}

void settle_forget(struct client *c)
{
    struct settle **p = &settle_list;
    while (*p) {
        struct settle *s = *p;
        for (unsigned i = s->n; i-- > 0;) {
            if (s->at[i].client == c)
                settle_drop(s, i);
        }
        if (s->client == c)
            settle_free(settle_take(p));
        else
            p = &s->next;
    }
}
