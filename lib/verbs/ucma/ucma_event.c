/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns liburnic's events into events of the program's files. Event numbers are the same.
 */
#include "ucma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ucma_event *ucma_event_new(struct ucma_id *id, unsigned type, int status)
{
    struct ucma_event *ev = calloc(1, sizeof(*ev));
    if (ev == NULL)
        return NULL;
    ev->id = id;
    ev->resp.uid = id->uid;
    ev->resp.id = id->number;
    ev->resp.event = type;
    ev->resp.status = (uint32_t)status;
    return ev;
}

/* The addresses of a request; loopback addresses if its listener has one. */
static void request_addresses(struct ucma_id *id, const struct ucma_id *listener)
{
    uint8_t local[16], remote[16];
    uint16_t lport, rport;
    if (urnic_id_addr(id->leg.cm, local, &lport, remote, &rport) < 0)
        return;
    ucma_addr_from_gid(&id->src, local, lport);
    ucma_addr_from_gid(&id->dst, remote, rport);
    if (ucma_addr_is_loopback(&listener->src) && memcmp(local, remote, 16) == 0) {
        ucma_addr_loopback(&id->src, listener->src.sa.sa_family, lport);
        ucma_addr_loopback(&id->dst, listener->src.sa.sa_family, rport);
    }
}

static void event_param(struct ucma_event *ev, const struct urnic_cm_event *in,
                        const struct ucma_id *id)
{
    ucma_event_param(&ev->resp, in, id->ps == RDMA_PS_UDP);
    if (id->ps != RDMA_PS_UDP)
        ev->resp.param.conn.srq = urnic_id_peer_srq(in->id);
}

/* A peer wants to connect: a new id for the listener's file. */
static void on_request(struct ucma_dev *d, struct urnic_cm_event *in, struct ucma_id *listener)
{
    struct ucma_id *id = ucma_id_new(listener->file, listener->ps);
    struct ucma_event *ev = id != NULL ? ucma_event_new(listener, in->event, 0) : NULL;
    if (ev == NULL) {
        urnic_destroy_id(in->id); /* which refuses it */
        if (id != NULL)
            ucma_id_free(id);
        return;
    }
    urnic_id_set_context(in->id, id);
    id->leg = (struct ucma_leg){d, in->id};
    d->users++;
    id->state = UCMA_REQUEST;
    request_addresses(id, listener);
    ev->request = id;
    ev->resp.id = id->number;
    event_param(ev, in, id);
    ucma_file_put(id->file, ev);
}

/* The program doesn't know an id before it has accepted; its accept shows what has happened until
 * then. */
static bool unknown_to_program(const struct ucma_id *id)
{
    return id->state == UCMA_REQUEST && !id->uid_is_set;
}

static void on_event(struct ucma_dev *d, struct urnic_cm_event *in)
{
    struct ucma_id *id = urnic_id_context(in->id);
    if (in->event == URNIC_CM_CONNECT_REQUEST) {
        on_request(d, in, id);
        return;
    }
    if ((in->event == URNIC_CM_ADDR_RESOLVED || in->event == URNIC_CM_ADDR_ERROR) &&
        !ucma_resolve_event(id, in))
        return;
    if (in->event == URNIC_CM_ROUTE_RESOLVED)
        id->state = UCMA_ROUTE_RESOLVED;
    if (unknown_to_program(id))
        return;
    struct ucma_event *ev = ucma_event_new(id, in->event, in->status);
    if (ev == NULL)
        return;
    if (in->event >= URNIC_CM_CONNECT_RESPONSE)
        event_param(ev, in, id);
    ucma_file_put(id->file, ev);
}

/* The daemon is gone, and its device with it. */
static void on_removal(struct ucma_dev *d)
{
    d->gone = true;
    for (struct ucma_file *f = ucma_files(); f != NULL; f = LIST_NEXT(f, next)) {
        struct ucma_id *id;
        if (atomic_load(&f->ino) == 0)
            continue;
        LIST_FOREACH(id, &f->ids, next)
        {
            if (id->leg.dev != d || unknown_to_program(id))
                continue;
            struct ucma_event *ev = ucma_event_new(id, URNIC_CM_DEVICE_REMOVAL, 0);
            if (ev != NULL)
                ucma_file_put(f, ev);
        }
    }
}

void ucma_event_pump(struct ucma_dev *d)
{
    struct urnic_cm_event in;
    int err;
    if (d->gone)
        return;
    while ((err = urnic_get_cm_event(d->channel, &in)) == 0 || err == -ENOMEM)
        if (err == 0)
            on_event(d, &in);
    if (err == -ENODEV)
        on_removal(d);
}
