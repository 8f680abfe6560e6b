/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contexts that a worker serves: the table of functions that their room, lib/nic/client, hands
 * in with worker_init. Worker and devices know no more of them than this.
 *
 * On the worker.
 */
#ifndef NIC_CONTEXT_OPS_H
#define NIC_CONTEXT_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct context;
struct device;
struct worker;

struct context_ops {
    /* ---- all contexts of the worker ---- */

    /* Their turn in a round: take what applications have posted, so much of each. Returns how much
     * there was. */
    unsigned (*round)(struct worker *w, uint64_t now);
    /* The same for those alone that have rung: before frames that came later. */
    void (*doorbells)(struct worker *w, uint64_t now);
    /* Has any of them rung, or something left from its last turn? */
    bool (*ready)(const struct worker *w);
    /* Have completions come since the last time this was asked? */
    bool (*news)(struct worker *w);
    /* Send the completion events that are due. */
    void (*notify)(struct worker *w, uint64_t now);
    /* When `notify` has an event that it delays, ns; UINT64_MAX = none. */
    uint64_t (*deadline)(const struct worker *w);
    /* Every few ms: send events that a full socket has refused. Are there any? */
    void (*service)(struct worker *w);
    bool (*owes)(const struct worker *w);

    /* ---- those of a device ---- */

    /* An asynchronous event for each (enum ib_event). */
    void (*event)(struct device *d, unsigned event);
    unsigned (*count)(const struct device *d);

    /* Hooks of its engine, with the device as their argument: engine_hooks says what they do. */
    bool (*cq_push)(void *device, void *cq_arg, const struct engine_wc *wc);
    void (*object_event)(void *device, enum ib_event event, void *object_arg);
    void (*sq_room)(void *device, void *qp_arg);
    bool (*recv_wanted)(void *device, void *qp_arg, void *srq_arg);
};

#endif
