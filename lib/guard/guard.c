/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The choice of this CPU's best copy, and the table of fix-ups.
 */
#include "guard.h"

#include <unistd.h>

static struct guard_frame frames[GUARD_FRAMES];
/* The owner of a frame; 0: free. A child of fork has its parent's frames as they were at that
 * moment, but none of its threads. So these frames are free there, whatever they contain. */
static _Atomic pid_t owner[GUARD_FRAMES];

struct guard_frame *guard_frame_take(void)
{
    pid_t own = getpid();
    for (unsigned i = 0; i < GUARD_FRAMES; i++) {
        pid_t is = atomic_load_explicit(&owner[i], memory_order_relaxed);
        if (is == own || !atomic_compare_exchange_strong_explicit(
                             &owner[i], &is, own, memory_order_acquire, memory_order_relaxed))
            continue;
        frames[i].stack = 0;
        return &frames[i];
    }
    return NULL;
}

void guard_frame_give(struct guard_frame *frame)
{
    if (frame)
        atomic_store_explicit(&owner[frame - frames], 0, memory_order_release);
}

#ifdef __x86_64__

#include <ucontext.h>

#define HIDDEN          __attribute__((visibility("hidden")))
#define OF_LINKER(name) __asm__(name) HIDDEN

guard_copy_fn guard_copy_sse, guard_copy_avx, guard_copy_avx512;

/* Tables of guard_x86.S: distances from each field. */
struct fixup {
    int32_t begin, end, landing;
    uint32_t call;
};

extern const struct fixup fixups_begin[] OF_LINKER("__start_urnic_fixups");
extern const struct fixup fixups_end[] OF_LINKER("__stop_urnic_fixups");
/* The compiler's support also checks that the operating system saves the registers. Threads that
 * are here at the same time store the same value. */
static int copy_first(void *dst, const void *src, size_t n)
{
    guard_copy_fn *best = __builtin_cpu_supports("avx512f") ? guard_copy_avx512
                          : __builtin_cpu_supports("avx")   ? guard_copy_avx
                                                            : guard_copy_sse;
    atomic_store_explicit(&guard_copy_best, best, memory_order_relaxed);
    return best(dst, src, n);
}

_Atomic(guard_copy_fn *) guard_copy_best = copy_first;

static uintptr_t place(const int32_t *distance)
{
    return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

/* The stack of the guard_call whose function runs with this stack pointer; 0: none. */
static uintptr_t stack_of_call(uintptr_t pointer)
{
    uintptr_t next = 0;
    pid_t own = getpid();
    for (unsigned i = 0; i < GUARD_FRAMES; i++) {
        uintptr_t at = __atomic_load_n(&frames[i].stack, __ATOMIC_RELAXED);
        if (atomic_load_explicit(&owner[i], memory_order_relaxed) != own)
            continue;
        if (at > pointer && (next == 0 || at < next))
            next = at;
    }
    return next;
}

bool guard_fix(void *context)
{
    greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)reg[REG_RIP];
    for (const struct fixup *f = fixups_begin; f < fixups_end; f++) {
        if (at < place(&f->begin) || at >= place(&f->end))
            continue;
        uintptr_t stack = f->call ? stack_of_call((uintptr_t)reg[REG_RSP]) : 0;
        if (f->call && stack == 0)
            return false; /* the function was not called by guard_call */
        if (f->call)
            reg[REG_RSP] = (greg_t)(stack - sizeof(uintptr_t));
        reg[REG_RIP] = (greg_t)place(&f->landing);
        return true;
    }
    return false;
}

#else

#include <string.h>

static int copy_plain(void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return 0;
}

_Atomic(guard_copy_fn *) guard_copy_best = copy_plain;

int guard_cas(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *orig)
{
    __atomic_compare_exchange_n(word, &compare, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *orig = compare;
    return 0;
}

int guard_fadd(uint64_t *word, uint64_t add, uint64_t *orig)
{
    *orig = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
    return 0;
}

int guard_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    return 0;
}

int64_t guard_call(struct guard_frame *frame, uint32_t crc, void *dst, const void *src, size_t n,
                   guard_fn *fn)
{
    (void)frame;
    return fn(crc, dst, src, n);
}

bool guard_fix(void *context)
{
    (void)context;
    return false;
}

#endif
