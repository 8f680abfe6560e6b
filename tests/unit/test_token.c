/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The token of a worker (token.h): one thread at a time has it, and no job that was left for the
 * holder stays unseen.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "token.h"
#include "unit.h"

#define THREADS 4u
#ifdef __SANITIZE_THREAD__
#define ROUNDS 50000u
#else
#define ROUNDS 300000u
#endif

static struct lab {
    struct token token;
    uint32_t inside; /* under the token: ThreadSanitizer sees it if two threads have it */
    uint64_t seen[THREADS];
    struct {
        _Alignas(64) _Atomic uint32_t left; /* jobs that the thread has left for the holder */
    } of[THREADS];
    _Atomic uint32_t wrong;
} lab;

START_TEST(words)
{
    struct token t = {0};
    ck_assert(token_try(&t));
    ck_assert(!token_try(&t));
    ck_assert(token_release(&t));
    ck_assert(token_try(&t));
    ck_assert(!token_want(&t));
    ck_assert(!token_want(&t)); /* one round for both */
    ck_assert(!token_try(&t));
    ck_assert(!token_release(&t));
    ck_assert(token_release(&t));
    ck_assert(token_want(&t)); /* free: it is the caller's */
    ck_assert(!token_try(&t));
    while (!token_release(&t))
        ;
    ck_assert(token_try(&t));
}
END_TEST

/* The holder's work: take all jobs. */
static void hold(void)
{
    do {
        if (lab.inside++ != 0)
            atomic_fetch_add(&lab.wrong, 1);
        for (unsigned i = 0; i < THREADS; i++)
            lab.seen[i] = atomic_load_explicit(&lab.of[i].left, memory_order_relaxed);
        lab.inside--;
    } while (!token_release(&lab.token));
}

/* Leaves a job and continues, again and again. */
static void *post(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        atomic_store_explicit(&lab.of[me].left, n, memory_order_relaxed);
        if (token_want(&lab.token))
            hold();
        for (volatile uint32_t i = (n * 2654435761u) >> 26; i > 0; i--)
            ;
    }
    return NULL;
}

/* Takes it when it is free, as a poll does. */
static void *poll_it(void *arg)
{
    (void)arg;
    for (uint32_t n = 0; n < ROUNDS; n++) {
        if (token_try(&lab.token))
            hold();
        else if (n % 64 == 0)
            sched_yield();
    }
    return NULL;
}

/* Four threads post, none of them waits, and no work is left at the end: the last thread that
 * posted either had the token, or the token's holder saw its work. */
START_TEST(nothing_lost)
{
    pthread_t thread[THREADS], poller;
    for (unsigned round = 0; round < 5; round++) {
        memset((void *)&lab, 0, sizeof(lab));
        for (unsigned i = 0; i < THREADS; i++)
            pthread_create(&thread[i], NULL, post, (void *)(uintptr_t)i);
        pthread_create(&poller, NULL, poll_it, NULL);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        pthread_join(poller, NULL);
        ck_assert_uint_eq(lab.wrong, 0);
        ck_assert_uint_eq(lab.token.word, TOKEN_FREE);
        for (unsigned i = 0; i < THREADS; i++)
            ck_assert_uint_eq(lab.seen[i], ROUNDS);
    }
}
END_TEST

UNIT_MAIN("token", words, nothing_lost)
