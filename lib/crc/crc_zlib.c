/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zlib: a copy, and then its CRC by tables, for CPUs whose special instructions software emulates.
 */
#include <string.h>
#include <zlib.h>

#include "crc_impl.h"

uint32_t crc_zlib_update(uint32_t crc, const void *p, size_t n)
{
    return n == 0 ? crc : (uint32_t)crc32_z(crc, p, n); /* of NULL it would be the first value */
}

uint32_t crc_zlib_copy(uint32_t crc, void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return crc_zlib_update(crc, dst, n);
}
