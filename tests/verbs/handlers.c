/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handlers: a program with handlers of its own for SIGSEGV. Each function of libc that installs one
 * says which was there before. The handler gets the program's own faults, on the stack that it asks
 * for; a request for memory that is gone fails, and the handler gets no signal. */
#include <setjmp.h>
#include <signal.h>

#include "vt.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define PAGE 4096

static sigjmp_buf out;
static volatile int calls, on_stack;
static char own_stack[1 << 16];

static void handler(int sig)
{
    const char *at = __builtin_frame_address(0); /* NOLINT(bugprone-signal-handler): no function */
    (void)sig;
    calls++;
    on_stack = at >= own_stack && at < own_stack + sizeof(own_stack);
    siglongjmp(out, 1);
}

static void by_sigaction(int flags)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&act.sa_mask);
    OK0(sigaction(SIGSEGV, &act, NULL));
}

enum { BEFORE, ACTION, STACK, SIGNAL, SYSV, SET, WAYS };
static const char *const names[WAYS] = {"sigaction before the device",
                                        "sigaction",
                                        "an alternate stack",
                                        "signal",
                                        "sysv_signal",
                                        "sigset"};

static void install(int way)
{
    const stack_t own = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};
    if (way == ACTION)
        by_sigaction(0);
    if (way == STACK) {
        OK0(sigaltstack(&own, NULL));
        by_sigaction(SA_ONSTACK);
    }
    if (way == SIGNAL)
        WANT(signal(SIGSEGV, handler) == SIG_DFL, "signal: not SIG_DFL before");
    if (way == SYSV)
        WANT(sysv_signal(SIGSEGV, handler) == SIG_DFL, "sysv_signal: not SIG_DFL before");
    if (way == SET)
        WANT(sigset(SIGSEGV, handler) == SIG_DFL, "sigset: not SIG_DFL before");
}

/* The peer's WRITE meets unmapped memory. */
static void request(const char *name)
{
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    vt_pair(&a, &b, &c);
    char *gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WANT(gone != MAP_FAILED, "mmap: errno %d", errno);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, gone, PAGE, VT_ACCESS);
    WANT(mr, "ibv_reg_mr: errno %d", errno);
    OK0(munmap(gone, PAGE));
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 1, a.buf, 64, IBV_SEND_SIGNALED, (uintptr_t)gone, mr->rkey,
                0));
    vt_want(a.scq, name, 1, IBV_WC_REM_ACCESS_ERR, -1);
    OK0(ibv_dereg_mr(mr));
    OK0(ibv_destroy_qp(a.qp));
    OK0(ibv_destroy_qp(b.qp));
}

int main(int argc, char **argv)
{
    volatile char *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction is;
    vt_args(argc, argv, "handlers", vt_adev, vt_agid, vt_aip);
    by_sigaction(0);
    vt_open_devices(vt_adev, vt_agid, vt_aip);
    for (volatile int way = 0; way < WAYS; way++) {
        install(way);
        OK0(sigaction(SIGSEGV, NULL, &is));
        WANT(is.sa_handler == handler, "%s: sigaction tells of another handler", names[way]);
        calls = 0;
        request(names[way]);
        WANT(calls == 0, "%s: the handler got a request's fault", names[way]);
        if (sigsetjmp(out, 1) == 0)
            *hole = 1;
        WANT(calls == 1, "%s: %d calls for a fault of the program", names[way], calls);
        WANT(on_stack == (way == STACK), "%s: on the wrong stack", names[way]);
        WANT(signal(SIGSEGV, SIG_DFL) == (way == SYSV ? SIG_DFL : handler),
             "%s: signal tells of another handler", names[way]);
    }
    vt_pass(NULL);
}
