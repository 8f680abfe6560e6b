/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files that derive facts from the packets. They examine one direction, after its
 * order was restored, and mark its packets.
 */
#ifndef URNIC_REPLAY_EVIDENCE_H
#define URNIC_REPLAY_EVIDENCE_H

#include "replay_priv.h"

#define BACK_MAX 4096u /* packets searched backwards for the cause of a NAK */

/* Was it sent too shortly before an answer to be its cause? */
bool evidence_crossed(const struct direction *d, const struct packet *p,
                      const struct packet *answer);

/* Fill in base, known_base and begin. */
void beginning_find(struct direction *d);

/* A fatal NAK at this place: the packet's key was bad, or its receive buffer was too short or could
 * not be written. */
void refusal_mark(struct direction *d, size_t at);
/* Fill in qp_rights. */
void refusal_rights(struct direction *d);

/* Mark answers that are copies, and answers that were overtaken. */
void answers_find(struct direction *d);

#endif
