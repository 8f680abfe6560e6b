/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A NIC inside a program, which is its only client: one device on a port of the program's own, one
 * worker, and requests that are calls. liburnic reaches it by struct ipc_engine (engine.c).
 *
 * The port may also be a channel of a daemon (program_channel.h), which then has the neighbours and
 * the connections.
 *
 * Threads: one per port, "worker-0", unless progress=poll; it blocks all signals except those that
 * its own instructions cause. Unless progress=thread, threads of the program that post and poll run
 * the worker's rounds (worker_poll), and that thread does when none polls. Requests run on the
 * thread that makes them, one at a time.
 */
#ifndef NIC_PROGRAM_H
#define NIC_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ipc_engine_channel;
struct program;

/* As the functions of struct ipc_engine say. */
int program_open(const char *spec, struct program **out, char *why);
int program_open_channel(const struct ipc_engine_channel *ch, struct program **out, char *why);
int program_grow(struct program *p, uint32_t slots);
void program_numbers(struct program *p);
ssize_t program_call(struct program *p, const void *req, size_t len, const int *fds, unsigned nfds,
                     void *reply, size_t cap, int *out_fds, unsigned *nout);
void *program_map(int object, size_t len, int prot);
void program_poll(struct program *p);
void program_posted(struct program *p);
void program_waits(struct program *p);
bool program_needs_polls(const struct program *p);
void program_hang_up(struct program *p);
void program_close(struct program *p);

#endif
