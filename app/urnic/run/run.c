/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `urnic run`: a program that was written for libibverbs and librdmacm, on urnicd. lib/verbs is
 * preloaded into it and takes libibverbs' place.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "ipc.h"
#include "run.h"
#include "urnic/urnic.h"

#define RUN_NOT_FOUND 127 /* as in a shell: command not found, or it can't be started */
#define RUN_NO_EXEC   126

static const char help[] = {
#include "help_run.inc"
};

struct run_options {
    bool private;
    unsigned devices;                       /* 0 = not given */
    const char *ports[4 * RUN_DEVICES + 1]; /* arguments for urnicd, in the order of the command
                                             * line */
    unsigned nports, nargs;
    bool addressed; /* the last port has an address */
};

/* ---- requests to the daemon ---- */

static void run_arg(struct run_options *o, const char *flag, const char *value)
{
    o->ports[o->nargs++] = flag;
    o->ports[o->nargs++] = value;
    o->ports[o->nargs] = NULL;
}

/* The addresses that a device has unless --addr says otherwise: 198.18.0.0/15 is for tests
 * (RFC 2544), fd00::/8 for private use (RFC 4193). */
static void run_default_addr(struct run_options *o)
{
    static char ip4[RUN_DEVICES][24], ip6[RUN_DEVICES][32];
    unsigned i = o->nports - 1;
    snprintf(ip4[i], sizeof(ip4[i]), "198.18.0.%u/24", o->nports);
    snprintf(ip6[i], sizeof(ip6[i]), "fd75:726e:6963::%x/64", o->nports);
    run_arg(o, "--addr", ip4[i]);
    run_arg(o, "--addr", ip6[i]);
}

static bool run_port(struct run_options *o, const char *spec)
{
    if (o->nports == RUN_DEVICES) {
        cli_error("--port: '%s': at most %d devices", spec, RUN_DEVICES);
        return false;
    }
    if (o->nports > 0 && !o->addressed)
        run_default_addr(o);
    run_arg(o, "--port", spec);
    o->nports++;
    o->addressed = false;
    return true;
}

static bool run_addr(struct run_options *o, const char *addr)
{
    if (o->nports == 0) {
        cli_error("--addr: '%s': give --port before --addr", addr);
        return false;
    }
    if (o->nargs + 6 > sizeof(o->ports) / sizeof(*o->ports)) {
        cli_error("--addr: '%s': too many addresses", addr);
        return false;
    }
    run_arg(o, "--addr", addr);
    o->addressed = true;
    return true;
}

/* -1: the command line is wrong. */
static int run_options(int argc, char **argv, struct run_options *o, int *status)
{
    static const struct option options[] = {CLI_OPTIONS,
                                            {"private", no_argument, NULL, 'p'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"port", required_argument, NULL, 'P'},
                                            {"addr", required_argument, NULL, 'a'},
                                            {0}};
    uint64_t n;
    int c;
    *status = CLI_USAGE;
    while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
        if (c == 'p') {
            o->private = true;
        } else if (c == 'd') {
            if (cli_number("--devices", optarg, 1, RUN_DEVICES, &n) < 0)
                return -1;
            o->devices = (unsigned)n;
        } else if (c == 'P') {
            if (!run_port(o, optarg))
                return -1;
        } else if (c == 'a') {
            if (!run_addr(o, optarg))
                return -1;
        } else if (cli_option(c, &cmd_run, status)) {
            return -1;
        }
    }
    const char *needs = o->devices ? "--devices" : o->nports ? "--port" : NULL;
    if (needs && !o->private) {
        cli_error("%s: only with --private", needs);
        return -1;
    }
    if (o->private && cli_socket_named()) {
        cli_error("--socket and --private: choose one of them");
        return -1;
    }
    if (o->devices && o->nports) {
        cli_error("--devices and --port: choose one of them");
        return -1;
    }
    return cli_operands(argc, argv, 1, INT_MAX, "a command") == CLI_OK ? 0 : -1;
}

static void run_ports(struct run_options *o)
{
    if (o->nports > 0) {
        if (!o->addressed)
            run_default_addr(o);
        return;
    }
    for (unsigned i = 0; i < (o->devices ? o->devices : 1); i++)
        run_port(o, "mem:run");
    run_default_addr(o);
}

/* ---- the command ---- */

/* Add our library last: librspreload calls librdmacm, and ASan must be first. In nested `urnic
 * run`s it is already there. */
static void run_preload(const char *library)
{
    const char *list = getenv("LD_PRELOAD");
    char *all = NULL;
    if (list && strstr(list, library))
        return;
    if (list && *list && asprintf(&all, "%s:%s", list, library) < 0)
        all = NULL;
    setenv("LD_PRELOAD", all ? all : library, 1);
    free(all);
}

/* Warn if the command will find no daemon. */
static void run_look_for_daemon(void)
{
    struct urnic_device *list;
    char path[RUN_SOCKET_MAX];
    int n = 0, rc = urnic_get_device_list(&list, &n);
    if (rc < 0) {
        cli_errno(rc, "the command sees no RDMA device");
        return;
    }
    urnic_free_device_list(list);
    if (n > 0)
        return;
    if (ipc_socket_path(NULL, path, sizeof(path)) < 0)
        path[0] = '\0';
    cli_error("no urnicd serves at %s: the command sees no RDMA device. Start a daemon (urnicd "
              "--help), or use 'urnic run --private'",
              path);
}

/* The signals that are passed on, SIGCHLD beside them. */
static void run_signals(sigset_t *set)
{
    static const int passed[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
        sigaddset(set, passed[i]);
}

static pid_t run_command(char **argv, const char *path, const sigset_t *mask)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(path, argv); /* not execv: it also runs a script without a "#!" line. `path` has a slash,
                         * so nothing is searched for */
    cli_error("%s: %s", path, strerror(errno));
    _exit(RUN_NO_EXEC);
}

/* Pass signals on until the command has ended. Returns its status, as a shell's $?. */
static int run_wait(pid_t pid, struct run_daemon *d, const sigset_t *set)
{
    siginfo_t info;
    int status;
    for (;;) {
        int sig = sigwaitinfo(set, &info);
        if (sig < 0)
            continue;
        if (sig != SIGCHLD) {
            /* A terminal has sent its signals to the command as well. */
            if (info.si_code <= 0)
                kill(pid, sig);
            continue;
        }
        if (d->pid > 0 && waitpid(d->pid, &status, WNOHANG) == d->pid) {
            d->pid = -1;
            cli_error("--private: urnicd has ended before the command");
        }
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

static int run(int argc, char **argv)
{
    char library[PATH_MAX], program[PATH_MAX], urnicd[PATH_MAX];
    struct run_daemon daemon = {.pid = -1, .link = -1};
    struct run_options o = {0};
    sigset_t set, old;
    int status;
    if (run_options(argc, argv, &o, &status) < 0)
        return status;
    char **command = argv + optind;
    int rc = run_find(command[0], program);
    if (rc < 0) {
        cli_error("%s: %s", command[0], strerror(-rc));
        return rc == -EACCES ? RUN_NO_EXEC : RUN_NOT_FOUND;
    }
    if (!run_verbs_library(library)) {
        cli_error("%s is not there: build with libibverbs-dev installed, or install urnic whole",
                  library);
        return CLI_FAIL;
    }
    const char *why = run_no_preload(program);
    if (why)
        cli_error("%s: %s: the library can't be preloaded into it, only into programs that it "
                  "starts",
                  program, why);

    run_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    if (o.private) {
        if (!run_urnicd(urnicd)) {
            cli_error("--private: urnicd is neither beside urnic nor in $PATH");
            return CLI_FAIL;
        }
        run_ports(&o);
        if (run_daemon_start(&daemon, urnicd, o.ports) < 0)
            return CLI_FAIL;
        setenv(IPC_SOCKET_ENV, daemon.socket, 1);
    } else {
        run_look_for_daemon();
    }
    run_preload(library);
    pid_t pid = run_command(command, program, &old);
    if (pid < 0)
        cli_error("fork: %s", strerror(errno));
    status = pid < 0 ? CLI_FAIL : run_wait(pid, &daemon, &set);
    if (o.private)
        run_daemon_stop(&daemon);
    return status;
}

const struct cli_command cmd_run = {"run", "run an RDMA program (libibverbs) on urnicd", help, run};
