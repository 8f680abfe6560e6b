/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How clients learn that the daemon is gone, without a system call: a word in memory that they can
 * read is a robust futex, which the kernel marks when the thread that holds it ends, for whatever
 * reason.
 */
#ifndef NIC_LIFE_H
#define NIC_LIFE_H

#include <linux/futex.h>

#include "ipc.h"

struct life {
    struct robust_list_head head;
    struct robust_list entry;
};

/* The calling thread holds *shared from now on, and never gives it up. *l is the kernel's until the
 * thread has ended. Where the kernel knows no robust futexes, clients find out as they do of an
 * older daemon. */
void life_begin(struct life *l, struct ipc_life *shared);

#endif
