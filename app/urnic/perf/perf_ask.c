/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf_ask.h"

static bool within(uint64_t v, uint64_t min, uint64_t max)
{
    return v >= min && v <= max;
}

/* Are the operation's own demands met? A queue pair that stays idle has none. */
static bool possible(const struct perf_ask *ask)
{
    switch (ask->op) {
    case PERF_WRITE: /* the last octet shows the arrival of a ping */
        return !ask->latency || (ask->size >= 1 && !ask->both);
    case PERF_READ:
        return !ask->latency || !ask->both;
    case PERF_SEND: /* the client posts no receives for the server's SENDs */
        return !ask->both;
    case PERF_ATOMIC:
        return ask->size == 8 && (!ask->latency || !ask->both);
    default:
        return false;
    }
}

bool perf_ask_ok(const struct perf_ask *ask, uint64_t size)
{
    return ask->magic == PERF_MAGIC && ask->op <= PERF_CONNECT && within(ask->span, 1, size) &&
           ask->size <= ask->span && within(ask->depth, 1, PERF_DEPTH_MAX) &&
           within(ask->batch, 1, PERF_BATCH_MAX) && (ask->idle || possible(ask));
}

bool perf_offer_ok(const struct perf_offer *offer, const struct perf_ask *ask)
{
    return offer->magic == PERF_MAGIC && offer->size >= ask->span;
}

uint64_t perf_part(const struct perf_ask *ask, uint64_t size)
{
    return ask->index * ask->span % (size - ask->span + 1);
}
