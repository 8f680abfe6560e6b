/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of liburnic-engine.so for liburnic.
 */
#include "guard_signal.h"
#include "ipc_engine.h"
#include "program.h"

extern const struct ipc_engine urnic_engine;

__attribute__((visibility("default"))) const struct ipc_engine urnic_engine = {
    .abi = IPC_ENGINE_ABI,
    .version = URNIC_VERSION,
    .open = program_open,
    .open_channel = program_open_channel,
    .grow = program_grow,
    .numbers = program_numbers,
    .call = program_call,
    .map = program_map,
    .poll = program_poll,
    .posted = program_posted,
    .waits = program_waits,
    .needs_polls = program_needs_polls,
    .hang_up = program_hang_up,
    .close = program_close,
    .sigaction_next = guard_signal_next,
    .sigaction = guard_signal_action,
};
