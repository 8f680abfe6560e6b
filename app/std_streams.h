/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Standard input, output and error of both programs.
 */
#ifndef URNIC_STD_STREAMS_H
#define URNIC_STD_STREAMS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Call first in main. A program started without one of the three would give its number to the first
 * file or socket it opens, and write its output there. So a descriptor that is empty for readers
 * and an error for writers takes the number. */
static inline void std_streams_open(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Call last. False: some output is lost (a full disk, no standard output). */
static inline bool std_streams_flush(void)
{
    return fflush(stdout) != EOF && !ferror(stdout);
}

#endif
