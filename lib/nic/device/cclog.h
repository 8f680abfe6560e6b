/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Log lines with the parameters of congestion control in force (CC-13).
 */
#ifndef NIC_CCLOG_H
#define NIC_CCLOG_H

#include <stdint.h>

#include "cc.h"

struct device;

/* Log a device's. */
void cclog_device(const struct device *d);
/* Log those of a queue pair of this device with its own. */
void cclog_qp(const struct device *d, uint32_t qpn, const struct cc_conf *conf);

#endif
