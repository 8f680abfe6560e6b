/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 by carry-less multiplication, for packets that are too short for ISA-L to get going.
 */
#ifndef URNIC_CRC_FOLD_H
#define URNIC_CRC_FOLD_H

#include <stddef.h>
#include <stdint.h>

/* Octets of ones that may be laid over the data. */
#define CRC_FOLD_MASK 64u
/* Of a mask's array: it is read, but not used, as far behind its end as a vector is long. */
#define CRC_FOLD_MASK_ROOM (CRC_FOLD_MASK + 16u)
/* The least that can be computed. */
#define CRC_FOLD_MIN 16u

/* Is there an instruction for it? */
#if defined(__x86_64__)
static inline int crc_fold_usable(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#else
static inline int crc_fold_usable(void)
{
    return 0;
}
#endif

/* CRC of `len` octets, a multiple of 4 and at least CRC_FOLD_MIN, of which the first ones are ORed
 * with those of `mask`. `crc` and the result as ISA-L's crc32_gzip_refl has them: with the final
 * XOR applied. Only where crc_fold_usable(). */
uint32_t crc_fold(uint32_t crc, const uint8_t *data, size_t len,
                  const uint8_t mask[CRC_FOLD_MASK_ROOM]);

#endif
