/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mapping slabs so that the kernel can use pages of 2 MiB for them, in the daemon and in
 * applications. A worker that walks through 16 MiB in pages of 4 KiB looks up an address for each
 * packet.
 */
#ifndef URNIC_IPC_MAP_H
#define URNIC_IPC_MAP_H

#include <stddef.h>
#include <sys/types.h>

#define IPC_HUGE ((size_t)2 << 20) /* octets of a huge page */

/* Map [off, off+len) of a shared object: mmap with MAP_SHARED, but a mapping of IPC_HUGE octets or
 * more begins at an address that suits huge pages.
 *
 * fd    the object; stays the caller's
 * off   offset in the object, a multiple of its page size
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
