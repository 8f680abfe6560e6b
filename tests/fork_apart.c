/* SPDX-License-Identifier: BSD-3-Clause */
#include "fork_apart.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS 1024

/* Is it Check's file of results, which is unlinked? A memfd is unlinked, too, but the child needs
 * it. */
static int is_report(int fd)
{
    char link[64], name[256];
    struct stat st;
    ssize_t n;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof(name));
    return n > 0 && strncmp(name, "/memfd:", strlen("/memfd:")) != 0;
}

pid_t fork_apart(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 3; fd < FDS; fd++) {
            if (is_report(fd))
                dup2(null, fd);
        }
        close(null);
    }
    return pid;
}
