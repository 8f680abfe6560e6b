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
 * - Errors: functions that can fail return 0 or -errno. A failed call has changed nothing, unless
 *   the function says otherwise.
 *   -ENODEV: there is no daemon, it has gone away, or it has not answered a request for a minute.
 *   That is final for a context: close it and open another one.
 *   -EDQUOT: the context has used up its share of objects (urnic_query_device), or its user has
 *   (urnicd(8), SECURITY). -ENOMEM with a share left: other contexts have used up the device.
 *   -EMFILE: the process or the daemon has no descriptor left.
 *
 * - Contexts: objects of different contexts don't go together; a call with both returns -EINVAL.
 *   Memory that another context allocated counts as any other memory of the program.
 *
 * - Threads: every function may be called from any thread at any time, with two exceptions. No
 *   thread may use an object while, or after, another thread destroys it. Only one thread at a time
 *   may call urnic_get_cm_event for a channel. No function is async-signal-safe. urnic_create_ah,
 *   urnic_modify_qp to RTR and urnic_accept may wait up to 3 s for a neighbour's answer; other
 *   threads' calls go on meanwhile.
 *
 * - Event loops: urnic_async_fd, urnic_channel_fd and urnic_cm_channel_fd are for poll(). Once poll
 *   has called a descriptor readable, the call that reads it (urnic_get_async_event,
 *   urnic_get_cq_event, urnic_get_cm_event) does not block, even on a blocking descriptor. It may
 *   return -EAGAIN: the event's object has been destroyed since, for example by another event's
 *   handler. That is no error: go on polling. A program that never asks for the descriptor gets no
 *   such -EAGAIN. Let only one thread read a polled descriptor; otherwise one thread may take the
 *   event for which another was woken. doc/examples/event_loop.c is an example.
 *
 * - Fork: a child must not use its parent's objects. Control calls (also urnic_close) and calls
 *   that get events return -EPERM there; a child that posts, polls or arms gets SIGSEGV. Memory
 *   from urnic_alloc stays shared with the child, as any MAP_SHARED mapping. All descriptors are
 *   close-on-exec. A child may open its own context.
 *
 * - Closed descriptors: a program that closes descriptors of the library (closefrom) loses the
 *   context: calls return -ENODEV soon. Files that have got the numbers since are left alone.
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
