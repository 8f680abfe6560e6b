/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process's mapping at an address: may a region lie there, and is it part of a shared object
 * that the daemon can map as well?
 */
#ifndef URNIC_CLIENT_MAPPING_H
#define URNIC_CLIENT_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Are all of [addr, addr+len) there, readable, and writable if `write`? Missing pages are
 * allocated, as when a device pins them. 0; -EFAULT: a hole, or pages without these rights;
 * -EINVAL: the range wraps; -ENOMEM: the pages can't be had. Any thread. */
int client_mapping_check(const void *addr, size_t len, bool write);

/* The same for an engine in this process, which allocates pages on use: none is allocated now,
 * however long the range is. 0; -EFAULT, -EINVAL. Any thread. */
int client_mapping_rights(const void *addr, size_t len, bool write);

/* A descriptor of the shared object in memory (tmpfs, hugetlbfs, memfd, SysV) of which one mapping
 * holds [addr, addr+len), opened for writing if `write`; *off = the place of addr in it. The caller
 * closes it. -1: there is none, or it can't be opened. Any thread. */
int client_mapping_open(const void *addr, size_t len, bool write, uint64_t *off);

#endif
