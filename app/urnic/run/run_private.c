/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A daemon for one command. A socket pair ties the two processes together (urnicd --parent): the
 * daemon reports by it that it serves, and the kernel closes our end at any end of this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define RUN_START_MS 30000
#define RUN_END_MS   10000 /* time for the daemon to tell its peers */
#define RUN_ARGS     (4 * RUN_DEVICES + 16)

/* A folder of our own where sockets live. */
static int run_folder_make(struct run_daemon *d)
{
    const char *dir = secure_getenv("XDG_RUNTIME_DIR");
    if (!dir || dir[0] != '/' || access(dir, W_OK) < 0)
        dir = "/tmp";
    int n = snprintf(d->folder, sizeof(d->folder), "%s/urnic-run-XXXXXX", dir);
    if (n < 0 || (size_t)n + sizeof("/urnicd.sock") > sizeof(d->folder)) {
        dir = "/tmp";
        snprintf(d->folder, sizeof(d->folder), "%s/urnic-run-XXXXXX", dir);
    }
    if (!mkdtemp(d->folder)) {
        int rc = -errno;
        cli_error("--private: a folder in %s: %s", dir, strerror(-rc));
        return rc;
    }
    snprintf(d->socket, sizeof(d->socket), "%.*s/urnicd.sock", (int)sizeof(d->socket) - 14,
             d->folder);
    return 0;
}

/* In the new process. */
static void run_daemon_exec(const struct run_daemon *d, const char *urnicd,
                            const char *const *ports, int link)
{
    char fd[16];
    const char *args[RUN_ARGS] = {urnicd,     "--foreground", "--log-level", "warn",
                                  "--socket", d->socket,      "--parent",    fd};
    unsigned n = 8;
    int null = open("/dev/null", O_RDWR);
    snprintf(fd, sizeof(fd), "%d", link);
    for (; *ports && n < RUN_ARGS - 1; ports++)
        args[n++] = *ports;
    setsid(); /* a terminal's Ctrl-C is for the command */
    fcntl(link, F_SETFD, 0);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    execv(urnicd, (char *const *)(uintptr_t)args);
    cli_error("--private: %s: %s", urnicd, strerror(errno));
    _exit(127);
}

/* Until the daemon serves. */
static int run_daemon_wait(const struct run_daemon *d)
{
    struct pollfd p = {.fd = d->link, .events = POLLIN};
    char octet;
    int n;
    do
        n = poll(&p, 1, RUN_START_MS);
    while (n < 0 && errno == EINTR);
    if (n == 0) {
        cli_error("--private: urnicd did not serve within %d s", RUN_START_MS / 1000);
        return -ETIMEDOUT;
    }
    if (n < 0 || read(d->link, &octet, 1) != 1) {
        cli_error("--private: urnicd could not start (its message is above)");
        return -ECONNREFUSED;
    }
    return 0;
}

int run_daemon_start(struct run_daemon *d, const char *urnicd, const char *const *ports)
{
    int ends[2];
    int rc = run_folder_make(d);
    if (rc < 0)
        return rc;
    d->pid = -1;
    d->link = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        rc = -errno;
        cli_error("--private: socketpair: %s", strerror(-rc));
        run_daemon_stop(d);
        return rc;
    }
    d->pid = fork();
    if (d->pid == 0)
        run_daemon_exec(d, urnicd, ports, ends[1]);
    rc = d->pid < 0 ? -errno : 0;
    close(ends[1]);
    d->link = ends[0];
    if (rc < 0)
        cli_error("--private: fork: %s", strerror(-rc));
    else
        rc = run_daemon_wait(d);
    if (rc < 0)
        run_daemon_stop(d);
    return rc;
}

void run_daemon_stop(struct run_daemon *d)
{
    if (d->link >= 0)
        close(d->link);
    for (int ms = 0; d->pid > 0; ms++) {
        if (waitpid(d->pid, NULL, WNOHANG) != 0)
            break;
        if (ms == RUN_END_MS) {
            cli_error("--private: urnicd has not ended within %d s: killed", RUN_END_MS / 1000);
            kill(d->pid, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    (void)unlink(d->socket);
    (void)rmdir(d->folder);
}
