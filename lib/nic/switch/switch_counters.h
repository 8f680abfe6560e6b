/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of engines in programs, as the programs have reported them. A device's counters are the
 * sum of its own engine's and these. The counts of a program stay after its end, but the counts of
 * a killed program since its last report are lost.
 *
 * On the device's worker.
 */
#ifndef NIC_SWITCH_COUNTERS_H
#define NIC_SWITCH_COUNTERS_H

#include "engine.h"
#include "switch_channel.h"

/* The numbers of objects, and octets of regions. */
#define SWITCH_USAGE(X) X(qps) X(cqs) X(srqs) X(pds) X(mrs) X(mws) X(mr_octets)

enum switch_usage {
#define X(name) SWITCH_U_##name,
    SWITCH_USAGE(X)
#undef X
        SWITCH_USAGE_MAX
};
extern const char *const switch_usage_names[SWITCH_USAGE_MAX];

/* The counters of one program, or of all. */
struct switch_told {
    uint64_t counter[ENGINE_COUNTER_MAX];
    uint64_t usage[SWITCH_USAGE_MAX];
};

/* A program has reported its counters: `len` octets of struct ipc_asked_counter. Unknown names are
 * ignored. */
void switch_counters_note(struct nic_switch *s, struct switch_channel *c, const uint8_t *data,
                          uint32_t len);
/* Has a program left a question unanswered? */
void switch_counters_silent(struct nic_switch *s, struct switch_channel *c, bool silent);
/* A channel is closed. */
void switch_counters_forget(struct nic_switch *s, struct switch_channel *c);

#endif
