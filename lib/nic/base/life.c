/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of one entry replaces the C library's list of robust mutexes: the daemon has none.
 */
#include "life.h"

#include <sys/syscall.h>
#include <unistd.h>

void life_begin(struct life *l, struct ipc_life *shared)
{
    l->head.list.next = &l->entry;
    l->head.futex_offset = (long)((uintptr_t)&shared->holder - (uintptr_t)&l->entry);
    l->head.list_op_pending = NULL;
    l->entry.next = &l->head.list;
    if (syscall(SYS_set_robust_list, &l->head, sizeof(l->head)) == 0)
        atomic_store_explicit(&shared->holder, (uint32_t)syscall(SYS_gettid), memory_order_release);
}
