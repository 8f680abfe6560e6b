/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handler of SIGSEGV and SIGBUS in a process whose memory guard.h reaches.
 *
 * A fault of a guarded instruction ends at its fix-up. Everything else, also a SIGSEGV that a
 * process has sent, goes on to the handler that was there before, called as the kernel would have
 * called it: on the same stack, with the same mask and flags. Without one, the signal's default
 * action follows: the kernel ends the process at the instruction that has faulted, so a core dump
 * shows that, and no function of ours.
 *
 * If the program installs a handler later, that one is in front of ours and gets guarded faults,
 * too. guard_signal_on_top then puts ours in front again, as a new entry whose predecessor is the
 * program's handler. The program's handler may pass signals on to our old entry. That entry still
 * has its own predecessor, and passes them on to it. So the predecessor of an entry never changes,
 * and a chain of handlers is never a circle.
 */
#ifndef URNIC_GUARD_SIGNAL_H
#define URNIC_GUARD_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* For each signal: the largest number of different handlers that ours can precede. */
#define GUARD_SIGNAL_ENTRIES 32

/* Put our handler in front, for both signals. 0, or -ENOSPC: the program has had too many different
 * handlers, and the handler in front stays there. Any thread; also in a signal handler. Calls
 * only sigaction. */
int guard_signal_on_top(void);

typedef int guard_sigaction_fn(int sig, const struct sigaction *act, struct sigaction *old);
/* For a library that defines sigaction in front of libc's: the next definition, which this unit
 * calls from now on. Before any other function here. */
void guard_signal_next(guard_sigaction_fn *fn);
/* The body of such a library's sigaction. Our handler stays in front where it is, and the program
 * sees its own actions, as if ours were not there. After too many different handlers the program's
 * gets in front. 0, or -1 and errno. Any thread; also in a signal handler. */
int guard_signal_action(int sig, const struct sigaction *act, struct sigaction *old);

/* If a thread blocks a signal and then causes it by a fault, the kernel kills the thread's process,
 * even if there is a handler. So no thread may block these two signals while it uses guard.h.
 * Unblock them for this thread, by one system call. Returns the argument for guard_signal_close, 0
 * if they were not blocked. */
unsigned guard_signal_open(void);
/* Block the signals again that were blocked. */
void guard_signal_close(unsigned were);

#endif
