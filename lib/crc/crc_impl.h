/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The implementations of crc.h. A CPU that lacks the instructions of one must not call it.
 */
#ifndef URNIC_CRC_IMPL_H
#define URNIC_CRC_IMPL_H

#include <stddef.h>
#include <stdint.h>

#define CRC_IMPL(name)                                                                             \
    uint32_t crc_##name##_update(uint32_t crc, const void *p, size_t n);                           \
    uint32_t crc_##name##_copy(uint32_t crc, void *dst, const void *src, size_t n)

CRC_IMPL(isal);
CRC_IMPL(zlib);
CRC_IMPL(avx);
CRC_IMPL(avx2);
CRC_IMPL(avx512);

#endif
