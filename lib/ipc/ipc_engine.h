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

#define IPC_ENGINE_ABI    6u
#define IPC_ENGINE_SYMBOL "urnic_engine"
#define IPC_ENGINE_WHY    512u /* octets of a sentence with the reason of a failure */

struct ipc_engine_opened;
struct ipc_engine_socket_given;
struct program;
struct sigaction;

typedef int ipc_sigaction_fn(int sig, const struct sigaction *act, struct sigaction *old);

/* A channel that a daemon has made for this program (ipc_channel.h). Descriptors stay the
 * caller's. */
struct ipc_engine_channel {
    const char *device;  /* the name of the daemon's device */
    const char *options; /* "progress=poll,log-level=info", or "" */
    int memory_fd, event_fd, facts_fd;
    uint32_t slots, frame_max;
    /* The rings are mapped: let the daemon seal them, and get a block of numbers and its key. */
    int (*mapped)(void *arg, uint32_t *block, uint64_t key[2]);
    /* Call it afterwards: the index-th socket of the program's own (ipc_channel.h), and with index
     * 0 *bell, else -1. Both are the caller's. -errno: there is none. With index
     * IPC_ENGINE_NO_SOCKET: the sockets can't be used. */
    int (*socket)(void *arg, uint32_t index, struct ipc_engine_socket_given *out, int *fd,
                  int *bell);
    /* Also later: larger rings of this many slots each way; `mapped` follows. *fd is the caller's.
     */
    int (*grow)(void *arg, uint32_t slots, struct ipc_engine_opened *out, int *fd);
    /* Also later: one more block of numbers. */
    int (*block)(void *arg, uint32_t *block, uint64_t key[2]);
    void *arg; /* of all these; outlives the program */
};

struct ipc_engine {
    uint32_t abi;
    const char *version;
    /* Open a port: spec as urnic_open_port has it. 0, or -errno and a sentence in
     * why[IPC_ENGINE_WHY]. */
    int (*open)(const char *spec, struct program **out, char *why);
    /* The same on a channel of a daemon. Connections, addresses and neighbours are the daemon's:
     * `call` is not for requests about them, and a queue pair is moved with its peer's MAC. */
    int (*open_channel)(const struct ipc_engine_channel *ch, struct program **out, char *why);
    /* Give the channel this many slots each way, and its queue pairs larger windows. 0; -ENOTSUP:
     * its frames don't go over a channel; -ENODEV: the channel can't go on; or -errno of `grow` and
     * `mapped`. Any thread. */
    int (*grow)(struct program *p, uint32_t slots);
    /* After a queue pair was created: get more numbers if the next ones have rested too short a
     * time. Where that fails they are used all the same. Any thread. */
    void (*numbers)(struct program *p);
    /* A request of the control protocol, which is a call: as client_conn_raw. Any thread; several
     * at the same time. Descriptors in `fds` stay the caller's; those in out_fds become its.
     * Stand-ins (ipc_map.h) among these stay the engine's, and only `map` maps them. */
    ssize_t (*call)(struct program *p, const void *req, size_t len, const int *fds, unsigned nfds,
                    void *reply, size_t cap, int *out_fds, unsigned *nout);
    /* Map the first `len` octets of an object that came with an answer: ipc_map. */
    void *(*map)(int object, size_t len, int prot);
    /* The program polls and finds nothing: do a round, unless another thread is in one or polling
     * threads don't do rounds. Any thread; also in a signal handler, if its thread is in none of
     * these functions. Passes no cancellation point. */
    void (*poll)(struct program *p);
    /* A doorbell was rung: make sure that it is read. Otherwise as `poll`. */
    void (*posted)(struct program *p);
    /* The program has armed a completion queue, and will likely wait for the event: a thread makes
     * progress from now on. Otherwise as `poll`. */
    void (*waits)(struct program *p);
    /* Is all progress made by calls of `poll`? Then a waiting thread must call it. */
    bool (*needs_polls)(const struct program *p);
    /* End all its objects for its peers; only `close` follows. */
    void (*hang_up)(struct program *p);
    /* guard_signal_next and guard_signal_action of lib/guard: for a library that defines
     * sigaction in front of libc's. */
    void (*sigaction_next)(ipc_sigaction_fn *fn);
    ipc_sigaction_fn *sigaction;
    /* Free all, and close the port. No other call is under way. */
    void (*close)(struct program *p);
};

#endif
