/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asynchronous events of a context. Events for which its socket has no room are kept, some
 * thousands, and sent later. So even a slow client with a thousand connections that end at once
 * gets an event for each.
 */
#include "async.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "context.h"
#include "device.h"

#define ASYNC_KEPT_MAX 4096u /* more are lost */

/* False: the socket is full. A closed socket takes all. */
static bool async_send(const struct context *c, const struct ipc_async *ev)
{
    return send(c->async_fd, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

void async_service(struct context *c)
{
    uint32_t n = 0;
    while (n < c->nkept && async_send(c, &c->kept[n]))
        n++;
    if (n > 0) {
        c->nkept -= n;
        memmove(c->kept, c->kept + n, c->nkept * sizeof(*c->kept));
    }
    if (c->nkept == 0)
        async_free(c);
}

void async_free(struct context *c)
{
    free(c->kept);
    c->kept = NULL;
    c->nkept = 0;
}

static bool async_keep(struct context *c, const struct ipc_async *ev)
{
    if (!c->kept)
        c->kept = malloc(ASYNC_KEPT_MAX * sizeof(*c->kept));
    if (!c->kept || c->nkept == ASYNC_KEPT_MAX)
        return false;
    c->kept[c->nkept++] = *ev;
    context_serve(c);
    return true;
}

void async_event(struct context *c, unsigned event, uint32_t ref)
{
    struct ipc_async ev = {.event = event, .ref = ref, .flags = c->async_lost ? 1 : 0};
    if ((c->nkept == 0 && async_send(c, &ev)) || async_keep(c, &ev)) {
        c->async_lost = false;
        return;
    }
    c->async_lost = true;
    c->device->stats.async_lost++;
}

static bool async_of_port(const struct ipc_async *ev)
{
    return ev->event == EVT_DEVICE_FATAL || ev->event == EVT_PORT_ACTIVE ||
           ev->event == EVT_PORT_ERR || ev->event == EVT_GID_CHANGE;
}

void async_forget(struct context *c, uint32_t ref)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < c->nkept; i++) {
        if (c->kept[i].ref != ref || async_of_port(&c->kept[i]))
            c->kept[left++] = c->kept[i];
        else if (c->kept[i].flags != 0)
            c->async_lost = true; /* the loss must be reported */
    }
    c->nkept = left;
}
