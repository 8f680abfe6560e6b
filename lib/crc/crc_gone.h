/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc_gather (crc.h) of memory that may be gone (lib/guard).
 */
#ifndef URNIC_CRC_GONE_H
#define URNIC_CRC_GONE_H

#include "crc.h"

struct guard_frame;

/* As crc_gather. With a frame the pieces may be gone (guard.h); NULL: none is. 0, and *crc went on;
 * or -EFAULT, then *crc and what stands at dst mean nothing. */
int crc_gather_gone(struct guard_frame *frame, uint32_t *crc, void *dst,
                    const struct crc_piece *pieces, unsigned npieces);

#endif
