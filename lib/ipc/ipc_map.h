/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared memory: making it, and mapping it so that the kernel can use pages of 2 MiB, in the daemon
 * and in applications. A worker that walks through 16 MiB in pages of 4 KiB looks up an address for
 * each packet.
 */
#ifndef URNIC_IPC_MAP_H
#define URNIC_IPC_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define IPC_HUGE ((size_t)2 << 20) /* octets of a huge page */

/* Make a shared object, all zero, which can be sealed. The limit on the size of files (ulimit -f)
 * counts for it, and the kernel kills a process that goes beyond it, so this function looks first.
 * A process that has called ipc_object_stand_ins then gets a stand-in, a number below -4095, which
 * ipc_map takes like a descriptor, but only in the same copy of this code. Stand-ins have no seals.
 *
 * name  for /proc
 * len   octets
 *
 * Returns the descriptor, close-on-exec, or the stand-in: the caller's, for ipc_object_close; or
 * -errno, -EFBIG for that limit. Any thread.
 */
int ipc_object_new(const char *name, size_t len);
/* Close it. Mappings stay. Any thread. */
void ipc_object_close(int object);
/* Permit stand-ins in this process, from now on: only this process maps its objects. */
void ipc_object_stand_ins(void);
static inline bool ipc_object_is_stand_in(int object)
{
    return object < -4095;
}

/* Map [off, off+len) of a shared object: mmap with MAP_SHARED, but a mapping of IPC_HUGE octets or
 * more begins at an address that suits huge pages.
 *
 * fd    the object; stays the caller's
 * off   offset in the object, a multiple of its page size; 0 in a stand-in
 * len   octets
 * prot  PROT_*
 *
 * Returns the address, the caller's to munmap, or MAP_FAILED with errno as mmap sets it. Any thread
 * may call.
 */
void *ipc_map(int fd, off_t off, size_t len, int prot);

/* Get huge pages for [at, at+len), as far as there are any: the rest keeps pages of 4 KiB. The
 * contents stay. This works from Linux 6.1 on, without privileges, even if the kernel itself gives
 * shared memory no huge pages (shmem_enabled "never"). It takes at least a millisecond per 2 MiB.
 *
 * at   from ipc_map
 * len  octets
 *
 * Returns the number of octets with huge pages. Any thread may call.
 */
size_t ipc_map_huge(void *at, size_t len);

#endif
