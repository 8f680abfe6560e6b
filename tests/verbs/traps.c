/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes of descriptors that the emulated rdma_cm does not see: copies, closing all of them,
 * reused numbers, fork, exec, daemons, signal handlers. Run without arguments, it runs each case in
 * a process of its own; with a name, that case.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CM      "/dev/infiniband/rdma_cm"
#define LIMIT_S 30 /* time limit of a case */

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("FAIL line %d: %s (errno %d, %s)\n", __LINE__, #x, errno, strerror(errno));     \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- commands, as librdmacm writes them; the kernel's header and librdmacm's exclude each other
 */

enum { RDMA_USER_CM_CMD_CREATE_ID = 0, RDMA_USER_CM_CMD_DESTROY_ID = 1 };

struct rdma_ucm_cmd_hdr {
    uint32_t cmd;
    uint16_t in, out;
};

struct rdma_ucm_create_id {
    uint64_t uid, response;
    uint16_t ps;
    uint8_t qp_type, reserved[5];
};

struct rdma_ucm_create_id_resp {
    uint32_t id;
};

struct rdma_ucm_destroy_id {
    uint64_t response;
    uint32_t id, reserved;
};

struct rdma_ucm_destroy_id_resp {
    uint32_t events_reported;
};

static int command(int fd, unsigned number, const void *in, size_t len, size_t out)
{
    struct {
        struct rdma_ucm_cmd_hdr hdr;
        uint8_t body[400];
    } c = {.hdr = {.cmd = number, .in = (uint16_t)len, .out = (uint16_t)out}};
    memcpy(c.body, in, len);
    ssize_t n = write(fd, &c, sizeof(c.hdr) + len);
    return n == (ssize_t)(sizeof(c.hdr) + len) ? 0 : -1;
}

static uint32_t create_id(int fd)
{
    struct rdma_ucm_create_id_resp resp = {0};
    const struct rdma_ucm_create_id in = {
        .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC};
    return command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(resp)) == 0 ? resp.id
                                                                                       : 0;
}

static int destroy_id(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp resp;
    const struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&resp, .id = id};
    return command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(resp));
}

static int open_cm(void)
{
    int fd = open(CM, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

/* An event waits on the channel: the address of the device itself is resolved. */
static struct rdma_event_channel *channel_with_event(struct rdma_cm_id **id)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_addrinfo *ai, hints = {.ai_port_space = RDMA_PS_TCP};
    CHECK(ch != NULL);
    CHECK(rdma_create_id(ch, id, NULL, RDMA_PS_TCP) == 0);
    CHECK(rdma_getaddrinfo("198.18.0.1", "7471", &hints, &ai) == 0);
    CHECK(rdma_resolve_addr(*id, NULL, ai->ai_dst_addr, 2000) == 0);
    rdma_freeaddrinfo(ai);
    struct pollfd p = {.fd = ch->fd, .events = POLLIN};
    CHECK(poll(&p, 1, 10000) == 1);
    return ch;
}

static void take_event(struct rdma_event_channel *ch)
{
    struct rdma_cm_event *ev;
    CHECK(rdma_get_cm_event(ch, &ev) == 0);
    if (ev->event != RDMA_CM_EVENT_ADDR_RESOLVED)
        printf("event %s, status %d\n", rdma_event_str(ev->event), ev->status);
    CHECK(ev->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    rdma_ack_cm_event(ev);
}

/* ---- copies ---- */

static void copies(void)
{
    int fd = open_cm(), more[5];
    uint32_t id = create_id(fd);
    CHECK(id != 0);
    more[0] = dup(fd);
    more[1] = dup2(fd, 100);
    more[2] = dup3(fd, 101, O_CLOEXEC);
    more[3] = fcntl(fd, F_DUPFD, 102);
    more[4] = fcntl(fd, F_DUPFD_CLOEXEC, 103);
    for (int i = 0; i < 5; i++) {
        struct stat st;
        uint32_t other = create_id(more[i]);
        CHECK(other != 0 && destroy_id(fd, other) == 0); /* one file */
        CHECK(fstat(more[i], &st) == 0 && S_ISCHR(st.st_mode));
    }
    CHECK(fcntl(more[1], F_GETFD) == 0 && fcntl(more[2], F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(more[3], F_GETFD) == 0 && fcntl(more[4], F_GETFD) == FD_CLOEXEC);
    CHECK(close(fd) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(close(more[i]) == 0);
    CHECK(destroy_id(more[4], id) == 0); /* the id lives as long as one of them */
    int null = open("/dev/null", O_WRONLY);
    CHECK(dup2(null, more[4]) == more[4]); /* by now another file has the number */
    CHECK(write(more[4], "", 1) == 1);
    fd = open_cm();
    CHECK(dup2(fd, fd) == fd && create_id(fd) != 0);
    CHECK(dup2(1000, fd) == -1 && errno == EBADF && create_id(fd) != 0);
}

/* ---- reused numbers ---- */

static char *scratch(void)
{
    static char path[32];
    snprintf(path, sizeof(path), "/tmp/urnic-traps-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    return path;
}

/* The number belongs to an ordinary file: data written to it arrives there. */
static void is_ordinary(int number)
{
    char *path = scratch(), text[8] = "";
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    if (fd != number)
        CHECK(dup2(fd, number) == number && close(fd) == 0);
    CHECK(write(number, "octets", 6) == 6);
    CHECK(pread(number, text, sizeof(text), 0) == 6 && memcmp(text, "octets", 6) == 0);
    CHECK(close(number) == 0 && unlink(path) == 0);
}

static void close_all(int how)
{
    int fd = open_cm();
    CHECK(create_id(fd) != 0);
    if (how == 0)
        closefrom(3);
    else if (how == 1)
        CHECK(close_range(3, ~0u, 0) == 0);
    else if (how == 2)
        for (int i = 3; i < 1024; i++)
            close(i);
    else if (how == 3) /* without the library's knowledge */
        for (int i = 3; i < 1024; i++)
            syscall(SYS_close, i);
    else
        syscall(SYS_close_range, 3, ~0u, 0);
    CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    is_ordinary(fd);
    fd = open_cm();
    CHECK(create_id(fd) != 0);
    struct rdma_cm_id *id;
    struct rdma_event_channel *ch = channel_with_event(&id);
    take_event(ch);
    CHECK(rdma_destroy_id(id) == 0);
    rdma_destroy_event_channel(ch);
    CHECK(close(fd) == 0);
}

static void closed_by_closefrom(void)
{
    close_all(0);
}

static void closed_by_close_range(void)
{
    close_all(1);
}

static void closed_one_by_one(void)
{
    close_all(2);
}

static void closed_by_system_calls(void)
{
    close_all(3);
}

static void closed_by_a_system_call(void)
{
    close_all(4);
}

static void close_range_cloexec(void)
{
    int fd = open(CM, O_RDWR);
    CHECK(fd >= 0 && close_range((unsigned)fd, (unsigned)fd, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && create_id(fd) != 0);
    CHECK(close_range(5, 4, 0) == -1 && errno == EINVAL && create_id(fd) != 0);
}

/* ---- processes ---- */

static void reap(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* After fork the child's descriptor has no ids, and calls on it don't affect the parent. */
static void forked(void)
{
    struct rdma_cm_id *id;
    struct rdma_event_channel *ch = channel_with_event(&id);
    int fd = open_cm();
    uint32_t number = create_id(fd);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            if (i == 0)
                CHECK(close(ch->fd) == 0 && close(fd) == 0);
            CHECK(i != 1 || (destroy_id(fd, number) == -1 && errno == ENOENT));
            CHECK(i != 1 || create_id(fd) != 0);
            if (i == 2) {
                int own = open_cm();
                CHECK(create_id(own) != 0);
                closefrom(3);
            }
            _exit(0);
        }
        reap(pid);
    }
    take_event(ch);
    CHECK(destroy_id(fd, number) == 0);
    CHECK(rdma_destroy_id(id) == 0);
    rdma_destroy_event_channel(ch);
}

/* Whether a program that is executed has the descriptor: run as `traps has N`. */
static int has(const char *number)
{
    return fcntl(atoi(number), F_GETFD) >= 0 ? 0 : 1;
}

static int executed_has(int fd)
{
    char number[12];
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    snprintf(number, sizeof(number), "%d", fd);
    if (pid == 0) {
        execl("/proc/self/exe", "traps", "has", number, NULL);
        _exit(9);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 9);
    return WEXITSTATUS(status) == 0;
}

static void executed(void)
{
    bool before[256];
    for (int fd = 3; fd < 256; fd++)
        before[fd] = executed_has(fd);
    struct rdma_cm_id *id;
    struct rdma_event_channel *ch = channel_with_event(&id);
    int plain = open(CM, O_RDWR);

    CHECK(plain >= 0 && executed_has(plain));
    CHECK(!executed_has(ch->fd));    /* librdmacm opens it with O_CLOEXEC */
    for (int fd = 3; fd < 256; fd++) /* nor any descriptor of the library's own */
        CHECK(fd == plain || executed_has(fd) == before[fd]);
    take_event(ch);
}

static void works_as_daemon(void)
{
    struct rdma_cm_id *id;
    struct rdma_event_channel *ch = channel_with_event(&id);
    take_event(ch);
    CHECK(rdma_destroy_id(id) == 0);
    rdma_destroy_event_channel(ch);
}

/* daemon(3), and the programs' own ways to the background. The test waits for the daemon by a
 * pipe. */
static void become_daemon(int by_hand)
{
    int fd = open_cm(), ends[2];
    char verdict = 0;
    pid_t pid;
    CHECK(create_id(fd) != 0 && pipe(ends) == 0 && (pid = fork()) >= 0);
    if (pid != 0) {
        CHECK(close(ends[1]) == 0 && read(ends[0], &verdict, 1) == 1 && verdict == 'y');
        reap(pid);
        return;
    }
    if (by_hand) {
        int keep = fcntl(ends[1], F_DUPFD, 500);
        CHECK(keep >= 500);
        if (fork() != 0)
            _exit(0);
        CHECK(setsid() > 0);
        for (int i = 0; i < 500; i++)
            close(i);
        CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
        ends[1] = keep;
    } else {
        CHECK(daemon(0, 1) == 0);
    }
    works_as_daemon();
    CHECK(write(ends[1], "y", 1) == 1);
    _exit(0);
}

static void daemon_3(void)
{
    become_daemon(0);
}

static void daemon_by_hand(void)
{
    become_daemon(1);
}

/* ---- signal handlers, and children of threaded programs ---- */

static _Atomic unsigned handled;
static char *handlers_file;

/* A call for signal handlers and children of threaded programs: it takes no lock and keeps
 * errno. */
static void ordinary_calls(void)
{
    struct stat st;
    const int before = 4711;
    errno = before;
    int fd = open(handlers_file, O_RDWR | O_APPEND);
    int copy = dup(fd), other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || copy < 0 || other < 0 || write(copy, "x", 1) != 1 || fstat(fd, &st) < 0 ||
        stat(handlers_file, &st) < 0 || lstat("/dev/null", &st) < 0 || access("/", R_OK) < 0 ||
        close(fd) < 0 || close(copy) < 0 || close(other) < 0 || errno != before)
        abort();
}

static void on_alarm(int sig)
{
    int saved = errno;
    (void)sig;
    ordinary_calls();
    handled++;
    errno = saved;
}

static void in_signal_handlers(void)
{
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    int fd = open_cm();
    handlers_file = scratch();
    CHECK(sigaction(SIGALRM, &sa, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (unsigned i = 0; handled < 500; i++) {
        uint32_t id = create_id(fd);
        DIR *dir = opendir("/sys/class/infiniband");
        FILE *f = fopen("/sys/class/infiniband/urn0/node_type", "r");
        int copy = dup(fd);
        CHECK(id != 0 && dir != NULL && f != NULL && copy >= 0);
        CHECK(closedir(dir) == 0 && fclose(f) == 0 && close(copy) == 0);
        CHECK(destroy_id(fd, id) == 0);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && unlink(handlers_file) == 0);
}

static _Atomic int stop;

static void *busy(void *arg)
{
    int fd = *(int *)arg;
    while (!stop) {
        uint32_t id = create_id(fd);
        DIR *dir = opendir("/sys/class/infiniband/urn0/ports/1/gids");
        CHECK(id != 0 && dir != NULL && closedir(dir) == 0 && destroy_id(fd, id) == 0);
    }
    return NULL;
}

static void forks_of_threads(void)
{
    pthread_t threads[2];
    int fd = open_cm();
    handlers_file = scratch();
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, &fd) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(10);
            ordinary_calls();
            if (i % 4 == 0)
                CHECK(close(fd) == 0);
            if (i % 4 == 1)
                CHECK(create_id(open_cm()) != 0);
            if (i % 4 == 2)
                closefrom(3);
            _exit(0);
        }
        reap(pid);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(unlink(handlers_file) == 0);
}

/* ---- addresses of answers ---- */

static void bad_addresses(void)
{
    static const uint64_t bad[] = {0, 1, 4095, 4096, 1ull << 46, ~0ull};
    int fd = open_cm();
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct rdma_ucm_create_id in = {.response = bad[i], .ps = RDMA_PS_TCP};
        errno = 0;
        CHECK(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), 4) == -1 && errno == EFAULT);
    }
    CHECK(write(fd, (const void *)4096, 32) == -1 &&
          errno == EFAULT); // NOLINT: an address where nothing is
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"copies", copies},
    {"closed-by-closefrom", closed_by_closefrom},
    {"closed-by-close_range", closed_by_close_range},
    {"closed-one-by-one", closed_one_by_one},
    {"closed-by-system-calls", closed_by_system_calls},
    {"closed-by-a-system-call", closed_by_a_system_call},
    {"close_range-cloexec", close_range_cloexec},
    {"forked", forked},
    {"executed", executed},
    {"daemon", daemon_3},
    {"daemon-by-hand", daemon_by_hand},
    {"in-signal-handlers", in_signal_handlers},
    {"forks-of-threads", forks_of_threads},
    {"bad-addresses", bad_addresses},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int run_apart(const char *name)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "traps", name, NULL);
        _exit(9);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf("%s %s\n", good ? "PASS" : "FAIL", name);
    if (WIFSIGNALED(status))
        printf("  ended by signal %d\n", WTERMSIG(status));
    fflush(stdout);
    return !good;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc == 3 && strcmp(argv[1], "has") == 0)
        return has(argv[2]);
    for (unsigned i = 0; i < CASES; i++) {
        if (argc < 2)
            failed += run_apart(cases[i].name);
        else if (strcmp(argv[1], cases[i].name) == 0) {
            alarm(LIMIT_S);
            cases[i].run();
            return 0;
        }
    }
    return argc < 2 ? failed != 0 : 2;
}
