/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of engines in programs, as far as the programs have told them: a device's counters are
 * its own engine's and these. What a program had counted stays when it has gone. A program that is
 * killed takes with it what it has counted since it was asked last.
 *
 * On the device's worker.
 */
#ifndef NIC_SWITCH_COUNTERS_H
#define NIC_SWITCH_COUNTERS_H

#include "engine.h"
#include "switch_channel.h"

/* How many objects there are, and octets of regions. */
#define SWITCH_USAGE(X) X(qps) X(cqs) X(srqs) X(pds) X(mrs) X(mws) X(mr_octets)

enum switch_usage {
#define X(name) SWITCH_U_##name,
    SWITCH_USAGE(X)
#undef X
        SWITCH_USAGE_MAX
};
extern const char *const switch_usage_names[SWITCH_USAGE_MAX];

/* What a program, or all of them, have told. */
struct switch_told {
    uint64_t counter[ENGINE_COUNTER_MAX];
    uint64_t usage[SWITCH_USAGE_MAX];
};

/* A program has told its counters: `len` octets of struct ipc_asked_counter, of which those with
 * unknown names are left out. */
void switch_counters_note(struct nic_switch *s, struct switch_channel *c, const uint8_t *data,
                          uint32_t len);
/* Has a program let a question go unanswered? */
void switch_counters_silent(struct nic_switch *s, struct switch_channel *c, bool silent);
/* A channel is closed. */
void switch_counters_forget(struct nic_switch *s, struct switch_channel *c);

#endif
