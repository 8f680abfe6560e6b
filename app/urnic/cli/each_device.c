/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See each_device.h. The processes report their progress to the first one by a pipe. It ends them
 * by SIGTERM, and they end if it ends (PR_SET_PDEATHSIG).
 */
#include "each_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "urnic/urnic.h"

#define LOOK_MS 200

enum news { LISTENS, TAKEN };
struct told {
    int index; /* index of the process */
    enum news news;
};

/* The role of this process: alone, or one of several. */
static struct {
    const struct each_device *what;
    int index, pipe; /* -1: alone */
    bool taken;
} self = {.pipe = -1};

static void say(const struct each_device *what)
{
    fputs(what->says, what->to);
    fflush(what->to);
}

static void tell(enum news news)
{
    const struct told t = {self.index, news};
    (void)!write(self.pipe, &t, sizeof(t)); /* the first process may be gone */
}

void each_device_listens(void)
{
    if (self.pipe >= 0)
        tell(LISTENS);
    else if (self.what)
        say(self.what);
}

void each_device_taken(void)
{
    if (self.pipe >= 0 && !self.taken)
        tell(TAKEN);
    self.taken = true;
}

struct process {
    pid_t pid;   /* 0: the process has ended */
    bool ending; /* SIGTERM was sent to it */
};

/* The processes, for the first one. */
struct family {
    struct process *all;
    int n, alive, listening;
    int status; /* status of the first that ended by itself; CLI_OK: none */
};

static void end_others(struct family *f, int but)
{
    for (int i = 0; i < f->n; i++) {
        struct process *p = &f->all[i];
        if (i == but || p->pid == 0 || p->ending)
            continue;
        p->ending = true;
        kill(p->pid, SIGTERM);
    }
}

static void reap(struct family *f)
{
    for (int i = 0; i < f->n; i++) {
        struct process *p = &f->all[i];
        int status;
        if (p->pid == 0 || waitpid(p->pid, &status, WNOHANG) != p->pid)
            continue;
        p->pid = 0;
        f->alive--;
        if (p->ending)
            continue;
        f->status = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAIL;
        end_others(f, i);
    }
}

static void watch(struct family *f, int fd, const struct each_device *what)
{
    bool stopping = false;
    while (f->alive > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        struct told t;
        if (poll(&p, 1, LOOK_MS) == 1 && (p.revents & POLLIN) &&
            read(fd, &t, sizeof(t)) == (ssize_t)sizeof(t)) {
            if (t.news == TAKEN)
                end_others(f, t.index);
            else if (++f->listening == f->n)
                say(what);
        }
        if (cli_stop && !stopping)
            end_others(f, -1);
        stopping = cli_stop;
        reap(f);
    }
}

/* Returns only in the first process. */
static int start(struct family *f, const struct urnic_device *list, const int fds[2],
                 const struct each_device *what)
{
    pid_t first = getpid();
    for (int i = 0; i < f->n; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return -errno;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() != first)
                _exit(CLI_FAIL);
            close(fds[0]);
            self.index = i;
            self.pipe = fds[1];
            self.what = what;
            int status = what->serve(what->arg, list[i].name);
            fflush(NULL);
            _exit(status);
        }
        f->all[i].pid = pid;
        f->alive++;
    }
    return 0;
}

static int on_all(const struct urnic_device *list, int n, const struct each_device *what)
{
    struct family f = {.all = calloc((size_t)n, sizeof(*f.all)), .n = n, .status = CLI_OK};
    int fds[2], rc = f.all ? 0 : -ENOMEM;
    if (rc == 0 && pipe2(fds, O_CLOEXEC) < 0)
        rc = -errno;
    if (rc == 0) {
        cli_catch_signals();
        fflush(NULL);
        rc = start(&f, list, fds, what);
        close(fds[1]);
        if (rc < 0)
            end_others(&f, -1);
        watch(&f, fds[0], what);
        close(fds[0]);
    }
    free(f.all);
    if (rc < 0)
        cli_errno(rc, "%d processes, one for each device", n);
    return rc < 0 ? CLI_FAIL : f.status;
}

int each_device(const char *device, const struct each_device *what)
{
    struct urnic_device *list = NULL;
    int n = 0, status;
    self.what = what;
    /* Without a daemon the server itself prints the message. */
    if (!device && urnic_get_device_list(&list, &n) == 0 && n > 1)
        status = on_all(list, n, what);
    else
        status = what->serve(what->arg, device);
    urnic_free_device_list(list);
    return status;
}
