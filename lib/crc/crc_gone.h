/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc_gather (crc.h) of memory that may be gone (lib/guard).
 */
#ifndef URNIC_CRC_GONE_H
#define URNIC_CRC_GONE_H

#include "crc.h"

struct guard_frame;

/* As crc_gather. With a frame the pieces may be gone (guard.h); with NULL they must not. 0, and
 * *crc is the new running value; or -EFAULT, and *crc and the octets at dst are invalid. */
int crc_gather_gone(struct guard_frame *frame, uint32_t *crc, void *dst,
                    const struct crc_piece *pieces, unsigned npieces);

#endif
