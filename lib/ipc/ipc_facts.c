/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words are atomic, so a read that races with a write is no undefined behaviour; `seq` detects
 * the race. ThreadSanitizer doesn't know fences, and has no complaints about atomics.
 */
#include "ipc_facts.h"

#include <string.h>

#define TRIES 8 /* writes are rare and take half a microsecond */

#ifdef __SANITIZE_THREAD__
#define FENCE(order) ((void)0)
#define WORD_STORE   memory_order_release
#define WORD_LOAD    memory_order_acquire
#else
#define FENCE(order) atomic_thread_fence(order)
#define WORD_STORE   memory_order_relaxed
#define WORD_LOAD    memory_order_relaxed
#endif

bool ipc_facts_write(struct ipc_facts_page *page, const struct ipc_facts *facts)
{
    uint64_t word[IPC_FACTS_WORDS];
    uint32_t seq = atomic_load_explicit(&page->seq, memory_order_relaxed);
    bool same = seq != 0;
    memcpy(word, facts, sizeof(*facts));
    for (unsigned i = 0; same && i < IPC_FACTS_WORDS; i++)
        same = atomic_load_explicit(&page->word[i], memory_order_relaxed) == word[i];
    if (same)
        return false;
    page->size = sizeof(*facts);
    atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
    FENCE(memory_order_release);
    for (unsigned i = 0; i < IPC_FACTS_WORDS; i++)
        atomic_store_explicit(&page->word[i], word[i], WORD_STORE);
    seq += 2;
    /* 0 means no facts. */
    atomic_store_explicit(&page->seq, seq ? seq : 2, memory_order_release);
    return true;
}

bool ipc_facts_read(const struct ipc_facts_page *page, uint32_t *seen, struct ipc_facts *out)
{
    uint64_t word[IPC_FACTS_WORDS];
    for (unsigned try = 0; try < TRIES; try++) {
        uint32_t seq = atomic_load_explicit(&page->seq, memory_order_acquire);
        if (seq == *seen)
            return false;
        if (seq % 2)
            continue;
        for (unsigned i = 0; i < IPC_FACTS_WORDS; i++)
            word[i] = atomic_load_explicit(&page->word[i], WORD_LOAD);
        FENCE(memory_order_acquire);
        if (atomic_load_explicit(&page->seq, memory_order_relaxed) != seq)
            continue;
        memcpy(out, word, sizeof(*out));
        *seen = seq;
        return true;
    }
    return false;
}
