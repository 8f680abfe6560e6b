/* SPDX-License-Identifier: BSD-3-Clause
 *
 * urnicd: start, serve, drain, stop.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cclog.h"
#include "clock.h"
#include "cmgr.h"
#include "contexts.h"
#include "control.h"
#include "crc.h"
#include "log.h"
#include "options.h"
#include "preload.h"
#include "start_limit.h"
#include "std_streams.h"
#include "stop.h"
#include "team.h"

#define DRAIN_NS    (200 * CLOCK_MS) /* time for the last messages to the peers, on SIGTERM */
#define OPEN_S      30u              /* time for each port: no NIC takes this long */
#define STARTER_FDS 64u
#define STOP_MS     15000 /* wait of --stop: longer than an end with many queue pairs takes */

static unsigned cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static int stop(const struct config *c)
{
    char err[CONFIG_ERR];
    if (stop_daemon(c->socket, STOP_MS, err) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "urnicd: %s\n", err);
    return EXIT_FAILURE;
}

static unsigned worker_count(const struct config *c)
{
    unsigned n = c->workers;
    if (n > 0)
        return n;
    n = c->ndev < cores() ? c->ndev : cores();
    for (unsigned i = 0; i < c->ndev; i++) {
        if (c->dev[i].worker >= (int)n)
            n = (unsigned)c->dev[i].worker + 1;
        if (c->dev[i].workers > n)
            n = c->dev[i].workers;
    }
    return n;
}

static int worker_cpu(const struct config *c, unsigned worker)
{
    return c->ncpu ? c->cpu[worker % c->ncpu] : -1;
}

/* Does the machine have the workers' cores? */
static int check_cpus(const struct config *c, char *err)
{
    for (unsigned i = 0; i < worker_count(c); i++) {
        int cpu = worker_cpu(c, i), rc = worker_cpu_check(cpu);
        if (rc < 0) {
            snprintf(err, CONFIG_ERR,
                     "worker %u: cpu=%d: %s: choose cores of this machine with --cpu", i, cpu,
                     strerror(-rc));
            return rc;
        }
    }
    return 0;
}

static int start_workers(struct urnicd *d, char *err)
{
    const struct config *c = &d->conf;
    for (unsigned i = 0; i < worker_count(c); i++) {
        int rc = worker_init(&d->nic.worker[i], i, worker_cpu(c, i), c->idle, &context_ops);
        if (rc < 0) {
            snprintf(err, CONFIG_ERR, "worker %u: %s", i, strerror(-rc));
            return rc;
        }
        d->nic.nworker++;
    }
    return 0;
}

/* Remove the folder of the socket, which a killed program cannot remove itself. */
static void remove_folder(const struct config *c)
{
    char path[sizeof(c->socket)];
    memcpy(path, c->socket, sizeof(path));
    char *slash = strrchr(path, '/');
    if (c->parent < 0 || !slash || slash == path)
        return;
    *slash = '\0';
    (void)rmdir(path); /* only when it is empty */
}

static void leave(void *conf)
{
    remove_folder(conf);
}

static int open_devices(struct urnicd *d, uint64_t seed, char *err)
{
    assert(d->nic.nworker > 0);
    for (unsigned i = 0; i < d->conf.ndev; i++) {
        const struct config_device *c = &d->conf.dev[i];
        unsigned w = c->worker >= 0 ? (unsigned)c->worker : i % d->nic.nworker;
        start_limit_with(c->name, c->port);
        int rc = device_open(&d->nic.device[i], c, i, &d->nic.worker[w], seed + i, err);
        if (rc < 0)
            return rc;
        const struct team *team = d->nic.device[i]->team;
        d->nic.ndevice++;
        for (unsigned k = 1; k < team->n && rc == 0; k++)
            rc =
                device_open_member(d->nic.device[i], &d->nic.worker[(w + k) % d->nic.nworker], err);
        for (unsigned k = 0; k < team->n && rc == 0; k++) {
            if (!cmgr_create(team->member[k])) {
                snprintf(err, CONFIG_ERR, "device %s: out of memory", c->name);
                rc = -ENOMEM;
            }
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int start_devices(struct urnicd *d, char *err)
{
    uint64_t seed = d->conf.seed;
    assert(d->nic.nworker > 0);
    if (seed == 0)
        (void)!getrandom(&seed, sizeof(seed), 0);
    int rc = start_limit_begin(OPEN_S, leave, &d->conf);
    if (rc < 0) {
        snprintf(err, CONFIG_ERR, "a thread to watch the start: %s", strerror(-rc));
        return rc;
    }
    rc = open_devices(d, seed, err);
    start_limit_end();
    return rc;
}

static int start_threads(struct urnicd *d, char *err)
{
    for (unsigned i = 0; i < d->nic.nworker; i++) {
        int rc = worker_start(&d->nic.worker[i]);
        if (rc < 0) {
            snprintf(err, CONFIG_ERR, "worker %u: its thread: %s", i, strerror(-rc));
            return rc;
        }
    }
    return 0;
}

static void announce(const struct urnicd *d)
{
    for (unsigned i = 0; i < d->nic.ndevice; i++) {
        const struct device *dev = d->nic.device[i];
        const uint8_t *m = dev->mac;
        char text[64] = "no address";
        if (dev->conf->naddr > 0)
            wire_addr_str(&dev->conf->addr[0].ip, text, sizeof(text));
        else if (dev->io->caps.kernel_ip)
            snprintf(text, sizeof(text), "the interface's addresses");
        log_info("daemon",
                 "%s: port %s, %s, MAC %02x:%02x:%02x:%02x:%02x:%02x, path MTU %u, worker %u",
                 dev->name, dev->conf->port, text, m[0], m[1], m[2], m[3], m[4], m[5],
                 wire_mtu_octets(dev->path_mtu), dev->worker->index);
        if (dev->conf->cc.type != &cc_none)
            cclog_device(dev);
    }
    log_info("daemon", "iCRCs are computed by %s", crc_in_use()->name);
    log_info("daemon", "serving at %s", d->conf.socket);
}

/* Notify systemd, if it started the daemon. */
static void notify_ready(void)
{
    const char *path = secure_getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    static const char text[] = "READY=1";
    if (!path || strlen(path) >= sizeof(sa.sun_path))
        return;
    size_t len = strlen(path);
    memcpy(sa.sun_path, path, len);
    if (path[0] == '@')
        sa.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL, (const struct sockaddr *)&sa,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

/* Notify the program that started the daemon (--parent). */
static void tell_parent(const struct config *c)
{
    if (c->parent >= 0)
        (void)!write(c->parent, "", 1);
}

/* State of a daemon in the background that comes from the starting program. */
struct starter {
    int ready; /* a pipe to the process that waits for the start; -1 = we are in the foreground */
    int inherited[STARTER_FDS]; /* descriptors of that program, after the standard three */
    unsigned n;
};

/* Note the starting program's descriptors, before the daemon opens any but the pipe. */
static void find_inherited(struct starter *s, const struct config *c)
{
    struct dirent *e;
    DIR *dir = opendir("/proc/self/fd");

    while (dir && (e = readdir(dir)) && s->n < STARTER_FDS) {
        int fd = atoi(e->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(dir) && fd != s->ready && fd != c->parent)
            s->inherited[s->n++] = fd;
    }
    if (dir)
        closedir(dir);
}

/* Tell the waiting process that the daemon serves. That process may wait for the end of our
 * standard error, or of any other descriptor that we have from it: close them. Leave the working
 * directory, too, so that it isn't kept busy once no path is relative to it. */
static void let_go(const struct starter *s, bool anywhere)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDERR_FILENO);
        close(null);
    }
    for (unsigned i = 0; i < s->n; i++)
        close(s->inherited[i]);
    (void)!write(s->ready, "", 1);
    close(s->ready);
    if (anywhere)
        (void)!chdir("/");
}

/* Print why the daemon couldn't start, and the remedy if the reason doesn't name it. */
static void explain(int rc, const char *err)
{
    struct rlimit files;
    log_error("daemon", "%s", err[0] ? err : strerror(-rc));
    if (rc == -EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
        log_error("daemon",
                  "%llu descriptors are not enough for the devices, and clients need more: raise "
                  "the limit (ulimit -n; LimitNOFILE= of systemd)",
                  (unsigned long long)files.rlim_cur);
}

/* The steps of a start before the devices. */
static int start(struct urnicd *d, char *err)
{
    int rc = memory_init();
    if (rc == 0)
        rc = check_cpus(&d->conf, err);
    if (rc == 0)
        rc = start_workers(d, err);
    return rc ? rc : start_devices(d, err);
}

static void close_devices(struct urnicd *d)
{
    for (unsigned i = 0; i < d->nic.nworker; i++)
        worker_stop(&d->nic.worker[i]);
    for (unsigned i = 0; i < d->nic.ndevice; i++)
        device_close(d->nic.device[i]);
    for (unsigned i = 0; i < d->nic.nworker; i++)
        worker_fini(&d->nic.worker[i]);
}

/* --check-ports */
static int check_ports(struct urnicd *d)
{
    char err[CONFIG_ERR] = "";
    int rc = start(d, err);
    if (rc < 0)
        explain(rc, err);
    else
        printf("ports can be opened: %u\n", d->nic.ndevice);
    close_devices(d);
    return rc < 0 || !std_streams_flush() ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Serve until a signal ends the daemon. */
static int serve(struct urnicd *d, const struct starter *s)
{
    char err[CONFIG_ERR] = "";
    bool anywhere = s->ready >= 0 && config_absolute(&d->conf);
    int rc = start(d, err);
    if (rc == 0)
        rc = control_open(d, err);
    if (rc == 0)
        rc = start_threads(d, err);
    if (rc == 0) {
        announce(d);
        notify_ready();
        tell_parent(&d->conf);
        log_echo(false);
        if (s->ready >= 0)
            let_go(s, anywhere);
        control_run(d);
    } else {
        explain(rc, err);
    }
    bool clients = d->nic.clients.n > 0;
    control_close(d);
    remove_folder(&d->conf);
    if (clients)
        nanosleep(&(struct timespec){.tv_nsec = (long)DRAIN_NS}, NULL);
    close_devices(d);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The log's target: a file, or syslog if standard error has no reader. */
static int open_log(const struct config *c)
{
    int rc = 0;
    log_set_level(c->log_level);
    log_echo(true);
    if (c->log[0])
        rc = log_to_file(c->log);
    else if (!c->foreground && log_to_syslog(LOG_SYSLOG) < 0)
        log_warn("log",
                 "nothing listens at " LOG_SYSLOG
                 " (syslog or journald): log lines are lost from now on; --log FILE keeps them");
    if (rc < 0)
        fprintf(stderr, "urnicd: log=%s: %s: want a file that can be written\n", c->log,
                strerror(-rc));
    return rc;
}

/* Go to the background: the parent returns once the child serves, with a status that says whether.
 */
static int background(struct urnicd *d)
{
    int fds[2], status;
    char ok;
    struct starter s = {.ready = -1};
    find_inherited(&s, &d->conf);
    if (open_log(&d->conf) < 0)
        return 2;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        log_error("daemon", "pipe: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    pid_t pid = fork();
    if (pid < 0) {
        log_error("daemon", "fork: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        close(fds[0]);
        setsid();
        if (null >= 0) {
            dup2(null, STDIN_FILENO);
            dup2(null, STDOUT_FILENO); /* stderr stays until we serve, for the reason of a
                                        * failure */
            close(null);
        }
        s.ready = fds[1];
        return serve(d, &s);
    }
    close(fds[1]);
    if (read(fds[0], &ok, 1) == 1)
        return EXIT_SUCCESS;
    waitpid(pid, &status, 0);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static struct urnicd d = {.epfd = -1,
                              .listen_fd = -1,
                              .signal_fd = -1,
                              .spare_fd = -1,
                              .nic.clients.captures_fd = -1,
                              .nic.seals_fd = -1};
    enum options_what what;
    char err[CONFIG_ERR] = "";
    sigset_t set;
    preload_shed(argv);
    std_streams_open();
    if (options_parse(argc, argv, &d.conf, &what, err) < 0 ||
        (what == OPTIONS_CHECK && check_cpus(&d.conf, err) < 0)) {
        fprintf(stderr, "urnicd: %s\n", err);
        return 2;
    }
    if (crc_choose(secure_getenv(CRC_ENV), err, sizeof(err)) < 0) {
        fprintf(stderr, "urnicd: %s\n", err);
        return 2;
    }
    if (what == OPTIONS_CHECK)
        printf("configuration is good: %u device%s\n", d.conf.ndev, d.conf.ndev == 1 ? "" : "s");
    if (what == OPTIONS_STOP)
        return stop(&d.conf);
    if (what != OPTIONS_RUN && what != OPTIONS_PORTS) {
        if (std_streams_flush())
            return EXIT_SUCCESS;
        fputs("urnicd: standard output can't be written\n", stderr);
        return EXIT_FAILURE;
    }

    /* Before any thread: signals come to the control thread only, by its descriptor. */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGPIPE);
    if (!d.conf.foreground || d.conf.log[0])
        sigaddset(&set, SIGHUP); /* the log's file was moved; otherwise a terminal is gone */
    sigaddset(&set, SIGXFSZ);    /* a request above the file size limit gets EFBIG */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    /* Slabs, sockets and regions take descriptors: raise the limit as far as allowed. */
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    if (what == OPTIONS_PORTS)
        return check_ports(&d);
    if (!d.conf.foreground)
        return background(&d);
    return open_log(&d.conf) < 0 ? 2 : serve(&d, &(struct starter){.ready = -1});
}
