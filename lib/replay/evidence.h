/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files share that find out what the packets tell. They look at one direction, after its
 * order was restored, and mark its packets.
 */
#ifndef URNIC_REPLAY_EVIDENCE_H
#define URNIC_REPLAY_EVIDENCE_H

#include "replay_priv.h"

#define BACK_MAX 4096u /* packets looked back at for the cause of a NAK */

/* Was it sent so shortly before an answer that it can't have been the cause? */
bool evidence_crossed(const struct direction *d, const struct packet *p,
                      const struct packet *answer);

/* Fill in base, known_base and begin. */
void beginning_find(struct direction *d);

/* A fatal NAK, in this place: its key was bad, or its receive buffer was too short or could not be
 * written. */
void refusal_mark(struct direction *d, size_t at);
/* Fill in qp_rights. */
void refusal_rights(struct direction *d);

/* Mark answers that are copies, and those that have been overtaken. */
void answers_find(struct direction *d);

#endif
