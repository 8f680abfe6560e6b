/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that the daemon writes and others may only read.
 */
#ifndef NIC_READONLY_H
#define NIC_READONLY_H

#include <stddef.h>

/* Make memory of `size` octets, all zero, and map it for writing. *fd is to be passed to programs,
 * which can map it for reading and change nothing about it.
 *
 * name  what /proc shows
 * at    receives the address, the caller's to munmap
 * fd    receives the descriptor, the caller's to close
 *
 * 0, or -errno. Any thread. */
int readonly_new(const char *name, size_t size, void **at, int *fd);

#endif
