/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The right to run a worker's rounds: one word that says free, taken, or taken and wanted. Only the
 * holder touches the worker's data.
 *
 * A thread that has left something for the worker (a doorbell, a job) and finds the token taken
 * marks it wanted and continues. The holder sees this when it releases the token, and does another
 * round, which finds the doorbell or job. (The taker of a free token does the round itself, or
 * leaves it to a poll that comes soon: worker_defers.) So no thread waits for the token, and no
 * doorbell or job is overlooked.
 *
 * Threads: any; one at a time has it.
 */
#ifndef NIC_TOKEN_H
#define NIC_TOKEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum token_word { TOKEN_FREE, TOKEN_TAKEN, TOKEN_WANTED };

/* All zero at first: free. */
struct token {
    _Atomic uint32_t word; /* enum token_word */
};

/* Take it if it is free. False: another thread has it. */
static inline bool token_try(struct token *t)
{
    uint32_t is = TOKEN_FREE;
    return atomic_compare_exchange_strong_explicit(&t->word, &is, TOKEN_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Take the token, after leaving a doorbell or a job for the worker. True: the caller has the token
 * now, and does the round. False: the holder will do another round. */
static inline bool token_want(struct token *t)
{
    return atomic_exchange_explicit(&t->word, TOKEN_WANTED, memory_order_acq_rel) == TOKEN_FREE;
}

/* Release it, by the holder. True: the token is released. False: another thread has left something,
 * so the holder keeps it and does a round. */
static inline bool token_release(struct token *t)
{
    uint32_t is = TOKEN_TAKEN;
    if (atomic_compare_exchange_strong_explicit(&t->word, &is, TOKEN_FREE, memory_order_release,
                                                memory_order_relaxed))
        return true;
    atomic_exchange_explicit(&t->word, TOKEN_TAKEN, memory_order_acq_rel);
    return false;
}

#endif
