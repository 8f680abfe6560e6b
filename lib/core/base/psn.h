/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 24-bit packet sequence numbers: a type of their own, so that a < b can't be written by accident.
 * Rules: PSN-01, PSN-02, PSN-06.
 */
#ifndef URNIC_PSN_H
#define URNIC_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xFFFFFFu
#define PSN_HALF 0x800000u

typedef struct {
    uint32_t v; /* always < 2^24 */
} psn_t;

static inline psn_t psn(uint32_t v)
{
    return (psn_t){v & PSN_MASK};
}

static inline psn_t psn_add(psn_t a, uint32_t n)
{
    return psn(a.v + n);
}

static inline psn_t psn_prev(psn_t a)
{
    return psn(a.v - 1);
}

/* The number of PSNs that `a` is ahead of b, at any distance: 0 .. 2^24-1. */
static inline uint32_t psn_ahead(psn_t a, psn_t b)
{
    return psn(a.v - b.v).v;
}

/* Signed circular distance a - b: -2^23 .. 2^23-1. Positive = a is later (PSN-02). */
static inline int32_t psn_diff(psn_t a, psn_t b)
{
    return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_eq(psn_t a, psn_t b)
{
    return a.v == b.v;
}

/* Is a in [first, first + n)? */
static inline bool psn_in(psn_t a, psn_t first, uint32_t n)
{
    return psn_ahead(a, first) < n;
}

/* PSNs that a message of `len` octets uses at a path MTU of 2^mtu_shift, at least 1 (PSN-06). */
static inline uint32_t psn_count(uint64_t len, unsigned mtu_shift)
{
    return len ? (uint32_t)((len + (1ull << mtu_shift) - 1) >> mtu_shift) : 1;
}

#endif
