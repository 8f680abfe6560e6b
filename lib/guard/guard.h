/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Access to memory that a program may unmap, protect or truncate at any time (MR-12). Each function
 * here says by its result that the memory was not there, where other code dies of SIGSEGV or
 * SIGBUS.
 *
 * All instructions that touch such memory lie in ranges of addresses that a table lists with their
 * fix-ups. The handler (guard_signal.h) looks whether the instruction that has faulted lies in one;
 * guard_fix then has the thread go on at the fix-up. Copies and atomics are functions in assembler,
 * which call nothing, push nothing and change no register that is their caller's: their fix-up is
 * to return -EFAULT. No compiler has a part in that, so it holds with any optimization, at link
 * time too, and with sanitizers. A copy with CRC is compiled (lib/crc). Such a function lies in a
 * section of its own (GUARD_CODE), with all that it inlines, and is entered by guard_call, an
 * assembler function that keeps its caller's registers on the stack, and where that is in a frame
 * which is its caller's. (A variable of the thread would need static TLS, of which a library that
 * is loaded late may find none.) Of all frames in use the one of the thread that has faulted is the
 * next above its stack pointer: nothing lies in between but the compiled function's own stack. The
 * fix-up returns from the compiled function to guard_call, which takes
 * the registers from its own stack: whatever the compiled one had done with its frame and with
 * registers does not matter.
 *
 * A fault costs nothing until there is one: no access asks anything. Without the handler the
 * functions do the same, and a fault is a signal as anywhere. On CPUs other than x86-64 there are
 * no fix-ups.
 *
 * Threads: any.
 */
#ifndef URNIC_GUARD_H
#define URNIC_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A compiled function for guard_call. It holds no lock and no memory, passes no pointer to
 * unmappable memory to another function, and no other guarded function calls it. */
#define GUARD_CODE                                                                                 \
    __attribute__((section("urnic_guarded"), noinline,                                             \
                   no_sanitize("address", "thread", "undefined")))

#define GUARD_FAULT INT64_C(-1) /* result of guard_call */

typedef int guard_copy_fn(void *dst, const void *src, size_t n);

/* The fastest copy of this CPU. */
extern _Atomic(guard_copy_fn *) guard_copy_best;

/* src[0..n) -> dst[0..n), which must not overlap. 1, 2, 4 and 8 octets are one store, and the last
 * octets of others come last. 0, or -EFAULT: some octets may have been copied. */
static inline int guard_copy(void *dst, const void *src, size_t n)
{
    return atomic_load_explicit(&guard_copy_best, memory_order_relaxed)(dst, src, n);
}

/* Atomic instructions on 8 aligned octets; *orig gets the value before. 0 or -EFAULT. */
int guard_cas(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *orig);
int guard_fadd(uint64_t *word, uint64_t add, uint64_t *orig);
int guard_store(uint64_t *word, uint64_t value);

typedef uint32_t guard_fn(uint32_t crc, void *dst, const void *src, size_t n);

/* The place of a guard_call's stack, for one call at a time. */
struct guard_frame {
    uintptr_t stack; /* 0: no call */
};

#define GUARD_FRAMES 256u /* frames of a process */

/* Take one of the process's frames. NULL: all are taken. */
struct guard_frame *guard_frame_take(void);
/* Give it back; no guard_call uses it. NULL is allowed. */
void guard_frame_give(struct guard_frame *frame);

/* Call fn(crc, dst, src, n), a function of GUARD_CODE. Returns its result, or GUARD_FAULT. */
int64_t guard_call(struct guard_frame *frame, uint32_t crc, void *dst, const void *src, size_t n,
                   guard_fn *fn);

/* Call it in a handler of SIGSEGV or SIGBUS that a fault has caused: context is the handler's third
 * argument. True: the instruction is guarded, and the thread continues at its fix-up when the
 * handler returns. */
bool guard_fix(void *context);

#endif
