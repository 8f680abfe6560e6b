/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each entry is a function of its own, so that it knows its predecessor without reading data that
 * other threads may change. The predecessor of an entry that was once in front never changes.
 *
 * The table of entries has a lock. Its holder blocks all signals, because a handler of the program
 * may call sigaction, too.
 */
#include "guard_signal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"

#define SIGNALS 2u

typedef void handler_fn(int sig, siginfo_t *info, void *context);

static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};

/* The predecessors, by signal and entry. */
static struct before {
    struct sigaction act;
    _Atomic bool reset; /* SA_RESETHAND: called once already */
} before[SIGNALS][GUARD_SIGNAL_ENTRIES];

static unsigned used[SIGNALS];
static _Atomic pid_t holder; /* of the table's lock: the process of the thread that has it */
static _Atomic(guard_sigaction_fn *) next; /* NULL = libc's, by its name */

static int action(int sig, const struct sigaction *act, struct sigaction *old)
{
    guard_sigaction_fn *fn = atomic_load_explicit(&next, memory_order_relaxed);
    return fn ? fn(sig, act, old) : sigaction(sig, act, old);
}

/* Uses the kernel's own mask of 64 bits, because another library may replace libc's function. */
static uint64_t mask_call(int how, uint64_t set)
{
    uint64_t old = 0;
    syscall(SYS_rt_sigprocmask, how, &set, &old, sizeof(set));
    return old;
}

#define BIT(sig) ((uint64_t)1 << ((sig)-1))
#define BOTH     (BIT(SIGSEGV) | BIT(SIGBUS))

unsigned guard_signal_open(void)
{
    uint64_t old = mask_call(SIG_UNBLOCK, BOTH);
    return (old & BIT(SIGSEGV) ? 1u : 0) | (old & BIT(SIGBUS) ? 2u : 0);
}

void guard_signal_close(unsigned were)
{
    if (were != 0)
        (void)mask_call(SIG_BLOCK, (were & 1 ? BIT(SIGSEGV) : 0) | (were & 2 ? BIT(SIGBUS) : 0));
}

/* ---- the handler ---- */

static bool is_fault(const siginfo_t *info)
{
    return info->si_code > 0; /* from the kernel; a signal that a process sends is not a fault */
}

/* Take the default action. A fault happens again when this returns, and ends the process there. A
 * sent signal is sent again, and delivered when this returns. */
static void by_default(int sig, siginfo_t *info)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    sigemptyset(&act.sa_mask);
    action(sig, &act, NULL);
    if (!is_fault(info))
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info);
}

static void pass_on(struct before *b, int sig, siginfo_t *info, void *context)
{
    const struct sigaction *act = &b->act;
    bool info_too = (act->sa_flags & SA_SIGINFO) != 0;
    bool ignored = !info_too && act->sa_handler == SIG_IGN;
    bool none = ignored || (!info_too && act->sa_handler == SIG_DFL);
    if ((act->sa_flags & (int)SA_RESETHAND) != 0 &&
        atomic_exchange_explicit(&b->reset, true, memory_order_relaxed))
        none = true;
    else if (ignored && !is_fault(info))
        return;
    if (none)
        by_default(sig, info);
    else if (info_too)
        act->sa_sigaction(sig, info, context);
    else
        act->sa_handler(sig);
}

static void entered(unsigned entry, int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    if (!is_fault(info) || !guard_fix(context))
        pass_on(&before[sig == SIGBUS][entry], sig, info, context);
    errno = saved;
}

#define ENTRY(i)                                                                                   \
    static void entry_##i(int sig, siginfo_t *info, void *context)                                 \
    {                                                                                              \
        entered(i, sig, info, context);                                                            \
    }
#define NAME(i) entry_##i,
#define EACH(x)                                                                                    \
    x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16)    \
        x(17) x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31)

EACH(ENTRY)
static handler_fn *const entries[] = {EACH(NAME)};

_Static_assert(sizeof(entries) / sizeof(entries[0]) == GUARD_SIGNAL_ENTRIES, "as the header says");

/* ---- in front ---- */

/* Which of our entries it is; -1 = none. */
static int entry_of(const struct sigaction *act)
{
    for (unsigned i = 0; (act->sa_flags & SA_SIGINFO) && i < GUARD_SIGNAL_ENTRIES; i++) {
        if (act->sa_sigaction == entries[i])
            return (int)i;
    }
    return -1;
}

/* The part of libc's sigset_t that the kernel fills. */
#define MASK_SIZE (_NSIG / 8)
#define RESTORER  0x04000000 /* libc adds it to a program's flags */

static bool same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_handler == b->sa_handler && ((a->sa_flags ^ b->sa_flags) & ~RESTORER) == 0 &&
           memcmp(&a->sa_mask, &b->sa_mask, MASK_SIZE) == 0;
}

/* The entry whose predecessor is *act: an existing one, or a new one. */
static int entry_for(unsigned which, const struct sigaction *act)
{
    for (unsigned i = 0; i < used[which]; i++) {
        if (same(&before[which][i].act, act))
            return (int)i;
    }
    if (used[which] == GUARD_SIGNAL_ENTRIES)
        return -ENOSPC;
    before[which][used[which]].act = *act;
    return (int)used[which]++;
}

/* Be called as the predecessor is called. */
static struct sigaction as_before(const struct sigaction *act, unsigned entry)
{
    struct sigaction ours = *act;
    bool none =
        !(act->sa_flags & SA_SIGINFO) && (act->sa_handler == SIG_DFL || act->sa_handler == SIG_IGN);
    if (none) {
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_ONSTACK | SA_RESTART;
    }
    ours.sa_flags = (ours.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
    ours.sa_sigaction = entries[entry];
    return ours;
}

/* *ours: the action whose predecessor is *act. Its entry, or -ENOSPC. */
static int new_front(unsigned which, const struct sigaction *act, struct sigaction *ours)
{
    int entry = entry_for(which, act);
    if (entry < 0)
        return entry;
    /* SA_RESETHAND: the handler is installed anew. */
    atomic_store_explicit(&before[which][entry].reset, false, memory_order_relaxed);
    *ours = as_before(act, (unsigned)entry);
    return entry;
}

/* The program may install another handler at the same moment; that handler is then the predecessor.
 */
static int in_front(unsigned which)
{
    struct sigaction is, was, ours;
    action(numbers[which], NULL, &is);
    while (entry_of(&is) < 0) {
        int entry = new_front(which, &is, &ours);
        if (entry < 0)
            return entry;
        action(numbers[which], &ours, &was);
        if (same(&was, &is))
            return 0;
        is = was;
    }
    return 0;
}

/* A child that was forked while a thread of its parent was here does not wait for that thread.
 * Returns the signals that were blocked before. */
static uint64_t take(void)
{
    uint64_t were = mask_call(SIG_BLOCK, UINT64_MAX);
    pid_t own = getpid(), is = 0;
    while (!atomic_compare_exchange_strong_explicit(&holder, &is, own, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if (is == own) {
            sched_yield();
            is = 0;
        }
    }
    return were;
}

static void give(uint64_t were)
{
    atomic_store_explicit(&holder, 0, memory_order_release);
    (void)mask_call(SIG_SETMASK, were);
}

int guard_signal_on_top(void)
{
    int rc = 0;
    uint64_t were = take();
    for (unsigned i = 0; i < SIGNALS; i++) {
        int err = in_front(i);
        rc = err < 0 ? err : rc;
    }
    give(were);
    return rc;
}

/* ---- in the place of sigaction ---- */

void guard_signal_next(guard_sigaction_fn *fn)
{
    atomic_store_explicit(&next, fn, memory_order_relaxed);
}

/* The program's action under an entry of ours. */
static struct sigaction programs(unsigned which, unsigned entry)
{
    const struct before *b = &before[which][entry];
    struct sigaction none = {.sa_handler = SIG_DFL};
    return atomic_load_explicit(&b->reset, memory_order_relaxed) ? none : b->act;
}

/* Under the lock. False: no entry of ours is in front, or none is left. */
static bool exchange(unsigned which, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction is, ours;
    if (action(numbers[which], NULL, &is) < 0)
        return false;
    int entry = entry_of(&is);
    if (entry < 0 || (act && new_front(which, act, &ours) < 0))
        return false;
    *old = programs(which, (unsigned)entry);
    if (act)
        (void)action(numbers[which], &ours, NULL);
    return true;
}

int guard_signal_action(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction wanted, was;
    if (sig != SIGSEGV && sig != SIGBUS)
        return action(sig, act, old);
    if (act)
        wanted = *act; /* a bad address faults here, where no signal is blocked */
    uint64_t were = take();
    unsigned which = sig == SIGBUS;
    bool done = exchange(which, act ? &wanted : NULL, &was);
    int rc = done ? 0 : action(sig, act ? &wanted : NULL, &was);
    int entry = done || rc < 0 ? -1 : entry_of(&was);
    if (entry >= 0)
        was = programs(which, (unsigned)entry);
    give(were);
    if (rc == 0 && old)
        *old = was;
    return rc;
}
