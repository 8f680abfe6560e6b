/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What clients hear of their connections. On the device's worker.
 */
#ifndef NIC_CMID_NEWS_H
#define NIC_CMID_NEWS_H

#include <stdint.h>

#include "cm.h"

struct cmgr;

/* Something happened to a connection: tell its client. */
void cmgr_on_event(struct cmgr *m, const struct cm_event *ev, uint64_t now);

#endif
