/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See deferred.h.
 */
#include "deferred.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clients.h"
#include "clock.h"
#include "device.h"
#include "quota.h"

#define DEFERRED_WAIT_NS (3 * CLOCK_SEC)

static void deferred_unlink(struct deferred *d)
{
    struct deferred **p = &d->client->deferred;
    while (*p != d)
        p = &(*p)->next;
    *p = d->next;
    d->client->ndeferred--;
}

static void deferred_done(struct neigh_waiter *w, int status, const uint8_t mac[6], uint64_t now)
{
    struct deferred *d = (struct deferred *)(void *)((char *)w - offsetof(struct deferred, waiter));
    size_t len = sizeof(struct ipc_hdr);
    struct ipc_hdr request;
    memcpy(&request, d->msg, sizeof(request));
    if (status == 0)
        status = d->act(d, mac, &len, now);
    else
        status = -EHOSTUNREACH;
    d->client->all->answer(d->client, &request, status, d->msg,
                           status < 0 ? sizeof(struct ipc_hdr) : len);
    deferred_unlink(d);
    free(d);
}

int deferred_start(struct client *c, const void *msg, size_t len, const struct wire_addr *dst,
                   int (*act)(struct deferred *d, const uint8_t mac[6], size_t *len, uint64_t now),
                   uint64_t now)
{
    if (c->ndeferred >= QUOTA_DEFERRED)
        return -EDQUOT; /* each is checked when any neighbour answers */
    struct deferred *d = calloc(1, sizeof(*d));
    int rc;
    if (!d)
        return -ENOMEM;
    _Static_assert(sizeof(struct ipc_qp_modify) <= sizeof(d->msg), "fits");
    _Static_assert(sizeof(struct ipc_av_resolve) <= sizeof(d->msg), "fits");
    _Static_assert(sizeof(struct ipc_cm_conn) <= sizeof(d->msg), "fits");
    memcpy(d->msg, msg, len);
    d->client = c;
    d->act = act;
    d->next = c->deferred;
    c->deferred = d;
    c->ndeferred++;
    d->waiter = (struct neigh_waiter){.dst = *dst, .share = c->of_device, .done = deferred_done};
    rc = neigh_wait(c->ctx.device->neigh, &d->waiter, DEFERRED_WAIT_NS, now);
    if (rc < 0) {
        deferred_unlink(d);
        free(d);
    }
    return rc;
}

void deferred_forget(struct client *c)
{
    while (c->deferred) {
        struct deferred *d = c->deferred;
        c->deferred = d->next;
        neigh_cancel(c->ctx.device->neigh, &d->waiter);
        free(d);
    }
}
