/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Facts about a client's queue pair, for tools. On the device's worker.
 */
#ifndef NIC_QP_INFO_H
#define NIC_QP_INFO_H

#include <stdbool.h>

#include "ipc_ask.h"

struct client;
struct client_qp;
struct device;

/* All of it, for its own user. cc_target: bit/s, all ones = not limited. */
void qp_info(const struct device *d, const struct client_qp *cqp, struct ipc_asked_qp *out);

/* Facts about a queue pair are for its user and for administrators only: with its peer's number and
 * its PSNs another user could send in its user's name (SEC-33). Is this client one of them? */
bool qp_info_is_for(const struct client *c, const struct client *owner);
/* Leave those facts out. */
void qp_info_hide(struct ipc_qp_info *q);

#endif
