/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire_icrc_gather (wire.h) of a payload that may be gone (lib/guard).
 */
#ifndef URNIC_ICRC_GONE_H
#define URNIC_ICRC_GONE_H

#include "wire.h"

struct guard_frame;

/* As wire_icrc_gather. With a guard the pieces may be gone (guard.h); NULL: none is. 0; -EFAULT:
 * one is gone, and the frame is incomplete. */
int wire_icrc_gather_gone(uint8_t *frame, size_t len, uint16_t ip_off, uint16_t bth_off,
                          uint16_t payload_off, const struct crc_piece *pieces, unsigned npieces,
                          struct guard_frame *guard);

#endif
