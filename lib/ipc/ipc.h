/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contract between the daemon and an application, in two halves:
 *
 *     ipc_msg.h    the control protocol: messages on a unix socket; those of devices, memory and
 *                  queues in ipc_verbs.h, of the connection manager in ipc_cm.h, of tools in
 *                  ipc_admin.h
 *     ipc_ring.h   the data path: queues in shared memory, doorbells, wake-ups
 *
 * One connection is one context: it lists devices without opening any, or opens exactly one device,
 * and everything created through it belongs to that context, lives on one worker and dies with the
 * connection. Handles are numbers of one connection; 0 is never a handle.
 *
 * The daemon trusts nothing that an application can write; an application trusts its daemon.
 * Rules: SHM-01 .. SHM-09, CQ-05, CQ-06, EVT-03, EVT-04.
 */
#ifndef URNIC_IPC_H
#define URNIC_IPC_H

#include "ipc_admin.h"
#include "ipc_channel.h"
#include "ipc_cm.h"
#include "ipc_msg.h"
#include "ipc_ring.h"
#include "ipc_verbs.h"

#endif
