/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic trace`: a program's calls of urnic's libibverbs, line by line. The library sends each line
 * to a datagram socket of ours, in a folder that only this user can enter.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "trace_page.h"

static const char help[] = {
#include "help_trace.inc"
};

struct trace {
    char folder[64], path[UV_TRACE_PATH];
    int sock, signals, target; /* pidfd of the target; -1 = none */
    FILE *out;
    struct uv_trace_page *page; /* page of a running process */
    uint32_t number;            /* value of the page's `on` while we trace */
};

/* ---- the socket ---- */

static int trace_listen(struct trace *t)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(t->folder, sizeof(t->folder), "%.40s/urnic-trace-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(t->folder)) {
        cli_error("%s: %s", t->folder, strerror(errno));
        return -1;
    }
    snprintf(t->path, sizeof(t->path), "%s/socket", t->folder);
    memcpy(sa.sun_path, t->path, sizeof(sa.sun_path) - 1);
    t->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->sock < 0 || bind(t->sock, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
        cli_error("%s: %s", t->path, strerror(errno));
        return -1;
    }
    return 0;
}

static void trace_end(struct trace *t)
{
    if (t->page)
        atomic_compare_exchange_strong(&t->page->on, &(uint32_t){t->number}, 0);
    if (t->path[0])
        unlink(t->path);
    if (t->folder[0])
        rmdir(t->folder);
    if (t->out && t->out != stderr)
        fclose(t->out);
}

/* Print all lines that have arrived. */
static void trace_print(struct trace *t)
{
    char line[UV_TRACE_LINE + 1];
    ssize_t n;
    while ((n = recv(t->sock, line, sizeof(line) - 1, 0)) >= 0)
        fprintf(t->out, "%.*s\n", (int)n, line);
    fflush(t->out);
}

/* ---- a running process ---- */

/* Map the page of the process, found by its descriptor's name. -ENOENT: it has none. */
static int trace_find(pid_t pid, struct trace *t)
{
    char folder[32], path[320], name[64];
    struct dirent *e;
    int fd = -ENOENT;
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? -ESRCH : -errno;
    while (fd == -ENOENT && (e = readdir(dir))) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        ssize_t n = readlink(path, name, sizeof(name) - 1);
        name[n > 0 ? n : 0] = '\0';
        if (strncmp(name, "/memfd:" UV_TRACE_PAGE, strlen("/memfd:" UV_TRACE_PAGE)) == 0)
            fd = open(path, O_RDWR | O_CLOEXEC);
    }
    closedir(dir);
    struct stat st;
    if (fd < 0)
        return fd == -1 ? -errno : fd;
    void *p = fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*t->page)
                  ? mmap(NULL, sizeof(*t->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED)
        return -EPROTO;
    t->page = p;
    return t->page->magic == UV_TRACE_MAGIC ? 0 : -EPROTO;
}

static int trace_attach(struct trace *t, const char *operand)
{
    uint64_t pid;
    if (cli_number("PID", operand, 1, INT32_MAX, &pid) < 0)
        return CLI_USAGE;
    t->target = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    int rc = t->target < 0 ? -errno : trace_find((pid_t)pid, t);
    if (rc == -ENOENT) {
        cli_error("process %d has not called urnic's libibverbs, or has closed all descriptors",
                  (int)pid);
    } else if (rc < 0) {
        cli_error("process %d: %s", (int)pid, strerror(-rc));
    } else if (atomic_load(&t->page->on) != 0) {
        cli_error("process %d is being traced already", (int)pid);
        rc = -EBUSY;
    }
    if (rc < 0) {
        t->page = NULL;
        return CLI_FAIL;
    }
    memcpy(t->page->path, t->path, sizeof(t->path));
    t->number = (uint32_t)getpid();
    atomic_store(&t->page->on, t->number);
    return CLI_OK;
}

/* Print until the process ends or a signal comes. */
static void trace_follow(struct trace *t)
{
    struct pollfd p[] = {{t->sock, POLLIN, 0}, {t->signals, POLLIN, 0}, {t->target, POLLIN, 0}};
    for (;;) {
        if (poll(p, 3, -1) < 0)
            continue;
        trace_print(t);
        if (p[1].revents || p[2].revents)
            break;
    }
}

/* ---- a command ---- */

/* Become `urnic run` with these options and this command. */
static pid_t trace_start(const struct trace *t, char **argv, const sigset_t *mask)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    sigprocmask(SIG_SETMASK, mask, NULL);
    setenv(UV_TRACE_ENV, t->path, 1);
    execv("/proc/self/exe", argv);
    cli_error("/proc/self/exe: %s", strerror(errno));
    _exit(CLI_FAIL);
}

/* Pass signals to the command, and return its status. */
static int trace_command(struct trace *t, pid_t pid)
{
    struct pollfd p[] = {{t->sock, POLLIN, 0}, {t->signals, POLLIN, 0}};
    struct signalfd_siginfo info;
    int status;
    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        trace_print(t);
        if (!(p[1].revents & POLLIN) || read(t->signals, &info, sizeof(info)) != sizeof(info))
            continue;
        if (info.ssi_signo != SIGCHLD) {
            if (info.ssi_code <= 0) /* a terminal has sent its signals to the command as well */
                kill(pid, (int)info.ssi_signo);
            continue;
        }
        if (waitpid(pid, &status, WNOHANG) == pid) {
            trace_print(t);
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
}

/* ---- all ---- */

struct trace_options {
    const char *file, *pid;
    char **args; /* arguments of `urnic run`, with the command */
    int n;
};

static void trace_arg(struct trace_options *o, char *arg)
{
    o->args[o->n++] = arg;
}

/* -1: exit with *status. `urnic run` gets the options that it shares with us. */
static int trace_options(int argc, char **argv, struct trace_options *o, int *status)
{
    static char urnic[] = "urnic", run[] = "run", private[] = "--private", devices[] = "--devices",
                port[] = "--port", addr[] = "--addr", end[] = "--";
    static const struct option options[] = {CLI_OPTIONS,
                                            {"output", required_argument, NULL, 'o'},
                                            {"private", no_argument, NULL, 'p'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"port", required_argument, NULL, 'P'},
                                            {"addr", required_argument, NULL, 'a'},
                                            {0}};
    int c;
    *status = CLI_USAGE;
    trace_arg(o, urnic);
    trace_arg(o, run);
    while ((c = getopt_long(argc, argv, "+ho:", options, NULL)) != -1) {
        if (c == 'o') {
            o->file = optarg;
        } else if (c == 'p') {
            trace_arg(o, private);
        } else if (c == 'd' || c == 'P' || c == 'a') {
            trace_arg(o, c == 'd' ? devices : c == 'P' ? port : addr);
            trace_arg(o, optarg);
        } else if (cli_option(c, &cmd_trace, status)) {
            return -1;
        }
    }
    if (strcmp(argv[optind - 1], "--") == 0) {
        trace_arg(o, end);
        while (optind < argc)
            trace_arg(o, argv[optind++]);
    } else if (argc - optind == 1 && o->n == 2) {
        o->pid = argv[optind];
    } else {
        cli_error("want a process id, or '--' and a command; see 'urnic trace --help'");
        return -1;
    }
    return 0;
}

/* Trace as the options say. The signals that end the trace are blocked. Returns CLI_* or the
 * command's status. */
static int trace(struct trace *t, const struct trace_options *o, const sigset_t *mask)
{
    if (o->file && !(t->out = fopen(o->file, "we"))) {
        cli_error("-o: '%s': %s", o->file, strerror(errno));
        return CLI_FAIL;
    }
    if (trace_listen(t) < 0)
        return CLI_FAIL;
    if (!o->pid) {
        pid_t child = trace_start(t, o->args, mask);
        return child < 0 ? CLI_FAIL : trace_command(t, child);
    }
    int status = trace_attach(t, o->pid);
    if (status == CLI_OK)
        trace_follow(t);
    return status;
}

static int run(int argc, char **argv)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    struct trace t = {.sock = -1, .signals = -1, .target = -1, .out = stderr};
    struct trace_options o = {.args = calloc((size_t)argc + 4, sizeof(*o.args))};
    sigset_t set, old;
    int status = CLI_FAIL;
    if (!o.args || trace_options(argc, argv, &o, &status) < 0) {
        free(o.args);
        return status;
    }
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        sigaddset(&set, ends[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    t.signals = signalfd(-1, &set, SFD_CLOEXEC);
    status = trace(&t, &o, &old);
    trace_end(&t);
    free(o.args);
    return status;
}

const struct cli_command cmd_trace = {"trace", "a program's calls of libibverbs and librdmacm",
                                      help, run};
