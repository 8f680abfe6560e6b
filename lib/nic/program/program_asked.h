/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers to the daemon's questions about this program's engine (ipc_ask.h).
 */
#ifndef NIC_PROGRAM_ASKED_H
#define NIC_PROGRAM_ASKED_H

#include "ipc_ask.h"

/* struct uplink.asked. `arg` points to the device's pointer: struct device **. On its worker. */
void program_asked(void *arg, const struct ipc_question *q, struct ipc_answer *a, uint8_t *data);

#endif
