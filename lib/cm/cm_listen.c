/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listeners. They are found by their port. Each counts the requests that the application has not
 * answered yet. CM-34.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm_priv.h"

#define BACKLOG 1024u

static const struct wire_addr any;

/* Ports are the last octets of a service id: neighbours don't share a bucket. */
static size_t bucket(uint64_t service_id)
{
    return service_id % CM_LISTEN_BUCKETS;
}

static unsigned family_of(const struct wire_addr *addr)
{
    return wire_addr_is_v4(addr) ? 4 : 6;
}

static bool hears(const struct cm_listener *l, const struct wire_addr *addr)
{
    if (cm_addr_eq(&l->addr, &any))
        return l->family == 0 || l->family == family_of(addr);
    return cm_addr_eq(&l->addr, addr);
}

struct cm_listener *cm_find_listener(const struct cm *cm, uint64_t service_id,
                                     const struct wire_addr *addr)
{
    for (struct cm_listener *l = cm->listeners[bucket(service_id)]; l; l = l->next)
        if (l->service_id == service_id && (!addr || hears(l, addr)))
            return l;
    return NULL;
}

/* Has a listener of the service an address of the family (0 = of either)? */
static bool family_is_taken(const struct cm *cm, uint64_t service_id, unsigned family)
{
    for (const struct cm_listener *l = cm->listeners[bucket(service_id)]; l; l = l->next) {
        unsigned its = cm_addr_eq(&l->addr, &any) ? l->family : family_of(&l->addr);
        if (l->service_id == service_id && (family == 0 || its == 0 || its == family))
            return true;
    }
    return false;
}

static int listener_add(struct cm *cm, uint64_t id, const struct wire_addr *addr, unsigned family,
                        unsigned backlog, void *arg, struct cm_listener **out)
{
    struct cm_listener *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    struct cm_listener **head = &cm->listeners[bucket(id)];
    l->addr = *addr;
    l->family = family;
    l->service_id = id;
    l->backlog = backlog ? backlog : BACKLOG;
    l->arg = arg;
    l->next = *head;
    *head = l;
    *out = l;
    return 0;
}

int cm_listen(struct cm *cm, unsigned ps, const struct wire_addr *addr, uint16_t port,
              unsigned backlog, void *arg, struct cm_listener **out)
{
    uint64_t id = cm_service_id(ps, port);
    if (cm_addr_eq(addr, &any))
        return cm_listen_family(cm, ps, 0, port, backlog, arg, out);
    if (cm_find_listener(cm, id, addr))
        return -EADDRINUSE;
    return listener_add(cm, id, addr, 0, backlog, arg, out);
}

int cm_listen_family(struct cm *cm, unsigned ps, unsigned family, uint16_t port, unsigned backlog,
                     void *arg, struct cm_listener **out)
{
    uint64_t id = cm_service_id(ps, port);
    if (family_is_taken(cm, id, family))
        return -EADDRINUSE;
    return listener_add(cm, id, &any, family, backlog, arg, out);
}

bool cm_listens(const struct cm *cm, unsigned ps, uint16_t port)
{
    return cm_find_listener(cm, cm_service_id(ps, port), NULL) != NULL;
}

void cm_unlisten(struct cm *cm, struct cm_listener *l, uint64_t now)
{
    while (l->waiting) {
        struct cm_conn *c = l->waiting;
        bool sidr = c->state == CMS_SIDR_REQ_RCVD;
        if (!c->req_delivered)
            c->released = true; /* the consumer does not know it */
        if (sidr)
            cm_sidr_reply(cm, c, CM_SIDR_UNSUPPORTED, 0, 0, NULL, 0, now);
        else
            cm_send_rej(cm, c, CM_REJ_INVALID_SERVICE_ID, CM_ABOUT_REQ, NULL, 0, now);
        cm_half_open(cm, c, false); /* it no longer waits */
        if (!sidr)
            cm_conn_close(cm, c);
    }
    struct cm_listener **at = &cm->listeners[bucket(l->service_id)];
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l);
}

void cm_listeners_free(struct cm *cm)
{
    for (unsigned i = 0; i < CM_LISTEN_BUCKETS; i++) {
        while (cm->listeners[i]) {
            struct cm_listener *l = cm->listeners[i];
            cm->listeners[i] = l->next;
            free(l);
        }
    }
}

/* ---- requests that wait for an answer ---- */

void cm_awaits(struct cm_conn *c)
{
    struct cm_listener *l = c->listener;
    if (!l)
        return;
    c->wait_prev = NULL;
    c->wait_next = l->waiting;
    if (l->waiting)
        l->waiting->wait_prev = c;
    l->waiting = c;
    l->pending++;
}

void cm_answered(struct cm_conn *c)
{
    struct cm_listener *l = c->listener;
    if (!l)
        return;
    if (c->wait_prev)
        c->wait_prev->wait_next = c->wait_next;
    else
        l->waiting = c->wait_next;
    if (c->wait_next)
        c->wait_next->wait_prev = c->wait_prev;
    l->pending--;
    c->listener = NULL;
}
