/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole reads and writes of files. 0 or -errno; a file that ends early is -EIO.
 */
#ifndef URNIC_FILEIO_H
#define URNIC_FILEIO_H

#include <stddef.h>
#include <stdint.h>

int fileio_read(int fd, void *buf, size_t len);
int fileio_write(int fd, const void *buf, size_t len);

#endif
