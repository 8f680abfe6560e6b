/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHM-16: programs with an engine of their own, on a port of their own or on a daemon's device,
 * that exec, become a daemon, call vfork, unload the library, or close descriptors that they didn't
 * open.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "device_end.h"

#define SIZE      ((size_t)64 << 10)
#define STRANGERS 64u

/* The program's port and that of its peer. */
static const struct way {
    const char *here, *there, *to;
} ways[] = {
    {"memif:@urnic_test_life,role=server,addr=10.0.0.1/24",
     "memif:@urnic_test_life,role=client,addr=10.0.0.2/24", "10.0.0.2"},
    {NULL, NULL, "10.0.0.2"}, /* urn0 and urn1 of a daemon */
    {"udp:lo,addr=127.0.0.3/8,loopback=true", "udp:lo,addr=127.0.0.4/8,loopback=true", "127.0.0.4"},
};
#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static struct rig rig; /* pid 0: none */
static pid_t peer;

static void open_end(struct port_end *e, const struct way *w)
{
    if (w->here)
        port_open(e, w->here, SIZE);
    else
        device_end(e, &rig, "urn0", "application", SIZE);
}

/* Be connected and written to, by any number of programs, until it is killed. */
static void be_peer(void *arg)
{
    const struct way *w = arg;
    struct port_end e;
    if (w->there)
        port_open(&e, w->there, SIZE);
    else
        device_end(&e, &rig, "urn1", "daemon", SIZE);
    port_listen(&e);
    for (;;)
        port_accept(&e);
}

static void setup_way(const struct way *w)
{
    if (!w->here)
        rig_start_pair(&rig, "");
    peer = port_child(be_peer, (void *)(uintptr_t)w);
}

static void teardown_way(void)
{
    kill(peer, SIGKILL);
    ck_assert_int_eq(waitpid(peer, NULL, 0), peer);
    if (rig.pid > 0)
        rig_stop(&rig);
}

/* It works. */
static void transfer(struct port_end *e)
{
    for (size_t i = 0; i < SIZE / 2; i++)
        e->mem[i] = (uint8_t)(i * 2654435761u >> 24);
    port_do(e, URNIC_WR_RDMA_WRITE, 0, 0, SIZE / 2);
    memset(e->mem + SIZE / 2, 0, SIZE / 2);
    port_do(e, URNIC_WR_RDMA_READ, SIZE / 2, 0, SIZE / 2);
    ck_assert_mem_eq(e->mem, e->mem + SIZE / 2, SIZE / 2);
}

static void begin(struct port_end *e, const struct way *w)
{
    open_end(e, w);
    port_connect(e, w->to);
    transfer(e);
}

static void whole_life(const struct way *w)
{
    struct port_end e;
    begin(&e, w);
    port_close(&e);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* ---- exec ---- */

static void execs(void *arg)
{
    const struct way *w = arg;
    struct port_end e;
    char text[160], self[256] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
    snprintf(text, sizeof(text), "%d %u %s", (int)(w - ways), descriptors() + 4 /* of Check */,
             rig.socket);
    begin(&e, w);
    setenv("LIFE_AFTER_EXEC", text, 1);
    unsetenv("CK_RUN_CASE"); /* which would choose none of its tests */
    unsetenv("CK_RUN_SUITE");
    execl(self, self, NULL); /* liburnic looks for its engine beside the program */
    _exit(3);
}

/* Its next life: nothing of the one before is open, and everything works again. */
START_TEST(after_exec)
{
    int way;
    unsigned fds;
    const char *text = getenv("LIFE_AFTER_EXEC");
    ck_assert_int_ge(sscanf(text, "%d %u %95s", &way, &fds, rig.socket), 2);
    ck_assert_uint_le(descriptors(), fds);
    whole_life(&ways[way]);
}
END_TEST

START_TEST(exec_begins_anew)
{
    const struct way *w = &ways[_i];
    setup_way(w);
    port_await_child(port_child(execs, (void *)(uintptr_t)w));
    teardown_way();
}
END_TEST

/* ---- daemons ---- */

static void becomes_daemon(void *arg)
{
    const struct way *w = arg;
    struct port_end e;
    struct urnic_pd *pd;
    struct urnic_wc wc;
    begin(&e, w);
    const pid_t parent = getpid();
    OK(daemon(1, 1));
    alarm(30);
    while (kill(parent, 0) == 0) /* its threads close its descriptors, the last one when it ends */
        port_nap(1);
    ck_assert_int_eq(urnic_alloc_pd(e.ctx, &pd), -ENODEV);
    ck_assert_int_eq(urnic_poll_cq(e.cq, 1, &wc), -ENODEV);
    ck_assert_int_eq(urnic_close(e.ctx), -ENODEV);
    whole_life(w);
}

/* A program that becomes a daemon after it has opened: its objects end with the parent, and it
 * opens the same port again. */
START_TEST(a_daemon_opens_again)
{
    const struct way *w = &ways[_i];
    int status;
    pid_t pid;
    OK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    setup_way(w);
    pid_t first = port_child(becomes_daemon, (void *)(uintptr_t)w);
    port_await_child(first);
    do
        pid = waitpid(-1, &status, 0);
    while (pid == rig.pid && pid > 0);
    ck_assert_int_gt(pid, 0);
    ck_assert_int_ne(pid, peer);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    teardown_way();
}
END_TEST

/* ---- vfork ---- */

static void vforks(void *arg)
{
    const struct way *w = arg;
    char name[] = "true", *argv[] = {name, NULL};
    struct port_end e;
    begin(&e, w);
    for (unsigned i = 0; i < 20; i++) {
        OK(port_post(&e, URNIC_WR_RDMA_WRITE, 0, 0, SIZE / 2)); /* under way meanwhile */
        /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): this is its test */
        pid_t pid = vfork();
        if (pid == 0) {
            execv("/bin/true", argv);
            _exit(1);
        }
        ck_assert_int_gt(pid, 0);
        port_await_child(pid);
        ck_assert_int_eq(port_await(&e).status, URNIC_WC_SUCCESS);
        OK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
        transfer(&e);
        port_await_child(pid);
    }
    port_close(&e);
}

START_TEST(vfork_disturbs_nothing)
{
    const struct way *w = &ways[_i];
    setup_way(w);
    port_await_child(port_child(vforks, (void *)(uintptr_t)w));
    teardown_way();
}
END_TEST

/* ---- dlclose ---- */

/* liburnic as a plug-in of the program. */
struct plugin {
    void *handle;
    int (*open_port)(const char *spec, struct urnic_context **ctx, char *why, size_t size);
    int (*open_at)(const char *path, const char *device, int worker, struct urnic_context **ctx);
    int (*close)(struct urnic_context *ctx);
};

static void load(struct plugin *p)
{
    p->handle = dlopen(getenv("LIBURNIC"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(p->handle != NULL, "%s", dlerror());
    *(void **)&p->open_port = dlsym(p->handle, "urnic_open_port");
    *(void **)&p->open_at = dlsym(p->handle, "urnic_open_at");
    *(void **)&p->close = dlsym(p->handle, "urnic_close");
}

static struct urnic_context *plugin_open(const struct plugin *p, const struct way *w)
{
    struct urnic_context *ctx = NULL;
    setenv("URNIC_ENGINE", "application,progress=thread", 1);
    OK(w->here ? p->open_port(w->here, &ctx, NULL, 0) : p->open_at(rig.socket, "urn0", -1, &ctx));
    return ctx;
}

static void unloads(void *arg)
{
    const struct way *w = arg;
    struct plugin p;
    for (unsigned i = 0; i < 3; i++) {
        load(&p);
        OK(p.close(plugin_open(&p, w)));
        OK(dlclose(p.handle));
    }
    load(&p);
    (void)plugin_open(&p, w);
    OK(dlclose(p.handle)); /* its threads run on */
    port_nap(50);
    if (rig.pid > 0)
        kill(rig.pid, SIGKILL); /* one of them notices */
    port_nap(200);
}

/* A program that unloads the library, perhaps with a port open. */
START_TEST(dlclose_crashes_nothing)
{
    const struct way *w = &ways[_i];
    if (!w->here) {
        rig_start_pair(&rig, "");
        rig_await_link(&rig, "urn0");
    }
    port_await_child(port_child(unloads, (void *)(uintptr_t)w));
    if (rig.pid > 0)
        rig_kill(&rig);
}
END_TEST

/* ---- closed descriptors ---- */

/* Descriptors of the program's own that have taken the numbers of the library's. */
struct strangers {
    int first, pair[2];
    char name[32];
};

/* Copies of `fd` have the numbers from `first` on, every second one if `odd`. */
static void strangers_take(int fd, int first, bool odd)
{
    for (int to = first + odd; to < first + (int)STRANGERS; to += 1 + odd)
        ck_assert_int_eq(dup2(fd, to), to);
}

/* A descriptor beyond these numbers. */
static int apart(const struct strangers *s, int fd)
{
    return fcntl(fd, F_DUPFD, s->first + (int)STRANGERS);
}

/* Files come at once, as a log file does. */
static void strangers_come(struct strangers *s, int first)
{
    s->first = first;
    strcpy(s->name, "/tmp/urnic-life-XXXXXX");
    int file = apart(s, mkstemp(s->name));
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, "stranger", 8), 8);
    strangers_take(file, first, false);
}

/* Sockets take the place of half of them. */
static void strangers_talk(struct strangers *s)
{
    int pair[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    ck_assert_int_eq(write(pair[0], "stranger", 8), 8);
    for (unsigned i = 0; i < 2; i++)
        s->pair[i] = apart(s, pair[i]);
    strangers_take(s->pair[1], s->first, true);
}

/* None of them was closed, written or read. */
static void strangers_check(const struct strangers *s)
{
    char text[16];
    for (int fd = s->first; fd < s->first + (int)STRANGERS; fd++) {
        struct stat st;
        ck_assert_msg(fstat(fd, &st) == 0, "descriptor %d is closed", fd);
        ck_assert_msg(S_ISSOCK(st.st_mode) == ((fd - s->first) & 1), "descriptor %d is another",
                      fd);
    }
    int file = open(s->name, O_RDONLY);
    ck_assert_int_eq(read(file, text, sizeof(text)), 8);
    ck_assert_mem_eq(text, "stranger", 8);
    ck_assert_int_eq(recv(s->pair[1], text, sizeof(text), MSG_DONTWAIT), 8);
    ck_assert_mem_eq(text, "stranger", 8);
    ck_assert_int_lt(recv(s->pair[0], text, sizeof(text), MSG_DONTWAIT), 0);
    ck_assert_int_eq(errno, EAGAIN);
    unlink(s->name);
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void closes_all(void *arg)
{
    const struct way *w = arg;
    struct urnic_device_attr attr;
    struct strangers s;
    struct port_end e;
    struct urnic_wc wc;
    int n, first = open("/dev/null", O_RDONLY);
    close(first);
    begin(&e, w);
    closefrom(first);
    strangers_come(&s, first);
    alarm(60);
    (void)port_post(&e, URNIC_WR_RDMA_WRITE, 0, 0, SIZE / 2);
    uint64_t until = port_now() + 10000000000u;
    while ((n = urnic_query_device(e.ctx, &attr)) == 0 && port_now() < until)
        port_nap(10);
    ck_assert_int_eq(n, -ENODEV);
    while ((n = urnic_poll_cq(e.cq, 1, &wc)) >= 0 && port_now() < until)
        sched_yield();
    ck_assert_int_eq(n, -ENODEV);
    strangers_talk(&s);
    uint64_t used = cpu_ns();
    port_nap(300);
    used = cpu_ns() - used;
    ck_assert_msg(used < 200000000u, "a thread spins: %llu ns of 300 ms", (unsigned long long)used);
    port_close(&e);
    strangers_check(&s);
    closefrom(first);
    whole_life(w);
}

/* A program that closes all descriptors: its context is dead, as if the device had gone, and the
 * descriptors that have taken their numbers are left alone. */
START_TEST(closefrom_ends_the_context)
{
    const struct way *w = &ways[_i];
    setup_way(w);
    port_await_child(port_child(closes_all, (void *)(uintptr_t)w));
    teardown_way();
}
END_TEST

int main(void)
{
    const struct port_test next[] = {{"after exec", after_exec, 1}};
    const struct port_test tests[] = {
        {"exec", exec_begins_anew, WAYS},
        {"daemon", a_daemon_opens_again, WAYS},
        {"vfork", vfork_disturbs_nothing, WAYS},
        {"dlclose", dlclose_crashes_nothing, WAYS},
        {"closefrom", closefrom_ends_the_context, WAYS},
    };
    if (getenv("LIFE_AFTER_EXEC"))
        return port_run("next life", next, 1);
    return port_run("life", tests, sizeof(tests) / sizeof(tests[0]));
}
