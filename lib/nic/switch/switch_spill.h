/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames for programs whose rings are full: a peer's window is larger than a small ring. They wait
 * in memory of the switch, in their order, until the program has taken the frames before them. The
 * programs of a user may have at most SWITCH_SPILL_ALONE times as many waiting as are left for
 * others, so no user takes all. A program that takes nothing for SWITCH_SPILL_NS, for example a
 * stopped one, loses them.
 *
 * On the device's worker.
 */
#ifndef NIC_SWITCH_SPILL_H
#define NIC_SWITCH_SPILL_H

#include "io.h"
#include "switch.h"

#define SWITCH_SPILL_FRAMES 8192u /* waiting frames of a worker's channels: up to 33 MiB */
#define SWITCH_SPILL_ALONE  4u
#define SWITCH_SPILL_NS     1000000000u

/* Do frames wait for room in this channel's ring? Then later frames have to wait, too. */
bool switch_spills(const struct switch_channel *c);
/* Let a frame wait: `head` replaces its first head_len octets. False: there is no room, or the
 * program takes nothing. */
bool switch_spill(struct nic_switch *s, struct switch_channel *c, const uint8_t *head,
                  uint32_t head_len, const struct io_frame *frame);
/* Move frames that wait into their rings, as far as there is room. Returns the number moved. */
unsigned switch_spill_run(struct nic_switch *s, uint64_t now);
/* The channel ends, or its program gets no more frames: drop its waiting frames. */
void switch_spill_drop(struct nic_switch *s, struct switch_channel *c);
void switch_spill_free(struct nic_switch *s);

/* Does any channel have waiting frames? No event reports room in its ring: look again soon. */
static inline bool switch_spilling(const struct nic_switch *s)
{
    return s->spilling != NULL;
}

#endif
