/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading a capture from end to end, with its progress.
 */
#include "lint_read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define LOOK 1024u /* packets between two updates of the progress bar */

/* By read(2), so that pipes work, and a file that shrinks meanwhile gives a short read, not a
 * signal. */
static ssize_t read_fd(void *arg, void *buf, size_t len)
{
    int fd = (int)(intptr_t)arg;
    for (;;) {
        ssize_t got = read(fd, buf, len);
        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN && /* another process may have made the pipe non-blocking */
            (poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1) > 0 || errno == EINTR))
            continue;
        return -errno;
    }
}

static void close_fd(void *arg)
{
    close((int)(intptr_t)arg);
}

int lint_read_open(const char *path, struct capread **out, char *why, size_t why_size)
{
    struct stat st;
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int rc = -errno;
        snprintf(why, why_size, "%s", strerror(-rc));
        return rc;
    }
    struct capread_source source = {
        .read = read_fd, .close = close_fd, .arg = (void *)(intptr_t)fd};
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        source.size = (uint64_t)st.st_size;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return capread_open(&source, out, why, why_size);
}

bool lint_read_shows(const struct capread *cap, uint64_t least)
{
    struct capread_info info;
    capread_info(cap, &info);
    return info.size >= least && isatty(STDERR_FILENO);
}

int lint_read(struct capread *cap, bool show, int (*take)(void *arg, const struct lint_frame *f),
              void *arg)
{
    struct capread_info info;
    struct capread_packet p;
    struct cli_progress bar;
    int rc = 0;
    capread_info(cap, &info);
    cli_progress_begin(&bar, "reading", info.size, !show);
    while (!cli_stop && (rc = capread_next(cap, &p)) == 1) {
        struct lint_frame f = lint_frame_of(&p);
        if ((rc = take(arg, &f)) < 0)
            break;
        if (show && p.number % LOOK == 0) {
            capread_info(cap, &info);
            cli_progress(&bar, info.offset, NULL);
        }
    }
    capread_info(cap, &info);
    cli_progress_end(&bar, info.offset, NULL);
    return cli_stop ? -EINTR : rc;
}
