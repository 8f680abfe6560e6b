/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving, as its parts need it.
 */
#ifndef URNIC_ENGINE_RX_H
#define URNIC_ENGINE_RX_H

#include "rx.h"

/* Drop a packet that the parser refused for a field that is checked only after queue pair, path and
 * keys (VAL-01). False: there is no such field. */
bool rx_late_drop(struct rx *rx);

#endif
