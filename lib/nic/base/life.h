/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Telling clients without a system call that the daemon is gone: a word in memory that they can
 * read is a robust futex. The kernel marks it when the thread that holds it ends, for any reason.
 */
#ifndef NIC_LIFE_H
#define NIC_LIFE_H

#include <linux/futex.h>

#include "ipc.h"

struct life {
    struct robust_list_head head;
    struct robust_list entry;
};

/* The calling thread holds *shared from now on, and never releases it. *l is the kernel's until the
 * thread has ended. If the kernel knows no robust futexes, clients notice the end as they do with
 * an older daemon. */
void life_begin(struct life *l, struct ipc_life *shared);

#endif
