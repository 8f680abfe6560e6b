/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page of facts: generations, torn reads, a daemon that dies while it writes.
 */
#include "ipc_facts.h"

#include <pthread.h>
#include <string.h>

#include "unit.h"

#ifdef __SANITIZE_THREAD__
#define WRITES 20000u
#else
#define WRITES 200000u
#endif

static union {
    struct ipc_facts_page page;
    uint8_t octets[IPC_FACTS_PAGE];
} u;

/* Facts of which every word follows from n. */
static struct ipc_facts facts_of(uint64_t n)
{
    struct ipc_facts f;
    uint64_t word[IPC_FACTS_WORDS];
    for (unsigned i = 0; i < IPC_FACTS_WORDS; i++)
        word[i] = n * 0x9E3779B97F4A7C15u + i;
    memcpy(&f, word, sizeof(f));
    return f;
}

static bool facts_are(const struct ipc_facts *f)
{
    uint64_t word[IPC_FACTS_WORDS];
    memcpy(word, f, sizeof(*f));
    for (unsigned i = 1; i < IPC_FACTS_WORDS; i++) {
        if (word[i] != word[0] + i)
            return false;
    }
    return true;
}

START_TEST(a_generation_is_read_once)
{
    struct ipc_facts f = {.line_rate = 77}, in;
    uint32_t seen = 0;
    memset(&u, 0, sizeof(u));
    ck_assert(!ipc_facts_differ(&u.page, 0));
    ck_assert(!ipc_facts_read(&u.page, &seen, &f)); /* nothing has been published yet */
    ck_assert_uint_eq(f.line_rate, 77);
    in = facts_of(1);
    ck_assert(ipc_facts_write(&u.page, &in));
    ck_assert(ipc_facts_differ(&u.page, seen));
    ck_assert(ipc_facts_read(&u.page, &seen, &f));
    ck_assert_int_eq(memcmp(&f, &in, sizeof(f)), 0);
    ck_assert(!ipc_facts_differ(&u.page, seen));
    ck_assert(!ipc_facts_read(&u.page, &seen, &f));
    ck_assert(!ipc_facts_write(&u.page, &in)); /* nothing new */
    ck_assert(!ipc_facts_differ(&u.page, seen));
    in.flags ^= IPC_FACTS_LINK;
    ck_assert(ipc_facts_write(&u.page, &in));
    uint32_t before = seen;
    ck_assert(ipc_facts_read(&u.page, &seen, &f));
    ck_assert_uint_ne(seen, before);
    ck_assert_uint_eq(f.flags, in.flags);
}
END_TEST

/* The first facts may all be 0, and are still published. */
START_TEST(facts_that_are_all_0_are_facts)
{
    struct ipc_facts f = {0};
    uint32_t seen = 0;
    memset(&u, 0, sizeof(u));
    ck_assert(ipc_facts_write(&u.page, &f));
    f.ip_mtu = 5;
    ck_assert(ipc_facts_read(&u.page, &seen, &f));
    ck_assert_uint_eq(f.ip_mtu, 0);
}
END_TEST

/* Generations wrap, past 0, which is none. */
START_TEST(generations_wrap)
{
    struct ipc_facts f = facts_of(1);
    uint32_t seen;
    memset(&u, 0, sizeof(u));
    atomic_store(&u.page.seq, UINT32_MAX - 1);
    seen = UINT32_MAX - 1;
    ck_assert(ipc_facts_write(&u.page, &f));
    ck_assert_uint_eq(atomic_load(&u.page.seq), 2);
    ck_assert(ipc_facts_read(&u.page, &seen, &f));
    ck_assert_uint_eq(seen, 2);
}
END_TEST

/* The reader neither waits nor takes half of it. */
START_TEST(a_daemon_that_died_while_it_wrote)
{
    struct ipc_facts f = facts_of(1), in;
    uint32_t seen = 0;
    memset(&u, 0, sizeof(u));
    ck_assert(ipc_facts_write(&u.page, &f));
    ck_assert(ipc_facts_read(&u.page, &seen, &f));
    in = f;
    atomic_fetch_add(&u.page.seq, 1);
    atomic_store(&u.page.word[3], 5);
    ck_assert(ipc_facts_differ(&u.page, seen));
    ck_assert(!ipc_facts_read(&u.page, &seen, &f));
    ck_assert_int_eq(memcmp(&f, &in, sizeof(f)), 0);
}
END_TEST

static _Atomic bool over;

static void *writer(void *arg)
{
    for (uint64_t n = 2; n < WRITES; n++) {
        struct ipc_facts f = facts_of(n);
        (void)ipc_facts_write(&u.page, &f);
        for (volatile unsigned i = 0; i < n % 512; i++)
            ;
    }
    atomic_store(&over, true);
    return arg;
}

START_TEST(no_read_is_torn)
{
    pthread_t thread;
    struct ipc_facts f = facts_of(1);
    uint32_t seen = 0, reads = 0;
    memset(&u, 0, sizeof(u));
    ck_assert(ipc_facts_write(&u.page, &f));
    pthread_create(&thread, NULL, writer, NULL);
    while (!atomic_load(&over)) {
        if (!ipc_facts_read(&u.page, &seen, &f))
            continue;
        reads++;
        ck_assert_msg(facts_are(&f), "generation %u", seen);
    }
    pthread_join(thread, NULL);
    (void)ipc_facts_read(&u.page, &seen, &f);
    struct ipc_facts last = facts_of(WRITES - 1);
    ck_assert_int_eq(memcmp(&f, &last, sizeof(f)), 0);
    ck_assert_uint_gt(reads, 0);
}
END_TEST

UNIT_MAIN("ipc facts", a_generation_is_read_once, facts_that_are_all_0_are_facts, generations_wrap,
          a_daemon_that_died_while_it_wrote, no_read_is_torn)
