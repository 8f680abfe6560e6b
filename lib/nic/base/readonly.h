/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that the daemon writes and programs may only read.
 */
#ifndef NIC_READONLY_H
#define NIC_READONLY_H

#include <stddef.h>

/* Make memory of `size` octets, all zero, and map it for writing. Pass *fd to programs, which can
 * map it for reading only.
 *
 * `name` is what /proc shows. `at` receives the address, which the caller unmaps. `fd` receives the
 * descriptor, or a stand-in, which the caller closes by ipc_object_close (ipc_map.h).
 *
 * 0, or -errno. Any thread. */
int readonly_new(const char *name, size_t size, void **at, int *fd);

#endif
