/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ISA-L: a copy, and then its CRC, for CPUs on which nothing of ours runs.
 */
#include <isa-l/crc.h>
#include <string.h>

#include "crc_impl.h"

uint32_t crc_isal_update(uint32_t crc, const void *p, size_t n)
{
    return crc32_gzip_refl(crc, p, n);
}

uint32_t crc_isal_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return crc32_gzip_refl(crc, dst, n);
}
