/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For tests of programs on a daemon's device: an end as in port_rig.h.
 */
#ifndef URNIC_DEVICE_END_H
#define URNIC_DEVICE_END_H

#include <string.h>

#include "daemon_rig.h"
#include "port_rig.h"

/* As port_open, on a device of the daemon, with this value of $URNIC_ENGINE. The daemon's engine
 * gets memory of urnic_alloc. */
static inline void device_end(struct port_end *e, const struct rig *rig, const char *device,
                              const char *engine, size_t size)
{
    setenv("URNIC_ENGINE", engine, 1);
    *e = (struct port_end){.size = size};
    rig_await_link(rig, device);
    OK(urnic_open_at(rig->socket, device, rig_next_worker(), &e->ctx));
    OK(urnic_alloc_pd(e->ctx, &e->pd));
    OK(urnic_create_cq(e->ctx, 64, NULL, NULL, &e->cq));
    e->shared = strcmp(engine, "daemon") == 0;
    if (e->shared)
        OK(urnic_alloc(e->ctx, size, (void **)&e->mem));
    else
        e->mem = calloc(1, size);
    OK(urnic_reg_mr(e->pd, e->mem, size, PORT_ALL, &e->mr));
}

#endif
