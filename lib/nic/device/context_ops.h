/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contexts that a worker serves: a table of functions that lib/nic/client passes to
 * worker_init. Worker and devices know contexts by this table only.
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

    /* Each context's turn in a round: take posted work, a bounded part of each. Returns the number
     * of entries taken. */
    unsigned (*round)(struct worker *w, uint64_t now);
    /* The same, only for contexts with a doorbell rung: before frames that came later. */
    void (*doorbells)(struct worker *w, uint64_t now);
    /* Has any context rung, or work left from its last turn? */
    bool (*ready)(const struct worker *w);
    /* Have completions been added since the last call? */
    bool (*news)(struct worker *w);
    /* Send due completion events. */
    void (*notify)(struct worker *w, uint64_t now);
    /* The time at which `notify` has a delayed event to send, ns; UINT64_MAX = none. */
    uint64_t (*deadline)(const struct worker *w);
    /* Every few ms: send events that a full socket refused. Are any left? */
    void (*service)(struct worker *w);
    bool (*owes)(const struct worker *w);

    /* ---- the contexts of a device ---- */

    /* Give each context an asynchronous event (enum ib_event). */
    void (*event)(struct device *d, unsigned event);
    unsigned (*count)(const struct device *d);

    /* Hooks of the device's engine, with the device as their argument (engine_hooks). */
    bool (*cq_push)(void *device, void *cq_arg, const struct engine_wc *wc);
    void (*object_event)(void *device, enum ib_event event, void *object_arg);
    void (*sq_room)(void *device, void *qp_arg);
    bool (*recv_wanted)(void *device, void *qp_arg, void *srq_arg);
};

#endif
