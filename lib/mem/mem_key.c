/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The secret behind the keys: SipHash-2-4 derives the permutation's round keys and the random
 * stream from the seed. Rules: MR-01, SEC-12.
 */
#include "mem_key.h"

static inline uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

uint64_t mem_key_hash(const uint64_t seed[2], uint64_t word)
{
    /* The message is one 8-octet word, so the second block holds only the length. */
    const uint64_t block[2] = {word, 8ull << 56};
    uint64_t v[4] = {seed[0] ^ 0x736F6D6570736575ull, seed[1] ^ 0x646F72616E646F6Dull,
                     seed[0] ^ 0x6C7967656E657261ull, seed[1] ^ 0x7465646279746573ull};

    for (unsigned i = 0; i < 2; i++) {
        v[3] ^= block[i];
        sip_round(v);
        sip_round(v);
        v[0] ^= block[i];
    }
    v[2] ^= 0xFF;
    for (unsigned i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t mem_keys_random(struct mem_keys *k)
{
    return mem_key_hash(k->seed, k->drawn++);
}

void mem_keys_init(struct mem_keys *k, const uint64_t seed[2])
{
    k->seed[0] = seed[0];
    k->seed[1] = seed[1];
    k->drawn = 0;
    for (unsigned i = 0; i < MEM_KEY_ROUNDS; i++) {
        k->mul[i] = mem_keys_random(k) | 1;
        k->add[i] = mem_keys_random(k);
    }
}
