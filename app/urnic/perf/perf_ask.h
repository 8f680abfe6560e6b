/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The messages of the two ends of `urnic perf` when a connection is made, in the private data of
 * the request and of the reply. Both ends must have the same byte order.
 */
#ifndef URNIC_PERF_ASK_H
#define URNIC_PERF_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_MAGIC     0x66726570u
#define PERF_DEPTH_MAX 4096u
#define PERF_BATCH_MAX 64u

enum perf_op { PERF_WRITE, PERF_READ, PERF_SEND, PERF_ATOMIC, PERF_CONNECT };

/* The client's plan, in the request, which has 56 octets for it. */
struct perf_ask {
    uint32_t magic;
    uint8_t op; /* enum perf_op */
    uint8_t latency, both, idle;
    uint32_t index; /* index of the queue pair within the run, and so of its part of the buffer */
    uint32_t depth; /* most work requests in flight */
    uint64_t size;  /* octets of the largest message */
    uint64_t addr;  /* the client's buffer for this queue pair */
    uint32_t rkey;
    uint32_t batch; /* work requests per post */
    uint64_t span;  /* octets from one queue pair's part of the buffer to the next */
};
_Static_assert(sizeof(struct perf_ask) <= 56, "fits a REQ's private data");

/* In the reply: where the server's buffer is. */
struct perf_offer {
    uint32_t magic;
    uint32_t rkey;
    uint64_t addr, size;
};

/* Can a server with a buffer of `size` octets serve this request? Check it first: the offset of its
 * part of the buffer is computed from these fields. */
bool perf_ask_ok(const struct perf_ask *ask, uint64_t size);

/* Can the client that made the request use the offer? */
bool perf_offer_ok(const struct perf_offer *offer, const struct perf_ask *ask);

/* The offset of the queue pair's part in a buffer of `size` octets, at least the ask's span. Parts
 * follow each other, and share the buffer if it is too small for all. */
uint64_t perf_part(const struct perf_ask *ask, uint64_t size);

#endif
