/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ask.h. A request that waits belongs to the worker until its last answer is there, and then to
 * the control thread, which learns of it as with seals, perhaps before the handler has returned.
 */
#include "ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "quota.h"
#include "request.h"

static pthread_mutex_t ask_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ask *ask_list;

static void ask_free(struct ask *k)
{
    for (unsigned i = 0; i < k->n; i++)
        free(k->of[i].data);
    free(k->of);
    free(k->msg);
    free(k);
}

static struct ask *ask_new(const struct request *r, unsigned n, uint32_t room)
{
    struct ask *k = calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    k->client = r->client;
    k->nic = r->nic;
    k->member = r->device ? r->device->member : 0;
    k->len = r->in_len;
    k->of = calloc(n, sizeof(*k->of));
    k->msg = malloc(k->len);
    if (k->msg)
        memcpy(k->msg, r->in, k->len);
    for (; k->of && k->n < n; k->n++) {
        k->of[k->n].room = room;
        k->of[k->n].data = malloc(room);
        if (!k->of[k->n].data)
            break;
    }
    if (!k->msg || k->n < n) {
        ask_free(k);
        return NULL;
    }
    return k;
}

/* An answer is there, or there will be none. On the worker. */
static void ask_done(struct switch_ask *a)
{
    struct ask *k = a->arg;
    const uint64_t one = 1;
    if (--k->left > 0)
        return;
    int news = k->nic->seals_fd;
    if (k->all)
        k->all->asking_all = false;
    pthread_mutex_lock(&ask_lock);
    k->done = true;
    pthread_mutex_unlock(&ask_lock);
    (void)!write(news, &one, sizeof(one));
}

static int ask_some(struct request *r, struct nic_switch *s, struct switch_channel *const *to,
                    unsigned n, const struct ipc_question *q, uint32_t room, bool all)
{
    struct ipc_question each = *q;
    if (r->client->nasking >= QUOTA_ASKING)
        return -EDQUOT;
    struct ask *k = ask_new(r, n, room);
    if (!k)
        return -ENOMEM;
    pthread_mutex_lock(&ask_lock);
    k->next = ask_list;
    ask_list = k;
    pthread_mutex_unlock(&ask_lock);
    r->client->nasking++;
    r->deferred = true;
    k->left = n;
    k->all = all ? s : NULL;
    s->asking_all |= all;
    for (unsigned i = 0; i < n; i++) {
        k->of[i].done = ask_done;
        k->of[i].arg = k;
        switch_ask(s, &k->of[i], to[i], &each, r->now);
    }
    return -EINPROGRESS;
}

int ask(struct request *r, struct nic_switch *s, struct switch_channel *to,
        const struct ipc_question *q, uint32_t room)
{
    return ask_some(r, s, &to, 1, q, room, false);
}

int ask_all(struct request *r, struct nic_switch *s, const struct ipc_question *q, uint32_t room)
{
    unsigned n = 0;
    if (s->nchannels == 0 || s->asking_all)
        return 0;
    struct switch_channel **to = calloc(s->nchannels, sizeof(struct switch_channel *));
    if (!to)
        return -ENOMEM;
    for (struct switch_channel *c = s->channels; c; c = c->all_next)
        to[n++] = c;
    int rc = n > 0 ? ask_some(r, s, to, n, q, room, true) : 0;
    free(to);
    return rc;
}

/* Take one that is done off the list; NULL = there is none. */
static struct ask *ask_take(void)
{
    struct ask **at, *k;
    pthread_mutex_lock(&ask_lock);
    for (at = &ask_list; *at && !(*at)->done;)
        at = &(*at)->next;
    k = *at;
    if (k)
        *at = k->next;
    pthread_mutex_unlock(&ask_lock);
    return k;
}

void ask_service(struct nic *n)
{
    static struct request r;
    struct ask *k;
    while ((k = ask_take())) {
        struct client *c = k->client;
        if (c)
            c->nasking--;
        if (c && !c->gone) {
            r.nic = n;
            r.client = c;
            r.nfd = 0;
            r.in_len = k->len;
            memcpy(r.in, k->msg, k->len);
            r.sealings = 0;
            r.ask = k;
            request_serve(&r);
            r.ask = NULL;
        }
        ask_free(k);
    }
}

void ask_forget(const struct client *c)
{
    pthread_mutex_lock(&ask_lock);
    for (struct ask *k = ask_list; k; k = k->next) {
        if (k->client == c)
            k->client = NULL;
    }
    pthread_mutex_unlock(&ask_lock);
}
