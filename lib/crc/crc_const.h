/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Made by scripts/crc-constants from the polynomial of CRC-32, P. Bits are reflected, as those of
 * the CRC: the lowest bit stands for the highest power of x. A product of two reflected numbers of
 * 64 bits is one bit lower than the reflected product, so each power here is one less than what it
 * moves by.
 */
#ifndef URNIC_CRC_CONST_H
#define URNIC_CRC_CONST_H

/* Factors that move 128 bits on by `bits`: x^(bits + 63) and x^(bits - 1) mod P, for the earlier
 * and the later 64 of them. */
#define CRC_EARLIER_128  0x65673B4600000000ull
#define CRC_LATER_128    0x9BA54C6F00000000ull
#define CRC_EARLIER_256  0x9570D49500000000ull
#define CRC_LATER_256    0x01B5FD1D00000000ull
#define CRC_EARLIER_512  0x653D982200000000ull
#define CRC_LATER_512    0xCAD38E8F00000000ull
#define CRC_EARLIER_1024 0x7D657A1000000000ull
#define CRC_LATER_1024   0x7406FA9500000000ull
#define CRC_EARLIER_2048 0x7CC8E1E700000000ull
#define CRC_LATER_2048   0x03F9F86300000000ull

/* The same for the end: 32 bits more, which makes 96 bits of 128. */
#define CRC_EARLIER_END_0   0xCCAA009E00000000ull
#define CRC_LATER_END_0     0x0000000100000000ull
#define CRC_EARLIER_END_128 0x8125652700000000ull
#define CRC_LATER_END_128   0xAE68919100000000ull
#define CRC_EARLIER_END_256 0xAF44924700000000ull
#define CRC_LATER_END_256   0xF1DA05AA00000000ull
#define CRC_EARLIER_END_384 0x1D9513D700000000ull
#define CRC_LATER_END_384   0x3DB1ECDC00000000ull

/* Dividing 96 bits by P: x^96 / P without its last bit, which has no effect, and P. */
#define CRC_QUOTIENT   0xB4E5B025F7011641ull
#define CRC_POLYNOMIAL 0x00000001DB710641ull

#endif
