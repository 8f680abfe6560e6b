/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers of SIGSEGV and SIGBUS. With an engine in the program, the engine's handler stays in
 * front of the program's. Otherwise a handler that the program installs would get, until the engine
 * notices it, the faults of requests for memory that is gone. All functions of libc that install
 * handlers are here, because libc does not call its own sigaction by name.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "interpose.h"
#include "urnic/urnic.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs may call them */

typedef void handler_fn(int sig);

/* Not declared under _GNU_SOURCE. NOLINTBEGIN(bugprone-reserved-identifier): names of libc */
handler_fn *bsd_signal(int sig, handler_fn *handler);
int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
/* NOLINTEND(bugprone-reserved-identifier) */

__attribute__((constructor)) static void begin(void)
{
    urnic_sigaction_next(NEXT(sigaction));
}

static bool ours(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS;
}

static int act_on(int sig, const struct sigaction *act, struct sigaction *old)
{
    int result;
    return ours(sig) && urnic_sigaction(sig, act, old, &result) ? result
                                                                : NEXT(sigaction)(sig, act, old);
}

INTERPOSED int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    return act_on(sig, act, old);
}

INTERPOSED int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    return act_on(sig, act, old);
}

/* signal() and its kind, for these two signals. */
static handler_fn *set(int sig, handler_fn *handler, int flags, bool blocks)
{
    struct sigaction old, act = {.sa_handler = handler, .sa_flags = flags};
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&act.sa_mask);
    if (blocks)
        sigaddset(&act.sa_mask, sig);
    return act_on(sig, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

INTERPOSED handler_fn *signal(int sig, handler_fn *handler)
{
    return ours(sig) ? set(sig, handler, SA_RESTART, true) : NEXT(signal)(sig, handler);
}

INTERPOSED handler_fn *bsd_signal(int sig, handler_fn *handler)
{
    return ours(sig) ? set(sig, handler, SA_RESTART, true) : NEXT(bsd_signal)(sig, handler);
}

INTERPOSED handler_fn *ssignal(int sig, handler_fn *handler)
{
    return ours(sig) ? set(sig, handler, SA_RESTART, true) : NEXT(ssignal)(sig, handler);
}

#define ONCE ((int)(SA_RESETHAND | SA_NODEFER))

INTERPOSED handler_fn *sysv_signal(int sig, handler_fn *handler)
{
    return ours(sig) ? set(sig, handler, ONCE, false) : NEXT(sysv_signal)(sig, handler);
}

INTERPOSED handler_fn *__sysv_signal(int sig, handler_fn *handler)
{
    return ours(sig) ? set(sig, handler, ONCE, false) : NEXT(__sysv_signal)(sig, handler);
}

INTERPOSED int sigignore(int sig)
{
    if (!ours(sig))
        return NEXT(sigignore)(sig);
    return set(sig, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

/* The handler before, or SIG_HOLD if the signal was held. */
INTERPOSED handler_fn *sigset(int sig, handler_fn *handler)
{
    sigset_t one, before;
    if (!ours(sig))
        return NEXT(sigset)(sig, handler);
    sigemptyset(&one);
    sigaddset(&one, sig);
    if (handler == SIG_HOLD) {
        struct sigaction is;
        if (pthread_sigmask(SIG_BLOCK, &one, &before) != 0 || act_on(sig, NULL, &is) < 0)
            return SIG_ERR;
        return sigismember(&before, sig) ? SIG_HOLD : is.sa_handler;
    }
    handler_fn *was = set(sig, handler, 0, false);
    if (was == SIG_ERR || pthread_sigmask(SIG_UNBLOCK, &one, &before) != 0)
        return SIG_ERR;
    return sigismember(&before, sig) ? SIG_HOLD : was;
}
