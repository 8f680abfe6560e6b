/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of a reaction point, for dcqcn and dcqcn-mlx (CC-09..CC-14). Rates are whole
 * bit/s, ratios have 20 fraction bits; halves are rounded up and alpha's decay is rounded up, so
 * that a rate reaches its target and alpha reaches 0 (CC-18).
 */
#ifndef URNIC_DCQCN_RATE_H
#define URNIC_DCQCN_RATE_H

#include "cc.h"

/* Set the sender's limit from rc: no limit at line rate. */
void dcqcn_publish(struct cc *cc);
/* Reset to the line rate or the configured one, without state (CC-09). */
void dcqcn_rest(struct cc *cc);
/* Is the current rate at its maximum? */
bool dcqcn_at_top(const struct cc *cc);
/* alpha towards 1, and towards 0 (CC-10, CC-11). */
void dcqcn_alpha_up(struct cc *cc);
void dcqcn_alpha_down(struct cc *cc);
/* The rate falls by alpha; the target follows if `clamp` (CC-10, CC-14). */
void dcqcn_cut(struct cc *cc, bool clamp);
/* Do one increase event at the stages t and bc, or t alone (CC-12), without counting it. */
void dcqcn_increase(struct cc *cc, bool timer_only);
/* Make all increases by the timer that are due by now, but none at or after the time of a cut that
 * is still owed. The stages are max(t, bc) and min(t, bc), where t counts the timer's increases and
 * bc the byte counter's; with `timer_only` t is the only stage. The time this takes is bounded by
 * the increases until the rate settles, so a queue pair that was idle for hours delays no other. */
void dcqcn_increase_due(struct cc *cc, bool timer_only, uint64_t now);
/* cc_type.alpha and cc_type.target. */
uint32_t dcqcn_alpha(const struct cc *cc);
uint64_t dcqcn_target(const struct cc *cc);
/* Half the rate (CC-20). */
void dcqcn_halve(struct cc *cc);

#endif
