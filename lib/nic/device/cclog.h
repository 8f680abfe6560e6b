/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saying in the log which parameters of congestion control are in force (CC-13).
 */
#ifndef NIC_CCLOG_H
#define NIC_CCLOG_H

#include <stdint.h>

#include "cc.h"

struct device;

/* Of a device. */
void cclog_device(const struct device *d);
/* Of a queue pair that has its own, on this device. */
void cclog_qp(const struct device *d, uint32_t qpn, const struct cc_conf *conf);

#endif
