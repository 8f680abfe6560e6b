/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each entry is a function of its own, so that it knows its predecessor without reading data that
 * other threads may change. The predecessor of an entry that was once in front never changes.
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
static _Atomic pid_t holder; /* process with a thread in guard_signal_on_top */

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
    sigaction(sig, &act, NULL);
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

static bool is_ours(const struct sigaction *act)
{
    for (unsigned i = 0; (act->sa_flags & SA_SIGINFO) && i < GUARD_SIGNAL_ENTRIES; i++) {
        if (act->sa_sigaction == entries[i])
            return true;
    }
    return false;
}

/* The part of libc's sigset_t that the kernel fills. */
#define MASK_SIZE (_NSIG / 8)

static bool same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags &&
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

/* The program may install another handler at the same moment; that handler is then the predecessor.
 */
static int in_front(unsigned which)
{
    struct sigaction is, was, ours;
    sigaction(numbers[which], NULL, &is);
    while (!is_ours(&is)) {
        int entry = entry_for(which, &is);
        if (entry < 0)
            return entry;
        /* SA_RESETHAND: the handler is installed anew. */
        atomic_store_explicit(&before[which][entry].reset, false, memory_order_relaxed);
        ours = as_before(&is, (unsigned)entry);
        sigaction(numbers[which], &ours, &was);
        if (same(&was, &is))
            return 0;
        is = was;
    }
    return 0;
}

/* A child that was forked while a thread of its parent was here does not wait for that thread. */
static void take(void)
{
    pid_t own = getpid(), is = 0;
    while (!atomic_compare_exchange_strong_explicit(&holder, &is, own, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if (is == own) {
            sched_yield();
            is = 0;
        }
    }
}

int guard_signal_on_top(void)
{
    int rc = 0;
    take();
    for (unsigned i = 0; i < SIGNALS; i++) {
        int err = in_front(i);
        rc = err < 0 ? err : rc;
    }
    atomic_store_explicit(&holder, 0, memory_order_release);
    return rc;
}
