/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole reads and writes of files, at the descriptor's place. Any thread.
 */
#ifndef URNIC_FILEIO_H
#define URNIC_FILEIO_H

#include <stddef.h>

/* All of `len` octets. 0 or -errno; -ENODATA: the file ends before. */
int fileio_read(int fd, void *buf, size_t len);
/* All of `len` octets. 0 or -errno. */
int fileio_write(int fd, const void *buf, size_t len);

#endif
