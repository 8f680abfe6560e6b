/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MR-12: an access to removed memory returns an error, and every other signal goes to its old
 * handler.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crc_gone.h"
#include "guard.h"
#include "guard_signal.h"
#include "unit.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#define PAGE    4096u
#define LONGEST 700u /* octets: each branch of each copy */

#if defined(__x86_64__)
guard_copy_fn guard_copy_sse, guard_copy_avx, guard_copy_avx512;

static guard_copy_fn *const copies[] = {guard_copy_sse, guard_copy_avx, guard_copy_avx512};
static const unsigned ncopies = sizeof(copies) / sizeof(copies[0]);

static bool runs(unsigned i)
{
    return i == 0 || (i == 1 ? __builtin_cpu_supports("avx") : __builtin_cpu_supports("avx512f"));
}
#endif

/* A page with a hole before and after it. */
static uint8_t *island(int prot)
{
    uint8_t *at = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    ck_assert_int_eq(mprotect(at + PAGE, PAGE, prot), 0);
    return at + PAGE;
}

static uint8_t octets[2 * PAGE], got[2 * PAGE];

static void fill(void)
{
    for (unsigned i = 0; i < sizeof(octets); i++)
        octets[i] = (uint8_t)(i * 2654435761u >> 24 | 1);
}

#if defined(__x86_64__)
/* Exactly the given octets are read and written, at any place; if one of them is gone, at either
 * end and on either side, the copy reports it. */
START_TEST(mr_12_copy)
{
    uint8_t *page = island(PROT_READ | PROT_WRITE);
    fill();
    ck_assert_int_eq(guard_signal_on_top(), 0);
    for (unsigned i = 0; i < ncopies; i++) {
        if (!runs(i))
            continue;
        for (size_t n = 0; n <= LONGEST; n += n < 300 ? 1 : 13) {
            uint8_t *end = page + PAGE - n;
            ck_assert_int_eq(copies[i](page, octets + n % 7, n), 0);
            ck_assert_mem_eq(page, octets + n % 7, n);
            ck_assert_int_eq(copies[i](end, octets + n % 5, n), 0);
            ck_assert_mem_eq(end, octets + n % 5, n);
            memset(got, 0, sizeof(got));
            ck_assert_int_eq(copies[i](got + n % 9, end, n), 0);
            ck_assert_mem_eq(got + n % 9, end, n);
            ck_assert_int_eq(got[n % 9 + n], 0);
            bool told = true;
            for (size_t out = 1; out <= n; out += out < 9 ? 1 : 31) {
                told &= copies[i](end + out, octets, n) == -EFAULT;
                told &= copies[i](got, end + out, n) == -EFAULT;
                told &= copies[i](page - out, octets, n) == -EFAULT;
                told &= copies[i](got, page - out, n) == -EFAULT;
            }
            ck_assert_msg(told, "copy %u of %zu octets", i, n);
        }
    }
}
END_TEST

/* One for the life of a test, and another one in the handler of a signal. */
static struct guard_frame *frame(void)
{
    static struct guard_frame *own;
    if (!own)
        own = guard_frame_take();
    return own;
}

/* Neither a copy nor a fault in one changes a register of the caller, also in a compiled function
 * that has used them all. */
GUARD_CODE static uint32_t spoils(uint32_t crc, void *dst, const void *src, size_t n)
{
    volatile uint8_t room[512];
    room[n % sizeof(room)] = (uint8_t)crc;
    __asm__ volatile("mov $1, %%ebx\n mov $2, %%r12d\n mov $3, %%r13d\n mov $4, %%r14d\n"
                     "mov $5, %%r15d\n movb (%0), %%al"
                     :
                     : "r"(src), "r"(dst)
                     : "rax", "rbx", "r12", "r13", "r14", "r15", "memory");
    return crc + 1 + (room[n % sizeof(room)] & 0);
}

/* The compiler keeps these six in the registers that a called function has to preserve. */
static int64_t call_beside(const void *src, uint64_t seen[6])
{
    static volatile uint64_t six[6] = {11, 22, 33, 44, 55, 66};
    uint64_t a = six[0], b = six[1], c = six[2], d = six[3], e = six[4], f = six[5];
    int64_t result = guard_call(frame(), 7, got, src, 1, spoils);
    seen[0] = a, seen[1] = b, seen[2] = c, seen[3] = d, seen[4] = e, seen[5] = f;
    return result;
}

START_TEST(mr_12_call)
{
    static const uint64_t want[6] = {11, 22, 33, 44, 55, 66};
    uint8_t *page = island(PROT_READ | PROT_WRITE);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t seen[6] = {0};
        bool hole = i % 3 == 0;
        int64_t result = call_beside(hole ? page - 1 : page, seen);
        ck_assert_mem_eq(seen, want, sizeof(want));
        ck_assert(result == (hole ? GUARD_FAULT : 8));
    }
    ck_assert(guard_call(frame(), UINT32_MAX - 1, got, page, 1, spoils) == UINT32_MAX);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* which runs handlers of such signals at times of its own */
/* A signal interrupts a guarded call, and another one fails in its handler: the first continues. */
static struct guard_frame *nested_frame;
static uint8_t *nested_page;
static int64_t nested_result;

static void nested(int sig)
{
    (void)sig;
    nested_result = guard_call(nested_frame, 7, got, nested_page - 1, 1, spoils);
}

GUARD_CODE static uint32_t raises(uint32_t crc, void *dst, const void *src, size_t n)
{
    (void)dst;
    raise(SIGUSR1);
    return crc + *((const volatile uint8_t *)src + n);
}

START_TEST(mr_12_nested_call)
{
    nested_frame = guard_frame_take();
    nested_page = island(PROT_READ | PROT_WRITE);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    sigaction(SIGUSR1, &(const struct sigaction){.sa_handler = nested}, NULL);
    nested_page[3] = 5;
    ck_assert(guard_call(frame(), 1, got, nested_page, 3, raises) == 6);
    ck_assert(nested_result == GUARD_FAULT);
    nested_result = 0;
    ck_assert(guard_call(frame(), 1, got, nested_page, PAGE, raises) == GUARD_FAULT);
    ck_assert(nested_result == GUARD_FAULT);
}
END_TEST
#endif

/* A child does not take a frame that a thread of its parent used when it was forked for its own. */
GUARD_CODE static uint32_t is_beside_an_old_one(uint32_t crc, void *dst, const void *src, size_t n)
{
    volatile uintptr_t room[64] = {0}; /* more than lies below the stack pointer in a leaf */
    *(volatile uintptr_t *)dst = (uintptr_t)&room[60]; /* nearer than guard_call's */
    return crc + *((const volatile uint8_t *)src + n) + (uint32_t)room[59];
}

START_TEST(mr_12_frames_of_a_parent)
{
    uint8_t *page = island(PROT_READ | PROT_WRITE);
    int status = 0;
    ck_assert_ptr_nonnull(guard_frame_take());
    struct guard_frame *old = guard_frame_take();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct guard_frame *own = guard_frame_take();
        guard_signal_on_top();
        _exit(own && own != old &&
                      guard_call(own, 1, old, page, PAGE, is_beside_an_old_one) == GUARD_FAULT
                  ? 0
                  : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Each copy with its CRC, of a piece that ends, or begins, in a hole. */
START_TEST(mr_12_crc)
{
    uint8_t *page = island(PROT_READ | PROT_WRITE);
    fill();
    memcpy(page, octets, PAGE);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    for (unsigned i = 0; crc_impl(i); i++) {
        if (!crc_runs_here(crc_impl(i)))
            continue;
        ck_assert_int_eq(crc_choose(crc_impl(i)->name, NULL, 0), 0);
        for (size_t n = 1; n <= PAGE; n += n < 150 ? 1 : 97) {
            struct crc_piece piece[] = {{octets, 20}, {page + PAGE - n, n}};
            uint32_t crc = 0;
            ck_assert_int_eq(crc_gather_gone(frame(), &crc, got, piece, 2), 0);
            ck_assert_uint_eq(crc, crc_update(crc_update(0, octets, 20), page + PAGE - n, n));
            for (size_t out = 1; out <= n; out += out < 9 ? 1 : 113) {
                piece[1].p = page + PAGE - n + out;
                ck_assert_int_eq(crc_gather_gone(frame(), &crc, got, piece, 2), -EFAULT);
                piece[1].p = page - out;
                ck_assert_int_eq(crc_gather_gone(frame(), &crc, got, piece, 2), -EFAULT);
            }
        }
    }
}
END_TEST

START_TEST(atm_05_atomics)
{
    uint64_t orig = 0, *word = (uint64_t *)(void *)island(PROT_READ | PROT_WRITE);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    ck_assert_int_eq(guard_store(word, 40), 0);
    ck_assert_int_eq(guard_fadd(word, 2, &orig), 0);
    ck_assert_uint_eq(orig, 40);
    ck_assert_int_eq(guard_cas(word, 41, 1, &orig), 0);
    ck_assert_uint_eq(orig, 42);
    ck_assert_int_eq(guard_cas(word, 42, 7, &orig), 0);
    ck_assert_uint_eq(*word, 7);
    ck_assert_int_eq(mprotect(word, PAGE, PROT_READ), 0);
    ck_assert_int_eq(guard_store(word, 40), -EFAULT);
    ck_assert_int_eq(guard_fadd(word, 2, &orig), -EFAULT);
    ck_assert_int_eq(guard_cas(word, 7, 1, &orig), -EFAULT);
    ck_assert_uint_eq(*word, 7);
}
END_TEST
#endif

/* ---- other handlers ---- */

static uint8_t *hole;
static sigjmp_buf out;
static volatile unsigned first_calls, second_calls;
static volatile bool told_well, blocked_usr2, on_own_stack;
static struct sigaction second_knows;
static uint8_t own_stack[64 * 1024];

static void start(void)
{
    hole = island(PROT_READ | PROT_WRITE) - 1;
    first_calls = second_calls = 0;
}

static bool guarded(void)
{
    return guard_copy(got, hole, 1) == -EFAULT;
}

static void first(int sig, siginfo_t *info, void *context)
{
    sigset_t mask;
    const uint8_t *at = __builtin_frame_address(0); /* sanitizers may put variables elsewhere */
    told_well = context != NULL && sig == SIGSEGV && info->si_addr == hole;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    blocked_usr2 = sigismember(&mask, SIGUSR2) == 1;
    on_own_stack = at >= own_stack && at < own_stack + sizeof(own_stack);
    first_calls++;
    siglongjmp(out, 1);
}

/* Passes on to the one that it has found. */
static void second(int sig, siginfo_t *info, void *context)
{
    if (++second_calls > 100)
        _exit(1); /* a circle */
    second_knows.sa_sigaction(sig, info, context);
}

static void install(void (*fn)(int, siginfo_t *, void *), int flags, struct sigaction *knows)
{
    struct sigaction act = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&act.sa_mask);
    sigaddset(&act.sa_mask, SIGUSR2);
    ck_assert_int_eq(sigaction(SIGSEGV, &act, knows), 0);
}

/* The program's own fault. */
static void own_fault(void)
{
    if (sigsetjmp(out, 1) == 0)
        *(volatile uint8_t *)hole = 1;
}

#if defined(__x86_64__)
/* An earlier handler gets the program's signals, as the kernel would have called it: with its mask,
 * and on the stack that it requests. */
START_TEST(mr_12_handler_before)
{
    const stack_t own = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};
    bool alternate = _i & 1;
    start();
    ck_assert_int_eq(sigaltstack(&own, NULL), 0);
    install(first, alternate ? SA_ONSTACK : 0, NULL);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    for (unsigned i = 1; i < 4; i++) {
        ck_assert(guarded());
        own_fault();
        ck_assert_uint_eq(first_calls, i);
        ck_assert(told_well && blocked_usr2);
        ck_assert(on_own_stack == alternate);
    }
}
END_TEST

/* A handler that is installed later, and knows ours as its predecessor, is put after ours. A signal
 * that it passes on reaches the first handler once, not in a circle. It may also be removed again.
 */
START_TEST(mr_12_handler_after)
{
    start();
    install(first, 0, NULL);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    for (unsigned i = 1; i < 4; i++) {
        install(second, 0, &second_knows);
        ck_assert(guarded()); /* by way of the second one */
        ck_assert_uint_eq(second_calls, 1);
        ck_assert_int_eq(guard_signal_on_top(), 0);
        ck_assert(guarded());
        ck_assert_uint_eq(second_calls, 1);
        own_fault();
        ck_assert_uint_eq(second_calls, 2);
        ck_assert_uint_eq(first_calls, 2 * i - 1);
        ck_assert_int_eq(sigaction(SIGSEGV, &second_knows, NULL), 0);
        ck_assert_int_eq(guard_signal_on_top(), 0);
        ck_assert(guarded());
        own_fault();
        ck_assert_uint_eq(second_calls, 2);
        ck_assert_uint_eq(first_calls, 2 * i);
        second_calls = 0;
    }
}
END_TEST

/* In the place of sigaction: ours is in front at every moment, and the program sees its own. */
START_TEST(mr_12_in_the_place_of_sigaction)
{
    struct sigaction act = {.sa_sigaction = first, .sa_flags = SA_SIGINFO}, old, is;
    start();
    sigemptyset(&act.sa_mask);
    sigaddset(&act.sa_mask, SIGUSR2);
    ck_assert_int_eq(guard_signal_on_top(), 0);
    ck_assert_int_eq(guard_signal_action(SIGSEGV, NULL, &is), 0);
    for (unsigned i = 1; i < 4; i++) {
        ck_assert_int_eq(guard_signal_action(SIGSEGV, &act, &old), 0);
        ck_assert(old.sa_sigaction == is.sa_sigaction);
        ck_assert(guarded()); /* at once */
        ck_assert_uint_eq(first_calls, i - 1);
        own_fault();
        ck_assert_uint_eq(first_calls, i);
        ck_assert(told_well && blocked_usr2);
        ck_assert_int_eq(guard_signal_action(SIGSEGV, &old, &old), 0);
        ck_assert(old.sa_sigaction == first);
        ck_assert(guarded());
    }
    /* SA_RESETHAND: after its turn it is as if there were none. */
    act.sa_flags |= (int)SA_RESETHAND;
    ck_assert_int_eq(guard_signal_action(SIGSEGV, &act, NULL), 0);
    own_fault();
    ck_assert_int_eq(guard_signal_action(SIGSEGV, NULL, &old), 0);
    ck_assert(old.sa_handler == SIG_DFL);
    ck_assert(guarded());
    /* Other signals are libc's. */
    ck_assert_int_eq(guard_signal_action(SIGUSR1, NULL, &old), 0);
}
END_TEST

/* The number of different handlers is limited. After that the handler in front stays there. */
START_TEST(mr_12_too_many_handlers)
{
    struct sigaction act = {.sa_sigaction = first, .sa_flags = SA_SIGINFO}, is;
    unsigned taken = 0;
    int rc = guard_signal_on_top();
    for (unsigned i = 1; rc == 0 && i < 100; i++) {
        sigemptyset(&act.sa_mask);
        for (int bit = 0; bit < 8; bit++) {
            if (i >> bit & 1)
                sigaddset(&act.sa_mask, 10 + bit);
        }
        ck_assert_int_eq(sigaction(SIGSEGV, &act, NULL), 0);
        rc = guard_signal_on_top();
        taken += rc == 0;
    }
    ck_assert_uint_eq(taken, GUARD_SIGNAL_ENTRIES - 1); /* one was there at the beginning */
    ck_assert_int_eq(rc, -ENOSPC);
    sigaction(SIGSEGV, NULL, &is);
    ck_assert(is.sa_sigaction == first);
}
END_TEST
#endif

/* ---- how a process ends ---- */

static void touch_hole(void)
{
    *(volatile uint8_t *)hole = 1;
}

static void touch_end_of_file(void)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    volatile uint8_t *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    (void)*at;
}

static void send_segv(void)
{
    kill(getpid(), SIGSEGV);
    pause();
}

static void send_bus(void)
{
    raise(SIGBUS);
}

static void ignore_and_touch(void)
{
    signal(SIGSEGV, SIG_IGN);
    guard_signal_on_top();
    kill(getpid(), SIGSEGV); /* ignored, as the program wants it */
    if (guard_copy(got, hole, 1) == -EFAULT)
        touch_hole();
}

/* It has its turn, and the next fault is the end. */
static void once(int sig)
{
    (void)sig;
    first_calls++;
}

static void once_and_touch(void)
{
    struct sigaction act = {.sa_handler = once, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&act.sa_mask);
    sigaction(SIGSEGV, &act, NULL);
    guard_signal_on_top();
    if (guard_copy(got, hole, 1) == -EFAULT)
        touch_hole();
}

static const struct {
    void (*act)(void);
    int sig;
} endings[] = {
    {touch_hole, SIGSEGV}, {touch_end_of_file, SIGBUS}, {send_segv, SIGSEGV},
    {send_bus, SIGBUS},    {ignore_and_touch, SIGSEGV}, {once_and_touch, SIGSEGV},
};

/* A fault that ends a process without our handler also ends it with the handler, by the same
 * signal. */
START_TEST(mr_12_default)
{
    int status = 0;
    start();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own */
        signal(SIGBUS, SIG_DFL);
        alarm(10);
        guard_signal_on_top();
        endings[_i].act();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == endings[_i].sig, "%d: status %x", _i,
                  (unsigned)status);
}
END_TEST

/* A thread that blocks these signals opens them for its copies, and they are blocked again. */
START_TEST(mr_12_blocked)
{
    sigset_t both, is;
    start();
    ck_assert_int_eq(guard_signal_on_top(), 0);
    sigemptyset(&both);
    ck_assert_uint_eq(guard_signal_open(), 0);
    for (unsigned i = 1; i < 4; i++) {
        if (i & 1)
            sigaddset(&both, SIGSEGV);
        if (i & 2)
            sigaddset(&both, SIGBUS);
        sigaddset(&both, SIGUSR1);
        pthread_sigmask(SIG_SETMASK, &both, NULL);
        unsigned were = guard_signal_open();
        ck_assert(guarded());
        guard_signal_close(were);
        pthread_sigmask(SIG_BLOCK, NULL, &is);
        for (int sig = 1; sig < 32; sig++)
            ck_assert_int_eq(sigismember(&is, sig), sigismember(&both, sig));
        sigemptyset(&both);
    }
}
END_TEST

static void add(Suite *s, const TTest *test, int n)
{
    TCase *tc = tcase_create(test->name);
    tcase_add_loop_test(tc, test, 0, n);
    suite_add_tcase(s, tc);
}

int main(void)
{
    Suite *s = suite_create("guard");
    setenv("CK_DEFAULT_TIMEOUT", "60", 0);
#if defined(__x86_64__)
    add(s, mr_12_copy, 1);
    add(s, mr_12_call, 1);
#ifndef __SANITIZE_THREAD__
    add(s, mr_12_nested_call, 1);
#endif
    add(s, mr_12_frames_of_a_parent, 1);
    add(s, mr_12_crc, 1);
    add(s, atm_05_atomics, 1);
    add(s, mr_12_handler_before, 2);
    add(s, mr_12_handler_after, 1);
    add(s, mr_12_in_the_place_of_sigaction, 1);
    add(s, mr_12_too_many_handlers, 1);
    add(s, mr_12_blocked, 1);
#endif
    add(s, mr_12_default, (int)(sizeof(endings) / sizeof(endings[0])));
    return unit_run(s);
}
