/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between liburnic, which links libc only, and liburnic-engine.so, which it loads when a program
 * opens a port of its own. The engine library exports one symbol, IPC_ENGINE_SYMBOL, a struct
 * ipc_engine. Both are built together: `abi` and `version` must be equal.
 */
#ifndef URNIC_IPC_ENGINE_H
#define URNIC_IPC_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IPC_ENGINE_ABI    2u
#define IPC_ENGINE_SYMBOL "urnic_engine"
#define IPC_ENGINE_WHY    512u /* octets of a sentence that says why not */

struct program;

struct ipc_engine {
    uint32_t abi;
    const char *version;
    /* Open a port: spec as urnic_open_port has it. 0, or -errno and a sentence in
     * why[IPC_ENGINE_WHY]. */
    int (*open)(const char *spec, struct program **out, char *why);
    /* A request of the control protocol, which is a call: as client_conn_raw. Any thread; several
     * at the same time. Descriptors in `fds` stay the caller's; those in out_fds become its. */
    ssize_t (*call)(struct program *p, const void *req, size_t len, const int *fds, unsigned nfds,
                    void *reply, size_t cap, int *out_fds, unsigned *nout);
    /* The program polls and finds nothing: do a round, unless another thread is in one or it is not
     * for those that poll to do it. Any thread; also in a signal handler, if its thread is in none
     * of these functions. Passes no cancellation point. */
    void (*poll)(struct program *p);
    /* A doorbell was rung: see to it that it is heard. Likewise. */
    void (*posted)(struct program *p);
    /* Is all progress made by calls of `poll`? Then who waits must call it. */
    bool (*needs_polls)(const struct program *p);
    /* Its peers see all of its objects gone; no call follows but close. */
    void (*hang_up)(struct program *p);
    /* End all, and close the port. No other call is under way. */
    void (*close)(struct program *p);
};

#endif
