/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole reads and writes of files.
 */
#include "fileio.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

int fileio_read(int fd, void *buf, size_t len)
{
    uint8_t *p = buf;
    while (len) {
        ssize_t n = read(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int fileio_write(int fd, const void *buf, size_t len)
{
    const uint8_t *p = buf;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}
