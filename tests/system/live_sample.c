/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See live_sample.h.
 */
#include "live_sample.h"

#include <string.h>

#include "unit.h"

#define PART   (LIVE_SIZE / 4)
#define ROUNDS 3u

static void fill(uint8_t *at, uint32_t seed)
{
    for (uint32_t i = 0; i < PART; i++)
        at[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 24);
}

void live_exchange(struct end *from, struct end *to, uint32_t seed)
{
    uint64_t word = 0, far = (uint64_t)(uintptr_t)to->mem;
    fill(from->mem, seed);
    memset(from->mem + PART, 0, PART);
    memset(to->mem, 0, LIVE_SIZE);
    ck_assert_int_eq(end_post_recv(to, PART, PART, 9), 0);
    ck_assert_int_eq(end_post(from, URNIC_WR_RDMA_WRITE, 0, PART, far, to->mr->rkey, 1), 0);
    ck_assert_int_eq(end_post(from, URNIC_WR_RDMA_READ, PART, PART, far, to->mr->rkey, 2), 0);
    ck_assert_int_eq(end_post(from, URNIC_WR_SEND, 0, PART, 0, 0, 3), 0);
    ck_assert_int_eq(
        end_post(from, URNIC_WR_ATOMIC_FETCH_AND_ADD, 2 * PART, 8, far + 3 * PART, to->mr->rkey, 4),
        0);
    for (unsigned i = 1; i <= 4; i++)
        end_expect(from, URNIC_WC_SUCCESS, i);
    end_expect(to, URNIC_WC_SUCCESS, 9);
    ck_assert_int_eq(memcmp(from->mem, to->mem, PART), 0);
    ck_assert_int_eq(memcmp(from->mem, from->mem + PART, PART), 0);
    ck_assert_int_eq(memcmp(from->mem, to->mem + PART, PART), 0);
    memcpy(&word, to->mem + 3 * PART, sizeof(word));
    ck_assert_uint_eq(word, 1);
}

void live_exchanges(struct end *a, struct end *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        end_qp(&a[i], URNIC_QPT_RC);
        end_qp(&b[i], URNIC_QPT_RC);
        end_connect(&a[i], &b[i]);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < n; i++) {
            live_exchange(&a[i], &b[i], round * n + i);
            live_exchange(&b[i], &a[i], round * n + i + 77);
        }
    }
}

int live_worker(unsigned i, unsigned workers, bool other)
{
    if (workers == 1)
        return -1;
    return (int)((other ? i + i / workers : i) % workers);
}
