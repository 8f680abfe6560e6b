/* SPDX-License-Identifier: BSD-3-Clause
 *
 * liburnic: RDMA queue pairs from the urnicd daemon, over shared memory.
 *
 *     urnic/types.h   numbers and structs: work requests, completions, attributes
 *     urnic/verbs.h   devices, memory, queues, posting and polling
 *     urnic/cm.h      connecting queue pairs by IP address
 *
 * Conventions
 *
 * - Errors: functions that can fail return 0 or -errno; on failure they have changed nothing unless
 *   the function says otherwise. -ENODEV: no daemon, or it has gone away, or has left a request
 *   without an answer for a minute; that is final for a context: close it and open another one.
 *   -EDQUOT: a context's share of objects is used up, which urnic_query_device tells, or that of
 *   its user's contexts together (urnicd(8), SECURITY); -ENOMEM before that: other contexts have
 *   used up the device. -EMFILE: the process, or the daemon, has no descriptor left.
 *
 * - Contexts: objects of different contexts don't go together. A call that is given some of both
 *   returns -EINVAL; memory of another context is "memory from elsewhere".
 *
 * - Threads: every function may be called from any thread at any time, with two exceptions: nobody
 *   may use an object while or after another thread destroys it, and urnic_get_cm_event is for one
 *   thread at a time per channel. No function is async-signal-safe. What waits for an answer from
 *   the network, urnic_create_ah, urnic_modify_qp to RTR and urnic_accept for a neighbour's for up
 *   to 3 s, delays no other thread's call.
 *
 * - Event loops: urnic_async_fd, urnic_channel_fd and urnic_cm_channel_fd are for poll(). After
 * poll has called one readable, the call that reads it (urnic_get_async_event, urnic_get_cq_event,
 *   urnic_get_cm_event) does not block, whether the descriptor does or not. It may return -EAGAIN
 *   all the same: the event was about an object that has been destroyed since, by the handler of
 *   another event perhaps. That is no error: go on polling. A program that never asks for the
 *   descriptor gets no such -EAGAIN. One thread should read a descriptor that is polled: of two,
 *   each may take the event that the other one was told of. doc/examples/event_loop.c shows it.
 *
 * - Fork: a child must not use its parent's objects: control calls, urnic_close among them, and
 *   those that get events give -EPERM; a child that posts, polls or arms dies of SIGSEGV. Memory
 *   from urnic_alloc stays shared with the child, as any MAP_SHARED mapping. All descriptors are
 *   close-on-exec. A child may open a context of its own.
 *
 * - Language: C99 or later, C++11 or later.
 *
 * - Numbers: states, opcodes, status codes, flags and masks are those of libibverbs.
 */
#ifndef URNIC_URNIC_H
#define URNIC_URNIC_H

#include "urnic/cm.h"
#include "urnic/types.h"
#include "urnic/verbs.h"

#endif
