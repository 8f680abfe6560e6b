/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine=application: the engine runs in the program, on a channel of the daemon. Memory, queues
 * and queue pairs are the engine's; the daemon has devices, addresses, neighbours and connections.
 * liburnic moves the queue pair of a connection (client_cm_move.h).
 */
#ifndef URNIC_CLIENT_ENGINE_H
#define URNIC_CLIENT_ENGINE_H

#include "client.h"

/* The engine library, loaded if it isn't yet. 0, or -ENOSYS or -EPROTONOSUPPORT and a sentence in
 * why[size]. Any thread. */
int client_engine_load(const struct ipc_engine **out, char *why, size_t size);

/* The engine library is loaded: urnic_sigaction calls it from now on, if a library has called
 * urnic_sigaction_next. */
void client_signal_engine(const struct ipc_engine *e);

/* Shall the engine run in the program, as the caller says, or else the user (by
 * URNIC_ENGINE=application[,progress=...])? Returns its options, "" = none; NULL = no. *err:
 * -EINVAL for a word other than application and daemon. A set-uid program ignores the environment.
 */
const char *client_engine_wanted(enum client_place place, int *err);

/* Start the engine in this program. conn is open, and has a context on the device of this name.
 * Requests then go to the engine or to the daemon by their type. 0 or -errno: nothing has changed.
 */
int client_engine_open(struct client_conn *c, const char *device, const char *options);

/* Does the engine run here, and the daemon have the connections? */
static inline bool client_has_channel(const struct client_conn *c)
{
    return c->engine != NULL && c->sock >= 0;
}

/* On such a connection: is a request of this type for the engine? */
static inline bool client_engine_serves(unsigned type)
{
    return (type >= IPC_PD_ALLOC && type <= IPC_MR_REREG) ||
           (type >= IPC_CHANNEL_CREATE && type <= IPC_SRQ_RESIZE && type != IPC_AV_RESOLVE);
}

/* The context has `ready` queue pairs that were moved to RTR: let its channel grow with them. Where
 * that fails, the channel stays as it is. Any thread. */
void client_engine_grow(struct urnic_context *ctx, uint32_t ready);

/* The context's engine runs in this process: its queue pairs are found by client_engine_qp_type,
 * also by connections of other contexts. librdmacm has a context of its own. Any thread. */
void client_engine_join(struct urnic_context *ctx);
/* Before the context is freed; nothing to do for one that has not joined. Any thread. */
void client_engine_leave(struct urnic_context *ctx);
/* The type of a queue pair that an engine of this process has, by its number; 0 = none has it. Any
 * thread that holds no context's lock. */
unsigned client_engine_qp_type(uint32_t qpn);

#endif
