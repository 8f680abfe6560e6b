/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting, listening to and ending a command.
 */
#include "suite_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become(const char *command, char *const environment[], int out)
{
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    for (; *environment; environment++)
        putenv(*environment);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

int suite_child_start(struct suite_child *c, const char *command, char *const environment[])
{
    int fd[2];
    *c = (struct suite_child){.fd = -1};
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0) {
        int rc = -errno;
        close(fd[0]);
        close(fd[1]);
        return rc;
    }
    if (pid == 0)
        become(command, environment, fd[1]);
    setpgid(pid, pid); /* in parent and child: either may be first */
    close(fd[1]);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    c->pid = pid;
    c->fd = fd[0];
    return 0;
}

static void listen_to(struct suite_child *c)
{
    char buf[1024];
    ssize_t n;
    while ((n = read(c->fd, buf, sizeof(buf))) > 0) {
        size_t keep = sizeof(c->said) - 1 - (size_t)n;
        if (c->n > keep) {
            memmove(c->said, c->said + c->n - keep, keep);
            c->n = keep;
        }
        memcpy(c->said + c->n, buf, (size_t)n);
        c->n += (size_t)n;
        c->said[c->n] = 0;
    }
}

void suite_child_poll(struct suite_child *c)
{
    if (!c->pid)
        return;
    listen_to(c);
    if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
        c->ended = true;
        listen_to(c);
    }
}

void suite_child_kill(const struct suite_child *c, bool force)
{
    if (c->pid)
        kill(-c->pid, force ? SIGKILL : SIGTERM);
}

void suite_child_close(struct suite_child *c)
{
    if (c->pid)
        close(c->fd);
    c->pid = 0;
}
