/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mapping slabs so that the kernel can put pages of 2 MiB behind them, in the daemon and in
 * applications alike. A worker that walks through 16 MiB in pages of 4 KiB looks up an address for
 * each packet.
 */
#ifndef URNIC_IPC_MAP_H
#define URNIC_IPC_MAP_H

#include <stddef.h>
#include <sys/types.h>

#define IPC_HUGE ((size_t)2 << 20) /* octets of a huge page */

/* Map [off, off+len) of a shared object: mmap with MAP_SHARED, but what has IPC_HUGE octets or more
 * begins at an address that suits huge pages.
 *
 * fd    the object; stays the caller's
 * off   where in it, a multiple of its page size
 * len   octets
 * prot  PROT_*
 *
 * Returns the address, the caller's to munmap, or MAP_FAILED with errno as mmap sets it. Any thread
 * may call.
 */
void *ipc_map(int fd, off_t off, size_t len, int prot);

/* Have huge pages come for [at, at+len), as far as there are any: the rest keeps pages of 4 KiB.
 * What has been written there stays. Works where the kernel by itself gives shared
 * memory no huge pages (shmem_enabled "never"), from Linux 6.1 on, without privileges; takes a
 * millisecond per 2 MiB or more.
 *
 * at   from ipc_map
 * len  octets
 *
 * Returns how many octets have huge pages now. Any thread may call.
 */
size_t ipc_map_huge(void *at, size_t len);

#endif
