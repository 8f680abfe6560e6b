/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handlers of SIGSEGV and SIGBUS in a process with an engine, for a library that defines sigaction
 * in front of libc's.
 */
#include "client_engine.h"

static _Atomic(ipc_sigaction_fn *) next;
static const struct ipc_engine *_Atomic engine; /* NULL = none is loaded */

void client_signal_engine(const struct ipc_engine *e)
{
    ipc_sigaction_fn *fn = atomic_load_explicit(&next, memory_order_acquire);
    if (fn == NULL)
        return;
    e->sigaction_next(fn);
    atomic_store_explicit(&engine, e, memory_order_release);
}

void urnic_sigaction_next(int (*fn)(int, const struct sigaction *, struct sigaction *))
{
    atomic_store_explicit(&next, fn, memory_order_release);
}

bool urnic_sigaction(int sig, const struct sigaction *act, struct sigaction *old, int *result)
{
    const struct ipc_engine *e = atomic_load_explicit(&engine, memory_order_acquire);
    if (e == NULL)
        return false;
    *result = e->sigaction(sig, act, old);
    return true;
}
