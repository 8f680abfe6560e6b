/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_counters.h"

#include <stdlib.h>
#include <string.h>

#include "ipc_ask.h"

const char *const switch_usage_names[SWITCH_USAGE_MAX] = {
#define X(name) #name,
    SWITCH_USAGE(X)
#undef X
};

/* The counter of this name; NULL = none. The search starts at `*at`. */
static uint64_t *place(struct switch_told *t, const char *name, unsigned *at)
{
    for (unsigned i = 0; i < ENGINE_COUNTER_MAX; i++, *at = (*at + 1) % ENGINE_COUNTER_MAX) {
        if (strcmp(engine_counter_names[*at], name) == 0)
            return &t->counter[*at];
    }
    for (unsigned i = 0; i < SWITCH_USAGE_MAX; i++) {
        if (strcmp(switch_usage_names[i], name) == 0)
            return &t->usage[i];
    }
    return NULL;
}

/* Replace a program's counters in the sum; a counter never decreases. */
static void replace(struct switch_told *all, struct switch_told *was, const struct switch_told *is)
{
    for (unsigned i = 0; i < ENGINE_COUNTER_MAX; i++) {
        if (is->counter[i] < was->counter[i])
            continue;
        all->counter[i] += is->counter[i] - was->counter[i];
        was->counter[i] = is->counter[i];
    }
    for (unsigned i = 0; i < SWITCH_USAGE_MAX; i++) {
        all->usage[i] += is->usage[i] - was->usage[i];
        was->usage[i] = is->usage[i];
    }
}

void switch_counters_note(struct nic_switch *s, struct switch_channel *c, const uint8_t *data,
                          uint32_t len)
{
    struct switch_told now = {0};
    struct ipc_asked_counter one;
    unsigned at = 0;
    if (!c->told)
        c->told = calloc(1, sizeof(*c->told));
    if (!s->told)
        s->told = calloc(1, sizeof(*s->told));
    if (!c->told || !s->told)
        return;
    for (uint32_t off = 0; len - off >= sizeof(one); off += (uint32_t)sizeof(one)) {
        memcpy(&one, data + off, sizeof(one));
        one.name[sizeof(one.name) - 1] = '\0';
        uint64_t *to = place(&now, one.name, &at);
        if (to)
            *to = one.value;
    }
    replace(s->told, c->told, &now);
}

void switch_counters_silent(struct nic_switch *s, struct switch_channel *c, bool silent)
{
    if (c->silent == silent)
        return;
    c->silent = silent;
    s->nsilent += silent ? 1 : -1u;
}

void switch_counters_forget(struct nic_switch *s, struct switch_channel *c)
{
    switch_counters_silent(s, c, false);
    for (unsigned i = 0; c->told && i < SWITCH_USAGE_MAX; i++)
        s->told->usage[i] -= c->told->usage[i];
    free(c->told);
    c->told = NULL;
}
