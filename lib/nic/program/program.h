/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A NIC inside a program, which is its only client: one device on a port of the program's own, one
 * worker, and requests that are calls. liburnic reaches it by struct ipc_engine (engine.c).
 *
 * Threads: one per port, "worker-0", that makes progress; it blocks all signals but those that an
 * instruction of its own causes. Requests run on the thread that makes them, one at a time.
 */
#ifndef NIC_PROGRAM_H
#define NIC_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

struct program;

/* As the functions of struct ipc_engine say. */
int program_open(const char *spec, struct program **out, char *why);
ssize_t program_call(struct program *p, const void *req, size_t len, const int *fds, unsigned nfds,
                     void *reply, size_t cap, int *out_fds, unsigned *nout);
void program_hang_up(struct program *p);
void program_close(struct program *p);

#endif
