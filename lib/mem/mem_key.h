/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys: a 24-bit index that hides a dense slot number behind a secret permutation, and a random
 * variant octet. Rules: MR-01, MR-07, SEC-12.
 */
#ifndef URNIC_MEM_KEY_H
#define URNIC_MEM_KEY_H

#include <stdint.h>

#define MEM_KEY_ROUNDS 4

/* A secret permutation of 24-bit numbers and a secret stream of random numbers. */
struct mem_keys {
    uint64_t seed[2];
    uint64_t mul[MEM_KEY_ROUNDS], add[MEM_KEY_ROUNDS];
    uint64_t drawn; /* random numbers given out so far */
};

/* A keyed hash (SipHash-2-4 of one word): unpredictable without the seed. */
uint64_t mem_key_hash(const uint64_t seed[2], uint64_t word);

/* `seed` is the secret; the same one gives the same keys again. */
void mem_keys_init(struct mem_keys *k, const uint64_t seed[2]);

/* The next unpredictable number. */
uint64_t mem_keys_random(struct mem_keys *k);

/* Four Feistel rounds over 12-bit halves; the round function is a secret multiply-shift hash, cheap
 * enough for every packet. */
static inline uint32_t mem_key_round(const struct mem_keys *k, unsigned i, uint32_t half)
{
    return (uint32_t)((half * k->mul[i] + k->add[i]) >> 52);
}

/* Slot number (24 bits) to key index. */
static inline uint32_t mem_key_hide(const struct mem_keys *k, uint32_t slot)
{
    uint32_t left = slot >> 12 & 0xFFF, right = slot & 0xFFF;
    for (unsigned i = 0; i < MEM_KEY_ROUNDS; i++) {
        uint32_t t = left ^ mem_key_round(k, i, right);
        left = right;
        right = t;
    }
    return left << 12 | right;
}

/* Key index back to slot number. */
static inline uint32_t mem_key_show(const struct mem_keys *k, uint32_t index)
{
    uint32_t left = index >> 12 & 0xFFF, right = index & 0xFFF;
    for (unsigned i = MEM_KEY_ROUNDS; i-- > 0;) {
        uint32_t t = right ^ mem_key_round(k, i, left);
        right = left;
        left = t;
    }
    return left << 12 | right;
}

#endif
